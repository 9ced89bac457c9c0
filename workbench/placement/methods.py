"""The table of placement methods, one call for each of them, and one to compare them."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from statistics import median
from typing import NamedTuple

import numpy as np

from workbench import bounds, units
from workbench.checks import SLACK, finite, shown, whole
from workbench.dataflow import Dataflow, Edge, Operator, OperatorProfile
from workbench.errors import WorkbenchError
from workbench.placement._caps import CEILINGS, caps, tune
from workbench.placement._effort import asked_to_stop
from workbench.placement._odrp import ODRP_SETTINGS, OdrpWeights, Setting, odrp
from workbench.placement._search import SearchResult, search
from workbench.placement.baselines import (
    Baseline,
    flink_default,
    flink_evenly,
    query_by_query,
    random_slots,
    round_robin,
)
from workbench.placement.exact import optimal
from workbench.placement.groups import GroupAllocation, Job, best_allocation, naive, task_level, top_down
from workbench.placement.problem import CostVector, Counts, PlacementProblem
from workbench.placement.request import PlacementInput
from workbench.placement.throughput import PlacedRate, placed_rate
from workbench.placement.unit_costs import arriving_rates
from workbench.simulation import Worker

SEARCH_S = 5.0
"""Time limit of a search, and of a probe of the tuning, by default: that of CAPSys 6.5.2, seconds."""

DEFAULT = "flink-default"
"""The scheduler that others are compared with."""

_GAP = 1e-4
_AS_FAST = 1e-3
_DECIMALS = 6
_FULL: Mapping[str, str] = {"cpu": "CPU load", "io": "load of state access", "net": "network load"}


@dataclass(frozen=True)
class Placed:
    """The placement of one method."""

    method: str  # its name
    problem: PlacementProblem  # what was placed; ODRP chooses the parallelism itself
    counts: Counts  # shape (operators, workers)
    cost: CostVector  # of the plan
    rate: PlacedRate | None  # rate that the plan sustains; None if the rate of the loads is unknown
    seconds: float  # decision time
    note: str = ""  # what was proven, or not
    bound: float | None = None  # upper bound of the rate for these tasks, records/s; None if unknown


class _Request(NamedTuple):
    """Parameters of a method, see `place`."""

    given: PlacementInput
    thresholds: CostVector | None
    seed: int
    timeout_s: float | None
    weights: Setting | OdrpWeights

    @property
    def limit_s(self) -> float:
        return SEARCH_S if self.timeout_s is None else self.timeout_s


class _Decided(NamedTuple):
    """The decision of a method: the fields of `Placed` that it knows; without a problem, it placed the given one."""

    counts: Counts
    note: str = ""
    bound: float | None = None
    problem: PlacementProblem | None = None


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

    Raises `WorkbenchError` for an unknown method, a number out of its range, or thresholds that no plan meets.

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
        ``"naive-pairs"``, ``"best-groups"``: group-aware, see `GROUP_METHODS`. Flink and chance place several
        queries one after the other, in random order.
    thresholds
        For ``"caps"`` and ``"caps-first"``, in place of tuned ones.
    seed
        Of chance, from 0 on.
    timeout_s
        Time limit of searches and solvers, seconds above 0; per probe when tuning. If left out ``SEARCH_S``; the
        effort of ``"optimal"`` and ``"least-cost"`` is bounded otherwise, and their answer the same on all machines.
    weights
        For ODRP, which takes operators that nothing feeds for sources, and cpu loads for cores.
    """
    method = "optimal" if method is None else method
    check_methods([method], seed=seed, timeout_s=timeout_s, weights=weights)
    return _placed(method, _Request(given, thresholds, seed, timeout_s, weights))


def _placed(method: str, asked: _Request) -> Placed:
    given = asked.given
    if method not in {*BASELINES, "odrp"}:
        _compile()
    begun = time.perf_counter()
    problem = given.problem
    counts, note, bound, chosen = _METHODS[method](asked, problem)
    seconds = time.perf_counter() - begun
    problem = chosen or problem
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
    """Refuse unknown methods, and values out of their range."""
    for method in methods:
        if method not in METHODS:
            raise WorkbenchError(
                f"There is no placement method {shown(method)}; use one of {', '.join(METHODS)}.", settings=("method",)
            )
    for thing, name, value, least, most in (
        ("number of draws", "samples", draws, 1, bounds.DRAWS),
        ("seed", "seed", seed, 0, bounds.SEED),
    ):
        try:
            whole(f"The {thing}", value, least, most)
        except WorkbenchError as error:
            raise WorkbenchError(error.message, settings=(name,)) from error
    if timeout_s is not None and not 0 < timeout_s <= bounds.SECONDS:
        given = f"{timeout_s:g}" if finite(timeout_s) else shown(timeout_s)
        allowed = f"at most {bounds.SECONDS:,} seconds" if timeout_s > 0 else "seconds above 0"
        raise WorkbenchError(f"The time limit is {given}; give {allowed}.", settings=("timeout_s",))
    if not isinstance(weights, OdrpWeights) and weights not in ODRP_SETTINGS:
        raise WorkbenchError(
            f"There are no ODRP weights {shown(weights)}; use one of {', '.join(ODRP_SETTINGS)}.", settings=("odrp",)
        )


@dataclass(frozen=True)
class MethodRow:
    """A method in a comparison: its plan, or several if chance has a part in it."""

    plans: tuple[Placed, ...]

    @property
    def placed(self) -> Placed:
        """The first plan."""
        return self.plans[0]

    @property
    def draws(self) -> int:
        """Number of plans."""
        return len(self.plans)

    @property
    def _rates(self) -> list[float]:
        return [plan.rate.rate for plan in self.plans if plan.rate is not None]

    @property
    def lowest(self) -> float | None:
        """The lowest rate of a plan, records/s; None without the rate of the loads."""
        return min(self._rates, default=None)

    @property
    def median(self) -> float | None:
        """The median rate, as `lowest`."""
        return median(self._rates) if self._rates else None

    @property
    def highest(self) -> float | None:
        """The highest rate, as `lowest`."""
        return max(self._rates, default=None)

    @property
    def costs(self) -> CostVector:
        """The median of each of the plans' costs."""
        return CostVector(*(float(median(costs)) for costs in zip(*(plan.cost for plan in self.plans), strict=True)))


@dataclass(frozen=True)
class Comparison:
    """Rows of the methods that found a plan; `refused` has the others, with the reason."""

    rows: tuple[MethodRow, ...]
    refused: Mapping[str, str]

    @property
    def best(self) -> MethodRow:
        """The method with the highest median rate of its draws; the first of those within a thousandth of it.

        Where nothing is known to limit any rate, costs count in the order of the optimum: CPU, then state access, then
        network, each in the median of the draws. Plans for other numbers of tasks, as ODRP chooses them, answer
        another question and do not compete if they need not.
        """
        rows = [row for row in self.rows if row.placed.method != "odrp"] or self.rows
        most = max(row.median or 0.0 for row in rows)
        if 0 < most < math.inf:
            return next(row for row in rows if (row.median or 0.0) >= most * (1 - _AS_FAST))
        return min(rows, key=lambda row: tuple(round(cost, _DECIMALS) for cost in row.costs))

    @property
    def default(self) -> MethodRow | None:
        """The default scheduler's row, if it was asked for and found a plan."""
        return next((row for row in self.rows if row.placed.method == DEFAULT), None)


def compare(
    given: PlacementInput,
    methods: Sequence[str] | None = None,
    *,
    thresholds: CostVector | None = None,
    seed: int = 0,
    draws: int = 20,
    timeout_s: float | None = None,
    weights: Setting | OdrpWeights = "default",
    progress: Callable[[str], None] = lambda _: None,
) -> Comparison:
    """Place by some methods, or by all, as `place` does; draw several plans where chance matters, from `seed` on.

    The time limit is not that of ``PROVEN`` methods, whose effort is bounded otherwise, so that a comparison names the
    plan that `place` does. `progress` is called with the method that decides now.
    """
    methods = METHODS if methods is None else methods
    check_methods(methods, seed=seed, draws=draws, timeout_s=timeout_s, weights=weights)
    rows: list[MethodRow] = []
    refused: dict[str, str] = {}
    for number, method in enumerate(methods, start=1):
        progress(f"method {number}/{len(methods)} · {method}")
        seeds = range(seed, seed + (draws if method in DRAWN else 1))
        limit = None if method in PROVEN else timeout_s
        try:
            plans = [_placed(method, _Request(given, thresholds, one, limit, weights)) for one in seeds]
        except WorkbenchError as error:
            refused[method] = str(error)
            continue
        rows.append(MethodRow(tuple(plans)))
    if not rows:
        reasons = " ".join(f"{method}: {reason}" for method, reason in refused.items())
        raise WorkbenchError(f"No method found a plan. {reasons or 'Give at least one method.'}")
    return Comparison(tuple(rows), refused)


@cache
def _compile() -> None:
    """Load or compile all searches on small problems, once per process, so that no decision time includes it."""
    for problem in (
        PlacementProblem((2, 3, 1), [(0, 1), (1, 2)], 2, 3, (4, 6, 1), (0, 5, 0), (10, 2, 0)),
        PlacementProblem((4, 5, 6), [(0, 1), (1, 2)], 5, 4, (3, 5, 2), (0, 5, 1), (7, 2, 0), (2, 2, 1, 1, 1)),
    ):
        optimal(problem, worker=Worker(9.0, 9.0, 9.0))
        optimal(problem, objective="cost")
        caps(problem)
        search(problem)
        _in_groups(None, problem, method="best-groups")


def _optimal(asked: _Request, problem: PlacementProblem) -> _Decided:
    proven = optimal(problem, _GAP, asked.timeout_s, worker=asked.given.worker)
    if proven.of != "rate":
        less = "a lower" if proven.gap <= _GAP else f"over {units.percent(proven.gap, 1)} less"
        unknown = "no capacity is known, so that the rate is not; no plan's fullest worker has"
        return _Decided(proven.counts, f"{unknown} {less} {_FULL[proven.of]}")
    more = math.inf if proven.bound <= 0 else proven.value / proven.bound - 1
    note = f"no plan sustains {'more' if more <= _GAP else f'over {units.percent(more, 1)} more'}"
    rate = asked.given.rate
    return _Decided(proven.counts, note, rate / proven.bound if rate is not None and proven.bound > 0 else None)


def _least_cost(asked: _Request, problem: PlacementProblem) -> _Decided:
    proven = optimal(problem, timeout_s=asked.timeout_s, objective="cost")
    than = "" if proven.gap < SLACK else f" than {proven.bound:.4f}"
    return _Decided(proven.counts, f"no plan's worst cost is lower{than}")


def _caps_first(asked: _Request, problem: PlacementProblem) -> _Decided:
    if asked.thresholds is None:
        tuning = tune(problem, timeout_s=asked.limit_s, ceilings=CEILINGS)
        loose = "" if tuning.minimal else " (loose: out of time)"
        return _Decided(tuning.plan.counts, f"{_within(tuning.thresholds)}{loose}")
    found = search(problem, asked.thresholds, first=True, timeout_s=asked.limit_s)
    if found.best is None:
        raise _without_plan(found)
    return _Decided(found.best.counts, "first plan within the thresholds")


def _caps(asked: _Request, problem: PlacementProblem, *, everywhere: bool = False) -> _Decided:
    limits, worker = CostVector() if everywhere else asked.thresholds, asked.given.worker
    found = caps(problem, timeout_s=asked.limit_s, thresholds=limits, worker=worker, ceilings=CEILINGS)
    if found.best is None:
        raise _without_plan(found)
    ended = "" if found.exhausted else f" so far: {'stopped' if asked_to_stop() else 'out of time'}"
    front = f"{units.some(len(found.pareto), 'plan')} that no other dominates"
    limited = any(map(math.isfinite, vars(worker).values()))
    chosen = "that sustains most" if limited else "of the least worst cost"
    note = f"of {front}, the one {chosen}; {units.count(found.count)} searched{ended}"
    return _Decided(found.best.counts, note if everywhere else f"{note}, {_within(found.within)}")


def _within(thresholds: CostVector) -> str:
    return f"within {', '.join(f'{limit:.4g}' for limit in thresholds)}"


def _without_plan(found: SearchResult) -> WorkbenchError:
    if all(map(math.isinf, found.within)):
        return WorkbenchError("No plan was found within the time limit; give more time, or use another method.")
    limits = ", ".join(f"{limit:g}" for limit in found.within)
    if found.exhausted:
        said, more = f"No plan meets the thresholds {limits}", ""
    else:
        said, more = f"No plan within the thresholds {limits} was found in the time limit", "give more time, "
    return WorkbenchError(f"{said}; {more}raise them, or leave them out to have them tuned.")


def _load_blind(asked: _Request, problem: PlacementProblem, *, baseline: Baseline) -> _Decided:
    random, queries = np.random.default_rng(asked.seed), asked.given.queries
    return _Decided(baseline(problem, random) if len(queries) == 1 else query_by_query(queries, baseline, random))


def _by_odrp(asked: _Request, problem: PlacementProblem) -> _Decided:
    """Let ODRP choose tasks, too, for a dataflow with these loads: every operator passes on its input."""
    fed = {edge.downstream for edge in problem.edges}
    flow = Dataflow(
        "placed",
        tuple(Operator(name, "operator" if at in fed else "source") for at, name in enumerate(problem.operators)),
        tuple(Edge(problem.operators[u], problem.operators[v], kind) for u, v, kind in problem.edges),
    )
    rates = dict.fromkeys(flow.sources, asked.given.rate or 1.0)
    arriving = arriving_rates(flow, {}, rates)
    profiles = {}
    for name, tasks, loads in zip(problem.operators, problem.parallelism, problem.loads.T, strict=True):
        cpu, io, net = (float(load) * tasks / arriving[name] for load in loads)
        profiles[name] = OperatorProfile(cpu, io, net, 1.0)
    cluster, weights = (problem.workers, problem.slots), asked.weights
    plan = odrp(flow, profiles, rates, *cluster, weights=weights, speeds=problem.speeds, timeout_s=asked.limit_s)
    slots = units.some(plan.slots, "slot")
    note = f"as CAPSys describes ODRP; {slots}, score {plan.score:.4f}, bound {plan.bound:.4f}"
    if len(problem.classes) > 1:
        note += "; it takes all workers for equal, its fullest is the fastest"
    return _Decided(plan.counts, note, problem=plan.problem)


GROUP_METHODS: Mapping[str, Callable[[Job, Sequence[float]], GroupAllocation]] = {
    "top-down": top_down,
    "task-level": task_level,
    "naive-pairs": naive,
    "best-groups": best_allocation,
}
"""Of CIKM '14, for operators as groups: Algorithms 4 and 5, 1 to 3, section 3.1, and local search from the first."""

_ALPHA, _STEPS = 1.1, 12


def group_job(problem: PlacementProblem) -> Job:
    """Return the job: one group per operator, its cost in cores, its links' bytes/s (Equation 8) as communication.

    Edges between the same operators add up. A forward edge counts as a shuffle, because the tasks of two groups talk
    all to all.
    """
    traffic: dict[tuple[int, int], float] = {}
    for (u, v, partitioning), link in zip(problem.edges, problem.link_loads, strict=True):
        links = problem.parallelism[u] * (problem.parallelism[v] if partitioning == "shuffle" else 1)
        pair = (min(u, v), max(u, v))
        traffic[pair] = traffic.get(pair, 0.0) + float(link) * links
    cores = tuple(cpu * tasks for cpu, tasks in zip(problem.cpu, problem.parallelism, strict=True))
    return Job(problem.parallelism, cores, tuple((u, v, c) for (u, v), c in traffic.items()))


def _in_groups(_: _Request | None, problem: PlacementProblem, *, method: str) -> _Decided:
    """Place by a group-aware algorithm; the note describes the communication within workers, and how full they are.

    The paper has one capacity per node, a worker has cores and slots. So a task costs the larger of its share of a
    worker's cores and of its slots, the cores being those of a cluster in perfect balance, and nodes are filled to
    alpha times that balance (load-balance mode, section 2.2): the smallest alpha with which every task fits and no
    worker has more tasks than slots. Where none does, a task costs a slot and the load is not looked at.
    """
    job = group_job(problem)
    balance = math.fsum(job.processing_cost) / math.fsum(problem.speeds)
    shares = [max(cost / balance if balance else 0.0, 1 / problem.slots) for cost in job.task_cost]
    by_load = Job(job.sizes, tuple(s * size for s, size in zip(shares, job.sizes, strict=True)), job.edges)
    for step in range(_STEPS):
        alpha = _ALPHA**step
        found = GROUP_METHODS[method](by_load, [alpha * speed for speed in problem.speeds])
        counts = np.array(found.counts, dtype=np.int64)
        if not found.unplaced and (counts.sum(axis=0) <= problem.slots).all():
            return _Decided(counts, f"{_kept(job, found)}; workers filled to {alpha:.2f} of an even load")
    by_slot = Job(job.sizes, tuple(float(size) for size in job.sizes), job.edges)
    found = GROUP_METHODS[method](by_slot, [float(problem.slots)] * problem.workers)
    if found.unplaced:
        left = ", ".join(f"{tasks:,} of {problem.operators[group]}" for group, tasks in found.unplaced.items())
        raise WorkbenchError(f"The method {method} leaves tasks without a worker ({left}); use another method.")
    return _Decided(np.array(found.counts, dtype=np.int64), f"{_kept(job, found)}; workers filled by slots only")


def _kept(job: Job, found: GroupAllocation) -> str:
    total = math.fsum(c for _, _, c in job.edges)
    return f"{units.percent(found.gain / total)} of the traffic stays on workers" if total else "no traffic"


BASELINES: Mapping[str, Baseline] = {
    DEFAULT: flink_default,
    "flink-evenly": flink_evenly,
    "round-robin": round_robin,
    "random": random_slots,
}

_METHODS: Mapping[str, Callable[[_Request, PlacementProblem], _Decided]] = {
    "optimal": _optimal,
    "caps": _caps,
    "caps-first": _caps_first,
    "caps-all": partial(_caps, everywhere=True),
    "least-cost": _least_cost,
    **{name: partial(_in_groups, method=name) for name in GROUP_METHODS},
    **{name: partial(_load_blind, baseline=baseline) for name, baseline in BASELINES.items()},
    "odrp": _by_odrp,
}

METHODS = tuple(_METHODS)

DRAWN = tuple(name for name, baseline in BASELINES.items() if baseline is not round_robin)
"""Methods that use chance."""

SEARCHED = ("optimal", "caps", "caps-all", "least-cost")
"""Methods that have a plan at any moment, and return it when asked to stop; see `stopping_when`."""

PROVEN = ("optimal", "least-cost")
"""Methods with a bound: without a time limit their effort is bounded, and the answer the same on every machine."""
