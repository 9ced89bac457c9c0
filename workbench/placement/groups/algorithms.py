"""Allocation by pairs of tasks or of groups (CIKM '14, sections 3 and 4), and the best found: local search from those.

Repairs of the printed Algorithms 1 to 3: line 13 takes a node's room once for each task of the pair (printed: twice
for the first); line 7 passes the last node; two nodes are fused only if they differ; a single task that a later pair
placed is skipped; the order of pairs within a pair of groups, which the paper leaves open, is a parameter.

Repairs of the printed Algorithms 4 and 5: the costs of line 14 are those of single tasks, and a split places k tasks
of the smaller group with k r of the larger (printed: k of both); when not even one such portion fits, one task of the
smaller group goes with as many of the larger as fit, or all wait for the end (printed: endless recursion); with a
group that is allocated, all nodes that host it are tried (printed: one); a fusion moves everything on the node
(printed: one group of it); single tasks are placed after all pairs (printed: after each).

The local search is compiled. With w_gh the communication of a pair of tasks and pot[g, k] = sum_h w_gh x[h, k], moving
q tasks of g from a to b gains q (pot[g, b] - pot[g, a]); an exchange with r tasks of h also gains r (pot[h, a] -
pot[h, b]) - 2 q r w_gh.
"""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Literal, NamedTuple, get_args

import numpy as np

from workbench.arrays import Floats, Ints
from workbench.checks import SLACK, one_of, whole
from workbench.placement._compiled import compiled, inlined
from workbench.placement.groups.job import GroupAllocation, Job, Nodes, Priority

_MOST = 3  # tasks of one side of an exchange, if not all of them
_SHAKES = 3  # random steps away from the best allocation


class State(NamedTuple):
    """An allocation that changes, and what it is judged by."""

    counts: Ints  # (groups, nodes)
    pot: Floats  # (groups, nodes)
    free: Floats  # (nodes,): the room on each
    cost: Floats  # (groups,): of one task
    weight: Floats  # (groups, groups), symmetric, its diagonal 0
    slack: float  # the overload that still fits
    least: float  # a gain up to this counts as none


@inlined
def _shift(state: State, g: int, a: int, b: int, q: int) -> None:
    """Move q tasks of g from a to b."""
    state.counts[g, a] -= q
    state.counts[g, b] += q
    state.free[a] += q * state.cost[g]
    state.free[b] -= q * state.cost[g]
    for h in range(len(state.cost)):
        state.pot[h, a] -= q * state.weight[g, h]
        state.pot[h, b] += q * state.weight[g, h]


@inlined
def _exchanged(state: State, g: int, a: int, b: int) -> bool:
    """Exchange tasks of g on a with those of each other group on b where that gains; return whether any did."""
    counts, pot, free, cost, weight, slack, least = state
    gained = False
    for h in range(len(cost)):
        if h == g or counts[h, b] == 0 or counts[g, a] == 0:
            continue
        here, there, both = pot[g, b] - pot[g, a], pot[h, a] - pot[h, b], 2 * weight[g, h]
        if here <= least and there <= least:
            continue  # meeting there only lowers the gain
        best, best_q, best_r = 0.0, 0, 0
        for step_q in range(1, min(_MOST + 1, counts[g, a]) + 1):
            q = step_q if step_q <= _MOST else counts[g, a]
            for step_r in range(1, min(_MOST + 1, counts[h, b]) + 1):
                r = step_r if step_r <= _MOST else counts[h, b]
                gain = q * here + r * there - q * r * both
                change = q * cost[g] - r * cost[h]  # of the load of b
                if gain > best and change <= free[b] + slack and -change <= free[a] + slack:
                    best, best_q, best_r = gain, q, r
        if best > least:
            _shift(state, g, a, b, best_q)
            _shift(state, h, b, a, best_r)
            gained = True
    return gained


@inlined
def _passed(state: State) -> bool:
    """Try every move and every exchange once; return whether any gained."""
    counts, pot, free, cost, _, slack, least = state
    groups, nodes = counts.shape
    gained = False
    for a in range(nodes):
        for b in range(nodes):
            for g in range(groups):
                if a == b or counts[g, a] == 0:
                    continue
                if pot[g, b] - pot[g, a] > least and cost[g] <= free[b] + slack:
                    q = counts[g, a]
                    if q * cost[g] > free[b] + slack:
                        q = int((free[b] + slack) / cost[g])
                    _shift(state, g, a, b, q)
                    gained = True
                # pairs of nodes are seen from both sides, exchanges from one only
                if a < b and _exchanged(state, g, a, b):
                    gained = True
    return gained


@inlined
def _next(state: int) -> int:
    """Marsaglia's xorshift with 32 bits."""
    state ^= (state << 13) & 0xFFFFFFFF
    state ^= state >> 17
    return state ^ ((state << 5) & 0xFFFFFFFF)


@compiled
def _shaken(state: State, seed: int) -> int:
    """Move a random task to a random node, in exchange for another where it does not fit; returns the new seed."""
    counts, _, free, cost, _, slack, _ = state
    groups, nodes = counts.shape
    seed = _next(seed)
    g = seed % groups
    seed = _next(seed)
    a = seed % nodes
    while counts[g, a] == 0:  # every group has a task somewhere
        a = (a + 1) % nodes
    seed = _next(seed)
    b = seed % nodes
    if a == b:
        return seed
    if cost[g] <= free[b] + slack:
        _shift(state, g, a, b, 1)
        return seed
    seed = _next(seed)
    for step in range(groups):
        h = (seed + step) % groups
        change = cost[g] - cost[h]
        if h != g and counts[h, b] > 0 and change <= free[b] + slack and -change <= free[a] + slack:
            _shift(state, g, a, b, 1)
            _shift(state, h, b, a, 1)
            break
    return seed


@compiled
def _climbed(state: State) -> float:
    """Pass until nothing gains; returns the gain of the allocation."""
    while _passed(state):
        pass
    gain = 0.0
    for g in range(state.counts.shape[0]):
        for k in range(state.counts.shape[1]):
            gain += state.counts[g, k] * state.pot[g, k]
    return gain / 2


@compiled
def improve(state: State, tries: int, seed: int) -> Ints:
    """Climb, then `tries` times from a shaken copy of the best so far; returns the best counts.

    The shaking follows from `seed`, 1 to 2^32 - 1.
    """
    counts, pot, free, _, _, _, least = state
    best_gain = _climbed(state)
    best, best_pot, best_free = counts.copy(), pot.copy(), free.copy()
    for _try in range(tries):
        for _step in range(_SHAKES):
            seed = _shaken(state, seed)
        gain = _climbed(state)
        if gain >= best_gain - least:
            best_gain = max(gain, best_gain)
            best[:], best_pot[:], best_free[:] = counts, pot, free
        else:
            counts[:], pot[:], free[:] = best, best_pot, best_free
    return best


def top_down(job: Job, capacity: Sequence[float], priority: Priority = "rs") -> GroupAllocation:
    """Allocate pairs of groups by significance (Algorithms 4 and 5).

    Takes O(edges (log edges + nodes)) steps to order the pairs and to look through hosts, and O(log nodes) for each
    portion that it places. The `priority` is ``"rs"``, relative significance, as the paper, or ``"imc"``, communication
    of a task pair. Raises `WorkbenchError` for another one, without a node, or for a `capacity` of one that is negative
    or not finite.
    """
    work = _Work(job, Nodes(capacity))
    for i, j, _ in job.by_priority(priority):
        if work.left[i] and work.left[j]:
            work.place_both(i, j)
        elif work.left[j]:
            work.join(i, j)
        elif work.left[i]:
            work.join(j, i)
        else:
            work.fuse(i, j)
    work.place_singles()
    return GroupAllocation.of(job, work.counts)


class _Work:
    """Counts, shape (groups, nodes), and the remaining tasks of each group."""

    def __init__(self, job: Job, nodes: Nodes) -> None:
        self.cost = job.task_cost
        self.nodes = nodes
        self.left = list(job.sizes)
        self.counts = [[0] * len(nodes.free) for _ in job.sizes]

    def place(self, node: int, group: int, tasks: int) -> None:
        """Put `tasks` tasks of `group` on `node`."""
        self.counts[group][node] += tasks
        self.left[group] -= tasks
        self.nodes.take(node, tasks * self.cost[group])

    def place_both(self, i: int, j: int) -> None:
        """Split two groups in proportion over the roomiest nodes (Algorithm 5, mode both)."""
        nodes, left, cost = self.nodes, self.left, self.cost
        while left[i] and left[j]:
            node = nodes.roomiest()
            if nodes.fits(node, left[i] * cost[i] + left[j] * cost[j]):
                self.place(node, i, left[i])
                self.place(node, j, left[j])
                return
            a, b = (i, j) if left[i] <= left[j] else (j, i)
            ratio = left[b] // left[a]
            portions = nodes.room_for(node, cost[a] + ratio * cost[b], left[a])
            if portions:
                self.place(node, a, portions)
                self.place(node, b, portions * ratio)
                continue
            some = 0
            if ratio > 1 and nodes.fits(node, cost[a]):
                some = nodes.room_for(node, cost[b], left[b], beside=cost[a])
            if not some:
                return
            self.place(node, a, 1)
            self.place(node, b, some)

    def join(self, placed: int, other: int) -> None:
        """Fill the nodes that host `placed`, fullest of it first, with tasks of `other` (mode second)."""
        hosts = sorted((-tasks, node) for node, tasks in enumerate(self.counts[placed]) if tasks)
        for _, node in hosts:
            tasks = self.nodes.room_for(node, self.cost[other], self.left[other])
            if tasks:
                self.place(node, other, tasks)

    def fuse(self, i: int, j: int) -> None:
        """Empty the node of one group into that of the other if each is on one and all fits (lines 18 to 24)."""
        hosts = [[node for node, tasks in enumerate(self.counts[group]) if tasks] for group in (i, j)]
        if all(len(nodes) == 1 for nodes in hosts):
            self.merge(hosts[1][0], hosts[0][0])

    def merge(self, first: int, second: int) -> tuple[int, int] | None:
        """Empty the node of smaller capacity into the other (ties: into the first) if all fits; return both."""
        capacity = self.nodes.capacity
        into, out = (first, second) if capacity[first] >= capacity[second] else (second, first)
        if first == second or not self.nodes.move_all(out, into):
            return None
        for row in self.counts:
            row[into] += row[out]
            row[out] = 0
        return out, into

    def place_singles(self) -> None:
        """Algorithm 3: by cost, each to the roomiest node, until one does not fit."""
        for group in sorted(range(len(self.left)), key=lambda group: -self.cost[group]):
            while self.left[group]:
                node = self.nodes.roomiest()
                if not self.nodes.fits(node, self.cost[group]):
                    return
                self.place(node, group, 1)


Order = Literal["row", "diagonal"]
_Task = tuple[int, int]  # group, number within it


def naive(job: Job, capacity: Sequence[float]) -> GroupAllocation:
    """Allocate pairs of tasks by communication to nodes by capacity, each until it is full (section 3.1).

    A pair goes to the current node or the next it fits; the other task of a half-allocated pair joins its partner if
    it fits. What fits nowhere goes last, each task to the first node with room.

    Takes and raises what `top_down` does.
    """
    tasks = _Tasks(job, Nodes(capacity))
    nodes = tasks.nodes
    order = sorted(range(len(nodes.free)), key=lambda node: -nodes.capacity[node])
    current, fits_nowhere = 0, math.inf  # rooms only shrink, so a cost that fitted nowhere never will
    aside: list[_Task] = []
    for edge in job.by_priority("imc"):
        for pair in _pairs(job, edge[0], edge[1], "row"):
            new = [task for task in pair if task not in tasks.node]
            if len(new) == 1:
                (partner,) = {*pair} - {*new}
                node: int | None = tasks.node[partner]
            elif new:
                cost = job.task_cost[edge[0]] + job.task_cost[edge[1]]
                rest = range(current if cost < fits_nowhere else len(order), len(order))
                found = next((at for at in rest if nodes.fits(order[at], cost)), None)
                if found is None:
                    fits_nowhere = min(fits_nowhere, cost)
                else:
                    current = found
                node = None if found is None else order[found]
            if new and not tasks.put(new, node):
                aside += new
    for task in (*aside, *((group, number) for group, size in enumerate(job.sizes) for number in range(size))):
        if task not in tasks.node:
            cost = job.task_cost[task[0]]
            tasks.put([task], next((node for node in order if nodes.fits(node, cost)), None))
    return GroupAllocation.of(job, tasks.counts)


def task_level(job: Job, capacity: Sequence[float], priority: Priority = "rs", order: Order = "row") -> GroupAllocation:
    """Allocate pairs of tasks by significance, fuse nodes where possible (Algorithms 1 to 3).

    Takes and raises what `top_down` does; the paper's experiments have the priority ``"imc"``. The `order` is that of
    the pairs (a, b) of two groups: ``"row"`` takes all pairs of a task of the first group before those of its next;
    ``"diagonal"`` goes by a + b, larger a first, so that both groups advance alike (it collocates the 84 links of the
    paper's Example 2).
    """
    one_of("order", order, get_args(Order))
    tasks = _Tasks(job, Nodes(capacity))
    nodes = tasks.nodes
    for i, j, _ in job.by_priority(priority):
        last: int | None = None
        both = job.task_cost[i] + job.task_cost[j]
        for pair in _pairs(job, i, j, order):
            at = [tasks.node.get(task) for task in pair]
            if at[0] is not None and at[1] is not None:
                tasks.merge(at[0], at[1])
                continue
            host = at[1] if at[0] is None else at[0]
            if host is None:  # pickNode, Algorithm 2
                host = nodes.roomiest() if last is None or not nodes.fits(last, both) else last
            last = host
            tasks.put([task for task in pair if task not in tasks.node], host)
    tasks.place_singles()
    return GroupAllocation.of(job, tasks.counts)


def _pairs(job: Job, i: int, j: int, order: Order) -> Iterator[tuple[_Task, _Task]]:
    rows, columns = job.sizes[i], job.sizes[j]
    if order == "row":
        yield from (((i, a), (j, b)) for a in range(rows) for b in range(columns))
        return
    for total in range(rows + columns - 1):
        for a in range(min(total, rows - 1), max(-1, total - columns), -1):
            yield (i, a), (j, total - a)


class _Tasks(_Work):
    """Also the location of every task."""

    def __init__(self, job: Job, nodes: Nodes) -> None:
        super().__init__(job, nodes)
        self.node: dict[_Task, int] = {}  # of those that have one

    def put(self, new: Sequence[_Task], node: int | None) -> bool:
        """Put all of `new` on `node` if they fit together, and return whether they do."""
        if node is None or not self.nodes.fits(node, sum(self.cost[group] for group, _ in new)):
            return False
        for task in new:
            self.place(node, task[0], 1)
            self.node[task] = node
        return True

    def merge(self, first: int, second: int) -> tuple[int, int] | None:
        """Empty one node into the other, see `_Work.merge`."""
        if merged := super().merge(first, second):
            out, into = merged
            self.node |= {task: into for task, node in self.node.items() if node == out}
        return merged


def best_allocation(job: Job, capacity: Sequence[float], *, tries: int = 12, seed: int = 0) -> GroupAllocation:
    """Improve on ``top_down`` by moving and exchanging tasks; never worse than it.

    The search climbs from the top-down allocation, then from `tries` slightly shaken copies of the best one found. When
    top-down leaves tasks out, the other algorithms and a plain packing by size are tried before the search; when all
    of them do, the answer is the one that leaves out least. The same `seed` of the shaking gives the same allocation.
    Raises what `top_down` does, and `WorkbenchError` for `tries` or a `seed` below 0.
    """
    whole("tries", tries, 0)
    whole("seed", seed, 0)
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
    state = State(counts, weight @ placed, free, cost, weight, nodes.slack, least)
    better = improve(state, tries, seed % (2**32 - 1) + 1)
    return max(start, GroupAllocation.of(job, better.tolist()), key=lambda answer: answer.gain)


def _start(job: Job, capacity: Sequence[float]) -> GroupAllocation:
    """Return top-down if it is complete, else the first other complete one, else the one that leaves out least."""
    incomplete = []
    for allocate in (top_down, partial(top_down, priority="imc"), task_level, naive, _packed):
        attempt = allocate(job, capacity)
        if not attempt.unplaced:
            return attempt
        incomplete.append(attempt)
    return min(incomplete, key=lambda answer: sum(job.task_cost[g] * tasks for g, tasks in answer.unplaced.items()))


def _packed(job: Job, capacity: Sequence[float]) -> GroupAllocation:
    """Best fit decreasing, whatever it collocates: tasks by cost, each to the node with least room left."""
    work = _Work(job, Nodes(capacity))
    nodes, cost = work.nodes, work.cost
    for group in sorted(range(len(cost)), key=lambda group: -cost[group]):
        while work.left[group]:
            fitting = [(free, node) for node, free in enumerate(nodes.free) if nodes.fits(node, cost[group])]
            if not fitting:
                break
            work.place(min(fitting)[1], group, 1)
    return GroupAllocation.of(job, work.counts)
