"""Readings of budgets and layouts that take turns in one warm deployment on real Spark, and what few slots say of many.

    python benchmarks/turns.py collect [QUERY ...]   # nexmark:q1 ... or trips; about a quarter of an hour each

Each reading is a line of .workbench/benchmark/turns.jsonl: query, slots, interval, layout, round and the probe.
"""

import json
import math
import sys
from dataclasses import asdict
from pathlib import Path

from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.records import Probe, probe_to_dict
from workbench.study import find_query
from workbench.testbed import SparkTestbed

sys.path.insert(0, str(Path(__file__).parent))

FOLDER = Path(".workbench/benchmark")
QUERIES = ("nexmark:q5", "nexmark:q8", "trips", "nexmark:q1", "nexmark:q11")
CORES = 0.2
MOST = 8
# Slots, source partitions, state partitions; the interval in seconds; rounds.
PLANS = (
    (2.0, 2, ((1, 1, 1), (2, 2, 2), (4, 4, 4), (8, 8, 8), (4, 8, 8), (8, 16, 16), (1, 8, 8), (1, 8, 32))),
    (10.0, 1, ((8, 8, 8), (4, 4, 4), (2, 2, 2), (1, 1, 1), (8, 16, 16), (1, 8, 8))),
)


def query_of(name):
    if name != "trips":
        return find_query(name)
    import trips

    return find_query("trips:fares", str(trips.write(FOLDER / "trips.parquet")), "picked_up")


def collect(name, sink):
    query = query_of(name)
    whole = Budget(MOST, SlotProfile(CORES, 1024), 2.0)
    with SparkTestbed(progress=lambda text: print(f"  {text}", flush=True)).deploy_shared(query, (whole,)) as run:
        for interval_s, rounds, turns in PLANS:
            for number in range(1, rounds + 1):
                for slots, source, state in turns if number % 2 else turns[::-1]:
                    budget = Budget(slots, whole.profile, interval_s)
                    try:
                        run.turn(budget, {"source": source, "state": state})
                        run.set_rate(math.inf)
                        run.settle(max(8.0, 3 * interval_s))
                        seen = run.observe((7 if interval_s < 5 else 5) * interval_s)
                    except WorkbenchError as error:
                        print(f"  {slots} slots, {source}/{state} partitions, {interval_s:g} s: {error}", flush=True)
                        continue
                    probe = Probe(number, "reading", math.inf, 1, seen)
                    line = {
                        "query": name, "budget": asdict(budget), "source": source, "state": state,
                        "probe": probe_to_dict(probe), "limit": run.source.rate_limit,
                    }  # fmt: skip
                    sink.write(json.dumps(line) + "\n")
                    sink.flush()
                    print(
                        f"  {name} {slots} slots, {source}/{state} partitions, {interval_s:g} s, round {number}: "
                        f"{seen.consumed_rate:,.0f} records/s, last batch {seen.batches[-1].duration_s:.2f} s",
                        flush=True,
                    )


def main(command, names):
    FOLDER.mkdir(parents=True, exist_ok=True)
    if command == "collect":
        with (FOLDER / "turns.jsonl").open("a") as sink:
            for name in names or QUERIES:
                collect(name, sink)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
