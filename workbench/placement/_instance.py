"""A placement problem in the form of the pattern search: scaled loads, operators in search order, classes of workers.

Workers of a class have one speed and may have patterns within one box; at first the classes are those of the problem.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np

from workbench.arrays import Floats, Ints
from workbench.placement._pattern_search import Graph, pattern_cost
from workbench.placement.problem import PlacementProblem


@dataclass(frozen=True)
class Instance:
    """A placement problem in the form of the pattern search."""

    graph: Graph  # its operators in search order
    # operators, workers: positions in the problem, in the order of the search: workers by class, the fastest first
    operators: list[int]
    workers: list[int]
    # speeds, sizes: speed and number of workers of every class
    speeds: Floats
    sizes: Ints
    # low, high: least and most tasks of every operator on a worker of every class, shape (classes, operators)
    low: Ints
    high: Ints

    @property
    def worker_speeds(self) -> Floats:
        """Speed of every worker, in the order of the search."""
        return np.repeat(self.speeds, self.sizes)

    def counts(self, plan: Ints) -> Ints:
        """Make counts of the problem, shape (operators, workers), from patterns in search order."""
        counts = np.zeros((len(self.operators), len(self.workers)), dtype=np.int64)
        counts[np.ix_(self.operators, self.workers)] = plan.T
        return counts

    def value(self, plan: Ints) -> float:
        """Return the cost of a plan: the highest cost of its patterns."""
        speeds = self.worker_speeds
        return max(pattern_cost(self.graph, pattern, speed) for pattern, speed in zip(plan, speeds, strict=True))


def instance(problem: PlacementProblem, weights: Sequence[float]) -> Instance:
    """Make the instance whose cost is the highest weighted one of Equation 4."""
    scale = np.divide(1.0, problem.span, out=np.zeros(3), where=problem.span > 0) * np.array(weights)
    return scaled(problem, scale, problem.ideal * scale, [weight > 0 for weight in weights])


def scaled(problem: PlacementProblem, scale: Floats, offset: Floats, counting: Sequence[bool]) -> Instance:
    """Put the operators in search order, a vertex cover of the edges first.

    The cost of a worker is the highest of ``load * scale / speed - offset`` in the dimensions that count.
    """
    order = _cover_first(problem)
    position = {operator: index for index, operator in enumerate(order)}
    idle = problem.workers * problem.slots - problem.tasks
    load = np.ones((3, len(order)))
    load[1:] = (problem.loads * scale[:, None])[:2, order]
    graph = Graph(
        np.array([problem.parallelism[operator] for operator in order], dtype=np.int64),
        load,
        offset,
        np.array(counting, dtype=np.int64),
        np.array([position[edge.upstream] for edge in problem.edges], dtype=np.int64),
        np.array([position[edge.downstream] for edge in problem.edges], dtype=np.int64),
        np.array([int(edge.partitioning == "forward") for edge in problem.edges], dtype=np.int64),
        problem.link_loads * scale[2],
        problem.slots,
        max(0, problem.slots - idle),
    )
    classes = problem.classes
    return Instance(
        graph,
        order,
        [worker for members in classes for worker in members],
        np.array([problem.speeds[members[0]] for members in classes]),
        np.array([len(members) for members in classes], dtype=np.int64),
        np.zeros((len(classes), len(order)), dtype=np.int64),
        np.tile(np.minimum(graph.tasks, graph.slots), (len(classes), 1)),
    )


def _cover_first(problem: PlacementProblem) -> list[int]:
    """Operators with a vertex cover of the edges first, greedily the one with most uncovered edges."""
    ends: list[list[int]] = [[] for _ in problem.operators]  # of the uncovered edges of each
    for edge in problem.edges:
        ends[edge.upstream].append(edge.downstream)
        ends[edge.downstream].append(edge.upstream)
    most = [(-len(others), operator) for operator, others in enumerate(ends)]
    heapify(most)
    open_ends, cover = [len(others) for others in ends], list[int]()
    chosen = set[int]()
    while most:
        count, operator = heappop(most)
        if operator in chosen or -count != open_ends[operator] or not count:
            continue  # it was counted again since
        cover.append(operator)
        chosen.add(operator)
        for other in ends[operator]:
            if other not in chosen:
                open_ends[other] -= 1
                heappush(most, (-open_ends[other], other))
    return cover + [operator for operator in range(len(ends)) if operator not in chosen]
