"""The plan of least cost, with a proof of how far it may be from the optimum.

All loads of a worker depend on its own pattern alone, so a plan is a multiset of patterns and its cost the highest
cost of a pattern in it (reference of the method: ``_level`` for the bound, ``_pattern_search`` for the patterns). The
patterns that attain the bound are rounded to a plan, which is improved two workers at a time. Where a gap remains,
branching finds a better plan or proves that there is none (``_branch``).

CAPS itself tunes thresholds until some plan meets them and knows no bound (CAPSys, section 5.2).
"""

import math
from dataclasses import dataclass
from typing import Literal, get_args

from workbench.errors import WorkbenchError
from workbench.placement._branch import plan_below
from workbench.placement._effort import Effort, deadline
from workbench.placement._instance import instance
from workbench.placement._level import Pool, raise_level
from workbench.placement._pattern_search import Ints, improve
from workbench.placement._starts import dealt, rounded
from workbench.placement.plan import DIMENSIONS, SLACK, CostVector, Counts
from workbench.placement.problem import PlacementProblem

Objective = Literal["worst", "cpu", "io", "net"]

_FEW = 200
_MORE = 30  # for every task
_BRANCHING = 15
_NODES = 10_000_000
_STARTS = 3
_JUST = 1e-12
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
    given, pool = instance(problem, counting), Pool()
    speeds, seed = given.worker_speeds, _SEED
    plan = dealt(given)
    value, tried, seed = improve(given.graph, speeds, plan, 0.0, seed, _FEW * len(speeds))
    effort.spend(tried)
    level = raise_level(given, value, effort.part(0.7), pool=pool)
    bound = min(level.bound, value)
    starts: list[Ints] = []
    nodes = _MORE * problem.tasks
    while value > _enough(bound, gap) and not effort.spent:
        starts = (
            starts or sorted([plan, *rounded(given, level, _enough(bound, gap), effort)], key=given.value)[:_STARTS]
        )
        for start in starts:
            allowed = effort.allowed(nodes)
            reached, tried, seed = improve(given.graph, speeds, start, _enough(bound, gap), seed, allowed)
            effort.spend(tried)
            if reached < value:
                plan, value = start.copy(), reached
            if value <= _enough(bound, gap) or effort.spent:
                break
        else:
            below = min(value * (1 - gap) + _JUST, value - 2 * SLACK)
            part = Effort(effort.until, min(effort.nodes, _BRANCHING * nodes))
            left = part.nodes
            found, none = plan_below(given, below, pool, part)
            effort.spend(int(left - part.nodes))
            if none:
                bound = max(bound, below)
            elif found is not None:
                plan, value = found, given.value(found)
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
