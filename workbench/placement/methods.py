"""Every way to place, behind one call, and all of them side by side."""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import median
from typing import Literal, Self, get_args

import numpy as np

from workbench import units
from workbench.checks import integer, shown
from workbench.dataflow import Dataflow, Edge, Operator, OperatorProfile
from workbench.errors import WorkbenchError
from workbench.placement._effort import asked_to_stop, deadline
from workbench.placement._odrp import OdrpWeights, Setting, odrp
from workbench.placement._rates import arriving_rates
from workbench.placement.baselines import (
    Baseline,
    flink_default,
    flink_evenly,
    query_by_query,
    random_slots,
    round_robin,
)
from workbench.placement.caps import search
from workbench.placement.exact import optimal
from workbench.placement.given import PlacementInput
from workbench.placement.grouped import GROUP_METHODS, placed_in_groups
from workbench.placement.plan import SLACK, CostVector, Counts
from workbench.placement.problem import PlacementProblem
from workbench.placement.throughput import PlacedRate, fastest, placed_rate
from workbench.placement.tuning import tune
from workbench.simulation import Worker

Method = Literal[
    "fastest",
    "optimal",
    "caps-first",
    "caps",
    "top-down",
    "task-level",
    "naive-pairs",
    "best-groups",
    "flink-default",
    "flink-evenly",
    "round-robin",
    "random",
    "odrp",
]
METHODS: tuple[str, ...] = get_args(Method)

_LONGEST_S, _FASTEST_S, _PROBE_S = 60.0, 10.0, 5.0
_AS_FAST = 1e-3
_TIGHT = 5e-4  # a bound so little above the rate is reached, but for what the solver rounds

BASELINES: Mapping[str, Baseline] = {
    "flink-default": flink_default,
    "flink-evenly": flink_evenly,
    "round-robin": round_robin,
    "random": random_slots,
}

DEFAULT = "flink-default"
"""The scheduler that others are compared with."""

SEARCHED = ("fastest", "optimal", "caps")
"""Methods that have a plan at any moment, and can be asked to stop with it; see `stopping_when`."""

DRAWN = ("flink-default", "flink-evenly", "random")
"""Methods in which chance has a part."""

BLIND = (*DRAWN, "round-robin")
"""Methods that know no loads."""


@dataclass(frozen=True)
class Placed:
    """Where a method puts the tasks.

    Parameters
    ----------
    method
        Its name.
    problem
        What was placed; ODRP chooses the parallelism itself.
    counts
        Shape (operators, workers).
    cost
        Of the plan.
    rate
        What it sustains; None without the rate of the loads.
    seconds
        Decision time.
    note
        What was proven, or not.
    """

    method: str
    problem: PlacementProblem
    counts: Counts
    cost: CostVector
    rate: PlacedRate | None
    seconds: float
    note: str = ""


@dataclass(frozen=True)
class Compared:
    """A method in a comparison: its plan, or as many as were drawn where chance has a part."""

    plans: tuple[Placed, ...]

    @property
    def placed(self) -> Placed:
        """The first plan."""
        return self.plans[0]

    @property
    def draws(self) -> int:
        """How many plans there are."""
        return len(self.plans)

    @property
    def lowest(self) -> float | None:
        """The lowest rate of a plan, records/s; None without the rate of the loads."""
        return min((plan.rate.rate for plan in self.plans if plan.rate is not None), default=None)

    @property
    def median(self) -> float | None:
        """The median rate of the plans, records/s; None without the rate of the loads."""
        rates = [plan.rate.rate for plan in self.plans if plan.rate is not None]
        return median(rates) if rates else None

    @property
    def worst_cost(self) -> float:
        """The median of the plans' worst costs."""
        return float(median(plan.cost.worst for plan in self.plans))

    @property
    def highest(self) -> float | None:
        """The highest rate of a plan, records/s; None without the rate of the loads."""
        return max((plan.rate.rate for plan in self.plans if plan.rate is not None), default=None)


def best_of(rows: Iterable[Compared]) -> Compared:
    """Give the row of the highest median rate; of rates that are alike, of the lowest worst cost; then the first.

    Rates within a thousandth are alike. Without rates only costs count.
    """
    rows = list(rows)
    most = max(row.median or 0.0 for row in rows)
    able = [row for row in rows if (row.median or 0.0) >= most * (1 - _AS_FAST)]
    return min(able, key=lambda row: float(f"{row.worst_cost:.9g}"))


class Comparison(tuple[Compared, ...]):  # noqa: SLOT001 - a tuple takes no slots, and `refused` needs a place
    """Rows of the methods that found a plan; `refused` has the others, with the reason."""

    refused: Mapping[str, str]

    def __new__(cls, rows: Iterable[Compared], refused: Mapping[str, str]) -> Self:
        """Make the rows, and keep what was refused."""
        made = super().__new__(cls, rows)
        made.refused = refused
        return made

    @property
    def best(self) -> Compared:
        """The best method, as `best_of` ranks them.

        Plans for other numbers of tasks, as ODRP chooses them, answer another question and do not compete if they need
        not.
        """
        return best_of([row for row in self if row.placed.method != "odrp"] or self)

    @property
    def default(self) -> Compared | None:
        """The default scheduler's row, if it was asked for and found a plan."""
        return next((row for row in self if row.placed.method == DEFAULT), None)


def place(
    given: PlacementInput,
    method: str | None = None,
    *,
    thresholds: CostVector | None = None,
    seed: int = 0,
    timeout_s: float | None = None,
    weights: Setting | OdrpWeights = "default",
) -> Placed:
    """Place the tasks by one method.

    Parameters
    ----------
    given
        What, on which workers.
    method
        One of ``METHODS``. ``"fastest"``: highest sustained rate, and ``"optimal"``: least worst cost, both with a
        bound; ``"caps-first"``: the first plan within the thresholds, tuned if none are given; ``"caps"``: the best of
        all plans within them; ``"top-down"``, ``"task-level"``, ``"naive-pairs"`` and ``"best-groups"``: group-aware,
        see `placed_in_groups`. Flink and chance place several queries one after the other, in random order. None: see
        `best_method`.
    thresholds
        For both kinds of CAPS.
    seed
        Of chance.
    timeout_s
        Time limit of searches and solvers, seconds above 0; per probe when tuning. If left out: 60 s for ODRP and all
        plans of CAPS, 10 s for the fastest, 5 s per probe; the optimum's effort is bounded otherwise.
    weights
        For ODRP, which takes operators that nothing feeds for sources, and cpu loads for cores.

    Raises
    ------
    WorkbenchError
        For an unknown method, a number out of its range, or thresholds that no plan meets.
    """
    method = best_method(given) if method is None else method
    _check([method], seed, timeout_s)
    if method not in {*BASELINES, "odrp"}:
        _compile()
    begun = time.perf_counter()
    problem, counts, note = given.problem, None, ""
    if method in BASELINES:
        random = np.random.default_rng(seed)
        if len(given.queries) == 1:
            counts = BASELINES[method](problem, random)
        else:
            counts = query_by_query(given.queries, BASELINES[method], random)
    elif method == "optimal":
        proven = optimal(problem, timeout_s=timeout_s)
        bound = f"no plan costs less than {proven.bound:.4f} (gap {100 * proven.gap:.2g} %)"
        counts, note = proven.counts, "proven optimal" if proven.gap < SLACK else bound
    elif method == "fastest":
        counts, note = _fastest(given, timeout_s)
    elif method in GROUP_METHODS:
        counts, note = placed_in_groups(problem, method)
    elif method == "odrp":
        flow, profiles, rates = _dataflow(problem, given.rate or 1.0)
        limit = _LONGEST_S if timeout_s is None else timeout_s
        plan = odrp(
            flow,
            profiles,
            rates,
            problem.workers,
            problem.slots,
            weights=weights,
            speeds=problem.speeds,
            timeout_s=limit,
        )
        note = f"{plan.slots:,} slots, score {plan.score:.4f}, bound {plan.bound:.4f}"
        if len(problem.classes) > 1:
            note += "; it takes all workers for equal, its fullest is the fastest"
        problem, counts = plan.problem, plan.counts
    else:
        counts, note = _caps(problem, thresholds, timeout_s, first=method == "caps-first")
    seconds = time.perf_counter() - begun
    rate = None if given.rate is None else placed_rate(problem, counts, given.rate, given.worker)
    return Placed(method, problem, counts, problem.cost(counts), rate, seconds, note)


def best_method(given: PlacementInput) -> str:
    """``"fastest"`` where the rate of the loads and a capacity are known and something limits it; or ``"optimal"``."""
    if given.rate is None or not any(math.isfinite(limit) for limit in vars(given.worker).values()):
        return "optimal"
    dealt = round_robin(given.problem)
    return "optimal" if math.isinf(placed_rate(given.problem, dealt, given.rate, given.worker).rate) else "fastest"


def compare(
    given: PlacementInput,
    methods: Sequence[str] | None = None,
    *,
    thresholds: CostVector | None = None,
    seed: int = 0,
    draws: int = 20,
    timeout_s: float | None = 10.0,
    weights: Setting | OdrpWeights = "default",
    progress: Callable[[str], None] | None = None,
) -> Comparison:
    """Place by every method, those of chance several times.

    Parameters
    ----------
    given
        What, on which workers.
    methods
        Some of ``METHODS``; all if left out, ``"fastest"`` only where something limits the rate.
    thresholds, weights
        See `place`.
    seed, draws
        Random methods draw this many plans, at least 1, with seeds from `seed` on, which is at least 0.
    timeout_s
        Time limit of every search, seconds above 0; None: see `place`.
    progress
        Is called with the method that decides now.

    Raises
    ------
    WorkbenchError
        For an unknown method, a number out of its range, or when no method finds a plan.
    """
    if methods is None:
        methods = [method for method in METHODS if method != "fastest" or best_method(given) == "fastest"]
    _check(methods, seed, timeout_s)
    if (integer(draws) or 0) < 1:
        raise WorkbenchError(f"draws is {shown(draws)}; it must be a whole number of at least 1.")
    rows: list[Compared] = []
    refused: dict[str, str] = {}
    for number, method in enumerate(methods, start=1):
        if progress is not None:
            progress(f"method {number}/{len(methods)} · {method}")
        times = draws if method in DRAWN else 1
        try:
            placed = tuple(
                place(given, method, thresholds=thresholds, seed=seed + draw, timeout_s=timeout_s, weights=weights)
                for draw in range(times)
            )
        except WorkbenchError as error:
            refused[method] = str(error)
            continue
        rows.append(Compared(placed))
    if not rows:
        reasons = " ".join(f"{method}: {reason}" for method, reason in refused.items())
        raise WorkbenchError(f"No method found a plan. {reasons or 'Give at least one method.'}")
    return Comparison(rows, refused)


def _check(methods: Sequence[str], seed: int, timeout_s: float | None) -> None:
    for method in methods:
        if method not in METHODS:
            raise WorkbenchError(f"There is no placement method {method!r}; use one of {', '.join(METHODS)}.")
    number = integer(seed)
    if number is None or number < 0:
        raise WorkbenchError(f"seed is {shown(seed)}; it must be a whole number of at least 0.")
    deadline(timeout_s)


@cache
def _compile() -> None:
    """Load or compile all searches on small problems, once per process, so that no decision is charged for it."""
    for problem in (
        PlacementProblem((2, 3, 1), [(0, 1), (1, 2)], 2, 3, (4, 6, 1), (0, 5, 0), (10, 2, 0)),
        PlacementProblem((4, 5, 6), [(0, 1), (1, 2)], 5, 4, (3, 5, 2), (0, 5, 1), (7, 2, 0), (2, 2, 1, 1, 1)),
    ):
        optimal(problem)
        search(problem)
        tune(problem)
        placed_in_groups(problem, "best-groups")
        fastest(problem, 1.0, Worker(9.0, 9.0, 9.0), timeout_s=None)


def _fastest(given: PlacementInput, timeout_s: float | None) -> tuple[Counts, str]:
    if given.rate is None:
        raise WorkbenchError("The rate that the loads belong to is unknown, so no rate can be the highest; give it.")
    limit = _FASTEST_S if timeout_s is None else timeout_s
    found = fastest(given.problem, given.rate, given.worker, timeout_s=limit)
    if math.isinf(found.bound):
        return found.counts, "nothing limits the rate"
    more = found.bound / found.rate.rate - 1
    return (
        found.counts,
        "no plan sustains more" if more < _TIGHT else f"no plan sustains over {units.percent(more, 1)} more",
    )


def _caps(
    problem: PlacementProblem, thresholds: CostVector | None, timeout_s: float | None, *, first: bool
) -> tuple[Counts, str]:
    if first and thresholds is None:
        tuning = tune(problem, timeout_s=_PROBE_S if timeout_s is None else timeout_s)
        limits = ", ".join(f"{limit:.4f}" for limit in tuning.thresholds)
        return tuning.plan.counts, f"tuned thresholds {limits}{'' if tuning.minimal else ' (not minimal: out of time)'}"
    found = search(problem, thresholds, first=first, timeout_s=_LONGEST_S if timeout_s is None else timeout_s)
    if found.best is None:
        limits = ", ".join(f"{limit:g}" for limit in thresholds or CostVector())
        tuned = "leave them out to have them tuned" if first else "use caps-first without any, which tunes them"
        if found.exhausted:
            raise WorkbenchError(f"No plan meets the thresholds {limits}; raise them, or {tuned}.")
        if all(map(math.isinf, thresholds or CostVector())):
            raise WorkbenchError("In the time given no plan was found; give more time, or use another method.")
        raise WorkbenchError(
            f"In the time given no plan was found that meets the thresholds {limits}; give more time, raise them, or "
            f"{tuned}."
        )
    if first:
        return found.best.counts, "first plan within the thresholds"
    ended = "" if found.exhausted else f" so far: {'stopped' if asked_to_stop() else 'out of time'}"
    return found.best.counts, f"{found.count:,} plans{ended}"


def _dataflow(problem: PlacementProblem, rate: float) -> tuple[Dataflow, dict[str, OperatorProfile], dict[str, float]]:
    """Give a dataflow that has the loads of `problem` at `rate` per source: every operator passes on what it gets."""
    fed = {edge.downstream for edge in problem.edges}
    flow = Dataflow(
        "placed",
        tuple(
            Operator(name, "operator" if position in fed else "source")
            for position, name in enumerate(problem.operators)
        ),
        tuple(Edge(problem.operators[u], problem.operators[v], kind) for u, v, kind in problem.edges),
    )
    rates = dict.fromkeys(flow.sources, rate)
    arriving = arriving_rates(flow, {}, rates)
    profiles = {}
    for position, (name, tasks) in enumerate(zip(problem.operators, problem.parallelism, strict=True)):
        cpu, io, net = (float(load) * tasks / arriving[name] for load in problem.loads[:, position])
        profiles[name] = OperatorProfile(cpu, io, net, 1.0)
    return flow, profiles, rates
