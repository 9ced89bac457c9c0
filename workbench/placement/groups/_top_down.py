"""Allocation one pair of groups at a time, split only where a node cannot hold it (CIKM '14, section 4).

Repairs of the printed Algorithms 4 and 5: the costs of line 14 are those of single tasks, and a split places k tasks
of the smaller group with k r of the larger (printed: k of both); when not even one such portion fits, one task of the
smaller group goes with as many of the larger as fit, or all wait for the end (printed: endless recursion); with a
group that is allocated, all nodes that host it are tried (printed: one); a fusion moves everything on the node
(printed: one group of it); single tasks are placed after all pairs (printed: after each).
"""

from collections.abc import Sequence

from workbench.placement.groups.job import GroupAllocation, Job, Nodes, Priority, allocation


def top_down(job: Job, capacity: Sequence[float], priority: Priority = "rs") -> GroupAllocation:
    """Allocate pairs of groups by significance (Algorithms 4 and 5).

    Takes O(edges (log edges + nodes)) steps to order the pairs and to look through hosts, and O(log nodes) for each
    portion that it places.

    Parameters
    ----------
    job
        Groups of tasks.
    capacity
        Per node.
    priority
        ``"rs"``: relative significance, as the paper; ``"imc"``: communication of a task pair.

    Raises
    ------
    WorkbenchError
        When `priority` is unknown, there is no node, or a capacity is negative or not finite.
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
    return allocation(job, work.counts)


class _Work:
    """Counts, shape (groups, nodes), and the tasks of each group that are left."""

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
        if any(len(nodes) != 1 for nodes in hosts) or hosts[0] == hosts[1]:
            return
        (first,), (second,) = hosts
        nodes = self.nodes
        into, out = (second, first) if nodes.capacity[second] >= nodes.capacity[first] else (first, second)
        if not nodes.move_all(out, into):
            return
        for row in self.counts:
            row[into] += row[out]
            row[out] = 0

    def place_singles(self) -> None:
        """Algorithm 3: by cost, each to the roomiest node, until one does not fit."""
        for group in sorted(range(len(self.left)), key=lambda group: (-self.cost[group], group)):
            while self.left[group]:
                node = self.nodes.roomiest()
                if not self.nodes.fits(node, self.cost[group]):
                    return
                self.place(node, group, 1)
