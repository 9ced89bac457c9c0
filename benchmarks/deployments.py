"""How far fresh deployments of one query on the same slots lie apart, quiet and with a neighbour that comes and goes.

    python benchmarks/deployments.py [--times 6] [--slots 4] [--on 20 --off 25] [--idle] [nexmark:q1 nexmark:q5]

Quiet and disturbed deployments take turns, so that what the machine does by itself meets both. The neighbour is busy
on every core for `--on` seconds, then idle for `--off` seconds, all through a deployment. Every reading is kept with
the speed of the slots' cores. Prints (max - min) / max of each kind and the ratio of the two medians: as measured,
corrected by the cores' absolute speed, and corrected by the share of their time that the slots did not get. With
`--idle` the disturbed deployments have a load of the lowest priority on all cores instead of a neighbour. Deployments
are kept in .workbench/benchmark/deployments.jsonl; an interrupted benchmark goes on from there.
"""

import argparse
import json
import math
import multiprocessing
import statistics
import sys
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from extrapolation import QUERIES, query_of

from workbench import units
from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.measuring import filling_rate
from workbench.testbed import SparkTestbed

KEPT = Path(".workbench/benchmark/deployments.jsonl")
INTERVAL_S, CPUS, MEMORY_MB, WARMUP_S = 2.0, 0.2, 1024, 60.0
READINGS, SETTLE_S, FILL_S, READ_S = 3, 10.0, 45.0, 30.0
LOWEST = Path("/sys/fs/cgroup/cpu/workbench-lowest")  # version 1 of control groups


def busy(on_s, off_s, *, lowest=False):
    if lowest:
        LOWEST.mkdir(exist_ok=True)
        (LOWEST / "cpu.shares").write_text("2")
        (LOWEST / "tasks").write_text("0")
    while True:
        until = time.monotonic() + on_s
        while time.monotonic() < until:
            sum(range(10_000))
        time.sleep(off_s)


@contextmanager
def neighbour(on_s, off_s, *, lowest=False):
    """Keep every core busy for `on_s` seconds, then idle for `off_s`, again and again."""
    workers = [
        multiprocessing.Process(target=busy, args=(on_s, off_s), kwargs={"lowest": lowest}, daemon=True)
        for _ in range(multiprocessing.cpu_count())
    ]
    for worker in workers:
        worker.start()
    try:
        yield
    finally:
        for worker in workers:
            worker.terminate()
            worker.join()


def disturbed_by(kind, options):
    """Run what a deployment of this kind has next to it, on every core."""
    if kind == "quiet":
        return nullcontext()
    return neighbour(options.on, options.off) if kind == "neighbour" else neighbour(3600.0, 0.0, lowest=True)


def deployed(name, slots):
    """Deploy once; give each reading's rate, the time of the cores' arithmetic, and the share of their quota used."""
    budget = Budget(slots, SlotProfile(CPUS, MEMORY_MB), INTERVAL_S)
    readings = []
    with SparkTestbed(warmup_cap_s=WARMUP_S).deploy(query_of(name), budget) as run:
        run.set_rate(math.inf)
        run.fill(SETTLE_S, FILL_S)
        for _ in range(READINGS):
            run.settle(SETTLE_S)
            seen = run.observe(READ_S)
            used_s = sum(one.cpu_s for one in seen.operators)
            readings.append({
                "rate": filling_rate(seen.batches[1:]),
                "arithmetic_s": seen.cores.arithmetic_s,
                "reads_s": seen.cores.reads_s,
                "used": used_s / (seen.elapsed_s * budget.cpus),
                "disturbance": seen.disturbance.worst,
            })  # fmt: skip
    return readings


def kept():
    lines = KEPT.read_text().splitlines() if KEPT.exists() else []
    return [json.loads(line) for line in lines]


def means(deployments, corrected):
    """Return the rate of each deployment: the mean of its readings' logarithms after `corrected`."""
    return [
        math.exp(statistics.fmean(math.log(corrected(reading)) for reading in one["readings"])) for one in deployments
    ]


def say(name, slots, kinds):
    found = [one for one in kept() if (one["query"], one["slots"]) == (name, slots)]
    everything = [reading for one in found for reading in one["readings"]]
    typical_s = statistics.median(reading["arithmetic_s"] for reading in everything)
    full = statistics.median(reading["used"] for one in found if one["kind"] == "quiet" for reading in one["readings"])
    corrections = {
        "as measured": lambda reading: reading["rate"],
        "speed of the cores": lambda reading: reading["rate"] * reading["arithmetic_s"] / typical_s,
        "time not got": lambda reading: reading["rate"] * max(1.0, full / reading["used"]),
        "both": lambda reading: (
            reading["rate"] * reading["arithmetic_s"] / typical_s * max(1.0, full / reading["used"])
        ),
    }
    for title, corrected in corrections.items():
        rates = {kind: means([one for one in found if one["kind"] == kind], corrected) for kind in kinds}
        spreads = ", ".join(
            f"{kind} {(max(some) - min(some)) / max(some):.3f} ({units.rate(min(some))} to {units.rate(max(some))})"
            for kind, some in rates.items()
        )
        quiet, other = (statistics.median(some) for some in rates.values())
        print(f"{name}, {slots} slots, {title}: (max - min) / max {spreads}; medians {other / quiet - 1:+.1%}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("queries", nargs="*", default=QUERIES[:2])
    parser.add_argument("--times", type=int, default=6)
    parser.add_argument("--slots", type=int, default=4)
    parser.add_argument("--on", type=float, default=20.0)
    parser.add_argument("--off", type=float, default=25.0)
    parser.add_argument("--idle", action="store_true")
    options = parser.parse_args()
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    kinds = ("quiet", "idle" if options.idle else "neighbour")
    for name in options.queries:
        for number in range(options.times):
            for kind in kinds:
                about = {"query": name, "slots": options.slots, "kind": kind, "number": number}
                if any(about.items() <= one.items() for one in kept()):
                    continue
                with disturbed_by(kind, options):
                    readings = deployed(name, options.slots)
                with KEPT.open("a") as journal:
                    journal.write(json.dumps(about | {"readings": readings}) + "\n")
                print(f"{about} {[round(reading['rate']) for reading in readings]}", file=sys.stderr, flush=True)
        say(name, options.slots, kinds)


if __name__ == "__main__":
    try:
        main()
    except WorkbenchError as error:
        sys.exit(str(error))
