"""The optimum of small jobs on equal nodes, and a new allocation when input rates change (CIKM '14, 6 and 7.4)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.optimize import linear_sum_assignment

from workbench.arrays import Floats
from workbench.checks import SLACK, require, wholes
from workbench.placement import GroupAllocation, Job, top_down

MOST_STEPS = 20_000_000  # states x what one node can hold
_Load = tuple[int, ...]  # tasks of every group


def optimal_allocation(job: Job, capacity: Sequence[float]) -> GroupAllocation:
    """Most gain of all allocations, node by node: best[k][v] places the tasks v on k nodes.

    Raises `WorkbenchError` when capacities differ, or the product of the groups' sizes plus one is too large. When the
    tasks do not fit, the allocation has none.
    """
    limits = [float(value) for value in capacity]
    require(
        max(limits) - min(limits) <= SLACK * max(limits),
        f"The capacities are {min(limits):g} to {max(limits):g}; the optimum is computed for equal nodes only. "
        "Use best_allocation.",
    )
    loads = _loads(job, limits[0])
    shape = tuple(size + 1 for size in job.sizes)
    steps = math.prod(shape) * len(loads)
    require(
        steps <= MOST_STEPS,
        f"The optimum needs {steps:.3g} steps per node and {MOST_STEPS:.3g} are allowed; use best_allocation.",
    )
    best: list[Floats] = [np.full(shape, -np.inf)]
    best[0][(0,) * len(shape)] = 0.0
    for _ in limits:
        placed = best[-1].copy()  # an empty node
        for load, gain in loads.items():
            here = tuple(slice(taken, None) for taken in load)
            before = tuple(slice(None, size - taken) for size, taken in zip(shape, load, strict=True))
            np.maximum(placed[here], best[-1][before] + gain, out=placed[here])
        best.append(placed)
    return GroupAllocation.of(job, _followed_back(job, best, loads))


def _loads(job: Job, capacity: float) -> dict[_Load, float]:
    """List what one node can hold, and the communication it then saves."""
    room = capacity * (1 + SLACK)
    most = [
        size if cost == 0 else min(size, math.floor(room / cost))
        for size, cost in zip(job.sizes, job.task_cost, strict=True)
    ]
    require(
        math.prod(number + 1 for number in most) <= MOST_STEPS,
        f"A node can hold the tasks in more than {MOST_STEPS:.3g} ways; use best_allocation.",
    )
    return {
        load: job.gain([(tasks,) for tasks in load])
        for load in product(*(range(number + 1) for number in most))
        if any(load) and sum(n * cost for n, cost in zip(load, job.task_cost, strict=True)) <= room
    }


def _followed_back(job: Job, best: list[Floats], loads: dict[_Load, float]) -> list[list[int]]:
    counts = [[0] * (len(best) - 1) for _ in job.sizes]
    left = job.sizes
    if best[-1][left] == -np.inf:
        return counts
    for node in range(len(best) - 1, 0, -1):
        if best[node][left] == best[node - 1][left]:
            continue
        for load, gain in loads.items():
            before = tuple(have - taken for have, taken in zip(left, load, strict=True))
            if min(before) >= 0 and best[node - 1][before] + gain == best[node][left]:
                for group, taken in enumerate(load):
                    counts[group][node - 1] = taken
                left = before
                break
    return counts


@dataclass(frozen=True)
class Reallocation:
    """The result of a reconfiguration."""

    allocation: GroupAllocation  # the new allocation
    moved: int  # tasks that change their node


def reallocate(job: Job, capacity: Sequence[float], current: Sequence[Sequence[int]]) -> Reallocation:
    """Allocate again and match the result to the nodes so that few tasks move.

    The algorithms do not care which of several equal nodes gets which tasks; the matching does: it gives every node's
    new tasks to the node that already hosts most of them and has the capacity (a linear assignment). `current`: counts,
    shape (groups, nodes), of the same groups. Raises `WorkbenchError` when `current` is not an allocation of this job
    to these nodes.
    """
    limits = [float(value) for value in capacity]
    require(
        len(current) == len(job.sizes) and all(len(row) == len(limits) for row in current),
        f"current must have {len(job.sizes)} rows (groups) of {len(limits)} numbers (nodes).",
    )
    for group, (size, row) in enumerate(zip(job.sizes, current, strict=True)):
        wholes(f"The number of tasks of group {group} on node {{}}", row)
        require(
            sum(row) == size,
            f"current places {sum(row)} tasks of group {group}, which has {size}; "
            "reallocate keeps the number of tasks, so give a complete allocation of the same groups.",
        )
    fresh = top_down(job, capacity)
    old, new = np.asarray(current, dtype=np.int64), np.asarray(fresh.counts)
    cost = np.asarray(job.task_cost)
    fits = (cost @ new)[:, None] <= np.asarray(limits)[None, :] + SLACK * max(limits)
    kept = np.minimum(new[:, :, None], old[:, None, :]).sum(axis=0)  # [new node, old node]
    # a node's own tasks always fit it, so a matching without misfits exists
    rows, columns = linear_sum_assignment(np.where(fits, kept, -old.sum() - 1), maximize=True)
    counts = np.zeros_like(new)
    counts[:, columns] = new[:, rows]
    return Reallocation(GroupAllocation.of(job, counts.tolist()), int(new.sum() - kept[rows, columns].sum()))
