"""The plan of least cost, with a proof of how far it may be from the optimum.

All loads of a worker depend on its own pattern alone, so a plan is a multiset of patterns and its cost the highest
cost of a pattern in it (reference of the method: ``_level`` for the bound, ``_pattern_search`` for the patterns). The
patterns that attain the bound are rounded to a plan, which is improved two workers at a time. Where a gap remains,
the search of CAPS, with all thresholds just below the plan's cost, finds a better plan or proves that there is none.

CAPS itself tunes thresholds until some plan meets them and knows no bound (CAPSys, section 5.2).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from workbench.errors import WorkbenchError
from workbench.placement._effort import Effort, deadline
from workbench.placement._level import instance, raise_level
from workbench.placement._pattern_search import Ints, improve
from workbench.placement._starts import dealt, rounded
from workbench.placement.caps import explore_plans
from workbench.placement.problem import DIMENSIONS, SLACK, CostVector, Counts, PlacementProblem

Objective = Literal["worst", "cpu", "io", "net"]

_FEW = 200
_MORE = 50_000
_NODES = 30_000_000
_STARTS = 3
_SEED = 48_271


@dataclass(frozen=True)
class OptimalPlan:
    """A plan and how good it is.

    Parameters
    ----------
    counts
        Shape (operators, workers), canonical, read-only.
    cost
        Its cost.
    bound
        No plan has a lower objective.
    gap
        (value - bound) / value of the objective, 0 where the value is 0.
    """

    counts: Counts
    cost: CostVector
    bound: float
    gap: float


def optimal(
    problem: PlacementProblem,
    gap: float = 1e-3,
    timeout_s: float | None = None,
    objective: Objective = "worst",
) -> OptimalPlan:
    """Find a plan whose objective is proven to be within `gap` of the optimum, as far as time allows.

    Parameters
    ----------
    problem
        What to place where.
    gap
        Relative gap to be content with; 0 asks for the optimum (costs within 1e-9 are equal).
    timeout_s
        Return the best plan and bound after this time. Without it the effort is bounded, and the answer the same on
        every machine.
    objective
        The highest of the three costs, or one of them.

    Raises
    ------
    WorkbenchError
        For a gap outside 0 to 1, a time limit that is not above 0, or an unknown objective.
    """
    if not 0 <= gap <= 1:
        raise WorkbenchError(f"gap is {gap!r}; give a number from 0 to 1.")
    if objective not in get_args(Objective):
        raise WorkbenchError(f"The objective is {objective!r}; use one of {', '.join(get_args(Objective))}.")
    effort = Effort(deadline(timeout_s), math.inf if timeout_s else _NODES)
    counting = [objective in {"worst", name} for name in DIMENSIONS]
    given = instance(problem, counting)
    speeds, seed = given.worker_speeds, _SEED
    plan = dealt(given)
    value, tried, seed = improve(given.graph, speeds, plan, 0.0, seed, _FEW * len(speeds))
    effort.spend(tried)
    level = raise_level(given, value, effort.part(0.7))
    bound = min(level.bound, value)
    starts: list[Ints] = []
    nodes = _MORE
    while value > _enough(bound, gap) and not effort.spent:
        if not starts:
            starts = sorted([plan, *rounded(given, level, _enough(bound, gap))], key=given.value)[:_STARTS]
        for start in starts:
            allowed = effort.allowed(nodes)
            reached, tried, seed = improve(given.graph, speeds, start, _enough(bound, gap), seed, allowed)
            effort.spend(tried)
            if reached < value:
                plan, value = start.copy(), reached
            if value <= _enough(bound, gap) or effort.spent:
                break
        else:
            below = value * (1 - gap) - 2 * SLACK
            found, none = _below(problem, counting, below, Effort(effort.until, effort.allowed(nodes)))
            effort.spend(nodes)
            if none:
                bound = max(bound, below)
            elif found is not None:
                plan = given.patterns(found)
                value = given.value(plan)
                starts[-1] = plan.copy()
        starts.sort(key=given.value)
        nodes *= 2
    best = problem.plan(given.counts(plan))
    value = max(cost for cost, counts in zip(best.cost, counting, strict=True) if counts)
    bound = max(0.0, min(bound, value))
    return OptimalPlan(best.counts, best.cost, bound, (value - bound) / value if value > 0 else 0.0)


def _enough(bound: float, gap: float) -> float:
    """Give a cost that closes the gap."""
    return max(bound / (1 - gap) if gap < 1 else math.inf, bound + 2 * SLACK)


def _below(
    problem: PlacementProblem, counting: Sequence[bool], cost: float, effort: Effort
) -> tuple[Counts | None, bool]:
    """Look for a plan of at most this cost; the second answer is whether there is proven to be none."""
    if cost < 0:
        return None, True
    thresholds = CostVector(*(cost if counts else math.inf for counts in counting))
    result = explore_plans(problem, thresholds, effort, first=True)
    return (None if result.best is None else result.best.counts), result.exhausted
