"""How many plans there are, without enumerating them.

The number of plans is the coefficient of ``y^W x^P`` in the product over all patterns v of ``1 / (1 - y x^v)``: a
plan is a multiset of W patterns with sum P. Idle slots count as one more operator, so that every worker is full and
the operator with the most tasks follows from the others.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.errors import WorkbenchError
from workbench.placement._patterns import number_of_patterns, pattern_costs, patterns
from workbench.placement.problem import SLACK, CostVector, Counts, PlacementProblem

_STEPS = 5e10


def count_plans(parallelism: Sequence[int], workers: int, slots: int) -> int:
    """Count the plans of tasks on identical workers, workers and tasks of one operator being interchangeable.

    Parameters
    ----------
    parallelism
        Tasks of every operator.
    workers, slots
        Number of workers and of slots on each.

    Returns
    -------
    int
        0 if there are more tasks than slots.

    Raises
    ------
    WorkbenchError
        For a number out of its range, or a problem too large to count (memory and time grow with the product of
        all parallelisms but the largest).
    """
    for thing, least, numbers in (("parallelism", 0, parallelism), ("workers", 1, [workers]), ("slots", 1, [slots])):
        for number in numbers:
            if number != int(number) or number < least:
                raise WorkbenchError(f"{thing} has the entry {number!r}; give whole numbers from {least} on.")
    tasks = [int(number) for number in parallelism]
    if sum(tasks) > workers * slots:
        return 0
    _affordable(tasks, workers, slots)
    rows = patterns(tasks, slots)
    return _multisets([(rows, workers)], tasks, workers, slots)


def count_within(problem: PlacementProblem, thresholds: CostVector | None = None) -> int:
    """Count the plans of `problem` that meet `thresholds`, workers of one class being interchangeable.

    Raises
    ------
    WorkbenchError
        For a problem too large to count.
    """
    limits = np.array([*(thresholds or CostVector())])[:, None] + SLACK
    _affordable(problem.parallelism, problem.workers, problem.slots)
    rows = patterns(problem.parallelism, problem.slots)
    classes = [
        (rows[(pattern_costs(problem, rows, problem.speeds[members[0]]) <= limits).all(axis=0)], len(members))
        for members in problem.classes
    ]
    return _multisets(classes, problem.parallelism, problem.workers, problem.slots)


def _affordable(tasks: Sequence[int], workers: int, slots: int) -> None:
    idle = workers * slots - sum(tasks)
    kept = sorted([*tasks, idle])[:-1]
    steps = float(number_of_patterns(tasks, slots)) * workers * math.prod(count + 1 for count in kept)
    if steps > _STEPS:
        raise WorkbenchError(
            f"Counting the plans of parallelism {tuple(tasks)} on {workers} workers x {slots} slots takes about "
            f"{steps:.0e} additions, more than the {_STEPS:.0e} allowed; count a smaller problem."
        )


def _multisets(classes: Sequence[tuple[Counts, int]], tasks: Sequence[int], workers: int, slots: int) -> int:
    """Count the choices of one multiset of patterns for every class that add up to `tasks`."""
    full = [*tasks, workers * slots - sum(tasks)]
    order = np.argsort(full, kind="stable")[:-1]  # the largest follows from the others
    kept = tuple(full[index] for index in order)
    # Every intermediate number is at most the number of ways to spread the tasks over labelled workers.
    most = math.prod(math.comb(count + workers - 1, workers - 1) for count in tasks)
    exact = np.int64 if most < 2**62 else object
    total = np.zeros([count + 1 for count in kept], dtype=exact)
    total[(0,) * len(kept)] = 1
    for rows, members in classes:
        vectors = np.column_stack([rows, slots - rows.sum(axis=1)])[:, order]
        total = _extend(total, vectors[(vectors <= kept).all(axis=1)], members)
    return int(total[tuple(kept)])


def _extend(total: NDArray[Any], vectors: Counts, members: int) -> NDArray[Any]:
    """Add a multiset of `members` of the `vectors` to every entry: shape (parallelism + 1, ...) to the same."""
    chosen = np.zeros((members + 1, *total.shape), dtype=total.dtype)  # by number of vectors, sum
    chosen[0] = total
    for vector in vectors:
        target = tuple(slice(int(count), None) for count in vector)
        source = tuple(slice(0, size - int(count)) for size, count in zip(total.shape, vector, strict=True))
        for number in range(1, members + 1):  # in place: the vector may be taken again
            chosen[number][target] += chosen[number - 1][source]
    extended: NDArray[Any] = chosen[members]
    return extended
