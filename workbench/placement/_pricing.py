"""The compiled search for one pattern: the cheapest on the far side of a hyperplane, or the farthest of given cost.

Depth first over the operators, with the linear relaxation of what is left as bound. The network load is bilinear, so
a vertex cover of the edges comes first: once it is fixed, everything left is linear.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from workbench.placement._compiled import compiled

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

SLOTS, CPU, IO, NET, NET_THERE = range(5)

_EPS = 1e-9
_PIVOTS = 60
_FREE = 1e30


class Worker(NamedTuple):
    """One class of workers; loads in units of the cost, divided by the speed. Operators in search order."""

    tasks: Ints  # (operators,)
    load: Floats  # (4, operators): 1 slot, cpu, io, 0
    ideal: Floats  # (3,)
    limited: Ints  # (3,): 1 for the dimensions that count
    upstream: Ints  # (edges,)
    downstream: Ints  # (edges,)
    forward: Ints  # (edges,)
    link: Floats  # (edges,)
    slots: int
    least: int  # fewest tasks on a worker, as idle slots are limited


@compiled
def pattern_cost(worker: Worker, pattern: Ints) -> float:
    """f(v): the highest of the costs of a worker with this pattern (Equations 4, 5, 8)."""
    cost = -math.inf
    for dimension in range(2):
        if worker.limited[dimension]:
            load = 0.0
            for operator in range(len(pattern)):
                load += worker.load[dimension + 1, operator] * pattern[operator]
            cost = max(cost, load - worker.ideal[dimension])
    if worker.limited[2]:
        load = 0.0
        for edge in range(len(worker.link)):
            sent, here = pattern[worker.upstream[edge]], pattern[worker.downstream[edge]]
            if worker.forward[edge]:
                load += worker.link[edge] * max(0, sent - here)
            else:
                load += worker.link[edge] * (sent * (worker.tasks[worker.downstream[edge]] - here))
        cost = max(cost, load - worker.ideal[2])
    return cost


@compiled
def _relax(worker: Worker, pattern: Ints, depth: int, cost: float, room: Floats, coef: Floats, top: Floats, width: Floats) -> None:
    """Set up the linear relaxation below a node: 0 <= room - coef x <= width, 0 <= x <= top, for a cost of at most `cost`."""
    operators = len(pattern)
    used = 0
    for operator in range(depth):
        used += pattern[operator]
    left = worker.slots - used
    room[SLOTS] = left
    width[SLOTS] = left - max(0, worker.least - used)
    for row in range(1, 4):
        width[row] = math.inf
        room[row] = cost + worker.ideal[row - 1] if worker.limited[row - 1] else _FREE
    for operator in range(depth):
        room[CPU] -= worker.load[CPU, operator] * pattern[operator]
        room[IO] -= worker.load[IO, operator] * pattern[operator]
    for operator in range(depth, operators):
        top[operator] = min(worker.tasks[operator], left)
        for row in range(3):
            coef[row, operator] = worker.load[row, operator]
        coef[NET, operator] = 0.0
    if not worker.limited[2]:
        return
    for edge in range(len(worker.link)):
        u, v, link = worker.upstream[edge], worker.downstream[edge], worker.link[edge]
        if u < depth:
            if v < depth:
                if worker.forward[edge]:
                    room[NET] -= link * max(0, pattern[u] - pattern[v])
                else:
                    room[NET] -= link * (pattern[u] * (worker.tasks[v] - pattern[v]))
            elif not worker.forward[edge]:
                room[NET] -= link * pattern[u] * worker.tasks[v]
                coef[NET, v] -= link * pattern[u]
            elif pattern[u] > top[v]:
                room[NET] -= link * pattern[u]
                coef[NET, v] -= link
        elif not worker.forward[edge]:
            here = pattern[v] if v < depth else top[v]
            coef[NET, u] += link * (worker.tasks[v] - here)
        elif v < depth and pattern[v] == 0:
            coef[NET, u] += link


@compiled
def _relax_there(worker: Worker, total: Ints, pattern: Ints, depth: int, cost: float, room: Floats, coef: Floats, top: Floats, width: Floats) -> None:
    """Add to the relaxation that the rest of `total`, on another worker of the class, costs at most `cost` as well."""
    operators = len(pattern)
    used, all_tasks = 0, 0
    for operator in range(operators):
        all_tasks += total[operator]
        if operator < depth:
            used += pattern[operator]
        else:
            top[operator] = min(top[operator], total[operator])
    width[SLOTS] = min(width[SLOTS], worker.slots - used - max(0, all_tasks - worker.slots - used))
    for row in range(1, 3):
        if worker.limited[row - 1]:
            both = 2 * (cost + worker.ideal[row - 1])
            for operator in range(operators):
                both -= worker.load[row, operator] * total[operator]
            width[row] = both
    width[NET_THERE] = math.inf
    room[NET_THERE] = cost + worker.ideal[2] if worker.limited[2] else _FREE
    for operator in range(depth, operators):
        coef[NET_THERE, operator] = 0.0
    if not worker.limited[2]:
        return
    for edge in range(len(worker.link)):
        u, v, link = worker.upstream[edge], worker.downstream[edge], worker.link[edge]
        if worker.forward[edge]:
            least = total[u] - (pattern[u] if u < depth else top[u]) - (total[v] - (pattern[v] if v < depth else 0))
            if least > 0:
                room[NET_THERE] -= link * (total[u] - total[v])
                if u < depth:
                    room[NET_THERE] += link * pattern[u]
                else:
                    coef[NET_THERE, u] -= link
                if v < depth:
                    room[NET_THERE] -= link * pattern[v]
                else:
                    coef[NET_THERE, v] += link
            continue
        away = worker.tasks[v] - total[v]
        if u < depth:
            sent = total[u] - pattern[u]
            if v < depth:
                room[NET_THERE] -= link * sent * (away + pattern[v])
            else:
                room[NET_THERE] -= link * sent * away
                coef[NET_THERE, v] += link * sent
        else:
            if v < depth:
                away += pattern[v]
            room[NET_THERE] -= link * total[u] * away
            coef[NET_THERE, u] -= link * away


@compiled
def _bound(gain: Floats, depth: int, rows: int, room: Floats, coef: Floats, top: Floats, width: Floats, enough: float, tab: Floats, basis: Ints, where: Ints) -> float:
    """Upper bound of gain x over the relaxation by the dual simplex with bounded variables; stops below `enough`.

    Columns are the free operators and one slack per row, at most `width`. Every step is dual feasible, so its value
    is a bound.
    """
    free = len(gain) - depth
    columns = free + rows
    # where: 0 at lower bound, 1 at upper bound, 2 basic
    value = 0.0
    for row in range(rows):
        if width[row] < -_EPS:
            return -math.inf
        basis[row] = free + row
        where[free + row] = 2
        for column in range(columns):
            tab[row, column] = 0.0
        tab[row, free + row] = 1.0
        tab[row, columns] = room[row]
        for column in range(free):
            tab[row, column] = coef[row, depth + column]
    for column in range(columns):
        tab[rows, column] = 0.0
    for column in range(free):
        tab[rows, column] = gain[depth + column]  # reduced profit
        where[column] = 0
        if gain[depth + column] > 0:
            where[column] = 1
            value += gain[depth + column] * top[depth + column]
            for row in range(rows):
                tab[row, columns] -= coef[row, depth + column] * top[depth + column]
    for _ in range(_PIVOTS):
        if value < enough:
            return value
        leaving, worst, below = -1, _EPS, True
        for row in range(rows):
            level = tab[row, columns]
            if -level > worst:
                leaving, worst, below = row, -level, True
            over = level - (top[depth + basis[row]] if basis[row] < free else width[basis[row] - free])
            if over > worst:
                leaving, worst, below = row, over, False
        if leaving < 0:
            return value
        # The leaving variable moves to its bound; the entering one keeps the signs of the reduced profits.
        sign = 1.0 if below else -1.0
        entering, best = -1, math.inf
        for column in range(columns):
            slope = sign * tab[leaving, column]
            if (where[column] == 0 and slope < -_EPS) or (where[column] == 1 and slope > _EPS):
                ratio = abs(tab[rows, column] / slope)
                if ratio < best:
                    entering, best = column, ratio
        if entering < 0:
            return -math.inf  # nothing fits
        out = basis[leaving]
        target = 0.0
        if not below:
            target = top[depth + out] if out < free else width[out - free]
        start = 0.0
        if where[entering] == 1:
            start = top[depth + entering] if entering < free else width[entering - free]
        pivot = tab[leaving, entering]
        step = (tab[leaving, columns] - target) / pivot  # of the entering variable
        value += tab[rows, entering] * step
        for row in range(rows):
            tab[row, columns] -= tab[row, entering] * step
        for column in range(columns):
            tab[leaving, column] /= pivot
        for row in range(rows + 1):
            factor = tab[row, entering]
            if row != leaving and factor != 0.0:
                for column in range(columns):
                    tab[row, column] -= factor * tab[leaving, column]
        tab[leaving, columns] = start + step
        where[out] = 0 if below else 1
        where[entering] = 2
        basis[leaving] = entering
    return value


@compiled
def price(worker: Worker, gain: Floats, reach: float, cost: float, farthest: bool, found: Ints, nodes: int) -> tuple[float, float, int]:
    """Search patterns v with gain v >= reach and f(v) <= cost.

    `farthest`: the one of most gain; else the one of least cost. Writes it to `found`; returns (gain, cost, nodes),
    (-inf, inf, nodes) if there is none; nodes is -1 if the search was given up.
    """
    operators = len(gain)
    pattern = np.zeros(operators, dtype=np.int64)
    highest = np.zeros(operators, dtype=np.int64)
    room, width = np.zeros(4), np.zeros(4)
    coef = np.zeros((4, operators))
    top = np.zeros(operators)
    tab = np.zeros((5, operators + 5))
    basis = np.zeros(4, dtype=np.int64)
    where = np.zeros(operators + 4, dtype=np.int64)
    so_far = np.zeros(operators + 1)
    used = np.zeros(operators + 1, dtype=np.int64)
    later = np.zeros(operators + 1, dtype=np.int64)
    for operator in range(operators - 1, -1, -1):
        later[operator] = later[operator + 1] + worker.tasks[operator]
    best_gain, best_cost = -math.inf, math.inf
    seen = 0
    depth = 0
    pattern[0] = max(0, worker.least - later[1]) - 1
    highest[0] = min(worker.tasks[0], worker.slots)
    while depth >= 0:
        if pattern[depth] >= highest[depth]:
            depth -= 1
            continue
        pattern[depth] += 1
        seen += 1
        if seen > nodes:
            return best_gain, best_cost, -1
        so_far[depth + 1] = so_far[depth] + gain[depth] * pattern[depth]
        used[depth + 1] = used[depth] + pattern[depth]
        if depth == operators - 1:
            if so_far[operators] >= reach:
                here = pattern_cost(worker, pattern)
                if here <= cost:
                    best_gain, best_cost = so_far[operators], here
                    found[:] = pattern
                    if farthest:
                        reach = best_gain + _EPS
                    else:
                        cost = here - _EPS
            continue
        _relax(worker, pattern, depth + 1, cost, room, coef, top, width)
        enough = reach - so_far[depth + 1]
        if _bound(gain, depth + 1, 4, room, coef, top, width, enough, tab, basis, where) < enough:
            continue
        depth += 1
        pattern[depth] = max(0, worker.least - used[depth] - later[depth + 1]) - 1
        highest[depth] = min(worker.tasks[depth], worker.slots - used[depth])
    return best_gain, best_cost, seen


@compiled
def share(worker: Worker, total: Ints, gain: Floats, farthest: bool, cost: float, target: float, found: Ints, nodes: int) -> tuple[float, int]:
    """Share `total` out to two workers of the class, both below `cost`.

    `farthest`: so that the first gets most gain; else so that the higher cost is least, stopping at `target`.
    Writes the pattern of the first to `found`; returns (cost, nodes), (inf, nodes) if there is none.
    """
    operators = len(total)
    pattern = np.zeros(operators, dtype=np.int64)
    other = np.zeros(operators, dtype=np.int64)
    highest = np.zeros(operators, dtype=np.int64)
    room, width = np.zeros(5), np.zeros(5)
    coef = np.zeros((5, operators))
    top = np.zeros(operators)
    tab = np.zeros((6, operators + 6))
    basis = np.zeros(5, dtype=np.int64)
    where = np.zeros(operators + 5, dtype=np.int64)
    so_far = np.zeros(operators + 1)
    best, reach = math.inf, -math.inf
    seen = 0
    used = -1
    both = total.sum()
    depth = 0
    pattern[0] = -1
    highest[0] = min(total[0], worker.slots)
    while depth >= 0:
        if pattern[depth] >= highest[depth]:
            used -= pattern[depth]
            depth -= 1
            continue
        pattern[depth] += 1
        used += 1
        seen += 1
        if seen > nodes:
            return best, seen
        so_far[depth + 1] = so_far[depth] + gain[depth] * pattern[depth]
        if depth == operators - 1:
            if used >= worker.least and used <= worker.slots and both - used >= worker.least and both - used <= worker.slots and so_far[operators] > reach:
                here = pattern_cost(worker, pattern)
                if here <= cost:
                    for operator in range(operators):
                        other[operator] = total[operator] - pattern[operator]
                    here = max(here, pattern_cost(worker, other))
                    if here <= cost:
                        best = here
                        found[:] = pattern
                        if farthest:
                            reach = so_far[operators] + _EPS
                        else:
                            cost = here - _EPS
                            if best <= target:
                                return best, seen
            continue
        _relax(worker, pattern, depth + 1, cost, room, coef, top, width)
        _relax_there(worker, total, pattern, depth + 1, cost, room, coef, top, width)
        enough = max(reach - so_far[depth + 1], -1e20)
        if _bound(gain, depth + 1, 5, room, coef, top, width, enough, tab, basis, where) < enough:
            continue
        depth += 1
        pattern[depth] = -1
        used -= 1
        highest[depth] = min(total[depth], worker.slots - used - 1)
    return best, seen
