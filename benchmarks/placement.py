"""Placement: all plans, the first plan, the optimum with its gap, and the paper's tuning, in one run.

Run ``python benchmarks/placement.py [seconds per probe of the tuning] [part ...]``; the parts are all, first, optimum,
table2, all four if none is named. The instances are in ``placement_instances.json``. Prints medians of warm runs:

- seconds to enumerate and cost all plans on 8 x 4 slots;
- milliseconds to the first plan, or to the proof that there is none, for 16 to 256 tasks at the thresholds of CAPSys
  6.5.1;
- for 64 to 1024 tasks the seconds to the optimum within the requested gap, its cost and proven gap; and the seconds of
  the auto-tuning of CAPSys 5.2, which has no bound, and the cost of its plan (with 5 s per probe, as in the paper, it
  takes minutes);
- plans, nodes and seconds for the seven thresholds of Table 2, with and without reordering.

Asserts nothing.
"""

import json
import statistics
import sys
import time
from pathlib import Path

from workbench.placement import CostVector, PlacementProblem, optimal, search, tune

GIVEN = json.loads(Path(__file__).with_name("placement_instances.json").read_text(encoding="utf-8"))
THRESHOLDS = (CostVector(0.08, 0.15, 0.6), CostVector(0.15, 0.25, 0.8), CostVector(0.25, 0.3, 0.9))
TABLE_2 = {None: "3.25m", 0.5: "2.45m", 0.2: "796k", 0.1: "10k", 0.05: "4465", 0.03: "24", 0.01: "0"}
# slots: (seconds, gap) to keep
AIMS = {
    64: [(0.15, 5e-4)],
    128: [(0.15, 5e-4)],
    256: [(0.3, 5e-4)],
    512: [(1.0, 5e-4)],
    1024: [(1.0, 5e-3), (5.0, 1.5e-3)],
}
TUNED = {(8, 8), (8, 16), (16, 16), (16, 32), (16, 64)}  # shapes: the tuning takes long


def problem(instance):
    query = GIVEN["queries"][instance["query"]]
    tasks = dict(zip(query["operators"], instance["parallelism"], strict=True))
    loads = (query["cpu"], query["io"], query["net"])
    return PlacementProblem(tasks, query["edges"], instance["workers"], instance["slots"], *loads)


def name(instance):
    idle = f"{instance['idle']:.0%} idle" if instance["idle"] else "full"
    shape = f"{instance['workers']}x{instance['slots']}"
    return f"{instance['query']:9} {sum(instance['parallelism']):5} tasks {shape:>6} {idle:8}"


def timed(run, repeats):
    """Median seconds of `run`, and its last result."""
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        answer = run()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken), answer


def all_plans(_probe_s):
    print("All plans enumerated and costed, one core (aim: 1 s)")
    for instance in GIVEN["counted"]:
        given = problem(instance)
        seconds, found = timed(lambda given=given: search(given), 5)
        known = "as published" if found.count == instance["plans"] else f"published: {instance['plans']}"
        rate = found.count / seconds / 1e6
        print(f"  {name(instance)} {seconds:7.3f} s  {found.count} plans ({known}), {rate:.1f} M plans/s")


def first(_probe_s):
    print("\nFirst plan, or the proof that there is none (aim: 1 ms; paper: up to 100 ms)")
    slowest = 0.0
    for instance in GIVEN["instances"]:
        if instance["workers"] * instance["slots"] > 256:
            continue
        given, line = problem(instance), ""
        for limits in THRESHOLDS:
            seconds, found = timed(lambda given=given, limits=limits: search(given, limits, first=True), 15)
            slowest = max(slowest, seconds)
            line += f"  {1e3 * seconds:7.3f} ms {'plan' if found.best else 'none'}"
        print(f"  {name(instance)} {line}")
    print(f"  slowest: {1e3 * slowest:.3f} ms")


def optimum(probe_s):
    print("\nOptimum of max(cpu, io, net) with proven gap, and the paper's tuning")
    missed = []
    for instance in GIVEN["instances"]:
        given = problem(instance)
        tuned = (instance["workers"], instance["slots"]) in TUNED
        for limit, gap in AIMS.get(instance["workers"] * instance["slots"], []):
            seconds, plan = timed(lambda given=given, gap=gap, limit=limit: optimal(given, gap=gap, timeout_s=limit), 5)
            met = plan.gap <= gap and seconds <= limit
            line = f"  {name(instance)} {seconds:6.3f} s (aim {limit}) cost {plan.cost.worst:.5f}"
            line += f" gap {plan.gap:7.4%} (aim {gap:.2%}){'' if met else ' MISSED'}"
            if not met:
                missed.append(instance)
            if tuned:
                tuned = False
                taken, tuning = timed(lambda given=given: tune(given, timeout_s=probe_s, bounds=False), 1)
                line += f" | tuning {taken:7.2f} s, {taken / seconds:7.0f} times as long"
                line += (
                    f", cost {tuning.plan.cost.worst:.5f}, {tuning.plan.cost.worst / plan.cost.worst:.2f} times as high"
                )
                line += "" if tuning.minimal else ", probes out of time"
            print(line, flush=True)
    print(f"  aims missed: {len(missed)}")


def table_2(_probe_s):
    print("\nTable 2: the pipeline on 8 x 4 slots under a threshold for cpu")
    given = problem(GIVEN["counted"][0])
    print("  cpu      plans  (paper)     nodes       s | without reordering: plans    nodes       s")
    for limit, paper in TABLE_2.items():
        line = f"  {limit or 'off':<5}"
        for reorder in (True, False):
            thresholds = None if limit is None else CostVector(cpu=limit)
            seconds, found = timed(lambda reorder=reorder, limits=thresholds: search(given, limits, reorder=reorder), 3)
            published = f"  ({paper:>5})" if reorder else ""
            line += f"{found.count:9}{published} {found.nodes:9} {seconds:7.4f}{' |' + 15 * ' ' if reorder else ''}"
        print(line)


PARTS = {"all": all_plans, "first": first, "optimum": optimum, "table2": table_2}


def main():
    probe_s = float(sys.argv[1]) if len(sys.argv) > 1 else 0.2
    warm = problem(GIVEN["instances"][0])
    optimal(warm, gap=0)
    search(warm, THRESHOLDS[2], first=True)
    for part in sys.argv[2:] or PARTS:
        PARTS[part](probe_s)


if __name__ == "__main__":
    main()
