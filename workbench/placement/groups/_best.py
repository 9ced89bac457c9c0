"""The best allocation found: top-down, then local search from it."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from workbench.checks import SLACK, require
from workbench.placement.groups._by_task import naive, task_level
from workbench.placement.groups._local_search import improve
from workbench.placement.groups._top_down import top_down
from workbench.placement.groups.job import GroupAllocation, Job, Nodes, allocation

DEFAULT_TRIES = 12


def best_allocation(
    job: Job, capacity: Sequence[float], *, tries: int = DEFAULT_TRIES, seed: int = 0
) -> GroupAllocation:
    """Improve on ``top_down`` by moving and exchanging tasks; never worse than it.

    The search climbs from the top-down allocation, then again from slightly shaken copies of the best one found. When
    top-down leaves tasks out, the other algorithms and a plain packing by size are tried before the search; when all
    of them do, the answer is the one that leaves out least.

    Parameters
    ----------
    job, capacity
        See `top_down`.
    tries
        Shaken copies to climb from.
    seed
        Of the shaking; the same seed gives the same allocation.

    Raises
    ------
    WorkbenchError
        When `tries` or `seed` is below 0, there is no node, or a capacity is negative or not finite.
    """
    require(tries >= 0, f"tries is {tries!r}; it must be a whole number of at least 0.")
    require(seed >= 0, f"seed is {seed!r}; it must be a whole number of at least 0.")
    start = _start(job, capacity)
    if start.unplaced or not job.edges:
        return start
    groups = len(job.sizes)
    weight = np.zeros((groups, groups))
    for edge in job.edges:
        weight[edge[0], edge[1]] += job.pair_communication(edge)
    weight += weight.T
    nodes = Nodes(capacity)
    counts, cost = np.array(start.counts, dtype=np.int64), np.array(job.task_cost)
    placed = counts.astype(np.float64)
    free = np.array(nodes.capacity) - cost @ placed
    least = SLACK * sum(c for _, _, c in job.edges)
    better = improve(counts, weight @ placed, free, cost, weight, nodes.slack, least, tries, seed % (2**32 - 1) + 1)
    return max(start, allocation(job, better.tolist()), key=lambda answer: answer.gain)


def _start(job: Job, capacity: Sequence[float]) -> GroupAllocation:
    """Top-down if it is complete, else the first complete one of the others, else what leaves out least."""
    incomplete = []
    for allocate in (top_down, partial(top_down, priority="imc"), task_level, naive, _packed):
        attempt = allocate(job, capacity)
        if not attempt.unplaced:
            return attempt
        incomplete.append(attempt)
    return min(incomplete, key=lambda answer: sum(job.task_cost[g] * tasks for g, tasks in answer.unplaced.items()))


def _packed(job: Job, capacity: Sequence[float]) -> GroupAllocation:
    """Best fit decreasing, whatever it collocates: tasks by cost, each to the node with least room left."""
    nodes = Nodes(capacity)
    counts = [[0] * len(nodes.free) for _ in job.sizes]
    for group in sorted(range(len(job.sizes)), key=lambda group: (-job.task_cost[group], group)):
        for _ in range(job.sizes[group]):
            fitting = [(free, node) for node, free in enumerate(nodes.free) if nodes.fits(node, job.task_cost[group])]
            if not fitting:
                break
            _, node = min(fitting)
            nodes.take(node, job.task_cost[group])
            counts[group][node] += 1
    return allocation(job, counts)
