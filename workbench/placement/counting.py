"""How many plans there are, without enumerating them.

The number of plans is the coefficient of ``y^W x^P`` in the product over all patterns v of ``1 / (1 - y x^v)``: a
plan is a multiset of W patterns, the count vectors of one worker, with sum P. Idle slots count as one more operator,
so that every worker is full and the operator with the most tasks follows from the others.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.checks import SLACK, entries, shown, whole, wholes
from workbench.errors import WorkbenchError
from workbench.placement.problem import CostVector, Counts, PlacementProblem

_STEPS = 5e10
_GIB = 2
_BYTES, _BYTES_LARGE = 8, 48  # of an entry, and of one that needs more than 64 bits
_MOST_WAYS = 5_000_000


def count_plans(
    parallelism: Sequence[int] | Mapping[str, int], workers: int, slots: int, *, most_steps: float = _STEPS
) -> int:
    """Count the plans of tasks on identical workers, workers and tasks of one operator being interchangeable.

    There are none for more tasks than slots. At most `most_steps` additions and 2 GiB are spent: both grow with the
    product of all parallelisms but the largest. Raises `WorkbenchError` for a problem that takes more, or a number out
    of its range.
    """
    given = parallelism.values() if isinstance(parallelism, Mapping) else parallelism
    tasks = wholes("Entry {} of parallelism", entries("parallelism", given))
    workers, slots = whole("workers", workers), whole("slots", slots)
    if sum(tasks) > workers * slots:
        return 0
    if sum(tasks) == 0:
        return 1
    workers, slots = min(workers, sum(tasks)), min(slots, sum(tasks))  # the others stay empty
    _affordable(tasks, workers, slots, most_steps)
    rows = patterns(tasks, slots)
    return _multisets([(rows, workers)], tasks, workers, slots)


def count_within(problem: PlacementProblem, thresholds: CostVector | None = None, *, most_steps: float = _STEPS) -> int:
    """Count the plans of `problem` that meet `thresholds`, workers of one class being interchangeable."""
    limits = np.array([*(thresholds or CostVector())])[:, None] + SLACK
    _affordable(problem.parallelism, problem.workers, problem.slots, most_steps)
    rows = patterns(problem.parallelism, problem.slots)
    loads = problem.loads_with(rows.T)
    classes = [
        (rows[(problem.relative(loads / problem.speeds[members[0]]) <= limits).all(axis=0)], len(members))
        for members in problem.classes
    ]
    return _multisets(classes, problem.parallelism, problem.workers, problem.slots)


def _affordable(tasks: Sequence[int], workers: int, slots: int, most_steps: float) -> None:
    idle = workers * slots - sum(tasks)
    sums = math.prod(count + 1 for count in sorted([*tasks, idle])[:-1])
    rows = number_of_patterns(tasks, slots) if slots * len(tasks) <= _MOST_WAYS else math.inf
    steps = min(1e300, rows) * min(10**300, workers * sums)
    of = f"Counting the plans of parallelism {shown(tuple(tasks))} on {shown(workers)} workers x {shown(slots)} slots"
    if steps > most_steps:
        raise WorkbenchError(
            f"{of} takes about {steps:.0e} additions, more than the {most_steps:.0e} allowed; count a smaller problem."
        )
    kept = (workers + 2) * sums + 3 * rows * (len(tasks) + 1)
    gib = kept * (_BYTES if _in_64_bits(tasks, workers) else _BYTES_LARGE) / 2**30
    if gib > _GIB:
        raise WorkbenchError(
            f"{of} takes about {gib:.0f} GiB of memory, more than the {_GIB} allowed; count a smaller one."
        )


def _in_64_bits(tasks: Sequence[int], workers: int) -> bool:
    """Whether every intermediate number fits: it is at most the number of ways to spread tasks on labelled workers."""
    return math.prod(math.comb(count + workers - 1, workers - 1) for count in tasks) < 2**62


def _multisets(classes: Sequence[tuple[Counts, int]], tasks: Sequence[int], workers: int, slots: int) -> int:
    """Count the choices of one multiset of patterns for every class that add up to `tasks`."""
    full = [*tasks, workers * slots - sum(tasks)]
    order = np.argsort(full, kind="stable")[:-1]  # the largest follows from the others
    kept = tuple(full[index] for index in order)
    ways: NDArray[Any] = np.zeros([count + 1 for count in kept], np.int64 if _in_64_bits(tasks, workers) else object)
    ways[(0,) * len(kept)] = 1
    for rows, members in classes:
        vectors = np.column_stack([rows, slots - rows.sum(axis=1)])[:, order]
        chosen = np.zeros((members + 1, *ways.shape), dtype=ways.dtype)  # by number of vectors, sum
        chosen[0] = ways
        for vector in vectors[(vectors <= kept).all(axis=1)].tolist():
            target = tuple(slice(count, None) for count in vector)
            source = tuple(slice(most + 1 - count) for most, count in zip(kept, vector, strict=True))
            for number in range(1, members + 1):  # in place: the vector may be taken again
                chosen[number][target] += chosen[number - 1][source]
        ways = chosen[members]
    return int(ways[kept])


def patterns(limits: Sequence[int], slots: int) -> Counts:
    """All count vectors up to `limits` that one worker can have, in ascending order: at most `slots` tasks.

    Shape (patterns, operators).
    """
    rows = np.zeros((1, 0), dtype=np.int64)
    used = np.zeros(1, dtype=np.int64)
    for limit in limits:
        choices = np.minimum(limit, slots - used) + 1
        parent = np.repeat(np.arange(len(rows)), choices)
        first = np.cumsum(choices) - choices
        value = np.arange(len(parent)) - first[parent]
        rows = np.column_stack([rows[parent], value])
        used = used[parent] + value
    return rows


def number_of_patterns(limits: Sequence[int], slots: int) -> int:
    """How many patterns there are with at most `slots` tasks."""
    ways = [1] + [0] * slots  # by tasks used
    for limit in limits:
        sums = list(accumulate(ways, initial=0))
        ways = [sums[used + 1] - sums[max(0, used - limit)] for used in range(slots + 1)]
    return sum(ways)
