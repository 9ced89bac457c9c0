"""What `workbench observe` says of a query whose capacity is known, from the log of a load that never reaches it.

    python benchmarks/observing.py [--slots 4] [--slot-cpus 0.2] [--day 80] [nexmark:q1 ... trips]

On real Spark: each query is deployed once and its maximum is read, before and after; in between, a day's load,
compressed into `--day` seconds, is put on it three times, with its peak at 30, 50 and 70 % of the maximum. Each day is
a query of its own in the event log, which is all that `observe` gets. Prints rate and interval against the maximum
read, and how far the days were from it. Logs are kept in .workbench/benchmark/logs; one that is there is read again.
"""

import argparse
import json
import math
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from workbench import units
from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.measuring import filling_rate
from workbench.observing import headroom, read_log
from workbench.testbed import SparkTestbed

sys.path.insert(0, str(Path(__file__).parent))

from extrapolation import QUERIES, query_of

LOGS = Path(".workbench/benchmark/logs")
LEVELS = (0.7, 0.5, 0.3)
NIGHT = 0.1  # lowest load over the peak
INTERVAL_S, MEMORY_MB = 2.0, 1024
SETTLE_S, READ_S = 16.0, 20.0


def event_log():
    """The log of the deployment that runs."""
    places = [Path("/dev/shm"), Path(tempfile.gettempdir())]  # noqa: S108 - where deployments are
    logs = [one for place in places for one in place.glob("workbench-*/**/eventlog/*")]
    return max(logs, key=lambda log: log.stat().st_mtime)


def reading(run, budget):
    run.turn(budget)
    run.set_rate(math.inf)
    run.settle(SETTLE_S)
    return filling_rate(run.observe(READ_S).batches[1:])


def day(run, budget, peak, seconds):
    """Put a day's load on a query of its own: a sine from night to peak and back."""
    run.turn(budget)
    steps = round(seconds / INTERVAL_S)
    for step in range(steps):
        share = NIGHT + (1 - NIGHT) * (1 - math.cos(2 * math.pi * step / steps)) / 2
        run.set_rate(peak * share)
        run.settle(INTERVAL_S)


def recorded(name, slots, cpus, seconds):
    """Run the days of a query, or find them: the log, the maxima read, and the peaks in their order."""
    log = LOGS / f"{name.replace(':', '-')}-{slots}x{cpus:g}.jsonl"
    truth = log.with_suffix(".json")
    if truth.exists():
        return log, json.loads(truth.read_text())
    budget = Budget(slots, SlotProfile(cpus, MEMORY_MB), INTERVAL_S)
    with SparkTestbed().deploy(query_of(name), budget) as run:
        maxima = [reading(run, budget), reading(run, budget)]
        known = statistics.geometric_mean(maxima)
        for level in LEVELS:
            day(run, budget, level * known, seconds)
        maxima.append(reading(run, budget))
        shutil.copy(event_log(), log)
    truth.write_text(json.dumps({"maxima": maxima}))
    return log, json.loads(truth.read_text())


def days_of(log):
    """Queries of the log in order; the days among them follow the two readings."""
    names = {}
    with log.open() as lines:
        for line in lines:
            if "QueryStartedEvent" in line[:120]:
                names[json.loads(line)["id"]] = None
    return list(names)[-1 - len(LEVELS) : -1]


def compare(name, slots, cpus, seconds):
    log, truth = recorded(name, slots, cpus, seconds)
    known = statistics.geometric_mean(truth["maxima"])
    print(
        f"{name}, {slots} slots of {cpus:g}: read {', '.join(units.rate(one) for one in truth['maxima'])}", flush=True
    )
    rows = []
    for level, query in zip(LEVELS, days_of(log), strict=True):
        seen = read_log(log, query)
        found = headroom(seen.batches, INTERVAL_S)
        if found.rate is None:
            print(f"  peak {level:.0%}: {found.why_not}")
            continue
        inside = found.low <= known <= found.high
        rows.append((level, found.rate / known - 1, inside, found.high / found.low))
        print(
            f"  peak {level:.0%}: {units.rate(found.rate)} ({units.rate(found.low)} to {units.rate(found.high)}): "
            f"{found.rate / known - 1:+.1%}, {'inside' if inside else 'OUTSIDE'}; interval seen as {seen.interval_s}, "
            f"{len(seen.batches)} batches, {len(seen.blocks)} blocks"
        )
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("queries", nargs="*", default=QUERIES)
    parser.add_argument("--slots", type=int, default=4)
    parser.add_argument("--slot-cpus", type=float, default=0.2)
    parser.add_argument("--day", type=float, default=80.0)
    options = parser.parse_args()
    LOGS.mkdir(parents=True, exist_ok=True)
    rows = [row for name in options.queries for row in compare(name, options.slots, options.slot_cpus, options.day)]
    for level in LEVELS:
        own = [row for row in rows if row[0] == level]
        if own:
            print(
                f"peak {level:.0%}: median error {statistics.median(abs(row[1]) for row in own):.1%}, "
                f"{sum(row[2] for row in own)} of {len(own)} inside, ends a factor of "
                f"{statistics.median(row[3] for row in own):.2f} apart (median)"
            )


if __name__ == "__main__":
    try:
        main()
    except WorkbenchError as error:
        sys.exit(str(error))
