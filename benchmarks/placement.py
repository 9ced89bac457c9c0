"""Placement: all plans, the first plan, the optima and their gaps, the tuning, and CAPSys' queries, in one run.

Run ``python benchmarks/placement.py [seconds per probe of the tuning] [part ...]``; the parts are all, first, optimum,
table2, queries, all five if none is named. The instances are in ``placement_instances.json``. Prints medians of warm
runs:

- seconds to enumerate and cost all plans on 8 x 4 slots;
- milliseconds to the first plan, or to the proof that there is none, for 16 to 256 tasks at the thresholds of CAPSys
  6.5.1;
- for 64 to 1024 tasks the seconds to the least cost within the requested gap, its cost and proven gap; and the seconds
  of the auto-tuning of CAPSys 5.2, which has no bound, and the cost of its plan (with the paper's 5 s per probe, it
  takes minutes);
- plans, nodes and seconds for the seven thresholds of Table 2, with and without reordering;
- for CAPSys' six queries, each on 4 x 8 slots (Figure 7) and all on 18 x 8 (Figure 8), on workers that the plan of the
  least cost just fills: the share of its target that each query sustains by each method, and the optimum's bound, gap
  and seconds (with the paper's 5 s per probe it takes minutes).

Asserts nothing.
"""

import json
import statistics
import sys
import time
from pathlib import Path

import numpy as np

from workbench.errors import WorkbenchError
from workbench.placement import (
    CostVector,
    PlacementInput,
    PlacementProblem,
    calibrated_worker,
    caps,
    optimal,
    place,
    search,
    shared,
    tune,
)
from workbench.simulation import CAPSYS_QUERIES, capsys_query

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
    print("\nLeast max(cpu, io, net) with proven gap, and the paper's tuning")
    missed = []
    for instance in GIVEN["instances"]:
        given = problem(instance)
        tuned = (instance["workers"], instance["slots"]) in TUNED
        for limit, gap in AIMS.get(instance["workers"] * instance["slots"], []):
            seconds, plan = timed(lambda given=given, gap=gap, limit=limit: optimal(given, gap, limit, "cost"), 5)
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


DRAWS, ODRP_S = 50, 60.0
COLUMNS = {"section 5.2": 11} | {  # width of each method's column
    "caps": 6,
    "optimal": 7,
    "flink-default": 13,
    "flink-evenly": 13,
    "odrp": 6,
    "caps-first": 10,
    "least-cost": 10,
    "round-robin": 11,
}


def queries(probe_s):
    print(f"\nCAPSys' queries: % of the target sustained; of Flink's strategies the mean and worst of {DRAWS} draws")
    print(f"  section 5.2 has {probe_s:g} s per probe, ODRP {ODRP_S:g} s in all")
    print(f"  {'':14} {' '.join(f'{name:>{width}}' for name, width in COLUMNS.items())} | optimum: bound, gap, seconds")
    for name in CAPSYS_QUERIES:
        shares, optimum = measured({name: on_workers(name, 4)}, probe_s)
        show(name, {method: found and [one[name] for one in found] for method, found in shares.items()}, optimum)
    print("  all six on 18 x 8 slots:")
    shares, optimum = measured({name: on_workers(name, 18) for name in CAPSYS_QUERIES}, probe_s)
    for name in CAPSYS_QUERIES:
        show(name, {method: found and [one[name] for one in found] for method, found in shares.items()})
    show("least", {method: found and [min(one.values()) for one in found] for method, found in shares.items()}, optimum)


def on_workers(name, workers):
    query = capsys_query(name)
    return PlacementProblem.from_dataflow(
        query.model.dataflow, query.profiles, query.rates(), workers, 8, parallelism=query.tasks
    )


def as_printed(given, probe_s):
    """CAPS with thresholds tuned as section 5.2 reads: without ceilings, and by searches alone."""
    tuning = tune(given.problem, timeout_s=probe_s, bounds=False)
    found = caps(given.problem, thresholds=tuning.thresholds, worker=given.worker).best
    return given.problem, (found or tuning.plan).counts


def measured(problems, probe_s):
    """Shares of their targets that the queries sustain, by method, once for each draw; none if refused. The optimum."""
    bare = PlacementInput(problems, 1.0)  # a rate of 1: the targets
    given = PlacementInput(problems, 1.0, calibrated_worker(bare.problem))
    found = {}
    for method in COLUMNS:
        draws = DRAWS if method.startswith("flink") else 1
        limit = ODRP_S if method == "odrp" else None
        try:
            if method == "section 5.2":
                plans = [as_printed(given, probe_s)]
            else:
                placed = [place(given, method, seed=seed, timeout_s=limit) for seed in range(draws)]
                plans = [(one.problem, one.counts) for one in placed]
        except WorkbenchError as error:
            print(f"  {method}: {error}")
            found[method] = None
            continue
        if method == "optimal":
            (optimum,) = placed
        found[method] = [sustained(given, *plan) for plan in plans]
    best = max(min(one.values()) for shares in found.values() for one in shares or ())
    if best > min(found["optimal"][0].values()) * (1 + 1e-6):
        print(f"  OPTIMUM BELOW ANOTHER: {found['optimal'][0]} < {best:.6f}")
    return found, optimum


def sustained(given, problem, counts):
    """Share of its target that each query sustains; ODRP has chosen its numbers of tasks, in the same order."""
    tasks = iter(problem.parallelism)
    queries = {
        name: one.with_parallelism(dict(zip(one.operators, tasks, strict=False))) for name, one in given.queries.items()
    }
    outcomes = shared(queries, dict.fromkeys(queries, 1.0), counts, given.worker)
    return {name: one.throughput for name, one in outcomes.items()}


def show(name, shares, optimum=None):
    def text(method, width):
        values = shares[method]
        if values is None:
            return f"{'refused':>{width}}"
        mean = f"{100 * float(np.mean(values)):.1f}"
        return f"{mean + (f' ({100 * min(values):.1f})' if len(values) > 1 else ''):>{width}}"

    line = f"  {name:14} {' '.join(text(method, width) for method, width in COLUMNS.items())}"
    if optimum is not None:
        gap = max(0.0, 1 - optimum.rate.rate / optimum.bound)
        line += f" | {100 * optimum.bound:.3f}, {gap:.1e}, {optimum.seconds:.2f}"
    print(line, flush=True)


PARTS = {"all": all_plans, "first": first, "optimum": optimum, "table2": table_2, "queries": queries}


def main():
    probe_s = float(sys.argv[1]) if len(sys.argv) > 1 else 0.2
    warm = problem(GIVEN["instances"][0])
    optimal(warm, gap=0)
    search(warm, THRESHOLDS[2], first=True)
    for part in sys.argv[2:] or PARTS:
        PARTS[part](probe_s)


if __name__ == "__main__":
    main()
