"""Jobs and clusters that break the model's assumptions, brought into its form (CIKM '14, sections 2.2 and 5)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from workbench.checks import SLACK, require
from workbench.placement.groups.job import Edge, Job, checked_capacity, checked_edges

QUANTUM = 0.01


def balanced_capacity(job: Job, capacity: Sequence[float], tolerance: float = 1.1) -> tuple[float, ...]:
    """Node limits that spread the load: alpha x the average cost per node, or the node's capacity if that is less.

    Parameters
    ----------
    job
        What to allocate.
    capacity
        Per node.
    tolerance
        alpha of section 2.2, at least 1: how far above the average a node may be.

    Raises
    ------
    WorkbenchError
        When there is no node, a capacity is negative or not finite, or `tolerance` is below 1.
    """
    limits = checked_capacity(capacity)
    require(
        math.isfinite(tolerance) and tolerance >= 1,
        f"tolerance is {tolerance!r}; it must be a finite number of at least 1 (1.1: a tenth above the average).",
    )
    average = math.fsum(job.processing_cost) / len(limits)
    return tuple(min(limit, tolerance * average) for limit in limits)


def relative_capacity(capacity: Sequence[float], speed: Sequence[float]) -> tuple[float, ...]:
    """Capacities in units of the slowest node: a node of twice its speed hosts twice the load (section 5).

    Parameters
    ----------
    capacity, speed
        Per node; a speed is above 0, in any unit.

    Raises
    ------
    WorkbenchError
        When there is no node, the lengths differ, a capacity is negative or a speed not above 0, or one is not finite.
    """
    limits = checked_capacity(capacity)
    require(len(speed) == len(limits), f"There are {len(limits)} capacities and {len(speed)} speeds; give one each.")
    for node, value in enumerate(speed):
        require(
            math.isfinite(value) and value > 0,
            f"The speed of node {node} is {value!r}; it must be a finite number above 0.",
        )
    return tuple(limit * value / min(speed) for limit, value in zip(limits, speed, strict=True))


def finest_tasks(job: Job, capacity: Sequence[float], quantum: float | None = None) -> Job:
    """Split groups into tasks of one cost that fills nodes exactly, so that any job within the capacity fits.

    Costs are rounded up and capacities down to multiples of `quantum`; the task cost is their greatest common divisor
    d, and a group has cost / d tasks (section 5).

    Parameters
    ----------
    job
        Whose allocation failed, or may.
    capacity
        Per node.
    quantum
        Unit of the rounding, above 0; 1 % of the smallest capacity by default, the paper's finest grain.

    Returns
    -------
    Job
        With the same groups and edges.

    Raises
    ------
    WorkbenchError
        When there is no node, a capacity is negative or not finite, or the quantum is not above 0.
    """
    limits = checked_capacity(capacity)
    unit = QUANTUM * min(limits) if quantum is None else quantum
    require(math.isfinite(unit) and unit > 0, f"The quantum is {unit!r}; it must be a finite number above 0; give one.")
    costs = [math.ceil(cost / unit - SLACK) for cost in job.processing_cost]
    divisor = math.gcd(*costs, *(math.floor(limit / unit + SLACK) for limit in limits)) or 1
    return Job(
        tuple(max(1, cost // divisor) for cost in costs),
        tuple(cost * unit for cost in costs),
        job.edges,
    )


@dataclass(frozen=True)
class SkewedJob:
    """A job whose skewed groups were split.

    Parameters
    ----------
    job
        With a group for every run of similar tasks.
    members
        For each of its groups, the original group and the numbers of the tasks in it.
    """

    job: Job
    members: tuple[tuple[int, tuple[int, ...]], ...]


def split_skewed(task_costs: Sequence[Sequence[float]], edges: Sequence[Edge], margin: float = 0.1) -> SkewedJob:
    """Split groups of unequal tasks into groups of nearly equal ones (section 5).

    Tasks are taken by cost; a new group begins with the first one more than `margin` cheaper than the most expensive
    of its group. The communication of an edge is divided by the tasks' shares of their groups' costs.

    Parameters
    ----------
    task_costs
        Measured cost of every task, per group.
    edges
        ``(i, j, c)``: the original groups i and j exchange c in all, bytes/s.
    margin
        Share by which tasks of one group may differ, from 0 to below 1.

    Raises
    ------
    WorkbenchError
        When there is no group, a group has no task, a cost is negative or not finite, `margin` is out of its range, or
        an edge is not of that form, names an unknown group or joins a group to itself.
    """
    require(0 <= margin < 1, f"margin is {margin!r}; it must be a share from 0 to below 1.")
    require(len(task_costs) > 0, "There are no groups to split; give the task costs of at least one.")
    for group, costs in enumerate(task_costs):
        require(len(costs) > 0, f"Group {group} has no tasks; give the cost of at least one.")
        for task, cost in enumerate(costs):
            require(
                math.isfinite(cost) and cost >= 0,
                f"The cost of task {task} of group {group} is {cost!r}; it must be a finite number of at least 0.",
            )
    joined = checked_edges(edges, len(task_costs))
    members: list[tuple[int, tuple[int, ...]]] = []
    for group, costs in enumerate(task_costs):
        run: list[int] = []
        for task in sorted(range(len(costs)), key=lambda task: -costs[task]):
            if run and costs[task] < costs[run[0]] * (1 - margin) - SLACK:
                members.append((group, tuple(run)))
                run = []
            run.append(task)
        members.append((group, tuple(run)))
    loads = [math.fsum(task_costs[group][task] for task in tasks) for group, tasks in members]
    shares = [_share(task_costs[group], tasks) for group, tasks in members]
    split = tuple(
        (a, b, c * shares[a] * shares[b])
        for i, j, c in joined
        for a, (first, _) in enumerate(members)
        if first == i
        for b, (second, _) in enumerate(members)
        if second == j
    )
    return SkewedJob(Job(tuple(len(tasks) for _, tasks in members), tuple(loads), split), tuple(members))


def _share(costs: Sequence[float], tasks: Sequence[int]) -> float:
    total = math.fsum(costs)
    return math.fsum(costs[task] for task in tasks) / total if total else len(tasks) / len(costs)
