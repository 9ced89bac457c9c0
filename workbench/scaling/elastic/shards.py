"""Even work for the tasks of one executor: shards move from the fullest task to the emptiest (Elasticutor 3.1)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.checks import SLACK, not_negative, require, whole
from workbench.errors import WorkbenchError

DEFAULT_IMBALANCE = 1.2


@dataclass(frozen=True)
class ShardPlan:
    """A balanced mapping of shards to tasks.

    `assignment` is the task of each shard, `moves` are ``(shard, from task, to task)``, in order. `imbalance` is the
    largest task load / mean task load (over all tasks, empty ones too); 1.0 without any load.
    """

    assignment: tuple[int, ...]
    moves: tuple[tuple[int, int, int], ...]
    imbalance: float


def rebalance_shards(
    loads: Sequence[float], assignment: Sequence[int], tasks: int, threshold: float = DEFAULT_IMBALANCE
) -> ShardPlan:
    """Move few shards until the fullest task has at most `threshold` times the mean load.

    Each round moves one shard from the fullest task to the emptiest: the shard that leaves the least imbalance, ties by
    lowest index. Rounds end at the threshold, or if no such move lowers the imbalance. The paper does not have the
    second rule and need not end. A round takes O(shards) steps. Two tasks that are equally full end the rounds too:
    loads of (1, 1), (1, 1), () and () stay as they are, at an imbalance of 2. Measured loads are rarely equal.

    Parameters
    ----------
    loads
        Work of each shard, in any unit; in the paper, the seconds spent on it in a sliding window of 1 s.
    assignment
        Task of each shard now.
    threshold
        theta, the accepted imbalance; at least 1.
    """
    tasks = whole("tasks", tasks, 1)
    limit = not_negative("threshold", threshold)
    require(limit >= 1, f"threshold is {threshold!r}; it must be at least 1, because the imbalance is never below 1.")
    weights, given = np.asarray(loads, dtype=float), np.asarray(assignment)
    require(weights.ndim == 1 and len(weights) > 0, "There are no shards; give the load of at least one.")
    require(
        weights.shape == given.shape,
        f"There are {len(weights)} shard loads and {len(given)} assigned tasks; give one task per shard.",
    )
    for wrong in np.flatnonzero(~(np.isfinite(weights) & (weights >= 0))):
        not_negative(f"The load of shard {wrong}", weights[wrong].item())
    with np.errstate(over="ignore"):
        total = float(weights.sum())
    require(math.isfinite(total), f"The loads of the {len(weights)} shards add up to {total}; use a larger unit.")
    astray = np.flatnonzero((given < 0) | (given >= tasks) | (given != np.floor(given)))
    if astray.size:
        raise WorkbenchError(
            f"Shard {astray[0]} is assigned to task {given[astray[0]].item()!r}; "
            f"the tasks are 0 to {tasks - 1}. Reassign the shards of removed tasks first."
        )
    owner = given.astype(np.int64)
    sums = np.bincount(owner, weights=weights, minlength=tasks)
    mean = float(sums.sum()) / tasks
    slack = SLACK * mean
    moves: list[tuple[int, int, int]] = []
    members: dict[int, np.ndarray] = {}  # shards of a task, ascending, until it changes
    while mean > 0:
        highest = float(sums.max())
        if highest <= limit * mean + slack:
            break
        fullest = int(np.argmax(sums >= highest - slack))
        emptiest = int(np.argmax(sums <= sums.min() + slack))
        if fullest not in members:
            members[fullest] = np.flatnonzero(owner == fullest)
        shards = members[fullest]
        work = weights[shards]
        sums[fullest] = 0.0
        others = float(sums.max())
        after = np.maximum(np.maximum(highest - work, sums[emptiest] + work), others)
        least = float(after.min())
        sums[fullest] = highest
        if least >= highest - slack:
            break
        shard = int(shards[np.argmax(after <= least + slack)])
        sums[fullest] -= weights[shard]
        sums[emptiest] += weights[shard]
        owner[shard] = emptiest
        members.pop(fullest)
        members.pop(emptiest, None)
        moves.append((shard, fullest, emptiest))
    imbalance = float(np.bincount(owner, weights=weights, minlength=tasks).max()) / mean if mean > 0 else 1.0
    return ShardPlan(tuple(owner.tolist()), tuple(moves), imbalance)
