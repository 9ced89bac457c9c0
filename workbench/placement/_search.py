"""Contention-aware placement search: CAPS (CAPSys, sections 4.3 and 4.4).

The search meets every plan once, up to exchanging identical workers and tasks, and leaves a branch as soon as a
worker exceeds a threshold (Equation 10). It keeps the plans that no other dominates, never all of them.

Deviations from the paper: plans are ordered by Pareto dominance, as the strictly best plan of Equation 3 need not
exist. One search runs on one core, where under thresholds it takes milliseconds; `tune_range` runs several at once.
"""

from dataclasses import dataclass, replace

import numpy as np

from workbench.arrays import Ints
from workbench.placement._effort import Effort, deadline
from workbench.placement._level import Pool, dealt, plan_below, raise_level, rounded
from workbench.placement._pattern_search import Instance, improve, instance
from workbench.placement._tree import DONE, FOUND, FRONT_FULL, Front, Layers, explore, new_state
from workbench.placement.problem import SLACK, CostVector, PlacementProblem, Plan

_SLICE = 1 << 20
_FEW = 1000
_MANY = 5_000
_BRANCHING = 1_000_000
_TIGHT = 1e-5
_SEED = 48_271
_DECIMALS = 9


@dataclass(frozen=True)
class SearchResult:
    """What a search found."""

    count: int  # plans met, all within the thresholds
    # plans that no other dominates, best first; one for each cost vector, the lexicographically largest by workers,
    # the fastest class first
    pareto: tuple[Plan, ...]
    # the plan of the least worst cost, ties by the sum of the costs, cpu, io, net; of `caps`, the plan of the front
    # that sustains most. None if there is no plan
    best: Plan | None
    nodes: int  # choices made of a count for a worker. Papers count nodes differently: compare plans, never nodes
    exhausted: bool  # whether the whole space was searched, so that a count of 0 proves that there is no plan
    within: CostVector = CostVector()  # noqa: RUF009 - frozen; the thresholds


def search(
    problem: PlacementProblem,
    thresholds: CostVector | None = None,
    first: bool = False,
    timeout_s: float | None = None,
    *,
    reorder: bool = True,
) -> SearchResult:
    """Search the plans of `problem` within `thresholds`, the highest costs (Equation 9), or all (CAPSys, 4.3, 4.4).

    Ends with the plans found after `timeout_s`, above 0, or at the `first` plan: if the tree does not end soon, a plan
    is also looked for by exchanges, and a bound may prove that there is none. With `reorder` the operators of high load
    come first (section 4.4.2), which prunes earlier; else they are in topological order.
    """
    effort = Effort(deadline(timeout_s))
    thresholds = thresholds or CostVector()
    if not first:
        return explore_plans(problem, thresholds, effort, first=False, reorder=reorder)
    few = 4 * problem.workers * len(problem.operators)
    for nodes, shortcut in ((few, _by_exchange), (_MANY, _by_bound)):
        result = explore_plans(problem, thresholds, Effort(effort.until, nodes), first=True, reorder=reorder)
        if result.count or result.exhausted or effort.spent:
            return result
        shorter = shortcut(problem, thresholds, effort)
        if shorter is not None:
            return replace(shorter, nodes=result.nodes)
    return explore_plans(problem, thresholds, effort, first=True, reorder=reorder)


def _weighted(problem: PlacementProblem, thresholds: CostVector) -> Instance:
    """Return the instance whose plans of cost at most 1 are those within the thresholds; loosen thresholds near 0."""
    return instance(problem, [1 / max(limit, _TIGHT) for limit in thresholds])


def _first(problem: PlacementProblem, thresholds: CostVector, given: Instance, plan: Ints) -> SearchResult | None:
    """Return a plan as a result, if it meets the thresholds."""
    best = problem.plan(given.counts(plan))
    if not best.cost.within(thresholds):
        return None
    return SearchResult(1, (best,), best, 0, exhausted=False, within=thresholds)


def _improved(problem: PlacementProblem, thresholds: CostVector, given: Instance, plan: Ints) -> SearchResult | None:
    improve(given.graph, given.worker_speeds, plan, 1.0, _SEED, _FEW)
    return _first(problem, thresholds, given, plan)


def _by_exchange(problem: PlacementProblem, thresholds: CostVector, _effort: Effort) -> SearchResult | None:
    """Look for a plan by improving the one distributed evenly."""
    given = _weighted(problem, thresholds)
    return _improved(problem, thresholds, given, dealt(given))


def _by_bound(problem: PlacementProblem, thresholds: CostVector, effort: Effort) -> SearchResult | None:
    """Prove by the linear programme over patterns that there is no plan, or round its solution to one, or branch."""
    given = _weighted(problem, thresholds)
    loosest = 1 + 2 * SLACK / _TIGHT
    pool = Pool()
    level = raise_level(given, 1 / _TIGHT, effort.part(0.5), enough=loosest, pool=pool)
    if level.bound > loosest:
        return SearchResult(0, (), None, 0, exhausted=True, within=thresholds)
    for plan in rounded(given, level, 1.0, effort):
        result = _improved(problem, thresholds, given, plan)
        if result is not None:
            return result
    found, none = plan_below(given, loosest, pool, Effort(effort.until, _BRANCHING))
    if none:
        return SearchResult(0, (), None, 0, exhausted=True, within=thresholds)
    return None if found is None else _first(problem, thresholds, given, found)


def explore_plans(
    problem: PlacementProblem, thresholds: CostVector, effort: Effort, *, first: bool, reorder: bool = True
) -> SearchResult:
    """Search the tree as the paper does, as long as the effort lasts."""
    layers = _layers(problem, thresholds, search_order(problem, thresholds, reorder))
    state = new_state(len(layers.tasks), problem.workers)
    front = _front(problem, 1 if first else 64)
    while True:
        seen = int(state.at[2])
        status = explore(layers, state, front, first, effort.allowed(_SLICE))
        effort.spend(int(state.at[2]) - seen)
        if status == FRONT_FULL:
            front = _front(problem, 2 * len(front.cost), front)
        elif status in {DONE, FOUND} or effort.spent:
            break
    _, _, seen, count, size, _ = state.at.tolist()
    workers = [worker for members in problem.classes for worker in members]
    plans = []
    for rows in front.plan[:size]:
        counts = np.zeros((len(problem.operators), problem.workers), dtype=np.int64)
        counts[:, workers] = rows.T
        plans.append(problem.plan(counts))
    plans.sort(key=preference)
    return SearchResult(count, tuple(plans), plans[0] if plans else None, seen, status == DONE, thresholds)


def preference(plan: Plan) -> tuple[float, ...]:
    """Sort key of plans, best first: the worst cost, their sum, cpu, io, net; costs within 1e-9 are equal."""
    cost = tuple(round(value, _DECIMALS) for value in plan.cost)
    return (max(cost), round(sum(plan.cost), _DECIMALS), *cost, *plan.counts.T.ravel().tolist())


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
    edges = []
    for (u, v, way), link in zip(problem.edges, problem.link_loads * scale[2], strict=True):
        earlier, later = sorted((layer_of[u], layer_of[v]))
        edges.append((later, way == "forward", earlier, layer_of[u] == later, link))
    edges.sort(key=lambda edge: edge[:2])
    last = [layer for layer, *_ in edges]
    shuffled = [layer + forward for layer, forward, *_ in edges]
    return Layers(
        np.array([problem.parallelism[operator] for operator in order], dtype=np.int64),
        np.ascontiguousarray((problem.loads * scale[:, None])[:2, list(order)]),
        np.searchsorted(last, np.arange(len(order) + 1)).astype(np.int64),
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
