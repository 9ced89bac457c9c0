"""How well a stopwatch predicts the capacity of a query on other cores: the same deployment on slower ones.

    python benchmarks/transfer.py [--times 3] [--slots 4] [--share 0.5] [--plans data/q5.recorded.json] [nexmark:q5]

Three kinds of deployments take turns, on the same slots: `full`, slots of 0.4 core; `slots`, slots of `--share` of
that, whose driver is as fast as before; and `all`, slots of 0.4 core where slots and driver are both held to the share
from outside, as on slower cores. A quota does not show in CPU seconds, so the cores of a kind are as fast as the share
times what the stopwatch says. Prints, for each kind over `full`: the speed of the cores, the ratio of the capacities,
and what is expected of it, in proportion and by the parts of a batch of `--plans`. Deployments are kept in
.workbench/benchmark/transfer.jsonl; an interrupted benchmark goes on from there. It needs CPU quotas, and the machine
for itself.
"""

import argparse
import json
import math
import statistics
import sys
import threading
from contextlib import contextmanager, nullcontext
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from extrapolation import query_of

from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.measuring import filling_rate
from workbench.speed import CoreSpeed, relative_speed, typical
from workbench.study import read_planned
from workbench.testbed import SparkTestbed

KEPT = Path(".workbench/benchmark/transfer.jsonl")
KINDS = ("full", "slots", "all")
INTERVAL_S, CPUS, MEMORY_MB, WARMUP_S = 2.0, 0.4, 1024, 60.0
READINGS, SETTLE_S, FILL_S, READ_S = 3, 10.0, 45.0, 30.0
PERIOD_US, AGAIN_S = 100_000, 0.5
V1, V2 = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")
DRIVER = "-driver"  # ends the name of the driver's group, which has about a core


def groups():
    """Control groups that there are."""
    root = V1 if (V1 / "cgroup.procs").exists() else V2
    return {folder for folder in root.iterdir() if folder.is_dir()}


def limit(folder, cores):
    quota = max(1000, round(cores * PERIOD_US))
    if (folder / "cpu.cfs_quota_us").exists():
        (folder / "cpu.cfs_quota_us").write_text(str(quota))
    elif (folder / "cpu.max").exists():
        (folder / "cpu.max").write_text(f"{quota} {PERIOD_US}")


@contextmanager
def held(made, slots_cores, share):
    """Hold the groups of a deployment to a share of their cores, also after the testbed sets its own quota again."""
    ended = threading.Event()

    def hold():
        while not ended.wait(AGAIN_S):
            for folder in made:
                limit(folder, share * (1.0 if folder.name.endswith(DRIVER) else slots_cores))

    thread = threading.Thread(target=hold, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def deployed(name, slots, kind, share):
    """Deploy once; give each reading's rate and the timings of the cores."""
    cpus = CPUS * (share if kind == "slots" else 1.0)
    budget, before, readings = Budget(slots, SlotProfile(cpus, MEMORY_MB), INTERVAL_S), groups(), []
    with (
        SparkTestbed(warmup_cap_s=WARMUP_S).deploy(query_of(name), budget) as run,
        held(groups() - before, budget.cpus, share) if kind == "all" else nullcontext(),
    ):
        run.set_rate(math.inf)
        run.fill(SETTLE_S, FILL_S)
        for _ in range(READINGS):
            run.settle(SETTLE_S)
            seen = run.observe(READ_S)
            readings.append({
                "rate": filling_rate(seen.batches[1:]),
                "arithmetic_s": seen.cores.arithmetic_s,
                "reads_s": seen.cores.reads_s,
                "throttled": seen.quota_throttled,
            })  # fmt: skip
    return readings


def kept():
    lines = KEPT.read_text().splitlines() if KEPT.exists() else []
    return [json.loads(line) for line in lines]


def rate_of(readings):
    return math.exp(statistics.fmean(math.log(one["rate"]) for one in readings))


def speed_of(readings):
    return typical([CoreSpeed(one["arithmetic_s"], one["reads_s"]) for one in readings])


def by_parts(model, slots, times):
    """Capacity on cores `times` times as fast, over that on the cores of the model's runs."""
    point = [[MEMORY_MB, slots]]
    return times * float(model.at_interval(times * INTERVAL_S).predict(point)[0] / model.predict(point)[0])


def say(name, slots, share, model):
    found = {
        kind: [
            one
            for one in kept()
            if (one["query"], one["slots"], one["share"], one["kind"]) == (name, slots, share, kind)
        ]
        for kind in KINDS
    }
    readings = {kind: [reading for one in some for reading in one["readings"]] for kind, some in found.items()}
    rates = {kind: statistics.median(rate_of(one["readings"]) for one in some) for kind, some in found.items()}
    print(f"{name}, {slots} slots: full {rates['full']:,.0f} records/s, {speed_of(readings['full'])}")
    for kind in KINDS[1:]:
        clock = relative_speed(speed_of(readings[kind]), speed_of(readings["full"]))
        times = share * clock.times
        ratios = sorted(rate_of(one["readings"]) / rates["full"] for one in found[kind])
        print(
            f"  {kind}: cores {times:.3f} times as fast (quota {share:g}, stopwatch {clock}); capacity "
            f"{rates[kind] / rates['full']:.3f} times ({ratios[0]:.3f} to {ratios[-1]:.3f}); expected in proportion "
            f"{times:.3f}, by the parts of a batch {by_parts(model, slots, times):.3f}"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("query", nargs="?", default="nexmark:q5")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--slots", type=int, default=4)
    parser.add_argument("--share", type=float, default=0.5)
    parser.add_argument("--plans", default="data/q5.recorded.json")
    options = parser.parse_args()
    model = read_planned(Path(options.plans)).exploration.model
    by_parts(model, options.slots, options.share)  # what the plans do not know is refused before hours of work
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    for number in range(options.times):
        for kind in KINDS:
            about = {"query": options.query, "slots": options.slots, "share": options.share, "kind": kind}
            about |= {"number": number}
            if any(about.items() <= one.items() for one in kept()):
                continue
            readings = deployed(options.query, options.slots, kind, options.share)
            with KEPT.open("a") as journal:
                journal.write(json.dumps(about | {"readings": readings}) + "\n")
            print(f"{about} {[round(reading['rate']) for reading in readings]}", file=sys.stderr, flush=True)
    say(options.query, options.slots, options.share, model)


if __name__ == "__main__":
    try:
        main()
    except WorkbenchError as error:
        sys.exit(str(error))
