"""A stream job as groups of equal tasks, and what an allocation of it to nodes gains (CIKM '14, section 2).

Tasks of communicating groups talk all to all; what two tasks on one node exchange stays off the network. The gain of
an allocation is the communication it saves that way, each pair of tasks counted once: the double sum printed in
section 2.2 runs over ordered pairs and would count twice.

References
----------
A. Chatzistergiou, S. D. Viglas, "Fast Heuristics for Near-Optimal Task Allocation in Data Stream Processing over
Clusters", CIKM 2014.
"""

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Self, get_args

from workbench.checks import SLACK, not_negative, not_negatives, one_of, require, whole

Edge = tuple[int, int, float]
Priority = Literal["rs", "imc"]
Counts = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Job:
    """Groups of tasks and the communication between them.

    Raises `WorkbenchError` when lengths differ, a group has no task, a cost is negative or not finite, or an edge is
    not of its form, names an unknown group or joins a group to itself.
    """

    sizes: tuple[int, ...]  # tasks per group
    processing_cost: tuple[float, ...]  # total cost of all tasks of each group, in the unit of the nodes' capacities
    # (i, j, c): groups i and j exchange c in all, bytes/s; each of their size_i x size_j task pairs the same
    edges: tuple[Edge, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", tuple(self.sizes))
        object.__setattr__(self, "processing_cost", tuple(float(cost) for cost in self.processing_cost))
        groups = len(self.sizes)
        require(groups > 0, "The job has no groups; give it at least one.")
        require(
            len(self.processing_cost) == groups,
            f"The job has {groups} sizes and {len(self.processing_cost)} processing costs; give one of each per group.",
        )
        for group, (size, cost) in enumerate(zip(self.sizes, self.processing_cost, strict=True)):
            whole(f"The number of tasks of group {group}", size)
            not_negative(f"The processing cost of group {group}", cost)
        edges = []
        for edge in self.edges:
            require(
                len(edge) == 3,
                f"Edge {tuple(edge)!r} is not (i, j, c): give two groups and the bytes/s that they exchange.",
            )
            i, j, c = edge
            for end in (i, j):
                require(
                    end in range(groups),
                    f"Edge ({i}, {j}) names the unknown group {end}; the groups are 0 to {groups - 1}.",
                )
            require(i != j, f"Edge ({i}, {j}) joins a group to itself; leave it out.")
            edges.append((int(i), int(j), not_negative(f"The communication of edge ({i}, {j})", float(c))))
        object.__setattr__(self, "edges", tuple(edges))

    @cached_property
    def task_cost(self) -> tuple[float, ...]:
        """Processing cost of one task of each group (Equation 1)."""
        return tuple(cost / size for cost, size in zip(self.processing_cost, self.sizes, strict=True))

    def pair_communication(self, edge: Edge) -> float:
        """Communication of one pair of tasks of `edge` (Equation 1)."""
        i, j, c = edge
        return c / (self.sizes[i] * self.sizes[j])

    def by_priority(self, priority: Priority) -> list[Edge]:
        """Edges in the order the algorithms take them, ties in input order.

        ``"rs"`` is the relative significance of the two groups (Equation 2), which their task pairs inherit;
        ``"imc"`` is the communication of one task pair.
        """
        one_of("priority", priority, get_args(Priority))

        def significance(edge: Edge) -> float:
            i, j, c = edge
            cost = self.processing_cost[i] + self.processing_cost[j]
            return c / cost if cost else math.inf

        return sorted(self.edges, key=significance if priority == "rs" else self.pair_communication, reverse=True)

    def gain(self, counts: Counts) -> float:
        """Return the communication inside nodes with these tasks, shape (groups, nodes): phi of section 2.2."""
        return math.fsum(
            self.pair_communication(edge) * sum(a * b for a, b in zip(counts[edge[0]], counts[edge[1]], strict=True))
            for edge in self.edges
        )

    def divided(self, capacity: Sequence[float]) -> "Job":
        """Return the job in equal tasks that exactly fill the nodes (section 5): for one that does not fit.

        A task costs the greatest common divisor of the groups' costs and of the nodes' capacities, so every complete
        allocation that the capacity permits exists. A group without cost keeps one task.
        """
        values = [*self.processing_cost, *checked_capacity(capacity)]
        uneven = next((value for value in values if not value.is_integer()), None)
        require(
            uneven is None,
            f"A cost or a capacity is {uneven!r}; equal tasks need whole numbers. Give percent of a core, rounded up.",
        )
        step = math.gcd(*map(int, values))
        require(step > 0, "All costs and capacities are 0; give at least one above it.")
        sizes = tuple(max(1, int(cost) // step) for cost in self.processing_cost)
        return Job(sizes, self.processing_cost, self.edges)

    def scaled(self, factor: float) -> "Job":
        """Return the job at `factor` times its input rate: costs and communication grow in proportion (section 7.4)."""
        not_negative("The factor", factor)
        return Job(
            self.sizes,
            tuple(cost * factor for cost in self.processing_cost),
            tuple((i, j, c * factor) for i, j, c in self.edges),
        )


@dataclass(frozen=True)
class GroupAllocation:
    """Tasks of every group on every node."""

    counts: tuple[tuple[int, ...], ...]  # shape (groups, nodes)
    gain: float  # communication that stays inside nodes, every pair of tasks once
    unplaced: Mapping[int, int]  # tasks per group that fitted nowhere; empty when the allocation is complete

    @classmethod
    def of(cls, job: Job, counts: Counts) -> Self:
        """Return the allocation with these counts of a job's tasks."""
        rows = tuple(map(tuple, counts))
        missing = {group: size - sum(row) for group, (size, row) in enumerate(zip(job.sizes, rows, strict=True))}
        return cls(rows, job.gain(rows), {group: tasks for group, tasks in missing.items() if tasks})


def checked_capacity(capacity: Sequence[float]) -> list[float]:
    """Return the capacities as floats, after a check."""
    require(len(capacity) > 0, "There are no nodes; give the capacity of at least one.")
    return not_negatives("The capacity of node {}", map(float, capacity))


class Nodes:
    """Free capacity while an algorithm fills the nodes; sizes within a relative 1e-9 are equal, equality fits.

    The nodes are in a heap by what is free, as in the paper (section 3): the roomiest is found in O(log nodes). A node
    that changed is put in again, and its old place is dropped when it comes up.
    """

    def __init__(self, capacity: Sequence[float]) -> None:
        self.capacity = checked_capacity(capacity)
        self.free = list(self.capacity)
        self.slack = SLACK * max(self.capacity)
        self._heap = [(self._order(node), node) for node in range(len(self.free))]
        heapq.heapify(self._heap)

    def _order(self, node: int) -> float:
        """Place in the heap: what is free, descending, in steps of the slack."""
        return -float(round(self.free[node] / self.slack)) if self.slack else 0.0

    def fits(self, node: int, cost: float) -> bool:
        """Whether `cost` fits what is free on `node`."""
        return cost <= self.free[node] + self.slack

    def room_for(self, node: int, cost: float, most: int, beside: float = 0.0) -> int:
        """How many tasks of `cost`, at most `most`, fit on `node` next to a load of `beside`."""
        free = self.free[node] - beside + self.slack
        if cost <= 0 or most * cost <= free:
            return most
        return max(0, math.floor(free / cost))

    def take(self, node: int, cost: float) -> None:
        """Use `cost` of what is free on `node`."""
        self.free[node] -= cost
        heapq.heappush(self._heap, (self._order(node), node))

    def move_all(self, out: int, into: int) -> bool:
        """Move the load of one node to another if it fits, and return whether it does."""
        used = self.capacity[out] - self.free[out]
        if not self.fits(into, used):
            return False
        self.take(into, used)
        self.take(out, -used)
        self.free[out] = self.capacity[out]  # exactly
        return True

    def roomiest(self) -> int:
        """Find the node with most room, ties by lowest index."""
        while self._heap[0][0] != self._order(self._heap[0][1]):
            heapq.heappop(self._heap)
        return self._heap[0][1]
