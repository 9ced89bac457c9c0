"""The compiled search for one pattern, the count vector of one worker, or of two that share given tasks.

Depth first over the operators, with the linear relaxation of what is left as bound. The network load of a worker is
bilinear in its counts, so a vertex cover of the edges comes first: once that is fixed, everything left is linear.

Costs are those of Equation 4, loads divided by L^max - L^min; `here` is the worker whose pattern is searched, `there`
the other one. Compiled functions that call each other share a file, see ``_compiled``.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from workbench.arrays import Floats, Ints
from workbench.placement._compiled import compiled
from workbench.placement.problem import PlacementProblem

ALONE, TWO = range(2)
CHEAPEST, FARTHEST = range(2)

SLOTS, CPU, IO, NET, GAIN, NET_THERE = range(6)

_EPS = 1e-9
_FITS = 1e-8
_PIVOT = 1e-11
_PIVOTS = 80
_FREE = 1e30
_PATIENCE = 500


class Graph(NamedTuple):
    """The operators in search order, a vertex cover first, and the edges between them."""

    tasks: Ints  # (operators,)
    load: Floats  # (3, operators): one slot, cpu, io of one task
    ideal: Floats  # (3,)
    counts: Ints  # (3,): 1 for the dimensions that count, else 0
    upstream: Ints  # (edges,)
    downstream: Ints  # (edges,)
    forward: Ints  # (edges,): 1 for forward, 0 for shuffle
    link: Floats  # (edges,): load of one link
    slots: int
    least: int  # fewest tasks on a worker: idle slots are limited


class Relaxation(NamedTuple):
    """Room for the linear relaxation below a node, and for the simplex tableau: allocated once."""

    room: Floats  # (6,)
    width: Floats  # (6,)
    coef: Floats  # (6, operators)
    top: Floats  # (operators,)
    low: Ints  # (operators,): least counts; the relaxation is in what exceeds them
    rest: Ints  # (operators,): tasks of the other worker, as long as those still open are there
    upper: Floats  # (operators + 6,): upper bounds of the columns
    table: Floats  # (7, operators + 7): rows, last the reduced profits; last column the levels
    basis: Ints  # (6,)
    state: Ints  # (operators + 6,): 0 at its lower bound, 1 at its upper bound, 2 basic


@compiled
def pattern_cost(graph: Graph, pattern: Ints, speed: float) -> float:
    """f(v): the highest of the costs of a worker with this pattern (Equations 4, 5, 8)."""
    cost = -math.inf
    for dimension in range(2):
        if graph.counts[dimension]:
            load = 0.0
            for operator in range(len(pattern)):
                load += graph.load[dimension + 1, operator] * pattern[operator]
            cost = max(cost, load / speed - graph.ideal[dimension])
    if graph.counts[2]:
        load = 0.0
        for edge in range(len(graph.link)):
            sent, here = pattern[graph.upstream[edge]], pattern[graph.downstream[edge]]
            if graph.forward[edge]:
                load += graph.link[edge] * max(0, sent - here)
            else:
                load += graph.link[edge] * (sent * (graph.tasks[graph.downstream[edge]] - here))
        cost = max(cost, load / speed - graph.ideal[2])
    return cost


@compiled
def _relax(  # noqa: PLR0917
    graph: Graph, pattern: Ints, depth: int, cost: float, speed: float, total: Ints, relaxation: Relaxation
) -> None:
    """Relax what is left below a node to 0 <= room - coef x <= width, 0 <= x <= top, for a cost of at most `cost`."""
    room, width = relaxation.room, relaxation.width
    room[SLOTS] = graph.slots
    for row in range(1, 4):
        width[row] = math.inf
        room[row] = (cost + graph.ideal[row - 1]) * speed if graph.counts[row - 1] else _FREE
    for row in range(3):
        for operator in range(depth):
            room[row] -= graph.load[row, operator] * pattern[operator]
    width[SLOTS] = min(room[SLOTS], graph.slots - graph.least)
    for operator in range(depth, len(total)):
        relaxation.top[operator] = min(total[operator], room[SLOTS])
    if graph.counts[2]:
        _relax_links(graph, pattern, depth, NET, relaxation)


@compiled
def _relax_there(  # noqa: PLR0917
    graph: Graph, pattern: Ints, depth: int, cost: float, speeds: Floats, total: Ints, relaxation: Relaxation
) -> None:
    """Add to the relaxation that the rest of `total`, on the other worker, fits and costs at most `cost` there."""
    room, width, rest = relaxation.room, relaxation.width, relaxation.rest
    there = 0
    for operator in range(len(total)):
        rest[operator] = total[operator] - pattern[operator]
        there += rest[operator]
    width[SLOTS] = min(width[SLOTS], room[SLOTS] - max(0, there - graph.slots))
    for row in range(1, 3):
        if graph.counts[row - 1]:
            width[row] = (cost + graph.ideal[row - 1]) * (speeds[0] + speeds[1])
            for operator in range(len(total)):
                width[row] -= graph.load[row, operator] * total[operator]
    width[NET_THERE] = math.inf
    room[NET_THERE] = _FREE
    if graph.counts[2]:
        room[NET_THERE] = (cost + graph.ideal[2]) * speeds[1]
        _relax_links(graph, rest, depth, NET_THERE, relaxation)


@compiled
def _relax_links(graph: Graph, tasks: Ints, depth: int, row: int, relaxation: Relaxation) -> None:
    """Add the load of the links of a worker with `tasks`, to which the open tasks come; there, from which they go.

    A product of two open counts is replaced by what it is at most: the second at its top.
    """
    room, coef, top = relaxation.room, relaxation.coef, relaxation.top
    sign = 1 if row == NET else -1
    coef[row, :] = 0.0
    for edge in range(len(graph.link)):
        u, v, link = graph.upstream[edge], graph.downstream[edge], graph.link[edge]
        fewest = tasks[u] - (top[u] if sign < 0 and u >= depth else 0)
        most = tasks[v] + (top[v] if sign > 0 and v >= depth else 0)
        if graph.forward[edge]:
            if fewest > most or (sign > 0 and v < depth and most == 0):  # more senders than receivers in any case
                room[row] -= link * (tasks[u] - tasks[v])
                coef[row, u] += sign * link
                coef[row, v] -= sign * link
        elif u < depth <= v:
            room[row] -= link * tasks[u] * (graph.tasks[v] - tasks[v])
            coef[row, v] -= sign * link * tasks[u]
        else:
            room[row] -= link * tasks[u] * (graph.tasks[v] - most)
            coef[row, u] += sign * link * (graph.tasks[v] - most)


@compiled
def _shift(depth: int, rows: int, relaxation: Relaxation) -> bool:
    """Count the open operators from their least counts on; return False if one has no room."""
    room, coef, top, low = relaxation.room, relaxation.coef, relaxation.top, relaxation.low
    for operator in range(depth, len(top)):
        if low[operator] > 0:
            top[operator] -= low[operator]
            for row in range(rows):
                room[row] -= coef[row, operator] * low[operator]
        if top[operator] < 0:
            return False
    return True


@compiled
def _highest(sign: float, depth: int, rows: int, relaxation: Relaxation) -> float:  # noqa: C901, PLR0912
    """Bound sign x of the first open operator over the relaxation from above by the dual simplex; -inf if nothing fits.

    Columns are the open operators and one slack per row, all between 0 and an upper bound. Every step is dual
    feasible, so its value is a bound.
    """
    room, width, coef, top, _, _, upper, table, basis, state = relaxation
    free = len(top) - depth
    columns = free + rows
    value = 0.0
    for column in range(columns):
        upper[column] = top[depth + column] if column < free else width[column - free]
        state[column] = 0 if column < free else 2
        table[rows, column] = 0.0
    for row in range(rows):
        if width[row] < -_FITS:
            return -math.inf
        basis[row] = free + row
        table[row, columns] = room[row]
        for column in range(columns):
            table[row, column] = coef[row, depth + column] if column < free else 0.0
        table[row, free + row] = 1.0
    table[rows, 0] = sign
    if sign > 0:
        state[0] = 1
        value = top[depth]
        for row in range(rows):
            table[row, columns] -= coef[row, depth] * top[depth]
    for _ in range(_PIVOTS):
        leaving, worst, below = -1, _FITS, True
        for row in range(rows):
            level = table[row, columns]
            over = level - upper[basis[row]]
            if -level > worst:
                leaving, worst, below = row, -level, True
            if over > worst:
                leaving, worst, below = row, over, False
        if leaving < 0:
            return value
        # The leaving variable moves to the bound it violates; the entering one keeps the reduced profits' signs.
        way = 1.0 if below else -1.0
        entering, best = -1, math.inf
        for column in range(columns):
            slope = way * table[leaving, column]
            if (state[column] == 0 and slope < -_PIVOT) or (state[column] == 1 and slope > _PIVOT):
                ratio = abs(table[rows, column] / slope)
                if ratio < best:
                    entering, best = column, ratio
        if entering < 0:
            return -math.inf
        out = basis[leaving]
        target = 0.0 if below else upper[out]
        start = upper[entering] if state[entering] == 1 else 0.0
        pivot = table[leaving, entering]
        step = (table[leaving, columns] - target) / pivot
        value += table[rows, entering] * step
        for row in range(rows):
            table[row, columns] -= table[row, entering] * step
        for column in range(columns):
            table[leaving, column] /= pivot
        for row in range(rows + 1):
            factor = table[row, entering]
            if row != leaving and factor != 0.0:
                for column in range(columns):
                    table[row, column] -= factor * table[leaving, column]
        table[leaving, columns] = start + step
        state[out] = 0 if below else 1
        state[entering] = 2
        basis[leaving] = entering
    return value


@compiled
def find_pattern(  # noqa: C901, PLR0912, PLR0915, PLR0917
    graph: Graph,
    speeds: Floats,  # of the worker, and of the other one
    low: Ints,
    total: Ints,
    share: int,  # ALONE: the rest of `total` is left out; TWO: it costs at most `cost` on the other worker
    gain: Floats,
    reach: float,
    goal: int,  # FARTHEST, most gain; or CHEAPEST, least cost
    cost: float,
    target: float,  # gain at which little more is tried, or cost that is good enough
    found: Ints,  # written: the best pattern
    nodes: int,  # how many may be visited
) -> tuple[float, float, int]:
    """Search the patterns `low` <= v <= `total` with gain v >= `reach` and a cost of at most `cost`.

    Gain, cost and nodes: (-inf, inf, nodes) without such a pattern; with more nodes than allowed the search was given
    up, and what was found is valid.
    """
    operators = len(total)
    rows = 5 + share
    relaxation = Relaxation(
        np.zeros(6),
        np.zeros(6),
        np.zeros((6, operators)),
        np.zeros(operators),
        low,
        np.zeros(operators, dtype=np.int64),
        np.zeros(operators + 6),
        np.zeros((7, operators + 7)),
        np.zeros(6, dtype=np.int64),
        np.zeros(operators + 6, dtype=np.int64),
    )
    pattern = np.zeros(operators, dtype=np.int64)
    left, step = np.zeros(operators, dtype=np.int64), np.ones(operators, dtype=np.int64)
    gained, used = np.zeros(operators + 1), np.zeros(operators + 1, dtype=np.int64)
    relaxation.width[GAIN] = math.inf
    relaxation.coef[:NET] = graph.load
    relaxation.coef[GAIN] = -gain
    fewest, fullest = graph.least, graph.slots
    if share:
        fewest, fullest = max(fewest, total.sum() - graph.slots), min(fullest, total.sum() - graph.least)
    best_gain, best_cost, seen, depth, entering = -math.inf, math.inf, 0, 0, True
    while depth >= 0:
        if seen >= nodes:
            return best_gain, best_cost, nodes + 1
        if entering:
            seen += 1
            entering = False
            _relax(graph, pattern, depth, cost, speeds[0], total, relaxation)
            relaxation.room[GAIN] = gained[depth] - reach + _EPS if reach > -math.inf else _FREE
            if share:
                _relax_there(graph, pattern, depth, cost, speeds, total, relaxation)
            left[depth] = 0
            most = _highest(1.0, depth, rows, relaxation) if _shift(depth, rows, relaxation) else -math.inf
            if most > -math.inf:
                least = -_highest(-1.0, depth, rows, relaxation)
                first, last = low[depth] + math.ceil(least - _FITS), low[depth] + math.floor(most + _FITS)
                left[depth] = last - first + 1
                descending = goal == FARTHEST and gain[depth] > 0.0  # most gain first
                step[depth] = -1 if descending else 1
                pattern[depth] = last + 1 if descending else first - 1
        if left[depth] <= 0:
            pattern[depth] = 0
            depth -= 1
            continue
        left[depth] -= 1
        pattern[depth] += step[depth]
        gained[depth + 1] = gained[depth] + gain[depth] * pattern[depth]
        used[depth + 1] = used[depth] + pattern[depth]
        if depth < operators - 1:
            depth += 1
            entering = True
            continue
        seen += 1
        if gained[operators] < reach:
            if goal == FARTHEST:  # nor does any further count reach it
                left[depth] = 0
            continue
        if not fewest <= used[operators] <= fullest:
            continue
        here = pattern_cost(graph, pattern, speeds[0])
        if share and here <= cost:
            here = max(here, pattern_cost(graph, total - pattern, speeds[1]))
        if here <= cost:
            best_gain, best_cost = gained[operators], here
            found[:] = pattern
            if goal == FARTHEST:
                reach = best_gain + _EPS
                left[depth] = 0
                if best_gain >= target:
                    nodes = min(nodes, seen + _PATIENCE)
            else:
                cost = here - _EPS
                if here <= target:
                    break
    return best_gain, best_cost, seen


@compiled
def _draw(state: int, choices: int) -> tuple[int, int]:
    """Next state of a small generator (Lehmer, minimal standard), and a number below `choices`."""
    state = state * 48271 % 2147483647
    return state, state % choices


@compiled
def improve(  # noqa: C901, PLR0912, PLR0915, PLR0917
    graph: Graph, speeds: Floats, plan: Ints, target: float, seed: int, nodes: int
) -> tuple[float, int, int]:
    """Lower the highest cost of a plan, in place, until it is at most `target` or `nodes` were visited.

    The tasks of the worst worker and of another one are redistributed in the best way. Where that helps with no other
    worker, two of the others share theirs in a new way that costs less than the worst, and it is tried again.

    `plan` has shape (workers, operators), `seed` is the state of the generator, 1 to 2147483646. The results are the
    highest cost of the plan, the nodes visited, and the generator's state.
    """
    workers, operators = plan.shape
    costs, both = np.zeros(workers), np.zeros(2)
    for worker in range(workers):
        costs[worker] = pattern_cost(graph, plan[worker], speeds[worker])
    untried = np.ones(workers, dtype=np.bool_)
    found, kept = np.zeros(operators, dtype=np.int64), np.zeros(operators, dtype=np.int64)
    gain, zero, none = np.zeros(operators), np.zeros(operators), np.zeros(operators, dtype=np.int64)
    seen, last = 0, -1
    while seen < nodes:
        worst = int(np.argmax(costs))
        top = costs[worst]
        if top <= target:
            break
        if worst != last:
            untried[:] = True
            last = worst
        one, other, limit = worst, -1, top - _EPS
        for step in range(1, workers):
            worker = (worst + step) % workers
            if not untried[worker]:
                continue
            untried[worker] = False
            both[0], both[1] = speeds[worst], speeds[worker]
            total = plan[worst] + plan[worker]
            _, cost, tried = find_pattern(
                graph, both, none, total, TWO, zero, -math.inf, CHEAPEST, limit, target, found, nodes
            )
            seen += tried
            if cost <= limit:
                other, limit = worker, cost - _EPS
                kept[:] = found
                if cost <= target:
                    break
        if other < 0:
            if workers < 3:
                break
            seed, one = _draw(seed, workers - 1)
            seed, other = _draw(seed, workers - 2)
            one += one >= worst
            first, second = min(one, worst), max(one, worst)
            other += other >= first
            other += other >= second
            for operator in range(operators):
                seed, number = _draw(seed, 2001)
                gain[operator] = number - 1000.0
            both[0], both[1] = speeds[one], speeds[other]
            total = plan[one] + plan[other]
            _, cost, tried = find_pattern(
                graph, both, none, total, TWO, gain, -math.inf, FARTHEST, top - _EPS, math.inf, kept, nodes
            )
            seen += tried
            if cost == math.inf:
                continue
        plan[other] += plan[one] - kept
        plan[one] = kept
        for worker in (one, other):
            untried[worker] = True
            costs[worker] = pattern_cost(graph, plan[worker], speeds[worker])
    return costs.max(), seen, seed


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
        problem.fastest_first,
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
    cover: list[int] = []
    while ends[most := max(range(len(ends)), key=lambda operator: len(ends[operator]))]:
        cover.append(most)
        for other in ends[most]:
            ends[other].remove(most)
        ends[most] = []
    return cover + sorted({*range(len(ends))} - {*cover})
