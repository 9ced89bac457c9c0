"""Counting and searching agree with enumeration in exact rationals."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from placement_oracle import all_plans, exact_cost, front, problems

from workbench.placement import CostVector, count_plans, count_within, search


def as_tuple(plan):
    return tuple(map(tuple, plan.counts.T.tolist()))


def fastest_first(problem, plan):
    return [plan[worker] for members in problem.classes for worker in members]


@examples(150)
@given(problem=problems(), data=st.data(), reorder=st.booleans())
def test_a_search_meets_each_plan_within_the_thresholds_once(problem, data, reorder):
    plans = all_plans(problem)
    alike = plans if len(problem.classes) == 1 else all_plans(replace(problem, speeds=None))
    assert count_plans(problem.parallelism, problem.workers, problem.slots) == len(alike)
    costs = [exact_cost(problem, plan) for plan in plans]
    for plan, exact in zip(plans[:20], costs, strict=False):
        cost = problem.cost(np.array(plan).T)
        assert np.allclose([*cost], [float(value) for value in exact], atol=1e-12, rtol=0)
        assert 0 <= cost.worst <= 1 + 1e-12
    levels = data.draw(st.sampled_from(costs))  # thresholds that some plan meets exactly
    off = data.draw(st.tuples(st.booleans(), st.booleans(), st.booleans()))
    slack = Fraction(1, 10**9)
    within = [
        i for i, cost in enumerate(costs) if all(o or c <= t + slack for c, t, o in zip(cost, levels, off, strict=True))
    ]
    thresholds = CostVector(*(np.inf if o else float(t) for t, o in zip(levels, off, strict=True)))
    result = search(problem, thresholds, reorder=reorder)
    assert result.exhausted
    assert result.count == len(within) == count_within(problem, thresholds)
    # one plan for each cost of the front: the largest
    best = {}
    for i in within:
        best[costs[i]] = max(best.get(costs[i], plans[i]), plans[i], key=lambda plan: fastest_first(problem, plan))
    expected = [list(best)[i] for i in front(list(best))]
    expected.sort(key=lambda cost: (max(cost), sum(cost), cost))
    assert [as_tuple(plan) for plan in result.pareto] == [best[cost] for cost in expected]
    assert result.best == result.pareto[0]


@examples(100)
@given(problem=problems(), data=st.data())
def test_the_first_plan_is_within_the_thresholds_or_there_is_none(problem, data):
    thresholds = CostVector(*(data.draw(st.sampled_from([0, 0.1, 0.3, 0.6, np.inf])) for _ in range(3)))
    result = search(problem, thresholds, first=True)
    plans = count_within(problem, thresholds)
    assert result.count == min(1, plans)
    assert result.exhausted == (plans == 0)
    assert result.best is None or problem.cost(result.best.counts).within(thresholds)
