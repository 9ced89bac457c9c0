"""Plans to start from: distributed evenly, and rounded from the patterns of the linear programme."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from workbench.arrays import Ints
from workbench.placement._effort import Effort
from workbench.placement._instance import Instance
from workbench.placement._level import Level
from workbench.placement._pattern_search import CHEAPEST, TWO, find_pattern
from workbench.placement.plan import SLACK

_NODES = 20_000
_LOOSE = 1.5


def dealt(given: Instance) -> Ints:
    """Deal the tasks out to the workers, heavy ones first, there and back: patterns, shape (workers, operators)."""
    plan = np.zeros((len(given.workers), len(given.operators)), dtype=np.int64)
    order = np.argsort(-given.graph.load[1:].max(axis=0), kind="stable")
    tasks = np.repeat(order, given.graph.tasks[order])
    turn, place = np.divmod(np.arange(len(tasks)), len(plan))
    np.add.at(plan, (np.where(turn % 2, len(plan) - 1 - place, place), tasks), 1)
    return plan


def rounded(  # noqa: C901
    given: Instance, level: Level, enough: float, effort: Effort, looser: Sequence[float] = (_LOOSE, math.inf)
) -> Iterator[Ints]:
    """Make plans of the patterns that hold the average; one of cost at most `enough` is the last.

    The workers of every class take the patterns by largest remainder. Then any two of them give theirs back and share
    what is left at least cost, `looser` times the cost where need be.
    """
    if not len(level.columns):
        return
    workers, speeds = len(given.workers), given.worker_speeds
    kind, member = _kinds(given, level), np.repeat(np.arange(len(given.sizes)), given.sizes)
    plan = level.columns[kind, member]
    if (plan.sum(axis=0) == given.graph.tasks).all():
        yield plan
        if given.value(plan) <= enough:
            return
    over = given.graph.tasks - plan.sum(axis=0)
    alike = list(zip(kind.tolist(), member.tolist(), strict=True))
    none, nowhere = np.zeros_like(over), np.zeros(len(over))
    tried = set()
    for one in dict(zip(reversed(alike), reversed(range(workers)), strict=True)).values():  # the first of each kind
        for other in range(one + 1, workers):
            pair = alike[one], alike[other]
            if pair in tried:
                continue
            left = over + plan[one] + plan[other]
            if effort.spent:
                return
            tried.add(pair)
            if (left < 0).any() or left.sum() > 2 * given.graph.slots:
                continue
            for limit in (enough, *(factor * enough for factor in looser)):
                found, goal = np.zeros_like(left), (-math.inf, CHEAPEST, limit, limit)
                _, cost, nodes = find_pattern(
                    given.graph, speeds[[one, other]], none, left, TWO, nowhere, *goal, found, _NODES
                )
                effort.spend(nodes)
                if cost <= limit:
                    made = plan.copy()
                    made[one], made[other] = found, left - found
                    yield made
                    if given.value(made) <= enough:
                        return
                    break


def _kinds(given: Instance, level: Level) -> Ints:
    """Choose a column for every worker, in each class by largest remainder of the weights."""
    kinds = []
    for size in given.sizes:
        wanted = level.weights * size
        times = np.floor(wanted + SLACK).astype(np.int64)
        for column in np.argsort(times - wanted, kind="stable")[: max(0, size - times.sum())]:
            times[column] += 1
        kinds.append(np.repeat(np.arange(len(times)), times)[:size])
    return np.concatenate(kinds)
