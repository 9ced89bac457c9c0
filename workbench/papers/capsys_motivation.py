"""CAPSys's Figures 2, 3 and 5: what every plan of a small query sustains (sections 3 and 4.4)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from workbench.arrays import Floats, Ints
from workbench.papers.figure import Panel, Reproduction
from workbench.placement import ONE_GBIT, TEN_GBIT, PlacementProblem, calibrated_worker, simulated, trace_search
from workbench.simulation import ProfiledQuery, capsys_query

_MOTIVATION: Mapping[str, Mapping[str, int]] = {  # tasks on 16 slots (the artefact's motivation runs)
    "Q1-sliding": {"source": 2, "transform": 5, "sliding window": 8, "sink": 1},
    "Q2-join": {
        "auctions": 2,
        "transform auctions": 4,
        "persons": 1,
        "transform persons": 1,
        "window join": 7,
        "sink": 1,
    },
    "Q3-inf": {"source": 3, "transform": 5, "compress": 3, "inference": 4, "sink": 1},
}
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
    query, tasks = capsys_query(name), _MOTIVATION[name]
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
        spread = ([100 * float(of(group)) / least for group in groups] for of in (np.mean, np.min, np.max))
        series += [
            rates.series(_MEAN, levels, *spread),
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


MAKERS = {"Figure 2": _figure_2, "Figure 3": _figure_3, "Figure 5": _figure_5}
READERS: Mapping[str, Callable[..., float]] = {
    "contended": _contended,
    "lost": lambda made, title: _contended(made, title) - 100,
    "of cheap plans": _of_cheap,
}
