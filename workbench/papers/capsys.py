"""CAPSys (EuroSys '25), sections 4.4 and 6, in the fluid engine. "CAPSys" is its method from end to end: see `caps`.

Loads come from the authors' profiles (`capsys_query`). Workers have as much CPU and state access as the best balanced
plan needs at the target, so targets are just met (section 3.1), and 10 Gbit/s unless stated. The paper measured on EC2,
with garbage collection and other effects that the engine lacks. Flink's strategies are random; everything is seeded.

Section 3.3 says that inference triggers garbage collection and does not say what it costs. So Table 4 and Figure 9 also
have runs in which two inference tasks of a worker together get at most 1.5 times the rate of one: an assumption of
ours, modelled as a resource of the worker that only inference uses.
"""

import math
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import numpy as np

from workbench.arrays import Ints
from workbench.papers import capsys_motivation
from workbench.papers.capsys_motivation import placed
from workbench.papers.figure import Panel, Paper, Reproduction, Series
from workbench.papers.recorded import read_figures
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
from workbench.simulation import Worker, capsys_query

NAME = "capsys"
FLINK: Mapping[str, Callable[..., Ints]] = {"default": flink_default, "evenly": flink_evenly}
SIZES = {"": 1.0, ", workers 1.25 times as large (our choice)": 1.25}
"""By the ending of a panel's title: times the workers that the most even plan of all six queries just fills."""
CASES = {"": math.inf, ", if two inference tasks get 1.5 times the rate of one (our assumption)": 1.5}
"""By the ending of a panel's title: times the rate of one inference task that two on a worker get at most."""
_DRAWS = 10


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
    """Count the targets of Figure 8 that a strategy meets on workers of one of `SIZES`."""
    return float(sum(value >= 99 for value in made.named(label, f"Throughput{size}").values))


def right(ours: Iterable[Series], strategy: str, case: str = "") -> int:
    """Count the cells of a strategy in Table 4, of eight, that are right in every run; `case` is one of `CASES`."""
    panels, steps = {f"Throughput met{case}", f"Resources right{case}"}, [f"{strategy} {step}" for step in range(1, 5)]
    return sum(one.at(step) == 100 for one in ours if one.panel in panels for step in steps)


def _more(made: Reproduction, strategy: str) -> float:
    decided = made.named("ours", "Decisions")
    return decided.at(strategy) - decided.at("CAPSys")


_READERS: Mapping[str, Callable[..., float]] = {
    **capsys_motivation.READERS,
    "met": _met,
    "right": lambda made, *cells: float(right((one for one in made.series if not one.published), *cells)),
    "decisions more": _more,
    "highest": lambda made, name, panel: max(made.named(name, panel).values),
    "longest": lambda made: max(max(one.values) for one in made.series if not one.published),
}
PAPER = Paper(
    NAME,
    "CAPSys: Contention-aware task placement for data stream processing (EuroSys '25)",
    read_figures(
        NAME, {**capsys_motivation.MAKERS, "Figure 7": _figure_7, "Figure 10a": _figure_10a}, _READERS
    ),
)
