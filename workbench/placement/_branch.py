"""A plan of at most a given cost, or the proof that there is none: branch and bound over classes of workers.

The linear programme of ``_level`` may hold the average where no whole plan does. Then a class of workers is divided
into those with at least t tasks of an operator and those with fewer, once for every t. Each such
division is a class with patterns in a smaller box, so the same programme decides about it; all divisions together hold
every plan. The heaviest operators are divided first, which soon leaves no room for averaging.
"""

from dataclasses import replace

import numpy as np

from workbench.arrays import Floats, Ints
from workbench.placement._effort import Effort
from workbench.placement._instance import Instance
from workbench.placement._level import Level, Pool, held
from workbench.placement._starts import rounded

_WHOLE = 1e-6
_ROUNDED = 1e-12  # of a cost: the least cost of 0 comes out as 1e-16


def plan_below(given: Instance, cost: float, pool: Pool, effort: Effort) -> tuple[Ints | None, bool]:
    """Look for a plan of at most this cost: patterns or None, and whether it is proven that there is none."""
    if cost < 0:
        return None, True
    weight = _heaviest(given)
    nodes = [given]
    while nodes:
        node = nodes.pop()
        holds, proven = held(node, cost, pool, effort)
        if holds is None:
            if not proven:
                return None, False
            continue
        for plan in rounded(node, holds, cost, effort, looser=()):
            if given.value(plan) <= cost + _ROUNDED:
                return plan, False
        division = _division(node, holds, weight)
        if division is None:  # one pattern for every class, but no plan because of rounding
            return None, False
        nodes += _divided(node, *division)
    return None, True


def _heaviest(given: Instance) -> Floats:
    """Weigh the operators: the highest of the costs of one task alone."""
    graph = given.graph
    weight = graph.load[1:].max(axis=0)
    sent = np.zeros(len(weight))
    for u, v, forward, link in zip(graph.upstream, graph.downstream, graph.forward, graph.link, strict=True):
        sent[u] += link * (1 if forward else graph.tasks[v])
    heaviest: Floats = np.maximum(weight, sent)
    return heaviest


def _division(node: Instance, holds: Level, weight: Floats) -> tuple[int, int, int, float] | None:
    """Choose a class, an operator and a threshold, and say how many of the class the programme puts above it."""
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


def _divided(node: Instance, index: int, operator: int, threshold: int, above: float) -> list[Instance]:
    """Divide a class in all ways that the totals permit, the one nearest to the programme's last."""
    parts = []
    for number in range(int(node.sizes[index]) + 1):
        part = _part(node, index, operator, threshold, number)
        least, most = part.sizes @ part.low, part.sizes @ part.high
        if (least <= node.graph.tasks).all() and (most >= node.graph.tasks).all():
            parts.append((abs(number - above), part))
    return [part for _, part in sorted(parts, key=lambda part: -part[0])]


def _part(node: Instance, index: int, operator: int, threshold: int, number: int) -> Instance:
    """Give `number` workers of a class at least `threshold` tasks of an operator, and the others fewer."""
    sizes = np.insert(node.sizes, index, number)
    sizes[index + 1] -= number
    low, high = (np.insert(box, index, box[index], axis=0) for box in (node.low, node.high))
    low[index, operator] = threshold
    high[index + 1, operator] = threshold - 1
    speeds = np.insert(node.speeds, index, node.speeds[index])
    kept = sizes > 0
    return replace(node, speeds=speeds[kept], sizes=sizes[kept], low=low[kept], high=high[kept])
