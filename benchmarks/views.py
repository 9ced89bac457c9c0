"""How long views take: what-if figures, the search tree at 2,000 nodes, and a report.

    python benchmarks/views.py

Prints seconds (median of several), asserts nothing. A what-if figure is computed anew from the model, drawn, and put
into a live figure in place, as a slider does; figures count as drawn when their JSON is written.
"""

import statistics
import sys
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from example_measurement import example_measurement

from workbench.capacity import CapacityModel
from workbench.capacity.prices import read_instances
from workbench.dataflow import SlotProfile
from workbench.placement import CostVector, PlacementProblem, search, trace_search
from workbench.report import render
from workbench.views.figures import (
    aimed_at,
    capacity_of,
    cost_risk,
    cost_vectors,
    draw_capacity,
    draw_cost_risk,
    draw_pareto,
    draw_placement_map,
    draw_search_tree,
    placement_map,
    search_tree,
)
from workbench.views.widgets.live_chart import LiveChart

PRICES = Path(__file__).parents[1] / "data" / "instances.csv"
NODES = 2000


def median(call, repeats=15):
    call()
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def report(what, seconds, more=""):
    print(f"{what:58} {1000 * seconds:9.1f} ms  {more}", flush=True)


def what_if():
    budgets = [(memory, slots) for memory in (512, 2048) for slots in (2, 4, 8, 16, 32)]
    rates = [9e4 * slots**0.93 * (memory / 512) ** 0.05 for memory, slots in budgets]
    model = CapacityModel("scaling").fit(budgets, rates)
    runs = [(memory, slots, rate, True) for (memory, slots), rate in zip(budgets, rates, strict=True)]
    targets = iter(range(10**9))

    def answer():
        rate = 2e6 * (1 + next(targets) % 10 / 10)
        return rate, model.slots_for(rate, 2048)

    def data():
        rate, slots = answer()
        return capacity_of(
            model, runs, [(slots, rate, 2048)], [2048], f"{rate:g} records/s take {slots} slots", across=known
        )

    known = capacity_of(model, runs, [], [2048], "").memory_curves
    curves = capacity_of(model, runs, [], [2048], "", reach=80)

    def aimed():
        rate, slots = answer()
        return aimed_at(curves, [(slots, rate, 2048)], f"{rate:g} records/s take {slots} slots")

    live = LiveChart(draw_capacity(data()))
    report("what-if: least slots for a rate, from the model", median(answer))
    report("what-if: another memory: data of the capacity figure", median(data))
    report("what-if: another rate: data of the capacity figure", median(aimed))
    report("what-if: capacity figure, drawing", median(lambda: draw_capacity(curves)))
    report("what-if: another rate, into the live figure", median(lambda: live.show(draw_capacity(aimed()))))
    report("what-if: another memory, into the live figure", median(lambda: live.show(draw_capacity(data()))))
    instances = read_instances(PRICES)
    profile = SlotProfile(1.0, 2048)
    report("cost against risk, data", median(lambda: cost_risk(model, 2e6, profile, instances), 5))
    found = cost_risk(model, 2e6, profile, instances)
    report("cost against risk, drawing", median(lambda: draw_cost_risk(found)))


def placement():
    problem = PlacementProblem(
        {"source": 2, "map": 5, "window": 8, "sink": 1},
        [("source", "map"), ("map", "window"), ("window", "sink")],
        4,
        4,
        {"source": 0.06, "map": 0.43, "window": 0.74, "sink": 0.02},
        {"source": 0, "map": 0, "window": 17_067, "sink": 0},
        {"source": 1.88, "map": 0.155, "window": 0.361, "sink": 0},
    )
    limits = CostVector(0.7, 0.6, 0.8)

    def slider():
        found = search(problem, limits)
        return draw_pareto(cost_vectors(found.pareto, thresholds=limits)), draw_placement_map(
            placement_map(problem, found.best.counts)
        )

    report("CAPS explorer: search, Pareto scatter and map (4 x 4)", median(slider))

    def pruned():
        return draw_search_tree(search_tree(trace_search(problem, limits)))

    report("CAPS explorer: tree at these thresholds, folded", median(pruned))
    wide = PlacementProblem(
        {"source": 2, "map": 5, "join": 4, "sink": 1},
        [("source", "map"), ("map", "join"), ("join", "sink")],
        4,
        4,
        {"source": 0.1, "map": 0.4, "join": 0.7, "sink": 0.0},
        {"source": 0, "map": 0, "join": 1, "sink": 0},
        {"source": 2, "map": 1, "join": 0.5, "sink": 0},
    )
    for limit in (0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.8, 0.9, 1.0):
        tree = trace_search(wide, CostVector(limit, limit, limit), most_nodes=100_000)
        if (size := sum(1 for _ in tree.walk())) >= NODES:
            break
    report(
        f"search tree of {size:,} nodes, traced", median(lambda: trace_search(wide, CostVector(limit, limit, limit)), 3)
    )
    for rows, word in ((56, "folded"), (None, "every node")):
        report(f"  laid out, {word}", median(partial(search_tree, tree, rows=rows)))
        data = search_tree(tree, rows=rows)
        report(f"  drawn, {word}", median(partial(draw_search_tree, data)), f"{len(data.nodes)} marks")
        text = f"{len(draw_search_tree(data).to_json()) / 1e3:,.0f} kB"
        report(f"  drawn and written as JSON, {word}", median(partial(written, data)), text)


def written(data):
    return draw_search_tree(data).to_json()


def reports():
    with tempfile.TemporaryDirectory() as folder:
        example_measurement().to_json(f"{folder}/q5.json")
        started = time.perf_counter()
        made = render("measure", {"measurement": f"{folder}/q5.json"}, Path(folder) / "q5.html")
        seconds = time.perf_counter() - started
        report("measurement report, papermill and HTML", seconds, f"{Path(made.path).stat().st_size / 1e6:.2f} MB")


def main():
    warnings.simplefilter("ignore")
    what_if()
    placement()
    reports()


if __name__ == "__main__":
    main()
