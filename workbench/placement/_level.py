"""A proven lower bound: the lowest cost level at which patterns can still average to the tasks.

A plan of cost at most c uses patterns of cost at most c, and their average over the workers is p = tasks / workers. So
if a hyperplane through p has all patterns of cost at most c strictly on one side, no plan of cost c exists. Every
direction proves a bound: in a plan some worker has a pattern on the far side of p, so no plan costs less than the
cheapest pattern there.

Directions come from Wolfe's algorithm [1]_: the point nearest to p in the hull of the patterns of the current level.
The level is only raised to bounds proven so; it ends where p is inside the hull, which is the optimum of the linear
programme over all patterns, none of which need be enumerated. The patterns that hold p are the start for a plan.

Workers of several classes: a point is the average of one pattern per class.

References
----------
.. [1] P. Wolfe, Finding the nearest point in a polytope. Mathematical Programming 11, 1976.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.placement._effort import Effort
from workbench.placement._pattern_search import (
    ALONE,
    CHEAPEST,
    FARTHEST,
    Floats,
    Graph,
    Ints,
    find_pattern,
    pattern_cost,
)
from workbench.placement.problem import PlacementProblem

_EPS = 1e-9
_INSIDE = 1e-7
_NODES = 2_000_000
_RESOLUTION = 1e-7


@dataclass(frozen=True)
class Instance:
    """A placement problem in the form of the pattern search.

    Parameters
    ----------
    graph
        Its operators in search order.
    operators, workers
        Positions in the problem, in the order of the search: workers by class, the fastest first.
    speeds, sizes
        Speed and number of workers of every class.
    """

    graph: Graph
    operators: list[int]
    workers: list[int]
    speeds: Floats
    sizes: Ints

    @property
    def worker_speeds(self) -> Floats:
        """Speed of every worker, in the order of the search."""
        return np.repeat(self.speeds, self.sizes)

    def counts(self, plan: Ints) -> Ints:
        """Make counts of the problem, shape (operators, workers), from patterns in search order."""
        counts = np.zeros((len(self.operators), len(self.workers)), dtype=np.int64)
        counts[np.ix_(self.operators, self.workers)] = plan.T
        return counts

    def patterns(self, counts: Ints) -> Ints:
        """Make patterns in search order, shape (workers, operators), from counts of the problem."""
        return np.ascontiguousarray(counts[np.ix_(self.operators, self.workers)].T)

    def value(self, plan: Ints) -> float:
        """Cost a plan: the highest cost of its patterns."""
        speeds = self.worker_speeds
        return max(pattern_cost(self.graph, pattern, speed) for pattern, speed in zip(plan, speeds, strict=True))


def instance(problem: PlacementProblem, weights: Sequence[float]) -> Instance:
    """Put the operators in search order, a vertex cover of the edges first; the cost is the highest weighted one.

    Parameters
    ----------
    problem
        What to place where.
    weights
        Of cpu, io and net; a dimension of weight 0 does not count.
    """
    order = _cover_first(problem)
    position = {operator: index for index, operator in enumerate(order)}
    scale = np.divide(1.0, problem.span, out=np.zeros(3), where=problem.span > 0) * np.array(weights)
    idle = problem.workers * problem.slots - problem.tasks
    load = np.ones((3, len(order)))
    load[1:] = (problem.loads * scale[:, None])[:2, order]
    graph = Graph(
        np.array([problem.parallelism[operator] for operator in order], dtype=np.int64),
        load,
        problem.ideal * scale,
        np.array([int(weight > 0) for weight in weights], dtype=np.int64),
        np.array([position[edge.upstream] for edge in problem.edges], dtype=np.int64),
        np.array([position[edge.downstream] for edge in problem.edges], dtype=np.int64),
        np.array([int(edge.partitioning == "forward") for edge in problem.edges], dtype=np.int64),
        problem.link_loads * scale[2],
        problem.slots,
        max(0, problem.slots - idle),
    )
    return Instance(
        graph,
        order,
        [worker for members in problem.classes for worker in members],
        np.array([problem.speeds[members[0]] for members in problem.classes]),
        np.array([len(members) for members in problem.classes], dtype=np.int64),
    )


def _cover_first(problem: PlacementProblem) -> list[int]:
    """Operators with a vertex cover of the edges first, greedily the one with most uncovered edges."""
    open_edges = [{edge.upstream, edge.downstream} for edge in problem.edges]
    rest = list(range(len(problem.operators)))
    cover = []
    while open_edges:
        operator = max(rest, key=lambda candidate: sum(candidate in edge for edge in open_edges))
        cover.append(operator)
        rest.remove(operator)
        open_edges = [edge for edge in open_edges if operator not in edge]
    return cover + rest


@dataclass(frozen=True)
class Level:
    """A level below which there is no plan, and what holds p there.

    Parameters
    ----------
    bound
        No plan costs less.
    columns, weights
        Patterns, shape (columns, classes, operators), and how much of each; their average is p, or as near as it came.
    """

    bound: float
    columns: Ints
    weights: Floats


def raise_level(given: Instance, upper: float, effort: Effort, enough: float = math.inf) -> Level:
    """Raise the level from 0 as far as the linear programme proves it.

    Parameters
    ----------
    given
        The instance.
    upper
        Cost of a known plan.
    effort
        When it is spent, the level reached so far is returned.
    enough
        A bound above this will do.
    """
    share = given.sizes / given.sizes.sum()
    centre = given.graph.tasks / given.sizes.sum()
    anywhere = np.zeros(len(centre))
    bound, level = 0.0, 0.0
    column, _ = _farthest(given, anywhere, -math.inf, level, effort)
    if column is None:
        bound, level, column = _raised(given, anywhere, -math.inf, (level, upper), effort)
    columns: list[Ints] = []
    costs: list[float] = []
    points: list[Floats] = []
    active: list[int] = []
    weights = np.zeros(0)
    while column is not None:
        columns.append(column)
        costs.append(level)
        points.append(share @ column - centre)
        best = len(columns) - 1
        while True:  # as long as known columns bring the hull nearer
            active, weights = _nearest(points, [*active, best], np.append(weights, 0.0 if active else 1.0))
            nearest = weights @ np.array([points[index] for index in active])
            distance = float(np.linalg.norm(nearest))
            direction = -nearest / max(distance, _EPS)
            beyond = np.where(np.array(costs) <= level + _EPS, np.array(points) @ direction, -math.inf)
            best = int(beyond.argmax())
            if distance <= _INSIDE or beyond[best] < -_EPS or best in active:
                break
        if distance <= _INSIDE or bound > enough or effort.spent:
            break
        reach = float(centre @ direction) - _EPS
        column, _ = _farthest(given, direction, reach, level, effort)
        if column is None:
            proven, level, column = _raised(given, direction, reach, (level, upper), effort)
            bound = max(bound, proven)
        if column is not None and any(np.array_equal(column, columns[index]) for index in active):
            break  # no nearer but for rounding
    chosen = np.array([columns[index] for index in active]).reshape(-1, len(share), len(centre))
    return Level(bound, chosen, weights)


def _nearest(points: list[Floats], active: list[int], weights: Floats) -> tuple[list[int], Floats]:
    """Move to the nearest point of the hull of the active points, leaving out those it does not need (Wolfe)."""
    while True:
        chosen = np.array([points[index] for index in active])
        size = len(active)
        system = np.zeros((size + 1, size + 1))  # nearest point of the affine hull
        system[0, 1:] = system[1:, 0] = 1.0
        system[1:, 1:] = chosen @ chosen.T
        try:
            affine = np.linalg.solve(system, np.eye(size + 1)[0])[1:]
        except np.linalg.LinAlgError:
            affine = np.linalg.lstsq(system, np.eye(size + 1)[0], rcond=None)[0][1:]
        if (affine > _EPS * _EPS).all():
            return active, affine
        leaving = affine <= _EPS * _EPS
        step = min(1.0, float((weights[leaving] / np.maximum(weights[leaving] - affine[leaving], _EPS**2)).min()))
        weights = step * affine + (1 - step) * weights
        kept = weights > _EPS * _EPS
        if kept.all():  # rounding: the smallest goes
            kept[weights.argmin()] = False
        active = [index for index, keep in zip(active, kept, strict=True) if keep]
        weights = weights[kept] / weights[kept].sum()


def _farthest(
    given: Instance, direction: Floats, reach: float, level: float, effort: Effort
) -> tuple[Ints | None, bool]:
    """One pattern per class of cost at most `level`, their average farthest in `direction`.

    Returns
    -------
    (column, proven)
        None short of `reach`; whether that is proven.
    """
    column, gains, proven = [], [], True
    for speed in given.speeds:
        least = reach if len(given.speeds) == 1 else -math.inf
        found, gain, _, finished = _pattern(given, speed, direction, least, FARTHEST, (level + _EPS, 0.0), effort)
        proven = proven and finished
        if gain == -math.inf:
            return None, proven
        column.append(found)
        gains.append(gain)
    enough = float(given.sizes @ np.array(gains) / given.sizes.sum()) >= reach
    return (np.array(column) if enough else None), proven


def _raised(
    given: Instance, direction: Floats, reach: float, between: tuple[float, float], effort: Effort
) -> tuple[float, float, Ints | None]:
    """Raise the level until patterns reach far enough in `direction`.

    Returns
    -------
    (bound, level, column)
        The level below which none do, the one where the column does. No column if the search was given up, or where
        nothing below the known plan reaches: then that is the bound.
    """
    low, high = between
    if len(given.speeds) == 1:
        speed = given.speeds[0]
        found, _, cost, finished = _pattern(given, speed, direction, reach, CHEAPEST, (high, low + _EPS), effort)
        if not finished:
            return low, low, None
        return (high, high, None) if cost == math.inf else (cost, cost, found[None])
    column, proven = _farthest(given, direction, reach, high, effort)
    if column is None:
        return (high if proven else low), high, None
    while high - low > _RESOLUTION:
        middle = (low + high) / 2
        nearer, proven = _farthest(given, direction, reach, middle, effort)
        if nearer is not None:
            high, column = middle, nearer
        elif proven:
            low = middle
        else:
            break
    return low, high, column


def _pattern(  # noqa: PLR0917
    given: Instance,
    speed: float,
    direction: Floats,
    reach: float,
    goal: int,
    costs: tuple[float, float],
    effort: Effort,
) -> tuple[Ints, float, float, bool]:
    """Search one pattern of a class: it, its gain, its cost, and whether the search was finished."""
    found = np.zeros(len(direction), dtype=np.int64)
    allowed = effort.allowed(_NODES)
    gain, cost, nodes = find_pattern(
        given.graph,
        np.array([speed, speed]),
        given.graph.tasks,
        ALONE,
        direction,
        reach,
        goal,
        costs[0],
        costs[1],
        found,
        allowed,
    )
    effort.spend(nodes)
    return found, gain, cost, nodes <= allowed
