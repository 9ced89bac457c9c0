"""Allocation one pair of tasks at a time: the naive algorithm and its improvement (CIKM '14, section 3).

Repairs of the printed Algorithms 1 to 3: line 13 takes a node's room once for each task of the pair (printed: twice
for the first); line 7 passes the last node; two nodes are fused only if they differ; a single task that a later pair
placed is skipped; the order of pairs within a pair of groups, which the paper leaves open, is a parameter.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Literal, get_args

from workbench.checks import require
from workbench.placement.groups.job import GroupAllocation, Job, Nodes, Priority, allocation

Order = Literal["row", "diagonal"]
_Task = tuple[int, int]  # group, number within it


def naive(job: Job, capacity: Sequence[float]) -> GroupAllocation:
    """Allocate pairs of tasks by communication to nodes by capacity, each until it is full (section 3.1).

    A pair goes to the current node or the next it fits; the other task of a half-allocated pair joins its partner if
    it fits. What fits nowhere goes last, each task to the first node with room.

    Takes and raises what `top_down` does.
    """
    nodes = Nodes(capacity)
    tasks = _Tasks(job, nodes)
    order = sorted(range(len(nodes.free)), key=lambda node: -nodes.capacity[node])
    current, fits_nowhere = 0, math.inf  # rooms only shrink, so a cost that fitted nowhere never will
    aside: list[_Task] = []
    for edge in job.by_priority("imc"):
        for pair in _pairs(job, edge[0], edge[1], "row"):
            new = [task for task in pair if tasks.node(task) is None]
            if len(new) == 1:
                partner = tasks.node(pair[0] if pair[1] is new[0] else pair[1])
                tasks.place_or_set_aside(new, partner, aside)
            elif new:
                cost = job.task_cost[edge[0]] + job.task_cost[edge[1]]
                rest = range(current if cost < fits_nowhere else len(order), len(order))
                found = next((at for at in rest if nodes.fits(order[at], cost)), None)
                if found is None:
                    fits_nowhere = min(fits_nowhere, cost)
                else:
                    current = found
                tasks.place_or_set_aside(new, None if found is None else order[found], aside)
    for task in (*aside, *tasks.all()):
        if tasks.node(task) is None:
            cost = job.task_cost[task[0]]
            node = next((node for node in order if nodes.fits(node, cost)), None)
            tasks.place_or_set_aside([task], node, [])
    return allocation(job, tasks.counts())


def task_level(job: Job, capacity: Sequence[float], priority: Priority = "rs", order: Order = "row") -> GroupAllocation:
    """Allocate pairs of tasks by significance, fuse nodes where possible (Algorithms 1 to 3).

    Parameters
    ----------
    job, capacity
        See `top_down`.
    priority
        ``"rs"``: relative significance; ``"imc"``: communication of a task pair, as the paper's experiments.
    order
        Of the pairs (a, b) of two groups: ``"row"`` takes all pairs of a task of the first group before those of its
        next; ``"diagonal"`` goes by a + b, larger a first, so that both groups advance alike (it collocates the 84
        links of the paper's Example 2).

    Raises
    ------
    WorkbenchError
        When `priority` or `order` is unknown, there is no node, or a capacity is negative or not finite.
    """
    require(order in get_args(Order), f"order is {order!r}; use one of 'row', 'diagonal'.")
    nodes = Nodes(capacity)
    tasks = _Tasks(job, nodes)
    aside: list[_Task] = []
    last: int | None = None
    for i, j, _ in job.by_priority(priority):
        first_of_pair = True
        both = job.task_cost[i] + job.task_cost[j]
        for pair in _pairs(job, i, j, order):
            at = [tasks.node(task) for task in pair]
            if at[0] is not None and at[1] is not None:
                tasks.fuse(at[0], at[1])
                continue
            # pickNode, Algorithm 2
            if at[0] is not None or at[1] is not None:
                node = at[1] if at[0] is None else at[0]
            elif last is None or first_of_pair or not nodes.fits(last, both):
                node = nodes.roomiest()
            else:
                node = last
            first_of_pair, last = False, node
            tasks.place_or_set_aside([t for t, where in zip(pair, at, strict=True) if where is None], node, aside)
    aside += tasks.all()  # groups without edges
    _place_singles(tasks, job, nodes, aside)
    return allocation(job, tasks.counts())


def _place_singles(tasks: "_Tasks", job: Job, nodes: Nodes, aside: list[_Task]) -> None:
    """Algorithm 3: by cost, each to the roomiest node, until one does not fit."""
    for task in sorted(aside, key=lambda task: (-job.task_cost[task[0]], task)):
        if tasks.node(task) is not None:
            continue
        node = nodes.roomiest()
        if not nodes.fits(node, job.task_cost[task[0]]):
            return
        tasks.place_or_set_aside([task], node, [])


def _pairs(job: Job, i: int, j: int, order: Order) -> Iterator[tuple[_Task, _Task]]:
    rows, columns = job.sizes[i], job.sizes[j]
    if order == "row":
        yield from (((i, a), (j, b)) for a in range(rows) for b in range(columns))
        return
    for total in range(rows + columns - 1):
        for a in range(min(total, rows - 1), max(-1, total - columns), -1):
            yield (i, a), (j, total - a)


class _Tasks:
    """Where every task is."""

    def __init__(self, job: Job, nodes: Nodes) -> None:
        self._job, self._nodes = job, nodes
        self._node: list[list[int | None]] = [[None] * size for size in job.sizes]
        self._hosted: list[list[_Task]] = [[] for _ in nodes.free]

    def all(self) -> list[_Task]:
        return [(group, number) for group, size in enumerate(self._job.sizes) for number in range(size)]

    def node(self, task: _Task) -> int | None:
        return self._node[task[0]][task[1]]

    def place_or_set_aside(self, new: list[_Task], node: int | None, aside: list[_Task]) -> None:
        """Put all of `new` on `node` if they fit together."""
        cost = sum(self._job.task_cost[group] for group, _ in new)
        if node is None or not self._nodes.fits(node, cost):
            aside += new
            return
        self._nodes.take(node, cost)
        for task in new:
            self._node[task[0]][task[1]] = node
            self._hosted[node].append(task)

    def fuse(self, first: int, second: int) -> None:
        """Lines 18 to 23: empty the node of smaller capacity into the other (ties: into the first) if all fits."""
        nodes = self._nodes
        if first == second:
            return
        into, out = (first, second) if nodes.capacity[first] >= nodes.capacity[second] else (second, first)
        if not nodes.move_all(out, into):
            return
        for group, number in self._hosted[out]:
            self._node[group][number] = into
        self._hosted[into] += self._hosted[out]
        self._hosted[out] = []

    def counts(self) -> list[list[int]]:
        rows = [[0] * len(self._hosted) for _ in self._node]
        for node, hosted in enumerate(self._hosted):
            for group, _ in hosted:
                rows[group][node] += 1
        return rows
