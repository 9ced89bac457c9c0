"""Group-aware allocation (CIKM '14) as a placement method: operators are groups, links are communication.

The paper has one capacity per node, a worker has cores and slots. So a task costs the larger of its share of a worker's
cores and of its slots, the cores being those of a cluster in perfect balance, and nodes are filled to alpha times
that balance (load-balance mode, section 2.2): the smallest alpha with which every task fits and no worker has more
tasks than slots. Where none does, a task costs a slot and the load is not looked at.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from workbench import units
from workbench.errors import WorkbenchError
from workbench.placement.groups import GroupAllocation, Job, best_allocation, naive, task_level, top_down
from workbench.placement.problem import Counts, PlacementProblem

Algorithm = Callable[[Job, Sequence[float]], GroupAllocation]

GROUP_METHODS: Mapping[str, Algorithm] = {
    "top-down": top_down,
    "task-level": task_level,
    "naive-pairs": naive,
    "best-groups": best_allocation,
}
"""Algorithms 4 and 5, Algorithms 1 to 3, section 3.1, and local search from the first."""

_ALPHA, _STEPS = 1.1, 12


def group_job(problem: PlacementProblem) -> Job:
    """Return the job: one group per operator, its cost in cores, its links' bytes/s (Equation 8) as communication.

    Edges between the same operators add up. A forward edge counts as a shuffle, because the tasks of two groups talk
    all to all.
    """
    traffic: dict[tuple[int, int], float] = {}
    for (u, v, partitioning), link in zip(problem.edges, problem.link_loads, strict=True):
        links = problem.parallelism[u] * (problem.parallelism[v] if partitioning == "shuffle" else 1)
        pair = (min(u, v), max(u, v))
        traffic[pair] = traffic.get(pair, 0.0) + float(link) * links
    cores = tuple(cpu * tasks for cpu, tasks in zip(problem.cpu, problem.parallelism, strict=True))
    return Job(problem.parallelism, cores, tuple((u, v, c) for (u, v), c in traffic.items()))


def placed_in_groups(problem: PlacementProblem, method: str) -> tuple[Counts, str]:
    """Place by a group-aware algorithm; the note describes the communication within workers, and how full they are."""
    job = group_job(problem)
    balance = math.fsum(job.processing_cost) / math.fsum(problem.speeds)
    shares = [max(cost / balance if balance else 0.0, 1 / problem.slots) for cost in job.task_cost]
    by_load = Job(job.sizes, tuple(s * size for s, size in zip(shares, job.sizes, strict=True)), job.edges)
    for step in range(_STEPS):
        alpha = _ALPHA**step
        found = GROUP_METHODS[method](by_load, [alpha * speed for speed in problem.speeds])
        counts = np.array(found.counts, dtype=np.int64)
        if not found.unplaced and (counts.sum(axis=0) <= problem.slots).all():
            return counts, f"{_kept(job, found)}; workers filled to {alpha:.2f} of an even load"
    by_slot = Job(job.sizes, tuple(float(size) for size in job.sizes), job.edges)
    found = GROUP_METHODS[method](by_slot, [float(problem.slots)] * problem.workers)
    if found.unplaced:
        left = ", ".join(f"{tasks:,} of {problem.operators[group]}" for group, tasks in found.unplaced.items())
        raise WorkbenchError(f"The method {method} leaves tasks without a worker ({left}); use another method.")
    return np.array(found.counts, dtype=np.int64), f"{_kept(job, found)}; workers filled by slots only"


def _kept(job: Job, found: GroupAllocation) -> str:
    total = math.fsum(c for _, _, c in job.edges)
    return f"{units.percent(found.gain / total)} of the traffic stays on workers" if total else "no traffic"
