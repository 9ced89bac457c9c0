"""Contention-aware placement search: CAPS (CAPSys, sections 4.3 and 4.4).

The search meets every plan once, up to exchanging identical workers and tasks, and leaves a branch as soon as a
worker exceeds a threshold (Equation 10). It keeps the plans that no other dominates, never all of them.

Deviations from the paper: plans are ordered by Pareto dominance, as the strictly best plan of Equation 3 need not
exist; of a front the best is chosen by rule, where the authors pick at random. One search runs on one core: it takes
milliseconds under thresholds, less than handing it to a pool. Independent searches can share the cores, for the
compiled search does not hold the interpreter's lock (`tune_range` does so).
"""

import math
import time
from dataclasses import dataclass

import numpy as np

from workbench.errors import WorkbenchError
from workbench.placement._tree import DONE, FOUND, FRONT_FULL, Front, Layers, explore, new_state
from workbench.placement.problem import SLACK, CostVector, PlacementProblem, Plan

_SLICE = 1 << 20
_DECIMALS = 9


@dataclass(frozen=True)
class SearchResult:
    """What a search found.

    Parameters
    ----------
    count
        Plans met, all within the thresholds.
    pareto
        Plans that no other dominates, best first; one for each cost vector, the lexicographically largest by workers,
        the fastest class first.
    best
        The plan of the least worst cost; ties by the sum of the costs, cpu, io, net. None if there is no plan.
    nodes
        Choices made of a count for a worker. Papers count nodes differently: compare plans, never nodes.
    exhausted
        Whether the whole space was searched. Then a count of 0 proves that no plan meets the thresholds.
    """

    count: int
    pareto: tuple[Plan, ...]
    best: Plan | None
    nodes: int
    exhausted: bool


def search(
    problem: PlacementProblem,
    thresholds: CostVector | None = None,
    first: bool = False,
    timeout_s: float | None = None,
    *,
    reorder: bool = True,
) -> SearchResult:
    """Search the plans of `problem` within `thresholds` (CAPSys, sections 4.3, 4.4).

    Parameters
    ----------
    problem
        What to place where.
    thresholds
        Highest cost allowed per dimension (Equation 9); None allows all.
    first
        Stop at the first plan.
    timeout_s
        Stop after this time with what was found.
    reorder
        Place operators of high load first (section 4.4.2), which prunes earlier; else in topological order.

    Returns
    -------
    SearchResult

    Raises
    ------
    WorkbenchError
        For a time limit that is not above 0.
    """
    return explore_plans(problem, thresholds or CostVector(), first, deadline(timeout_s), reorder=reorder)


def explore_plans(
    problem: PlacementProblem,
    thresholds: CostVector,
    first: bool,
    until: float,
    *,
    reorder: bool = True,
    nodes: float = math.inf,
) -> SearchResult:
    """Search as `search` does, until a moment of the monotonic clock or for about so many nodes."""
    layers = _layers(problem, thresholds, search_order(problem, thresholds, reorder))
    state = new_state(len(layers.tasks), problem.workers)
    front = _front(problem, 1 if first else 64)
    while True:
        status = explore(layers, state, front, first, int(min(_SLICE, nodes)))
        if status == FRONT_FULL:
            front = _front(problem, 2 * len(front.cost), front)
        elif status in {DONE, FOUND} or state.at[2] >= nodes or time.monotonic() >= until:
            break
    _, _, seen, count, size, _ = state.at.tolist()
    workers = [worker for members in problem.classes for worker in members]
    plans = []
    for rows in front.plan[:size]:
        counts = np.zeros((len(problem.operators), problem.workers), dtype=np.int64)
        counts[:, workers] = rows.T
        plans.append(problem.plan(counts))
    plans.sort(key=preference)
    return SearchResult(count, tuple(plans), plans[0] if plans else None, seen, status == DONE)


def deadline(timeout_s: float | None) -> float:
    """Moment of the monotonic clock at which `timeout_s` from now are over; infinity for None.

    Raises
    ------
    WorkbenchError
        For a time limit that is not above 0.
    """
    if timeout_s is None:
        return math.inf
    if not timeout_s > 0:
        raise WorkbenchError(f"timeout_s is {timeout_s!r}; give seconds above 0, or None for no limit.")
    return time.monotonic() + timeout_s


def preference(plan: Plan) -> tuple[float, ...]:
    """Sort key of plans, best first: the worst cost, their sum, cpu, io, net; costs within 1e-9 are equal."""
    cost = tuple(round(value, _DECIMALS) for value in plan.cost)
    return (max(cost), round(sum(cost), _DECIMALS), *cost, *plan.counts.T.ravel().tolist())


def search_order(problem: PlacementProblem, thresholds: CostVector, reorder: bool = True) -> tuple[int, ...]:
    """Positions of the operators in the order of the layers: by load in the limited dimensions, descending."""
    order = problem.topological_order
    limited = [loads for loads, limit in zip(problem.loads, thresholds, strict=True) if limit < np.inf]
    if reorder and limited:
        return tuple(sorted(order, key=lambda operator: tuple(-loads[operator] for loads in limited)))
    return order


def _layers(problem: PlacementProblem, thresholds: CostVector, order: tuple[int, ...]) -> Layers:
    layer_of = {operator: layer for layer, operator in enumerate(order)}
    scale = np.divide(1.0, problem.span, out=np.zeros(3), where=problem.span > 0)
    ideal = problem.ideal * scale
    speed = np.array(sorted(problem.speeds, reverse=True))
    edges = [
        (
            max(layer_of[u], layer_of[v]),
            way == "forward",
            min(layer_of[u], layer_of[v]),
            layer_of[u] > layer_of[v],
            link,
        )
        for (u, v, way), link in zip(problem.edges, problem.link_loads * scale[2], strict=True)
    ]
    edges.sort(key=lambda edge: edge[:2])
    later = [layer for layer, *_ in edges]
    shuffled = [layer + forward for layer, forward, *_ in edges]
    return Layers(
        np.array([problem.parallelism[operator] for operator in order], dtype=np.int64),
        np.ascontiguousarray((problem.loads * scale[:, None])[:2, list(order)]),
        np.searchsorted(later, np.arange(len(order) + 1)).astype(np.int64),
        np.searchsorted(shuffled, np.arange(1, len(order) + 1)).astype(np.int64),
        np.array([other for _, _, other, _, _ in edges], dtype=np.int64),
        np.array([upstream for *_, upstream, _ in edges], dtype=np.bool_),
        np.array([link for *_, link in edges], dtype=np.float64),
        # Equation 10 in units of the cost; where all plans cost the same, loads are 0 and any limit holds.
        (ideal + np.array([*thresholds]) + SLACK)[:, None] * speed,
        ideal,
        speed,
        np.array(order, dtype=np.int64),
        problem.slots,
    )


def _front(problem: PlacementProblem, capacity: int, old: Front | None = None) -> Front:
    front = Front(
        np.zeros((capacity, 3)), np.zeros((capacity, problem.workers, len(problem.operators)), dtype=np.int64)
    )
    if old is not None:
        for new, kept in zip(front, old, strict=True):
            new[: len(kept)] = kept
    return front
