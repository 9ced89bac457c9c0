"""The plan of least cost, with a proof of how far it may be from the optimum.

All loads of a worker depend on its own pattern alone, so a plan is a multiset of patterns and its cost the highest
cost of a pattern in it (reference of the method: ``_level`` for the bound, ``_pattern_search`` for the patterns). The
patterns that attain the bound are rounded to a plan, which is improved two workers at a time. Where a gap remains,
the search of CAPS, with all thresholds just below the plan's cost, finds a better plan or proves that there is none.

CAPS itself tunes thresholds until some plan meets them and knows no bound (CAPSys, section 5.2).
"""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from workbench.errors import WorkbenchError
from workbench.placement._level import Instance, Level, instance, raise_level
from workbench.placement._pattern_search import CHEAPEST, TWO, Ints, find_pattern, improve
from workbench.placement.caps import deadline, explore_plans
from workbench.placement.problem import DIMENSIONS, SLACK, CostVector, Counts, PlacementProblem

Objective = Literal["worst", "cpu", "io", "net"]

_FIRST_NODES = 50_000
_ALL_NODES = 10_000_000
_START_NODES = 20_000
_STARTS = 3
_LOOSE = 1.5
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
    until = deadline(timeout_s)
    counting = [objective in {"worst", name} for name in DIMENSIONS]
    given = instance(problem, counting)
    plan = _any_plan(problem, given)
    value = given.value(plan)
    level = raise_level(given, value, lambda: time.monotonic() >= until)
    bound = min(level.bound, value)
    starts: list[Ints] = []
    nodes, spent, seed = _FIRST_NODES, 0, _SEED
    while value > _enough(bound, gap) and time.monotonic() < until and (spent < _ALL_NODES or until < math.inf):
        if not starts:
            starts = [plan, *_rounded(given, level, _enough(bound, gap))]
            starts.sort(key=given.value)
        for start in starts[:_STARTS]:
            reached, tried, seed = improve(given.graph, given.worker_speeds, start, _enough(bound, gap), seed, nodes)
            spent += tried
            if reached < value:
                plan, value = start.copy(), reached
            if value <= _enough(bound, gap) or time.monotonic() >= until:
                break
        else:
            below = max(value * (1 - gap), 0.0) if gap > 0 else value
            found, none = _below(problem, counting, below - 2 * SLACK, until, nodes)
            if none:
                bound = max(bound, below - 2 * SLACK)
            elif found is not None:
                plan, value = given.patterns(found), given.value(given.patterns(found))
                starts[-1] = plan.copy()
        starts.sort(key=given.value)
        nodes *= 2
    best = problem.plan(given.counts(plan))
    value = max(cost for cost, counts in zip(best.cost, counting, strict=True) if counts)
    bound = min(bound, value)
    return OptimalPlan(best.counts, best.cost, bound, (value - bound) / value if value > 0 else 0.0)


def _enough(bound: float, gap: float) -> float:
    """Give a cost that closes the gap."""
    return max(bound / (1 - gap) if gap < 1 else math.inf, bound + 2 * SLACK)


def _any_plan(problem: PlacementProblem, given: Instance) -> Ints:
    """Take a balanced plan: the first of an unlimited search."""
    best = explore_plans(problem, CostVector(), first=True, until=math.inf).best
    assert best is not None  # noqa: S101 - there are slots for all tasks
    return given.patterns(best.counts)


def _rounded(given: Instance, level: Level, enough: float) -> Iterator[Ints]:
    """Plans near the patterns that attain the bound, nearest multiples first; the last is `enough` if any is.

    The workers of every class take the patterns by largest remainder. Then any two of them give theirs back and
    share what is left at least cost.
    """
    workers, speeds = len(given.workers), given.worker_speeds
    plan = np.zeros((workers, len(given.operators)), dtype=np.int64)
    kind = np.zeros(workers, dtype=np.int64)
    first = 0
    for position, size in enumerate(given.sizes):
        wanted = level.weights * size
        times = np.floor(wanted + SLACK).astype(np.int64)
        for column in np.argsort(times - wanted, kind="stable")[: size - times.sum()]:
            times[column] += 1
        kind[first : first + size] = np.repeat(np.arange(len(times)), times)[:size]
        plan[first : first + size] = level.columns[kind[first : first + size], position]
        first += size
    tried = set()
    for one in range(workers):
        for other in range(one + 1, workers):
            pair = (kind[one], speeds[one], kind[other], speeds[other])
            left = given.graph.tasks - plan.sum(axis=0) + plan[one] + plan[other]
            if pair in tried or (left < 0).any() or left.sum() > 2 * given.graph.slots:
                continue
            tried.add(pair)
            found = np.zeros(len(left), dtype=np.int64)
            for limit in (enough, _LOOSE * enough, math.inf):
                _, cost, _ = find_pattern(
                    given.graph,
                    speeds[[one, other]],
                    left,
                    TWO,
                    np.zeros(len(left)),
                    -math.inf,
                    CHEAPEST,
                    limit,
                    limit,
                    found,
                    _START_NODES,
                )
                if cost <= limit:
                    made = plan.copy()
                    made[one], made[other] = found, left - found
                    yield made
                    if given.value(made) <= enough:
                        return
                    break


def _below(
    problem: PlacementProblem, counting: Sequence[bool], cost: float, until: float, nodes: int
) -> tuple[Counts | None, bool]:
    """Look for a plan of at most this cost; the second answer is whether there is proven to be none."""
    if cost < 0:
        return None, True
    thresholds = CostVector(*(cost if counts else math.inf for counts in counting))
    result = explore_plans(problem, thresholds, first=True, until=until, nodes=nodes)
    return (None if result.best is None else result.best.counts), result.exhausted
