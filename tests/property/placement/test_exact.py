"""The optimum agrees with enumeration, its bound with the linear programme over all patterns."""

import math

import numpy as np
from examples import examples
from hypothesis import assume, example, given
from hypothesis import strategies as st
from placement_oracle import all_plans, exact_cost, problems
from scipy.optimize import linprog

from workbench.placement import PlacementProblem, optimal
from workbench.placement._effort import Effort
from workbench.placement._level import Pool, plan_below, raise_level
from workbench.placement._pattern_search import ALONE, CHEAPEST, FARTHEST, TWO, find_pattern, instance, pattern_cost
from workbench.placement.counting import patterns

DIMENSIONS = {
    "cost": (True, True, True),
    "cpu": (True, False, False),
    "io": (False, True, False),
    "net": (False, False, True),
}


def value(costs, objective="cost"):
    return max(float(cost) for cost, counts in zip(costs, DIMENSIONS[objective], strict=True) if counts)


@examples(200)
@given(
    problem=problems(),
    gap=st.sampled_from([0, 0, 0, 1e-3, 0.1, 0.5]),
    objective=st.sampled_from(list(DIMENSIONS)),
    part=st.sampled_from([0.0, 0.5, 0.9, 1.0, 1.2]),
)
@example(PlacementProblem((4, 4), [], 4, 3, (3, 1), (5, 1), (1, 3)), 0, "io", 0.0)  # whose least cost rounds to 1e-16
def test_what_is_optimal_is_the_least_of_all_plans(problem, gap, objective, part):
    plans = all_plans(problem)
    costs = [exact_cost(problem, plan) for plan in plans]
    is_the_least_and_a_gap_is_never_understated(problem, min(map(value, costs)), gap)
    has_the_least_loads_in_turn(problem, plans)
    is_found_by_branching_or_proven_absent(problem, objective, min(value(cost, objective) for cost in costs), part)


def is_the_least_and_a_gap_is_never_understated(problem, best, gap):
    plan = optimal(problem, gap=gap, objective="cost")
    assert plan.cost == problem.cost(plan.counts)
    assert plan.bound <= best + 1e-9 <= plan.cost.worst + 2e-9
    if gap:
        assert plan.gap <= gap
    else:
        assert abs(plan.cost.worst - best) <= 1e-8
        assert best - plan.bound <= 1e-8


def has_the_least_loads_in_turn(problem, plans):
    """Without capacities: in CPU first, then in state access, then in network; bounded is the first that differs."""
    tolerance = 1e-5 * (problem.ideal + problem.span)
    plan = optimal(problem, gap=0)
    left = [problem.bottleneck(np.array(one).T) for one in plans]
    for dimension, name in enumerate(("cpu", "io", "net")):
        least = min(loads[dimension] for loads in left)
        assert problem.bottleneck(plan.counts)[dimension] <= least + tolerance[dimension]
        if plan.of == name:
            assert plan.bound <= least + 1e-9 * (1 + least)
            assert plan.value - plan.bound <= tolerance[dimension]
        left = [loads for loads in left if loads[dimension] <= least + tolerance[dimension]]


def is_found_by_branching_or_proven_absent(problem, objective, least, part):
    limit = least * part + 1e-7 * (part == 1.0)
    given = instance(problem, DIMENSIONS[objective])
    plan, proven = plan_below(given, limit, Pool(), Effort(math.inf))
    if least <= limit:
        assert value(problem.cost(given.counts(plan)), objective) <= limit + 1e-9
    else:
        assert plan is None
        assert proven


def linear_programme(problem, dimensions):
    """Least level at which patterns average to the tasks, by HiGHS over all patterns."""
    rows = patterns(problem.parallelism, problem.slots)
    loads = problem.loads_with(rows.T)
    speeds = [problem.speeds[members[0]] for members in problem.classes]
    costs = [problem.relative(loads / speed)[list(dimensions)].max(axis=0) for speed in speeds]
    sizes = [len(members) for members in problem.classes]

    def feasible(level):
        usable = [np.flatnonzero(cost <= level + 1e-9) for cost in costs]
        columns = sum(map(len, usable))
        if not columns:
            return False
        equal = np.zeros((len(problem.parallelism) + len(sizes), columns))
        first = 0
        for index, kept in enumerate(usable):
            equal[: len(problem.parallelism), first : first + len(kept)] = rows[kept].T
            equal[len(problem.parallelism) + index, first : first + len(kept)] = 1
            first += len(kept)
        return linprog(np.zeros(columns), A_eq=equal, b_eq=[*problem.parallelism, *sizes]).status == 0

    levels = np.unique(np.concatenate([[0.0], *(np.round(cost, 9) for cost in costs)]))
    levels = levels[levels >= 0]
    low, high = 0, len(levels) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if feasible(levels[middle]) else (middle + 1, high)
    return levels[low]


@examples(60)
@given(problem=problems(), objective=st.sampled_from(list(DIMENSIONS)))
def test_the_level_is_the_optimum_of_the_linear_programme(problem, objective):
    level = raise_level(instance(problem, DIMENSIONS[objective]), 2.0, Effort(math.inf))
    assert abs(level.bound - linear_programme(problem, DIMENSIONS[objective])) <= 1e-6


@examples(100)
@given(problem=problems(speeds=False), data=st.data())
def test_patterns_are_found_as_by_enumeration(problem, data):
    found_by = instance(problem, data.draw(st.sampled_from(list(DIMENSIONS.values()))))
    graph, speeds = found_by.graph, np.array(data.draw(st.sampled_from([(1.0, 1.0), (2.0, 1.0)])))
    numbers = st.integers(-3, 3)
    gain = np.array(data.draw(st.lists(numbers, min_size=len(graph.tasks), max_size=len(graph.tasks))), dtype=float)
    reach, cost = float(data.draw(st.integers(-6, 6))), data.draw(st.sampled_from([0.1, 0.4, 0.8, 5.0]))
    share, goal = data.draw(st.sampled_from([ALONE, TWO])), data.draw(st.sampled_from([CHEAPEST, FARTHEST]))
    total = np.array([data.draw(st.integers(0, int(tasks))) for tasks in graph.tasks], dtype=np.int64)
    low = np.array([data.draw(st.integers(0, int(most))) for most in total], dtype=np.int64)
    low *= share == ALONE and data.draw(st.booleans())
    assume(share == ALONE or total.sum() >= 2 * graph.least)

    def costs_of(pattern):
        here = pattern_cost(graph, pattern, speeds[0])
        return max(here, pattern_cost(graph, total - pattern, speeds[1])) if share == TWO else here

    def fits(pattern):
        used, rest = pattern.sum(), (total - pattern).sum()
        return graph.least <= used and (share == ALONE or graph.least <= rest <= graph.slots)

    rows = [row for row in patterns(total.tolist(), graph.slots) if fits(row) and (row >= low).all()]
    rows = [row for row in rows if gain @ row >= reach and costs_of(row) <= cost]
    found = np.zeros(len(total), dtype=np.int64)
    target = math.inf if goal == FARTHEST else -math.inf  # never reached
    limits = (cost, target)
    best_gain, best_cost, _ = find_pattern(graph, speeds, low, total, share, gain, reach, goal, *limits, found, 10**6)
    if not rows:
        assert best_gain == -np.inf
        return
    assert any(np.array_equal(found, row) for row in rows)
    assert (best_gain, best_cost) == (gain @ found, costs_of(found))
    if goal == FARTHEST:
        assert best_gain >= max(gain @ row for row in rows) - 1e-8
    else:
        assert best_cost <= min(map(costs_of, rows)) + 1e-8
