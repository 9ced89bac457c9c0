"""A proven lower bound, plans rounded from its proof, and branching where a gap remains.

The patterns of a plan average to p = tasks / workers, so in every direction from p some worker has a pattern on the far
side, and no plan costs less than the cheapest pattern there. Directions come from the point nearest to p in the hull of
the patterns found so far [1]_ (with several classes of workers, of averages of one pattern per class). The level is
raised only to bounds proven so, until p is inside the hull: the optimum of the linear programme over all patterns, none
of which need be enumerated. The patterns that hold p are the start for a plan.

Where no whole plan has that average, a class of workers is divided into those with at least t tasks of an operator and
those with fewer, once for every t. Each division is a class with patterns in a smaller box, so the same programme
decides about it; together they hold every plan. The heaviest operators are divided first, which soon leaves no room for
averaging.

References
----------
.. [1] P. Wolfe, Finding the nearest point in a polytope. Mathematical Programming 11, 1976.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress

import numpy as np

from workbench.arrays import Floats, Ints
from workbench.checks import SLACK
from workbench.placement._effort import Effort
from workbench.placement._pattern_search import ALONE, CHEAPEST, FARTHEST, TWO, Instance, find_pattern

_EPS = 1e-9
_NODES = 2_000_000
_PREPARING = 50  # about the cost of everything around a search of patterns, in nodes
_RESOLUTION = 1e-7
_INSIDE = 1e-7


@dataclass(frozen=True)
class Level:
    """A level below which there is no plan, and the patterns whose average there is p, or as near as possible."""

    bound: float  # no plan costs less
    columns: Ints  # patterns, shape (columns, classes, operators)
    weights: Floats  # weight of each


@dataclass
class Pool:
    """Patterns found so far, by the speed of the worker, with their costs: tried before a new search."""

    _rows: dict[float, tuple[Ints, Floats]] = field(default_factory=dict)

    def add(self, speed: float, pattern: Ints, cost: float) -> None:
        rows, costs = self._rows.get(speed, (np.zeros((0, len(pattern)), dtype=np.int64), np.zeros(0)))
        self._rows[speed] = (np.vstack([rows, pattern]), np.append(costs, cost))

    def farthest(self, given: Instance, index: int, direction: Floats, level: float) -> tuple[Ints | None, float]:
        """Return the farthest of a class's patterns of cost at most `level`, and its distance; None, -inf if none."""
        if given.speeds[index] not in self._rows:
            return None, -math.inf
        rows, costs = self._rows[given.speeds[index]]
        usable = ((rows >= given.low[index]) & (rows <= given.high[index])).all(axis=1) & (costs <= level + _EPS)
        gains = np.where(usable, rows @ direction, -math.inf)
        best = int(gains.argmax())
        return (rows[best], float(gains[best])) if gains[best] > -math.inf else (None, -math.inf)


class Hull:
    """Columns whose averages contain `centre`, or come as near as possible (Wolfe), and how to find more."""

    def __init__(self, given: Instance, pool: Pool, effort: Effort) -> None:
        self.given, self.pool, self.effort = given, pool, effort
        workers = given.sizes.sum()
        self.share: Floats = given.sizes / workers  # of the workers in every class
        self.centre: Floats = given.graph.tasks / workers  # tasks of every operator per worker
        self.columns: list[Ints] = []  # needed columns: one pattern per class each, shape (classes, operators)
        self.weights = np.zeros(0)  # weights of these columns; they add up to 1
        self._points = np.zeros((0, len(self.centre)))
        self.inside = False  # whether the centre is in the hull
        self.direction = np.zeros(len(self.centre))  # unit vector from the nearest point to the centre, at first zero
        self.reach = -math.inf  # distance of the centre in this direction

    def add(self, column: Ints) -> bool:
        """Add one more column and find the nearest point; False if it is there already."""
        if any(np.array_equal(column, known) for known in self.columns):
            return False
        self._points = np.vstack([self._points, self.share @ column - self.centre])
        self.columns.append(column)
        self.weights = np.append(self.weights, 0.0 if len(self.weights) else 1.0)
        while True:
            affine = self._affine()
            leaving = affine <= _EPS * _EPS
            if not leaving.any():
                self.weights = affine
                break
            step = self.weights[leaving] / np.maximum(self.weights[leaving] - affine[leaving], _EPS**2)
            nearest = min(1.0, float(step.min()))
            weights = nearest * affine + (1 - nearest) * self.weights
            kept = weights > _EPS * _EPS
            if kept.all():  # rounding: the smallest goes
                kept[weights.argmin()] = False
            self.columns = [known for known, keep in zip(self.columns, kept, strict=True) if keep]
            self._points = self._points[kept]
            self.weights = weights[kept] / weights[kept].sum()
        nearest_point = self.weights @ self._points
        distance = float(np.linalg.norm(nearest_point))
        self.inside = distance <= _INSIDE
        self.direction = -nearest_point / max(distance, _EPS)
        self.reach = float(self.centre @ self.direction) - _EPS
        return True

    def level(self, bound: float) -> Level:
        """Return the patterns whose average is the centre, with a bound."""
        columns = np.array(self.columns, dtype=np.int64).reshape(-1, len(self.share), len(self.centre))
        return Level(bound, columns, self.weights)

    def _affine(self) -> Floats:
        """Weights of the point of the affine hull nearest to the centre."""
        size = len(self._points)
        system = np.ones((size + 1, size + 1))
        system[0, 0] = 0.0
        system[1:, 1:] = self._points @ self._points.T
        right = np.zeros(size + 1)
        right[0] = 1.0
        try:
            solved = np.linalg.solve(system, right)
        except np.linalg.LinAlgError:
            solved = np.linalg.lstsq(system, right, rcond=None)[0]
        return np.asarray(solved[1:], dtype=np.float64)

    def farthest(self, level: float) -> tuple[Ints | None, bool]:
        """Return one pattern per class of cost at most `level`, their average farthest in the direction, or far enough.

        None short of the centre; then whether that is proven.
        """
        share, classes = self.share, range(len(self.given.speeds))
        known = [self.pool.farthest(self.given, index, self.direction, level) for index in classes]
        column, proven = [pattern for pattern, _ in known], True
        gains = np.array([gain for _, gain in known])
        if self.reach > -math.inf and share @ gains >= self.reach:
            return np.array(column), False
        for index in classes:
            needed = math.inf
            if np.isfinite(gains).all():
                needed = (self.reach - share @ gains) / share[index] + gains[index]
            least = self.reach if len(classes) == 1 else gains[index] + _EPS
            found, gain, _, finished = self._pattern(index, least, FARTHEST, (level + _EPS, needed))
            proven = proven and finished
            if gain > -math.inf:
                column[index], gains[index] = found, gain
            elif column[index] is None:
                return None, proven
            if share @ gains >= self.reach and gains.min() > -math.inf:
                return np.array(column), False
        return None, proven

    def raised(self, low: float, high: float) -> tuple[float, float, Ints | None]:
        """Raise the level until patterns reach far enough; return a bound of it, the column's level, and the column.

        No column if the search was given up, or where nothing below the known plan reaches: then that is the bound.
        """
        if len(self.given.speeds) == 1:
            found, _, cost, finished = self._pattern(0, self.reach, CHEAPEST, (high, low + _EPS))
            if not finished:
                return low, low, None
            return (high, high, None) if cost == math.inf else (cost, cost, found[None])
        column, proven = self.farthest(high)
        if column is None:
            return (high if proven else low), high, None
        while high - low > _RESOLUTION:
            middle = (low + high) / 2
            nearer, proven = self.farthest(middle)
            if nearer is not None:
                high, column = middle, nearer
            elif proven:
                low = middle
            else:
                break
        return low, high, column

    def _pattern(
        self, index: int, reach: float, goal: int, costs: tuple[float, float]
    ) -> tuple[Ints, float, float, bool]:
        """Search one pattern of a class; return it, its gain, its cost, and whether the search was finished."""
        given, found = self.given, np.zeros(len(self.centre), dtype=np.int64)
        allowed = self.effort.allowed(_NODES)
        speeds, low, high = np.full(2, given.speeds[index]), given.low[index], given.high[index]
        aim = reach, goal, *costs
        gain, cost, nodes = find_pattern(given.graph, speeds, low, high, ALONE, self.direction, *aim, found, allowed)
        self.effort.nodes -= nodes + _PREPARING
        if gain > -math.inf:
            self.pool.add(given.speeds[index], found, cost)
        return found, gain, cost, nodes <= allowed


def raise_level(
    given: Instance, upper: float, effort: Effort, enough: float = math.inf, pool: Pool | None = None
) -> Level:
    """Raise the level from 0 as far as the linear programme proves it."""
    hull = Hull(given, pool or Pool(), effort)
    bound, level = 0.0, 0.0
    while not (hull.inside or bound > enough):
        column, _ = hull.farthest(level)
        if column is None:
            proven, level, column = hull.raised(level, upper)
            bound = max(bound, proven)
        if column is None or not hull.add(column) or effort.spent:  # the same column again: no nearer but for rounding
            break
    return hull.level(bound)


def held(given: Instance, level: float, pool: Pool, effort: Effort) -> tuple[Level | None, bool]:
    """Find columns of cost at most `level` whose average is p, or None; also return whether there provably are none."""
    hull = Hull(given, pool, effort)
    while not effort.spent:
        column, proven = hull.farthest(level)
        if column is None:
            return None, proven
        if not hull.add(column) or hull.inside:
            return hull.level(level), False
    return None, False


_ROUNDING_NODES = 20_000
_LOOSE = 1.5


def dealt(given: Instance) -> Ints:
    """Deal the tasks out to the workers, heavy ones first, there and back: patterns, shape (workers, operators)."""
    plan = np.zeros((len(given.workers), len(given.operators)), dtype=np.int64)
    order = np.argsort(-given.graph.load[1:].max(axis=0), kind="stable")
    tasks = np.repeat(order, given.graph.tasks[order])
    turn, place = np.divmod(np.arange(len(tasks)), len(plan))
    np.add.at(plan, (np.where(turn % 2, len(plan) - 1 - place, place), tasks), 1)
    return plan


def rounded(  # noqa: C901
    given: Instance, level: Level, enough: float, effort: Effort, looser: Sequence[float] = (_LOOSE, math.inf)
) -> Iterator[Ints]:
    """Yield plans made of the patterns that average p; the last has a cost of at most `enough`.

    The workers of every class take the patterns by largest remainder. Then any two of them give theirs back and share
    what is left at least cost, `looser` times the cost where need be.
    """
    if not len(level.columns):
        return
    workers, speeds = len(given.workers), given.worker_speeds
    kind, member = _kinds(given, level), np.repeat(np.arange(len(given.sizes)), given.sizes)
    plan = level.columns[kind, member]
    if (plan.sum(axis=0) == given.graph.tasks).all():
        yield plan
        if given.value(plan) <= enough:
            return
    over = given.graph.tasks - plan.sum(axis=0)
    alike = list(zip(kind.tolist(), member.tolist(), strict=True))
    none, nowhere = np.zeros_like(over), np.zeros(len(over))
    tried = set()
    for one in dict(zip(reversed(alike), reversed(range(workers)), strict=True)).values():  # the first of each kind
        for other in range(one + 1, workers):
            pair = alike[one], alike[other]
            if pair in tried:
                continue
            left = over + plan[one] + plan[other]
            if effort.spent:
                return
            tried.add(pair)
            if (left < 0).any() or left.sum() > 2 * given.graph.slots:
                continue
            for limit in (enough, *(factor * enough for factor in looser)):
                found, goal = np.zeros_like(left), (-math.inf, CHEAPEST, limit, limit)
                _, cost, nodes = find_pattern(
                    given.graph, speeds[[one, other]], none, left, TWO, nowhere, *goal, found, _ROUNDING_NODES
                )
                effort.nodes -= nodes
                if cost <= limit:
                    made = plan.copy()
                    made[one], made[other] = found, left - found
                    yield made
                    if given.value(made) <= enough:
                        return
                    break


def _kinds(given: Instance, level: Level) -> Ints:
    """Choose a column for every worker, in each class by largest remainder of the weights."""
    kinds = []
    for size in given.sizes:
        wanted = level.weights * size
        times = np.floor(wanted + SLACK).astype(np.int64)
        for column in np.argsort(times - wanted, kind="stable")[: max(0, size - times.sum())]:
            times[column] += 1
        kinds.append(np.repeat(np.arange(len(times)), times)[:size])
    return np.concatenate(kinds)


_WHOLE = 1e-6
_SAME_COST = 1e-12  # of a cost: the least cost of 0 comes out as 1e-16


def plan_below(given: Instance, cost: float, pool: Pool, effort: Effort) -> tuple[Ints | None, bool]:
    """Look for a plan of at most this cost; return patterns or None, and whether there provably is none."""
    if cost < 0:
        return None, True
    graph, nodes = given.graph, [given]
    sent = np.zeros(len(graph.tasks))
    np.add.at(sent, graph.upstream, graph.link * np.where(graph.forward, 1, graph.tasks[graph.downstream]))
    weight: Floats = np.maximum(graph.load[1:].max(axis=0), sent)  # of each operator: the highest cost of a task alone
    while nodes:
        node = nodes.pop()
        holds, proven = held(node, cost, pool, effort)
        if holds is None:
            if not proven:
                return None, False
            continue
        for plan in rounded(node, holds, cost, effort, looser=()):
            if given.value(plan) <= cost + _SAME_COST:
                return plan, False
        division = _division(node, holds, weight)
        if division is None:  # one pattern for every class, but no plan because of rounding
            return None, False
        index, operator, threshold, above = division  # in all ways, the one nearest to the programme's last
        numbers = sorted(range(int(node.sizes[index]) + 1), key=lambda number: -abs(number - above))
        parts = [_part(node, index, operator, threshold, number) for number in numbers]
        fits = ((p.sizes @ p.low <= graph.tasks).all() and (p.sizes @ p.high >= graph.tasks).all() for p in parts)
        nodes += compress(parts, fits)
    return None, True


def _division(node: Instance, holds: Level, weight: Floats) -> tuple[int, int, int, float] | None:
    """Choose a class, an operator and a threshold; return them, and how many the programme puts above it."""
    best, chosen = (False, 0.0, 0.0), None
    for index, size in enumerate(node.sizes):
        for operator in range(len(weight)):
            counts = holds.columns[:, index, operator]
            for threshold in np.unique(counts)[1:]:
                above = float(size * holds.weights[counts >= threshold].sum())
                broken = abs(above - round(above))
                rank = (broken > _WHOLE, float(weight[operator]), broken)
                if chosen is None or rank > best:
                    best, chosen = rank, (index, operator, int(threshold), above)
    return chosen


def _part(node: Instance, index: int, operator: int, threshold: int, number: int) -> Instance:
    """Return the instance in which `number` workers of a class have at least `threshold` tasks of an operator."""
    sizes = np.insert(node.sizes, index, number)
    sizes[index + 1] -= number
    low, high = (np.insert(box, index, box[index], axis=0) for box in (node.low, node.high))
    low[index, operator] = threshold
    high[index + 1, operator] = threshold - 1
    speeds = np.insert(node.speeds, index, node.speeds[index])
    kept = sizes > 0
    return replace(node, speeds=speeds[kept], sizes=sizes[kept], low=low[kept], high=high[kept])
