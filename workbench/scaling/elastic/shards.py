"""How many executors and shards an operator should have, and even work for their tasks (Elasticutor 5.3, 3.1)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench import units
from workbench.checks import SLACK, not_negative, not_negatives, require, whole
from workbench.errors import WorkbenchError
from workbench.scaling.elastic.assignment import DEFAULT_THRESHOLD

HIGHLY_DYNAMIC = 16.0  # key shuffles per minute of the paper's highly dynamic workload
LEAST_SHARDS, MOST_SHARDS = 256, 1024
SHARDS_PER_TASK = 8  # 4 to 8 balance well (section 3.1)
HEADROOM = 2  # an executor may grow to twice its even share of the cores


@dataclass(frozen=True)
class ExecutorAdvice:
    """Executors of one operator (the paper's y), shards per executor (z), and why."""

    executors: int
    shards: int
    reasons: tuple[str, ...]


def advise_executors(
    nodes: int,
    node_cores: int,
    *,
    operator_cores: int | None = None,
    data_intensity: float = 0.0,
    shuffles_per_minute: float = 0.0,
    key_counts: Sequence[float] | None = None,
) -> ExecutorAdvice:
    """Return the executors and shards for one operator by the rules of section 5.3.

    One executor per node; two if records are large or the popularity of keys changes often, because few executors then
    pay for remote cores and migration; never as many as cores, which would be the static paradigm. Eight shards per
    task that an executor may grow to, between 256 and 1024, in powers of two.

    The operator needs `operator_cores`, by default all of the cluster; `data_intensity` is bytes/s in and out per core.
    With `key_counts`, the frequency of every key, there are no more useful shards than keys and no more useful cores
    than total / largest, because a key is never split. Where only the most frequent keys are counted, pass the shares
    of `KeyTrace.from_counts`, which spreads the others.
    """
    nodes, node_cores = whole("nodes", nodes, 1), whole("node_cores", node_cores, 1)
    cores = nodes * node_cores if operator_cores is None else whole("operator_cores", operator_cores, 1)
    intensive = not_negative("data_intensity", data_intensity) > DEFAULT_THRESHOLD
    dynamic = not_negative("shuffles_per_minute", shuffles_per_minute) >= HIGHLY_DYNAMIC
    reasons = []
    if intensive or dynamic:
        executors = 2 * nodes
        cause = "many bytes per core" if intensive else "frequent shuffles of the keys"
        reasons.append(f"two executors per node: {cause} make remote cores expensive")
    else:
        executors = nodes
        reasons.append("one executor per node: each can grow on its own node")
    if executors > max(1, cores // 2):
        executors = max(1, cores // 2)
        reasons.append(f"at most {executors}: with fewer than two cores each, executors could not shrink or grow")
    tasks = max(node_cores, math.ceil(HEADROOM * cores / executors))
    shards = min(MOST_SHARDS, max(LEAST_SHARDS, 2 ** math.ceil(math.log2(SHARDS_PER_TASK * tasks))))
    sizes = [f"{shards:,} shards each: {SHARDS_PER_TASK} per task, within {LEAST_SHARDS} to {MOST_SHARDS}"]
    if key_counts is not None:
        counted = not_negatives("The count of key {}", key_counts)
        require(any(counted), "key_counts has no key with a count above 0. Count the keys, or leave it out.")
        keys = sum(count > 0 for count in counted)
        if keys < executors * shards:
            shards = max(1, keys // executors)
            each, there = "is" if shards == 1 else "are", "is" if keys == 1 else "are"
            sizes = [f"{units.some(shards, 'shard')} each {each} enough: there {there} only {units.some(keys, 'key')}"]
        useful = math.fsum(counted) / max(counted)
        if useful < cores:
            few = f"{useful:.3g}"
            sizes.append(
                f"with {few} core{'s' * (few != '1')} the most frequent key alone fills a core; more cores do not help"
            )
    reasons += sizes
    return ExecutorAdvice(executors, shards, tuple(reasons))


DEFAULT_IMBALANCE = 1.2


@dataclass(frozen=True)
class ShardPlan:
    """A balanced mapping of shards to tasks."""

    assignment: tuple[int, ...]  # task of each shard
    moves: tuple[tuple[int, int, int], ...]  # (shard, from task, to task), in order
    imbalance: float  # largest task load / mean task load (over all tasks, empty ones too); 1.0 without any load


def rebalance_shards(
    loads: Sequence[float], assignment: Sequence[int], tasks: int, threshold: float = DEFAULT_IMBALANCE
) -> ShardPlan:
    """Move few shards until the fullest task has at most `threshold` times the mean load.

    Each round moves one shard from the fullest task to the emptiest: the shard that leaves the least imbalance, ties by
    lowest index. Rounds end at the threshold, or if no such move lowers the imbalance. The paper does not have the
    second rule and need not end. A round takes O(shards) steps. Two tasks that are equally full end the rounds too:
    loads of (1, 1), (1, 1), () and () stay as they are, at an imbalance of 2. Measured loads are rarely equal.

    Per shard `loads` are its work in any unit (in the paper, the seconds spent on it in 1 s), `assignment` its task.
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
    while mean > 0:
        highest = float(sums.max())
        if highest <= limit * mean + slack:
            break
        fullest = int(np.argmax(sums >= highest - slack))
        emptiest = int(np.argmax(sums <= sums.min() + slack))
        shards = np.flatnonzero(owner == fullest)
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
        moves.append((shard, fullest, emptiest))
    imbalance = float(np.bincount(owner, weights=weights, minlength=tasks).max()) / mean if mean > 0 else 1.0
    return ShardPlan(tuple(owner.tolist()), tuple(moves), imbalance)
