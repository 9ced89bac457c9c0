"""The plan that sustains most records per second, and the one of least cost, each with a proven bound.

A plan is a multiset of patterns, for all loads of a worker depend on its own pattern alone, and its cost the highest
cost of one (``_pattern_search``). The patterns that attain the bound (``_level``) are rounded to a plan, which is
improved two workers at a time. Where a gap remains, branching finds a better plan or proves that there is none.

The rate that a plan sustains is that of its fullest worker, so the highest rate is the least largest load, each
resource in shares of what a worker has. Of plans of one rate, and of all plans where no capacity is known, the least
largest CPU load counts, then state access, then network. CAPSys has neither objective: its costs are relative to the
least and most even plans of each resource, so the least worst cost (its objectives as one) may balance a resource
that nothing waits for. CAPS itself tunes thresholds until some plan meets them and knows no bound (section 5.2).
"""

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from workbench.arrays import Floats, Ints
from workbench.checks import SLACK, one_of, within
from workbench.placement._effort import Effort, deadline
from workbench.placement._level import Pool, dealt, plan_below, raise_level, rounded
from workbench.placement._pattern_search import Instance, improve, instance, scaled
from workbench.placement.problem import DIMENSIONS, CostVector, Counts, PlacementProblem, Plan
from workbench.simulation import Worker

Objective = Literal["rate", "cost"]

_FEW = 200
_MORE = 30  # for every task
_BRANCHING = 15
_NODES = 10_000_000
_TIES = 0.02  # of the effort, for each resource after the objective with the proof
_STARTS = 3
_JUST = 1e-12
_SEED = 48_271
_SAME = 1e-6  # loads that differ by a smaller share are equal
_FORBIDDEN = 1e6  # cost of exceeding what an earlier objective allows


@dataclass(frozen=True)
class OptimalPlan:
    """A plan with its quality."""

    counts: Counts  # shape (operators, workers), canonical, read-only
    cost: CostVector  # Equation 4
    bound: float  # no plan has a lower value
    gap: float  # (value - bound) / value, 0 where the value is 0
    value: float  # the objective
    # ``"rate"``: the largest load of a worker in shares of what it has, or the load of the busiest task in cores if
    # that is more; a plan sustains 1 / value times the rate of its loads. ``"cpu"``, ``"io"``, ``"net"``, where no
    # capacity is known: the largest such load of a worker of speed 1. ``"cost"``: the largest of the three costs
    of: str


def optimal(
    problem: PlacementProblem,
    gap: float = 1e-3,
    timeout_s: float | None = None,
    objective: Objective = "rate",
    *,
    worker: Worker | None = None,
) -> OptimalPlan:
    """Find a plan whose objective is proven to be within `gap` of the optimum, as far as time allows.

    Raises `WorkbenchError` for a gap outside 0 to 1, a time limit that is not above 0, or an unknown objective.

    Parameters
    ----------
    problem
    gap
        Relative gap to be content with; 0 asks for the optimum (costs within 1e-9 are equal).
    timeout_s
        Return the best plan and bound after this time. Without it the effort is bounded, and the answer the same on
        every machine.
    objective
        ``"rate"``: sustain most records per second; of plans that sustain as much, and where no capacity is known,
        the least largest load of a worker in CPU, then in state access, then in network. The proof is of the rate, or
        of the first of these loads that plans differ in. ``"cost"``: the least largest of the three costs of
        Equation 4.
    worker
        Capacities of a worker of speed 1, for the rate; none is known by default.
    """
    within("gap", gap, 0, 1, ends="[]")
    one_of("The objective", objective, get_args(Objective))
    effort = Effort(deadline(timeout_s), math.inf if timeout_s else _NODES)
    if objective == "rate":
        return _of_rate(problem, worker or Worker(), gap, effort)
    given = instance(problem, (1, 1, 1))
    plan, _, bound = _least(given, dealt(given), gap, effort)
    best = problem.plan(given.counts(plan))
    return _proven(best, best.cost.worst, bound, "cost")


def _of_rate(problem: PlacementProblem, worker: Worker, gap: float, effort: Effort) -> OptimalPlan:
    """Take the objectives in turn, each among the plans that are as good as the best in all before."""
    given = instance(problem, (1, 1, 1))
    plan = dealt(given)
    capacity = np.array([worker.cpus, worker.io_bytes_per_s, worker.net_bytes_per_s])
    limited, limits = np.isfinite(capacity), np.full(3, math.inf)
    proven: tuple[float, float, str] | None = None
    unit = float((problem.bottleneck(given.counts(plan))[limited] / capacity[limited]).max(initial=0.0))
    if unit > 0:
        shares = scaled(problem, np.where(limited, 1 / (capacity * unit), 0.0), np.zeros(3), limited.tolist())
        task = max(problem.cpu)  # no plan makes a task faster than its core
        plan, value, bound = _least(shares, plan, gap, effort.part(1 - 3 * _TIES), task / unit)
        proven = max(value * unit, task), max(bound * unit, task), "rate"
        limits[limited] = proven[0] * capacity[limited]
    for dimension in np.flatnonzero(problem.span > 0).tolist():
        part = effort.part(_TIES if proven else 1 - 2 * _TIES)
        load, bound = float(problem.bottleneck(given.counts(plan))[dimension]), 0.0
        if load > 0:
            better, _, bound = _least(_within(problem, dimension, limits, load), plan, gap, part)
            bound *= load
            if (problem.bottleneck(given.counts(better)) <= limits * (1 + _SAME)).all():
                plan = better
            load = float(problem.bottleneck(given.counts(plan))[dimension])
        limits[dimension] = min(limits[dimension], load)
        proven = proven or (load, bound, DIMENSIONS[dimension])
    return _proven(problem.plan(given.counts(plan)), *(proven or (0.0, 0.0, DIMENSIONS[0])))


def _within(problem: PlacementProblem, dimension: int, limits: Floats, unit: float) -> Instance:
    """Make the instance whose cost is the load in one dimension, and very high for plans beyond the limits."""
    scale, offset = np.zeros(3), np.zeros(3)
    known = np.isfinite(limits)
    scale[known] = _FORBIDDEN / np.where(limits > 0, limits, problem.ideal + problem.span)[known]
    offset[known] = limits[known] * (1 + SLACK) * scale[known]
    scale[dimension], offset[dimension], known[dimension] = 1 / unit, 0.0, True
    return scaled(problem, scale, offset, known.tolist())


def _proven(best: Plan, value: float, bound: float, of: str) -> OptimalPlan:
    bound = max(0.0, min(bound, value))
    return OptimalPlan(best.counts, best.cost, bound, (value - bound) / value if value > 0 else 0.0, value, of)


def _least(given: Instance, plan: Ints, gap: float, effort: Effort, floor: float = 0.0) -> tuple[Ints, float, float]:
    """Lower the cost of a plan until it is within `gap` of the bound, or at most `floor`; return plan, value, bound."""
    pool = Pool()
    speeds, seed = given.worker_speeds, _SEED
    plan = plan.copy()
    value, tried, seed = improve(given.graph, speeds, plan, floor, seed, _FEW * len(speeds))
    effort.nodes -= tried
    level = raise_level(given, value, effort.part(0.7), pool=pool)
    bound = min(level.bound, value)
    starts: list[Ints] = []
    nodes = _MORE * int(given.graph.tasks.sum())
    while value > max(floor, _enough(bound, gap)) and not effort.spent:
        if not starts:
            starts = sorted([plan, *rounded(given, level, _enough(bound, gap), effort)], key=given.value)[:_STARTS]
        for start in starts:
            allowed = effort.allowed(nodes)
            reached, tried, seed = improve(given.graph, speeds, start, _enough(bound, gap), seed, allowed)
            effort.nodes -= tried
            if reached < value:
                plan, value = start.copy(), reached
            if value <= _enough(bound, gap) or effort.spent:
                break
        else:
            below = min(value * (1 - gap) + _JUST, value - 2 * SLACK)
            part = Effort(effort.until, min(effort.nodes, _BRANCHING * nodes))
            left = part.nodes
            found, none = plan_below(given, below, pool, part)
            effort.nodes -= int(left - part.nodes)
            if none:
                bound = max(bound, below)
            elif found is not None:
                plan, value = found, given.value(found)
                starts[-1] = plan.copy()
        starts.sort(key=given.value)
        nodes *= 2
    return plan, value, bound


def _enough(bound: float, gap: float) -> float:
    """Return the cost at which the gap is closed."""
    return max(bound / (1 - gap) if gap < 1 else math.inf, bound + 2 * SLACK)
