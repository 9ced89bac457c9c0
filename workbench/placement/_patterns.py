"""Patterns: the count vectors one worker can have.

All loads of a worker depend on its own count vector alone, for the links to tasks elsewhere follow from the totals.
So a plan is a multiset of patterns, and its cost is the largest cost of a pattern in it.
"""

from collections.abc import Sequence

import numpy as np

from workbench.arrays import Floats
from workbench.placement.plan import Counts
from workbench.placement.problem import PlacementProblem


def patterns(limits: Sequence[int], slots: int, *, full: bool = False) -> Counts:
    """All count vectors up to `limits` with at most (`full`: exactly) `slots` tasks, in ascending order.

    Shape (patterns, operators).
    """
    rows = np.zeros((1, 0), dtype=np.int64)
    used = np.zeros(1, dtype=np.int64)
    rest = [*np.cumsum(np.asarray(limits)[::-1])[::-1][1:].tolist(), 0]
    for limit, later in zip(limits, rest, strict=True):
        least = np.maximum(0, slots - used - later) if full else np.zeros_like(used)
        choices = np.maximum(0, np.minimum(limit, slots - used) - least + 1)
        parent = np.repeat(np.arange(len(rows)), choices)
        first = np.cumsum(choices) - choices
        value = np.arange(len(parent)) - first[parent] + least[parent]
        rows = np.column_stack([rows[parent], value])
        used = used[parent] + value
    return rows


def pattern_costs(problem: PlacementProblem, rows: Counts, speed: float) -> Floats:
    """Cost every pattern on a worker of `speed`, shape (3, patterns): Equation 4 for this worker alone.

    The network takes part only if the pattern can be part of a plan: no entry above its operator's parallelism.
    """
    excess = problem.loads_with(rows.T) / speed - problem.ideal[:, None]
    costs: Floats = np.divide(excess, problem.span[:, None], out=np.zeros_like(excess), where=problem.span[:, None] > 0)
    return costs


def number_of_patterns(limits: Sequence[int], slots: int) -> int:
    """How many patterns there are with at most `slots` tasks."""
    ways = [1] + [0] * slots  # by tasks used
    for limit in limits:
        sums = [0]
        for way in ways:
            sums.append(sums[-1] + way)
        ways = [sums[used + 1] - sums[max(0, used - limit)] for used in range(slots + 1)]
    return sum(ways)
