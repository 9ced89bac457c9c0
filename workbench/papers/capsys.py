"""CAPSys (EuroSys '25), sections 3, 4.4 and 6, in the fluid engine. "CAPSys" is its method from end to end: see `caps`.

Loads come from the authors' profiles (`capsys_query`). Workers have as much CPU and state access as the best balanced
plan needs at the target, so targets are just met (section 3.1), and 10 Gbit/s unless stated. The paper measured on EC2,
with garbage collection and other effects that the engine lacks. Flink's strategies are random; everything is seeded.

Section 3.3 says that inference triggers garbage collection and does not say what it costs. So Table 4 and Figure 9 also
have runs in which two inference tasks of a worker together get at most 1.5 times the rate of one: an assumption of
ours, modelled as a resource of the worker that only inference uses.
"""

import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from workbench.arrays import Floats, Ints
from workbench.papers.figure import Panel, Paper, Reproduction, Series, read_figures
from workbench.placement import (
    CEILINGS,
    ONE_GBIT,
    TEN_GBIT,
    CostVector,
    PlacementProblem,
    calibrated_worker,
    caps,
    flink_default,
    flink_evenly,
    optimal,
    search,
    simulated,
    trace_search,
)
from workbench.simulation import ProfiledQuery, Worker, capsys_query

NAME = "capsys"
FLINK: Mapping[str, Callable[..., Ints]] = {"default": flink_default, "evenly": flink_evenly}
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


_MOTIVATION = {"Q1-sliding": (2, 5, 8, 1), "Q2-join": (2, 4, 1, 1, 7, 1), "Q3-inf": (3, 5, 3, 4, 1)}
"""Tasks of the operators on 16 slots (the artefact's motivation runs, section 3)."""
_HUNGRY = {"Q1-sliding": "sliding window", "Q2-join": "window join", "Q3-inf": "inference"}
_MET, _MEAN, _MOST_NODES = 0.999, "ours, mean of the plans", 1_000_000


@dataclass(frozen=True, eq=False)
class Tried:
    """All plans of a query on 4 workers of 4 slots, and the share of the target that each sustains."""

    problem: PlacementProblem
    plans: tuple[Ints, ...]
    shares: Floats


def placed(
    query: ProfiledQuery, workers: int, slots: int, tasks: Mapping[str, int] | None = None, rate: float | None = None
) -> PlacementProblem:
    """Return the placement problem of the query's tasks, as profiled by default."""
    return PlacementProblem.from_dataflow(
        query.model.dataflow, query.profiles, query.rates(rate), workers, slots, parallelism=tasks or query.tasks
    )


@lru_cache(maxsize=4)
def motivation(name: str, net_bytes_per_s: float = TEN_GBIT) -> Tried:
    """Let a query of the motivation run under every plan (section 3)."""
    query = capsys_query(name)
    tasks = dict(zip(query.tasks, _MOTIVATION[name], strict=True))
    rate = query.rate_for(tasks)
    problem = placed(query, 4, 4, tasks, rate)
    worker = calibrated_worker(problem, net_bytes_per_s=net_bytes_per_s)
    plans = _plans(problem)
    shares = [simulated(query.model, problem, plan, rate, worker).throughput / rate for plan in plans]
    return Tried(problem, plans, np.array(shares))


def _plans(problem: PlacementProblem) -> tuple[Ints, ...]:
    """Return every plan of a small problem once; its workers are equal, so their order does not matter."""
    nodes = trace_search(problem, most_nodes=_MOST_NODES).walk()
    by_worker = (sorted(node.plan.counts.T.tolist(), reverse=True) for node in nodes if node.plan is not None)
    return tuple(np.array(plan, dtype=np.int64).T for plan in sorted(by_worker, reverse=True))


def _figure_2(name: str) -> Reproduction:
    tried = motivation(name)
    order = np.argsort(-tried.shares, kind="stable")
    labels = ("P1", "P2", "P3", "P4", "P5", "P6")
    six = [*order[:3], *order[-3:]]
    shares = [float(tried.shares[index]) for index in six]
    window = tried.problem.operators.index(_HUNGRY[name])
    met = int((tried.shares > _MET).sum())
    throughput = Panel("Throughput", "Plan", "Throughput (% of the fastest plan)", "bars")
    held = Panel("Back-pressure", "Plan", "Back-pressure (%); ours: records held back", "bars")
    crowd = Panel("Co-location", "Plan", f"Most {_HUNGRY[name]} tasks on a worker", "bars")
    series = [
        throughput.series("ours", labels, (100 * share / shares[0] for share in shares)),
        held.series("ours", labels, (100 * (1 - share) for share in shares)),
        crowd.series("ours", labels, (tried.plans[index][window].max() for index in six)),
    ]
    if name == "Q1-sliding":
        series += [
            throughput.series("paper", ("P1", "P6"), (100.0, 100 * 9 / 14), published=True),
            held.series("paper", ("P1", "P6"), (6.8, 86.4), published=True),
        ]
    plans = Panel("Plans", "Plans", "Plans", "bars")
    series.append(plans.series("ours", ("all", "meet the target"), (len(tried.plans), met)))
    return Reproduction((throughput, held, crowd, plans), tuple(series))


_CASES: Mapping[str, tuple[str, tuple[str, ...], float, float | None, tuple[float, float] | None]] = {
    "3a: inference of Q3-inf (CPU)": ("Q3-inf", ("inference",), TEN_GBIT, None, None),
    "3b: window joins of Q2-join (state)": ("Q2-join", ("window join",), TEN_GBIT, 100 * 91 / 110, (4.0, 32.0)),
    "3c: sources and transforms of Q3-inf (1 Gbit/s)": (
        "Q3-inf",
        ("source", "transform"),
        ONE_GBIT,
        100 * 1185 / 1555,
        (12.0, 37.0),
    ),
}
"""Query, operators, network, and the published throughput (%) of the contended plans and back-pressure (%)."""


def _figure_3(_: str) -> Reproduction:
    panels, series = [], []
    for title, (name, operators, net, published, back) in _CASES.items():
        tried = motivation(name, net)
        rows = [tried.problem.operators.index(operator) for operator in operators]
        degree = np.array([plan[rows].sum(axis=0).max() for plan in tried.plans])
        levels = sorted({int(level) for level in degree})
        ends = (levels[0], levels[-1])
        groups = [tried.shares[degree == level] for level in levels]
        least = float(groups[0].mean())
        held = Panel(f"{title}, back-pressure", "Most such tasks on one worker", "Back-pressure (%)")
        rates = Panel(title, held.x, "Throughput (% of least contended)")
        panels += [rates, held]
        means = ([100 * float(of(group)) / least for group in groups] for of in (np.mean, np.min, np.max))
        series += [
            rates.series(_MEAN, levels, *means),
            held.series(_MEAN, levels, (100 * (1 - float(group.mean())) for group in groups)),
        ]
        if published is not None and back is not None:
            series += [
                rates.series("paper", ends, (100.0, published), published=True),
                held.series("paper", ends, back, published=True),
            ]
    return Reproduction(tuple(panels), tuple(series))


def _figure_5(name: str) -> Reproduction:
    tried = motivation(name)
    costs = np.array([tuple(tried.problem.cost(plan)) for plan in tried.plans])
    columns = dict(zip(("CPU", "State access", "Network", "Worst"), (*costs.T, costs.max(axis=1)), strict=True))
    panels = tuple(
        Panel(f"{what} cost", f"{what} cost (0 even, 1 uneven)", "Throughput (% of the target)", "points")
        for what in columns
    )
    both = zip(panels, columns.values(), strict=True)
    return Reproduction(panels, tuple(one.series("plans", column.tolist(), 100 * tried.shares) for one, column in both))


def _contended(made: Reproduction, title: str) -> float:
    """Read the last value of a panel: that of the most contended plans."""
    return made.named(_MEAN, title).values[-1]


def _of_cheap(made: Reproduction, cost: str) -> float:
    """Compare the twentieth of the plans with the lowest cost with that of the highest."""
    plans = made.named("plans", f"{cost} cost")
    costs, shares = np.array(plans.x, dtype=float), np.array(plans.values)
    low, high = np.quantile(costs, (0.05, 0.95))
    return float(shares[costs <= low].mean() / shares[costs >= high].mean())


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
    """Count the targets of Figure 8 that a strategy meets; `size` is the ending of a panel's title."""
    return float(sum(value >= 99 for value in made.named(label, f"Throughput{size}").values))


def right(ours: Iterable[Series], strategy: str, case: str = "") -> int:
    """Count the cells of a strategy in Table 4, of eight, right in every run; `case` is a panel's ending."""
    panels, steps = {f"Throughput met{case}", f"Resources right{case}"}, [f"{strategy} {step}" for step in range(1, 5)]
    return sum(one.at(step) == 100 for one in ours if one.panel in panels for step in steps)


def _more(made: Reproduction, strategy: str) -> float:
    decided = made.named("ours", "Decisions")
    return decided.at(strategy) - decided.at("CAPSys")


_MAKERS = {
    "Figure 2": _figure_2,
    "Figure 3": _figure_3,
    "Figure 5": _figure_5,
    "Figure 7": _figure_7,
    "Figure 10a": _figure_10a,
}
_READERS: Mapping[str, Callable[..., float]] = {
    "contended": _contended,
    "lost": lambda made, title: _contended(made, title) - 100,
    "of cheap plans": _of_cheap,
    "met": _met,
    "right": lambda made, *cells: float(right((one for one in made.series if not one.published), *cells)),
    "decisions more": _more,
    "highest": lambda made, name, panel: max(made.named(name, panel).values),
    "longest": lambda made: max(max(one.values) for one in made.series if not one.published),
}
PAPER = Paper(
    NAME,
    "CAPSys: Contention-aware task placement for data stream processing (EuroSys '25)",
    read_figures(NAME, _MAKERS, _READERS),
)
