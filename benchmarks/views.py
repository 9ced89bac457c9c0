"""The time that views take: the what-if panel, the search tree at 2,000 nodes, and the reports.

    python benchmarks/views.py

Prints seconds (median of several), asserts nothing. The what-if panel is the one in the notebook: its time
is from the move of a slider until the answer, the text and the figure are passed to the page. A figure counts as drawn
when its JSON is written.
"""

import itertools
import statistics
import sys
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from example_measurement import example_measurement

from workbench.capacity.planning import read_instances
from workbench.journal import Journal
from workbench.placement import CostVector, PlacementProblem, search, trace_search
from workbench.report import render
from workbench.study import Study, run_study
from workbench.views.figures import (
    cost_risk,
    cost_vectors,
    draw_cost_risk,
    draw_pareto,
    draw_placement_map,
    draw_search_tree,
    placement_map,
    search_tree,
)
from workbench.views.widgets import CapsExplorer, WhatIf

DATA = Path(__file__).parents[1] / "data"
NODES = 2000
STUDY = """query: checkout
targets: [500000, 2000000]
slots: [2, 4, 8]
memory_mb: [2048]
testbed: recorded
table: {table}
slot_cpus: 1
choice: edge
most_runs: 4
"""
TABLE = """memory_mb,slots,rate
2048,2,61000
2048,4,118000
2048,4,121000
2048,8,233000
"""


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
    study = Study(
        "nexmark:q11", (1e6, 3e6), (4, 6, 8, 12, 16), (512, 1024, 2048),
        testbed="fluid", slot_cpus=1.0, interval_s=5.0, most_runs=9,
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        planned = run_study(study, Journal(Path(folder) / "journal.jsonl"))
    instances = read_instances(DATA / "instances.csv")
    started = time.perf_counter()
    panel = WhatIf(planned, instances)
    report("what-if: the panel appears", time.perf_counter() - started)
    moves = {
        "another rate": (panel.rate, [1.1e6, 1.2e6, 1.3e6]),
        "a rate so high that the curves are drawn again": (panel.rate, [5e5, 8e6]),
        "another memory": (panel.memory, [memory for _, memory in panel.memory.options]),
        "another margin": (panel.margin, [1.2, 1.3, 1.4]),
        "another worker shape": (panel.shape, [3, 5, 6]),
        "another price": (panel.price, [0.3, 0.4, 0.5]),
        "more skew": (panel.skew, [5.0, 10.0, 15.0]),
        "a risk in place of the margin": (panel.risk, [0.05, 0.1, 0.2]),
        "a worker may be lost": (panel.lost, [True, False]),
    }
    for what, (control, values) in moves.items():
        before, turns = control.value, itertools.cycle(values)
        report(f"what-if: {what}", median(lambda control=control, turns=turns: control.set_trait("value", next(turns))))
        if panel.alarm.widget.value:
            raise SystemExit(f"{what}: the panel shows an error.")
        control.value = before
    model, profile = planned.exploration.model, planned.exploration.measurements[0].budget.profile
    report("cost against risk, data", median(lambda: cost_risk(model, 2e6, profile, instances[0]), 5))
    found = cost_risk(model, 2e6, profile, instances[0])
    report("cost against risk, drawing", median(lambda: draw_cost_risk(found)))


def over(workers, tasks):
    return PlacementProblem(
        dict(zip(("source", "map", "window", "sink"), tasks, strict=True)),
        [("source", "map"), ("map", "window"), ("window", "sink")],
        workers,
        4,
        {"source": 0.06, "map": 0.43, "window": 0.74, "sink": 0.02},
        {"source": 0, "map": 0, "window": 17_067, "sink": 0},
        {"source": 1.88, "map": 0.155, "window": 0.361, "sink": 0},
    )


def placement():
    problem = over(4, (2, 5, 8, 1))
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
    explorer, turns = CapsExplorer(over(3, (2, 3, 4, 1))), itertools.cycle([0.5, 0.6, 0.7])
    moved = median(lambda: explorer.sliders[0].set_trait("value", next(turns)))
    report("CAPS explorer: the notebook's, a threshold moves", moved, f"{len(explorer.search.order)} choices")
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
    for rows, word in ((56, "folded"), (10**6, "every node")):
        report(f"  laid out, {word}", median(partial(search_tree, tree, rows=rows)))
        data = search_tree(tree, rows=rows)
        report(f"  drawn, {word}", median(partial(draw_search_tree, data)), f"{len(data.nodes)} marks")
        text = f"{len(draw_search_tree(data).to_json()) / 1e3:,.0f} kB"
        report(f"  drawn and written as JSON, {word}", median(partial(written, data)), text)


def written(data):
    return draw_search_tree(data).to_json()


def reports():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        example_measurement().to_json(folder / "q5.json")
        (folder / "study.yaml").write_text(STUDY.format(table=folder / "measured.csv"))
        (folder / "measured.csv").write_text(TABLE)
        for template, given in (
            ("measure", {"measurement": folder / "q5.json"}),
            ("capacity", {"study": folder / "study.yaml", "history": folder / "history"}),
            ("placement", {"placement": DATA / "placement.yaml"}),
            ("scaling", {"rates": DATA / "day.csv"}),
        ):
            started = time.perf_counter()
            made = render(template, {key: str(path) for key, path in given.items()}, folder / f"{template}.html")
            seconds = time.perf_counter() - started
            size = f"{made.path.stat().st_size / 1e6:.2f} MB"
            report(f"{template} report, papermill and HTML", seconds, size if made.complete else made.error)


def main():
    warnings.simplefilter("ignore")
    what_if()
    placement()
    reports()


if __name__ == "__main__":
    main()
