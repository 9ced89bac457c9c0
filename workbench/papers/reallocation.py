"""A new allocation when the input rates change: what it gains and how many tasks it moves (CIKM '14, 6 and 7.4)."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from workbench.checks import SLACK, require
from workbench.placement import GroupAllocation, Job, top_down

Counts = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Reallocation:
    """What a reconfiguration would bring."""

    allocation: GroupAllocation  # the new allocation
    moved: int  # tasks that change their node


def reallocate(
    job: Job,
    capacity: Sequence[float],
    current: Counts,
    allocate: Callable[[Job, Sequence[float]], GroupAllocation] = top_down,
) -> Reallocation:
    """Allocate again and match the result to the nodes so that few tasks move.

    The algorithms do not care which of several equal nodes gets which tasks; the matching does: it gives every node's
    new tasks to the node that already hosts most of them and has the capacity (a linear assignment).

    Parameters
    ----------
    current
        Counts, shape (groups, nodes), of the same groups.

    Raises
    ------
    WorkbenchError
        When `current` is not an allocation of this job to these nodes.
    """
    limits = [float(value) for value in capacity]
    _check(job, limits, current)
    fresh = allocate(job, capacity)
    old, new = np.asarray(current, dtype=np.int64), np.asarray(fresh.counts)
    cost = np.asarray(job.task_cost)
    fits = (cost @ new)[:, None] <= np.asarray(limits)[None, :] + SLACK * max(limits)
    kept = np.minimum(new[:, :, None], old[:, None, :]).sum(axis=0)  # [new node, old node]
    # a node's own tasks always fit it, so a matching without misfits exists
    rows, columns = linear_sum_assignment(np.where(fits, kept, -old.sum() - 1), maximize=True)
    counts = np.zeros_like(new)
    counts[:, columns] = new[:, rows]
    return Reallocation(
        GroupAllocation(tuple(map(tuple, counts.tolist())), job.gain(counts.tolist()), fresh.unplaced),
        int(new.sum() - kept[rows, columns].sum()),
    )


def _check(job: Job, limits: Sequence[float], current: Counts) -> None:
    require(
        len(current) == len(job.sizes) and all(len(row) == len(limits) for row in current),
        f"current must have {len(job.sizes)} rows (groups) of {len(limits)} numbers (nodes).",
    )
    for group, (size, row) in enumerate(zip(job.sizes, current, strict=True)):
        for node, tasks in enumerate(row):
            require(
                math.isfinite(tasks) and tasks == int(tasks) and tasks >= 0,
                f"current has {tasks!r} tasks of group {group} on node {node}; it must be a whole number of at least "
                "0.",
            )
        require(
            sum(row) == size,
            f"current places {sum(row)} tasks of group {group}, which has {size}; "
            "reallocate keeps the number of tasks, so give a complete allocation of the same groups.",
        )
