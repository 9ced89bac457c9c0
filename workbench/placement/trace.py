"""The search of CAPS as a tree, for display: what was tried, what was pruned, and why (CAPSys, Figure 4).

The search that ``caps`` runs compiled, spelt out for small problems. Its unpruned nodes are those counted there.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import takewhile

import numpy as np

from workbench.errors import WorkbenchError
from workbench.placement._search import search_order
from workbench.placement.problem import DIMENSIONS, SLACK, CostVector, PlacementProblem, Plan


@dataclass(frozen=True)
class SearchNode:
    """One choice of the search: how many tasks of an operator a worker gets."""

    operator: str | None = None  # the outer layer; None at the root
    # worker, count: the inner layer: which worker, how many tasks; None at the root, and where a whole layer is pruned
    worker: int | None = None
    count: int | None = None
    pruned: str | None = None  # why the branch ends here; None if it does not
    plan: Plan | None = None  # the complete plan, at the end of a branch
    children: tuple["SearchNode", ...] = ()  # the choices after this one

    def walk(self) -> Iterator["SearchNode"]:
        """Go through this node and all below it, depth first."""
        yield self
        for child in self.children:
            yield from child.walk()


def trace_search(
    problem: PlacementProblem, thresholds: CostVector | None = None, *, reorder: bool = True, most_nodes: int = 5000
) -> SearchNode:
    """Search all plans of a small problem within `thresholds`, as `search` does, and keep the tree: its root.

    A layer's nodes follow each other worker by worker; the next layer begins below its last worker.
    """
    tracer = _Tracer(problem, thresholds or CostVector(), reorder, most_nodes)
    return SearchNode(children=tracer.layer(0))


class _Tracer:
    """The partial plan at a point of the recursion; workers by class, the fastest first."""

    def __init__(self, problem: PlacementProblem, thresholds: CostVector, reorder: bool, most_nodes: int) -> None:
        self.problem, self.most_nodes, self.nodes = problem, most_nodes, 0
        self.limits = np.array([*thresholds])
        self.order = search_order(problem, thresholds, reorder)
        self.workers = [worker for members in problem.classes for worker in members]
        self.counts = np.zeros((len(problem.operators), problem.workers), dtype=np.int64)

    def layer(self, depth: int) -> tuple[SearchNode, ...]:
        """Choices for all workers of one layer, or the plan if there is none left."""
        operator = self.order[depth]
        tasks = self.problem.parallelism[operator]
        ranges = []
        for worker in self.workers:
            most = min(tasks, self._free(worker))
            fitting = [count for count in range(most + 1) if self._violation(depth, worker, count) is None]
            if not fitting:
                return (self._kept(operator, pruned=f"no number of tasks fits on worker {worker}"),)
            ranges.append((min(fitting), max(fitting)))
        least, most = sum(low for low, _ in ranges), sum(high for _, high in ranges)
        if not least <= tasks <= most:
            return (self._kept(operator, pruned=f"the workers can take {least:,} to {most:,} tasks, not {tasks:,}"),)
        return self._inner(depth, 0, tasks, ranges)

    def _inner(self, depth: int, place: int, left: int, ranges: list[tuple[int, int]]) -> tuple[SearchNode, ...]:
        """Choices for one worker of a layer with `left` tasks to place there and later."""
        operator, worker = self.order[depth], self.workers[place]
        nodes = []
        for count in range(min(left, self._free(worker)) + 1):
            pruned = self._violation(depth, worker, count) or self._excluded(depth, place, left, count, ranges)
            node = self._kept(operator, worker, count, pruned=pruned)
            if pruned is None:
                self.counts[operator, worker] = count
                if place < len(self.workers) - 1:
                    node = replace(node, children=self._inner(depth, place + 1, left - count, ranges))
                elif depth < len(self.order) - 1:
                    node = replace(node, children=self.layer(depth + 1))
                else:
                    node = replace(node, plan=self.problem.plan(self.counts))
                self.counts[operator, worker] = 0
            nodes.append(node)
        return tuple(nodes)

    def _excluded(self, depth: int, place: int, left: int, count: int, ranges: list[tuple[int, int]]) -> str | None:
        """Return why a count that fits the worker is not chosen; None if it is."""
        operator = self.order[depth]
        if self._twins(depth, place) and count > self.counts[operator, self.workers[place - 1]]:
            return f"duplicate: worker {self.workers[place - 1]} had the same tasks, the counts may be exchanged"
        later = ranges[place + 1 :]
        twins = len(list(takewhile(lambda at: self._twins(depth, at), range(place + 1, len(self.workers)))))
        least = sum(low for low, _ in later)
        most = sum(min(count, high) if at < twins else high for at, (_, high) in enumerate(later))
        if not least <= left - count <= most:
            return f"the later workers can take {least:,} to {most:,} tasks, not {left - count:,}"
        return None

    def _twins(self, depth: int, place: int) -> bool:
        """Whether a worker has the speed of the worker before it and, in the earlier layers, its tasks."""
        if place == 0:
            return False
        one, other = self.workers[place - 1], self.workers[place]
        before = list(self.order[:depth])
        same = np.array_equal(self.counts[before, one], self.counts[before, other])
        return same and self.problem.speeds[one] == self.problem.speeds[other]

    def _violation(self, depth: int, worker: int, count: int) -> str | None:
        """Return the threshold that a worker exceeds with `count` tasks of this layer (Equation 10); None if none."""
        mine = self.counts[:, worker].copy()
        mine[self.order[depth]] = count
        loads = self.problem.loads_with(mine, set(self.order[: depth + 1]))
        excess = loads / self.problem.speeds[worker] - self.problem.ideal
        costs = np.divide(excess, self.problem.span, out=np.zeros(3), where=self.problem.span > 0)
        for name, cost, limit in zip(DIMENSIONS, costs.tolist(), self.limits.tolist(), strict=True):
            if cost > limit + SLACK:
                return f"{name} cost {cost:.3g} exceeds its threshold {limit:.3g}"
        return None

    def _free(self, worker: int) -> int:
        return self.problem.slots - int(self.counts[:, worker].sum())

    def _kept(
        self, operator: int, worker: int | None = None, count: int | None = None, *, pruned: str | None = None
    ) -> SearchNode:
        self.nodes += 1
        if self.nodes > self.most_nodes:
            raise WorkbenchError(
                f"The tree of the search has more than {self.most_nodes} nodes; trace a smaller problem, or set "
                "tighter thresholds."
            )
        return SearchNode(self.problem.operators[operator], worker, count, pruned)
