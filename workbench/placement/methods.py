"""Every way to place, behind one call."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from workbench import bounds, units
from workbench.checks import finite, integer, shown
from workbench.dataflow import Dataflow, Edge, Operator, OperatorProfile
from workbench.errors import WorkbenchError
from workbench.placement._caps import caps
from workbench.placement._effort import asked_to_stop
from workbench.placement._odrp import ODRP_SETTINGS, OdrpWeights, Setting, odrp
from workbench.placement._rates import arriving_rates
from workbench.placement._search import SearchResult, search
from workbench.placement.baselines import (
    Baseline,
    flink_default,
    flink_evenly,
    query_by_query,
    random_slots,
    round_robin,
)
from workbench.placement.exact import OptimalPlan, optimal
from workbench.placement.given import PlacementInput
from workbench.placement.grouped import GROUP_METHODS, placed_in_groups
from workbench.placement.plan import SLACK, CostVector, Counts
from workbench.placement.problem import PlacementProblem
from workbench.placement.throughput import PlacedRate, placed_rate
from workbench.placement.tuning import CEILINGS, tune
from workbench.simulation import Worker

SEARCH_S = 5.0
"""Time limit of a search, and of a probe of the tuning, unless another is asked for: that of CAPSys 6.5.2, seconds."""

_GAP = 1e-4
_FULL: Mapping[str, str] = {"cpu": "CPU load", "io": "load of state access", "net": "network load"}

BASELINES: Mapping[str, Baseline] = {
    "flink-default": flink_default,
    "flink-evenly": flink_evenly,
    "round-robin": round_robin,
    "random": random_slots,
}

METHODS: tuple[str, ...] = (
    "optimal", "caps", "caps-first", "caps-all", "least-cost", *GROUP_METHODS, *BASELINES, "odrp"
)  # fmt: skip

DEFAULT = "flink-default"
"""The scheduler that others are compared with."""

SEARCHED = ("optimal", "caps", "caps-all", "least-cost")
"""Methods that have a plan at any moment, and can be asked to stop with it; see `stopping_when`."""

PROVEN = ("optimal", "least-cost")
"""Methods with a bound: without a time limit their effort is bounded, and the answer the same on every machine."""

DRAWN = ("flink-default", "flink-evenly", "random")
"""Methods in which chance has a part."""


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
    bound
        No plan for these tasks sustains more, records/s; None where that is not known.
    """

    method: str
    problem: PlacementProblem
    counts: Counts
    cost: CostVector
    rate: PlacedRate | None
    seconds: float
    note: str = ""
    bound: float | None = None


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
        One of ``METHODS``. ``"optimal"``, the default: most records per second, with a bound; where no capacity is
        known, the least CPU load of the fullest worker, then state access, then network. ``"caps"``: as CAPSys, the
        best plan of all within tuned thresholds, with its artefact's ceilings, see `caps`; ``"caps-first"``: the first
        plan within them; ``"caps-all"``: all plans are searched, and the best taken as by ``"caps"``.
        ``"least-cost"``: the least worst of the three costs, with a bound. ``"top-down"``, ``"task-level"``,
        ``"naive-pairs"``, ``"best-groups"``: group-aware, see `placed_in_groups`. Flink and chance place several
        queries one after the other, in random order.
    thresholds
        For ``"caps"`` and ``"caps-first"``, in place of tuned ones.
    seed
        Of chance.
    timeout_s
        Time limit of searches and solvers, seconds above 0; per probe when tuning. If left out ``SEARCH_S``; the
        effort of ``"optimal"`` and ``"least-cost"`` is bounded otherwise, and their answer the same on all machines.
    weights
        For ODRP, which takes operators that nothing feeds for sources, and cpu loads for cores.

    Raises
    ------
    WorkbenchError
        For an unknown method, a number out of its range, or thresholds that no plan meets.
    """
    method = "optimal" if method is None else method
    check_methods([method], seed=seed, timeout_s=timeout_s, weights=weights)
    return placed_by(given, method, thresholds=thresholds, seed=seed, timeout_s=timeout_s, weights=weights)


def placed_by(
    given: PlacementInput,
    method: str,
    *,
    thresholds: CostVector | None,
    seed: int,
    timeout_s: float | None,
    weights: Setting | OdrpWeights,
) -> Placed:
    """Place by a method; nothing is checked, see `place`."""
    if method not in {*BASELINES, "odrp"}:
        _compile()
    begun = time.perf_counter()
    problem, counts, note, bound = given.problem, None, "", None
    limit = SEARCH_S if timeout_s is None else timeout_s
    if method in BASELINES:
        random = np.random.default_rng(seed)
        if len(given.queries) == 1:
            counts = BASELINES[method](problem, random)
        else:
            counts = query_by_query(given.queries, BASELINES[method], random)
    elif method == "optimal":
        proven = optimal(problem, _GAP, timeout_s, worker=given.worker)
        counts, note = proven.counts, _most(proven)
        if given.rate is not None and proven.of == "rate" and proven.bound > 0:
            bound = given.rate / proven.bound
    elif method == "least-cost":
        proven = optimal(problem, timeout_s=timeout_s, objective="cost")
        least = "no plan's worst cost is lower"
        counts, note = proven.counts, least if proven.gap < SLACK else f"{least} than {proven.bound:.4f}"
    elif method in GROUP_METHODS:
        counts, note = placed_in_groups(problem, method)
    elif method == "odrp":
        flow, profiles, rates = _dataflow(problem, given.rate or 1.0)
        cluster = problem.workers, problem.slots
        plan = odrp(flow, profiles, rates, *cluster, weights=weights, speeds=problem.speeds, timeout_s=limit)
        slots = units.some(plan.slots, "slot")
        note = f"as CAPSys describes ODRP; {slots}, score {plan.score:.4f}, bound {plan.bound:.4f}"
        if len(problem.classes) > 1:
            note += "; it takes all workers for equal, its fullest is the fastest"
        problem, counts = plan.problem, plan.counts
    else:
        counts, note = _caps(given, method, thresholds, limit)
    seconds = time.perf_counter() - begun
    rate = None if given.rate is None else placed_rate(problem, counts, given.rate, given.worker)
    return Placed(method, problem, counts, problem.cost(counts), rate, seconds, note, bound)


def check_methods(
    methods: Sequence[str],
    *,
    seed: int = 0,
    draws: int = 1,
    timeout_s: float | None = None,
    weights: object = "default",
) -> None:
    """Refuse unknown methods, and what is out of its range."""
    for method in methods:
        if method not in METHODS:
            raise WorkbenchError(
                f"There is no placement method {shown(method)}; use one of {', '.join(METHODS)}.", settings=("method",)
            )
    for thing, name, value, least, most in (
        ("number of draws", "samples", draws, 1, bounds.DRAWS),
        ("seed", "seed", seed, 0, bounds.SEED),
    ):
        number = integer(value)
        if number is None or not least <= number <= most:
            over = number is not None and number > most
            allowed = f"at most {most:,}" if over else f"a whole number of at least {least}"
            raise WorkbenchError(f"The {thing} is {shown(value)}; it must be {allowed}.", settings=(name,))
    if timeout_s is not None and not 0 < timeout_s <= bounds.SECONDS:
        given = f"{timeout_s:g}" if finite(timeout_s) else shown(timeout_s)
        allowed = f"at most {bounds.SECONDS:,} seconds" if timeout_s > 0 else "seconds above 0"
        raise WorkbenchError(f"The time limit is {given}; give {allowed}.", settings=("timeout_s",))
    if not isinstance(weights, OdrpWeights) and weights not in ODRP_SETTINGS:
        raise WorkbenchError(
            f"There are no ODRP weights {shown(weights)}; use one of {', '.join(ODRP_SETTINGS)}.", settings=("odrp",)
        )


@cache
def _compile() -> None:
    """Load or compile all searches on small problems, once per process, so that no decision is charged for it."""
    for problem in (
        PlacementProblem((2, 3, 1), [(0, 1), (1, 2)], 2, 3, (4, 6, 1), (0, 5, 0), (10, 2, 0)),
        PlacementProblem((4, 5, 6), [(0, 1), (1, 2)], 5, 4, (3, 5, 2), (0, 5, 1), (7, 2, 0), (2, 2, 1, 1, 1)),
    ):
        optimal(problem, worker=Worker(9.0, 9.0, 9.0))
        optimal(problem, objective="cost")
        caps(problem)
        search(problem)
        placed_in_groups(problem, "best-groups")


def _most(proven: OptimalPlan) -> str:
    """Say what of the optimum is proven."""
    more = math.inf if proven.bound <= 0 else proven.value / proven.bound - 1
    if proven.of == "rate":
        return f"no plan sustains {'more' if more <= _GAP else f'over {units.percent(more, 1)} more'}"
    less = "a lower" if proven.gap <= _GAP else f"over {units.percent(proven.gap, 1)} less"
    return f"no capacity is known, so that the rate is not; no plan's fullest worker has {less} {_FULL[proven.of]}"


def _caps(given: PlacementInput, method: str, thresholds: CostVector | None, timeout_s: float) -> tuple[Counts, str]:
    problem = given.problem
    if method == "caps-first" and thresholds is None:
        tuning = tune(problem, timeout_s=timeout_s, ceilings=CEILINGS)
        return tuning.plan.counts, f"{_within(tuning.thresholds)}{'' if tuning.minimal else ' (loose: out of time)'}"
    if method == "caps-first":
        found = search(problem, thresholds, first=True, timeout_s=timeout_s)
    else:
        limits = CostVector() if method == "caps-all" else thresholds
        found = caps(problem, timeout_s=timeout_s, thresholds=limits, worker=given.worker, ceilings=CEILINGS)
    if found.best is None:
        raise _without_plan(found)
    if method == "caps-first":
        return found.best.counts, "first plan within the thresholds"
    ended = "" if found.exhausted else f" so far: {'stopped' if asked_to_stop() else 'out of time'}"
    front = f"{units.some(len(found.pareto), 'plan')} that no other dominates"
    limited = any(map(math.isfinite, vars(given.worker).values()))
    chosen = "that sustains most" if limited else "of the least worst cost"
    note = f"of {front}, the one {chosen}; {units.count(found.count)} searched"
    return found.best.counts, f"{note}{ended}" + f", {_within(found.within)}" * (method == "caps")


def _within(thresholds: CostVector) -> str:
    return f"within {', '.join(f'{limit:.4g}' for limit in thresholds)}"


def _without_plan(found: SearchResult) -> WorkbenchError:
    if all(map(math.isinf, found.within)):
        return WorkbenchError("In the time given no plan was found; give more time, or use another method.")
    limits = ", ".join(f"{limit:g}" for limit in found.within)
    tuned = "leave them out to have them tuned"
    if found.exhausted:
        return WorkbenchError(f"No plan meets the thresholds {limits}; raise them, or {tuned}.")
    return WorkbenchError(
        f"In the time given no plan was found that meets the thresholds {limits}; give more time, raise them, or "
        f"{tuned}."
    )


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
