"""CAPSys (EuroSys '25), sections 4.4 and 6, in the fluid engine. "CAPSys" is its method from end to end: see `caps`.

Loads come from the authors' profiles (`capsys_query`). Workers have as much CPU and state access as the best balanced
plan needs at the target, so targets are just met (section 3.1), and 10 Gbit/s unless stated. The paper measured on EC2,
with garbage collection and other effects that the engine lacks. Flink's strategies are random; everything is seeded.
"""

import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import numpy as np

from workbench.arrays import Ints
from workbench.papers import capsys_motivation, capsys_scaling
from workbench.papers.capsys_motivation import placed
from workbench.papers.figure import Panel, Paper, Reproduction, Series
from workbench.papers.recorded import read_figures, redrawn
from workbench.placement import (
    CEILINGS,
    CostVector,
    PlacementProblem,
    calibrated_worker,
    caps,
    flink_default,
    flink_evenly,
    optimal,
    search,
    simulated,
)
from workbench.simulation import CAPSYS_QUERIES, Worker, capsys_query

NAME = "capsys"
FLINK: Mapping[str, Callable[..., Ints]] = {"default": flink_default, "evenly": flink_evenly}
_DRAWS = 10
_LARGER = 1.25  # times the workers that the most even plan just fills, for all six queries together
LIMIT_S = 30.0  # of a search or solver


TABLE_2 = {  # plans, nodes, and nodes with reordering
    "off": (3.25e6, 31e6, 31e6),
    "within 0.5": (2.45e6, 31e6, 30e6),
    "within 0.2": (796e3, 11e6, 11e6),
    "within 0.1": (10e3, 1.1e6, 535e3),
    "within 0.05": (4465.0, 1e6, 519e3),
    "within 0.03": (24.0, 1e6, 294e3),
    "within 0.01": (0.0, 798e3, 28e3),
}
TABLE_2_PANELS = tuple(
    Panel(title, "Threshold of the CPU cost", f"{title} (none: no bar)", "bars", log_y=True)
    for title in ("Plans", "Nodes", "Nodes with reordering")
)


def columns(name: str, panels: Iterable[Panel], rows: Mapping[str, Sequence[float]]) -> tuple[Series, ...]:
    """Return a series for each column of a table of ours or the paper's; where a logarithm is drawn, 0 is none."""
    return tuple(
        panel.series(name, rows, (one or (None if panel.log_y else 0.0) for one in values), published=name == "paper")
        for panel, values in zip(panels, zip(*rows.values(), strict=True), strict=True)
    )


def drawn_plans(
    problem: PlacementProblem, worker: Worker, draw: Mapping[str, Callable[[np.random.Generator], Ints]]
) -> dict[str, list[Ints]]:
    """Place as CAPSys does, with the ceilings of its artefact, at most records/s, and as Flink, several times."""
    return {"CAPSys": [caps_plan(problem, worker)], "Optimum (ours)": [optimal(problem, worker=worker).counts]} | {
        label: [one(np.random.default_rng(seed)) for seed in range(_DRAWS)] for label, one in draw.items()
    }


def caps_plan(problem: PlacementProblem, worker: Worker) -> Ints:
    """Place as CAPSys' artefact does."""
    found = caps(problem, worker=worker, ceilings=CEILINGS).best
    assert found is not None  # noqa: S101 - tuned thresholds admit a plan
    return found.counts


def spread(panel: Panel, name: str, values: Mapping[str, Sequence[float]]) -> Series:
    """Return the mean and the range of several values for each name."""
    ranges = ([float(of(one)) for one in values.values()] for of in (statistics.mean, min, max))
    return panel.series(name, values, *ranges)


_SHARE, _HELD = "Throughput (% of the target)", "Records held back (% of those offered)"
_GAINS: Mapping[str, tuple[float | None, ...]] = {
    "Q1-sliding": (1.18, None, None, None),
    "Q5-aggregate": (None, 6.0, None, 5.5),
}
_TEN = "ours, mean and range of ten draws"


def _figure_7(name: str) -> Reproduction:
    query = capsys_query(name)
    problem = placed(query, 4, 8)
    worker = calibrated_worker(problem)
    plans = drawn_plans(problem, worker, {label: partial(draw, problem) for label, draw in FLINK.items()})
    outcomes = {
        label: [simulated(query.model, problem, counts, query.rate, worker) for counts in drawn]
        for label, drawn in plans.items()
    }
    shares = {label: [100 * one.throughput / query.rate for one in found] for label, found in outcomes.items()}
    held = {label: [100 * one.back_pressure for one in found] for label, found in outcomes.items()}
    rates = Panel("Throughput", "Strategy", _SHARE, "bars")
    back = Panel("Back-pressure", "Strategy", _HELD, "bars")
    gains = Panel("Gain", "Compared with", "Throughput of CAPSys (x)", "bars")
    compared = tuple(f"{label}, {which}" for label in FLINK for which in ("mean", "lowest"))
    ours = tuple(shares["CAPSys"][0] / of(shares[label]) for label in FLINK for of in (statistics.mean, min))
    published = _GAINS.get(name, ())
    target = rates.series("paper", ("CAPSys",), (100.0,), published=True)
    found = [spread(rates, _TEN, shares), spread(back, _TEN, held), target, gains.series(_TEN, compared, ours)]
    if published:
        found.append(gains.series("paper", compared, published, published=True))
    return Reproduction((rates, back, gains), tuple(found))


SIZES = {"": 1.0, f", workers {_LARGER:g} times as large (our choice)": _LARGER}
PANELS_8 = tuple(
    Panel(f"{title}{size}", "Query", y, "bars")
    for size in SIZES
    for title, y in (("Throughput", _SHARE), ("Back-pressure", _HELD))
)
_PUBLISHED_8 = tuple(
    panel.series("paper, CAPSys", CAPSYS_QUERIES, (100.0,) * 6, published=True) for panel in PANELS_8[::2]
)


_TABLE_3 = {
    "CAPSys": (4236.0, 0.5, 27.0, 0.2),
    "ODRP-default": (680.0, 90.0, 14.0, 1636.0),
    "ODRP-weighted": (3396.0, 48.0, 26.0, 4037.0),
    "ODRP-latency": (4043.0, 15.0, 32.0, 1607.0),
}
TABLE_3_PANELS = (
    Panel("Throughput", "Method", "Throughput (records/s)", "bars"),
    Panel("Back-pressure", "Method", "Back-pressure (%); ours: records held back", "bars"),
    Panel("Resources", "Method", "Slots", "bars"),
    Panel("Decision", "Method", "Decision time (s)", "bars", log_y=True),
)


_THRESHOLDS = {
    "thresholds 1 (0.08, 0.15, 0.6)": CostVector(0.08, 0.15, 0.6),
    "thresholds 2 (0.15, 0.25, 0.8)": CostVector(0.15, 0.25, 0.8),
    "thresholds 3 (0.25, 0.3, 0.9)": CostVector(0.25, 0.3, 0.9),
}


def _figure_10a(_: str) -> Reproduction:
    panel = Panel("First plan", "Tasks", "Time to the first plan (ms)", log_x=True, log_y=True)
    series = []
    for label, limits in _THRESHOLDS.items():
        times = {}
        for workers, slots in ((4, 4), (8, 4), (8, 8), (16, 8), (16, 16)):
            problem = filled(workers, slots)
            search(problem, limits, first=True)  # compiled before it is timed
            begun = time.process_time()
            search(problem, limits, first=True)
            times[workers * slots] = 1e3 * max(time.process_time() - begun, 1e-5)
        series.append(panel.series(label, times, times.values()))
    paper = panel.series("paper: up to 100 ms", (16, 256), (100.0, 100.0), published=True)
    return Reproduction((panel,), (*series, paper))


TUNING = Panel("Tuning", "Tasks", "Time (s)", log_x=True, log_y=True)
BOUNDED = "ours, with bounds"


def filled(workers: int, slots: int) -> PlacementProblem:
    """Fill all slots with Q2-join."""
    query = capsys_query("Q2-join")
    return placed(query, workers, slots, _scaled(query.tasks, workers * slots))


def _scaled(tasks: Mapping[str, int], slots: int) -> dict[str, int]:
    """Scale tasks to fill all slots, by the largest remainders."""
    total = sum(tasks.values())
    exact = {name: max(1.0, slots * count / total) for name, count in tasks.items()}
    scaled = {name: int(value) for name, value in exact.items()}
    spare = max(0, slots - sum(scaled.values()))
    for name in sorted(exact, key=lambda one: scaled[one] - exact[one])[:spare]:
        scaled[name] += 1
    return scaled


def _met(made: Reproduction, label: str, size: str = "") -> float:
    """Count the targets that a strategy meets on workers of one of `SIZES`."""
    return float(sum(value >= 99 for value in made.named(label, f"Throughput{size}").values))


_MAKERS = {
    **capsys_motivation.MAKERS,
    "Table 2": redrawn(NAME, "Table 2", TABLE_2_PANELS, columns("paper", TABLE_2_PANELS, TABLE_2)),
    "Figure 7": _figure_7,
    "Figure 8": redrawn(NAME, "Figure 8", PANELS_8, _PUBLISHED_8),
    "Table 3": redrawn(NAME, "Table 3", TABLE_3_PANELS, columns("paper", TABLE_3_PANELS, _TABLE_3)),
    **capsys_scaling.MAKERS,
    "Figure 10a": _figure_10a,
    "Figure 10b": redrawn(
        NAME, "Figure 10b", (TUNING,), [TUNING.series("paper", (64, 1024), (1.16, 125.08), published=True)]
    ),
}
_READERS = {
    **capsys_motivation.READERS,
    **capsys_scaling.READERS,
    "met": _met,
    "highest": lambda made, name, panel: max(made.named(name, panel).values),
    "longest": lambda made: max(max(one.values) for one in made.series if not one.published),
}
PAPER = Paper(
    NAME,
    "CAPSys: Contention-aware task placement for data stream processing (EuroSys '25)",
    read_figures(NAME, _MAKERS, _READERS),
)
