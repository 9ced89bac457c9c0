"""Contention-aware placement search: CAPS (CAPSys, sections 4.3 and 4.4).

The search meets every plan once, up to exchanging identical workers and tasks, and leaves a branch as soon as a
worker exceeds a threshold (Equation 10). It keeps the plans that no other dominates, never all of them.

Deviations from the paper: plans are ordered by Pareto dominance, as the strictly best plan of Equation 3 need not
exist. One search runs on one core, where under thresholds it takes milliseconds; `tune_range` runs several at once.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import takewhile
from operator import itemgetter

import numpy as np

from workbench.arrays import Ints
from workbench.checks import SLACK
from workbench.errors import WorkbenchError
from workbench.placement._effort import Effort, deadline
from workbench.placement._level import Pool, dealt, plan_below, raise_level, rounded
from workbench.placement._pattern_search import Instance, improve, instance
from workbench.placement._tree import DONE, FOUND, FRONT_FULL, Front, Layers, State, explore
from workbench.placement.problem import DIMENSIONS, CostVector, PlacementProblem, Plan

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
    for nodes, candidates in ((few, _by_exchange), (_MANY, _by_bound)):
        result = explore_plans(problem, thresholds, Effort(effort.until, nodes), first=True, reorder=reorder)
        if result.count or result.exhausted or effort.spent:
            return result
        # the plans of cost at most 1 are those within the thresholds; thresholds near 0 are loosened
        given = instance(problem, [1 / max(limit, _TIGHT) for limit in thresholds])
        for candidate in candidates(given, effort):
            if candidate is None:
                return replace(result, exhausted=True)
            plan = problem.plan(given.counts(candidate))
            if plan.cost.within(thresholds):
                return replace(result, count=1, pareto=(plan,), best=plan)
    return explore_plans(problem, thresholds, effort, first=True, reorder=reorder)


def _by_exchange(given: Instance, _: Effort) -> Iterator[Ints | None]:
    """Improve the plan distributed evenly."""
    yield _improved(given, dealt(given))


def _by_bound(given: Instance, effort: Effort) -> Iterator[Ints | None]:
    """Round the solution of the linear programme over patterns to plans, then branch; None: there provably is none."""
    loosest = 1 + 2 * SLACK / _TIGHT
    pool = Pool()
    level = raise_level(given, 1 / _TIGHT, effort.part(0.5), enough=loosest, pool=pool)
    if level.bound > loosest:
        yield None
        return
    for plan in rounded(given, level, 1.0, effort):
        yield _improved(given, plan)
    found, none = plan_below(given, loosest, pool, Effort(effort.until, _BRANCHING))
    if none or found is not None:
        yield found


def _improved(given: Instance, plan: Ints) -> Ints:
    improve(given.graph, given.worker_speeds, plan, 1.0, _SEED, _FEW)
    return plan


def explore_plans(
    problem: PlacementProblem, thresholds: CostVector, effort: Effort, *, first: bool, reorder: bool = True
) -> SearchResult:
    """Search the tree as the paper does, as long as the effort lasts."""
    layers = _layers(problem, thresholds, search_order(problem, thresholds, reorder))
    operators, workers, capacity = len(problem.operators), problem.workers, 1 if first else 64
    grid, at = np.zeros((10, operators, workers + 1), dtype=np.int64), np.zeros(6, dtype=np.int64)
    state = State(grid, np.zeros((5, operators, workers)), np.zeros((workers + 1, 3)), at)
    front = Front(np.zeros((capacity, 3)), np.zeros((capacity, workers, operators), dtype=np.int64))
    while True:
        seen = int(at[2])
        status = explore(layers, state, front, first, effort.allowed(_SLICE))
        effort.nodes -= int(at[2]) - seen
        if status == FRONT_FULL:
            front = Front(*(np.concatenate([kept, np.zeros_like(kept)]) for kept in front))
        elif status in {DONE, FOUND} or effort.spent:
            break
    _, _, seen, count, size, _ = at.tolist()
    places = np.argsort(problem.fastest_first)
    found = sorted((problem.plan(rows[places].T) for rows in front.plan[:size]), key=preference)
    return SearchResult(count, tuple(found), found[0] if found else None, seen, status == DONE, thresholds)


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


@dataclass(frozen=True)
class SearchNode:
    """One choice of the search, for display (CAPSys, Figure 4): how many tasks of an operator a worker gets."""

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
    """Search all plans of a small problem within `thresholds`, and keep the tree, of which this is the root.

    It is the search that ``search`` runs compiled, spelt out: its unpruned nodes are those counted there. A layer's
    nodes follow each other worker by worker; the next layer begins below its last worker.
    """
    tracer = _Tracer(problem, thresholds or CostVector(), reorder, most_nodes)
    return SearchNode(children=tracer.layer(0))


# of a worker in a layer: least and most tasks that fit; whether it has the speed and the tasks of the worker before it
_Range = tuple[int, int, bool]


class _Tracer:
    """The partial plan at a point of the recursion; workers by class, the fastest first."""

    def __init__(self, problem: PlacementProblem, thresholds: CostVector, reorder: bool, most_nodes: int) -> None:
        self.problem, self.most_nodes, self.nodes = problem, most_nodes, 0
        self.limits = np.array([*thresholds])
        self.order = search_order(problem, thresholds, reorder)
        self.workers = problem.fastest_first
        self.counts = np.zeros((len(problem.operators), problem.workers), dtype=np.int64)

    def layer(self, depth: int) -> tuple[SearchNode, ...]:
        """Choices for all workers of one layer, or the plan if there is none left."""
        operator = self.order[depth]
        tasks = self.problem.parallelism[operator]
        ranges: list[_Range] = []
        before = None
        for worker in self.workers:
            most = min(tasks, self._free(worker))
            fitting = [count for count in range(most + 1) if self._violation(depth, worker, count) is None]
            if not fitting:
                return (self._kept(operator, pruned=f"no number of tasks fits on worker {worker}"),)
            this = self.problem.speeds[worker], self.counts[:, worker].tolist()
            ranges.append((min(fitting), max(fitting), this == before))
            before = this
        least, most = sum(low for low, _, _ in ranges), sum(high for _, high, _ in ranges)
        if not least <= tasks <= most:
            return (self._kept(operator, pruned=f"the workers can take {least:,} to {most:,} tasks, not {tasks:,}"),)
        return self._inner(depth, 0, tasks, ranges)

    def _inner(self, depth: int, place: int, left: int, ranges: list[_Range]) -> tuple[SearchNode, ...]:
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

    def _excluded(self, depth: int, place: int, left: int, count: int, ranges: list[_Range]) -> str | None:
        """Return why a count that fits the worker is not chosen; None if it is."""
        if ranges[place][2] and count > self.counts[self.order[depth], self.workers[place - 1]]:
            return f"duplicate: worker {self.workers[place - 1]} had the same tasks, the counts may be exchanged"
        later = ranges[place + 1 :]
        twins = len(list(takewhile(itemgetter(2), later)))
        least = sum(low for low, _, _ in later)
        most = sum(min(count, high) if at < twins else high for at, (_, high, _) in enumerate(later))
        if not least <= left - count <= most:
            return f"the later workers can take {least:,} to {most:,} tasks, not {left - count:,}"
        return None

    def _violation(self, depth: int, worker: int, count: int) -> str | None:
        """Return the threshold that a worker exceeds with `count` tasks of this layer (Equation 10); None if none."""
        mine = self.counts[:, worker].copy()
        mine[self.order[depth]] = count
        loads = self.problem.loads_with(mine, set(self.order[: depth + 1]))
        costs = self.problem.relative(loads / self.problem.speeds[worker])
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
