"""Every way to place, behind one call."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

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
    check_methods([method], seed, timeout_s)
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
        note = f"{units.some(plan.slots, 'slot')}, score {plan.score:.4f}, bound {plan.bound:.4f}"
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


def check_methods(methods: Sequence[str], seed: int, timeout_s: float | None) -> None:
    """Refuse unknown methods, and numbers out of their range."""
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
    return found.best.counts, f"{units.some(found.count, 'plan')}{ended}"


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
