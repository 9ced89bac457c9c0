"""The highest rate against brute force, on workers of unequal speed."""

import numpy as np
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from placement_oracle import all_plans, problems

from workbench.placement import optimal, placed_rate, spread
from workbench.simulation import Worker

RATE = 100.0
WORKERS = st.builds(Worker, *[st.sampled_from((0.2, 1.0, 3.0, 16.0, np.inf))] * 3)


@examples(80)
@given(problem=problems(most_operators=3, most_workers=3, most_slots=3), worker=WORKERS)
def test_no_plan_of_all_is_faster(problem, worker):
    plans = [np.array(plan).T for plan in all_plans(problem)]
    rates = [placed_rate(problem, plan, RATE, worker).rate for plan in plans]
    best = max(rates)
    found = optimal(problem, 0, worker=worker)
    reached = placed_rate(problem, found.counts, RATE, worker).rate
    assert best / (1 + 1e-6) <= reached <= best * (1 + 1e-9)
    if found.of == "rate":
        assert RATE / found.value * (1 - 1e-6) <= reached
        assert best <= RATE / found.bound * (1 + 1e-9)
    tied = [plan for plan, rate in zip(plans, rates, strict=True) if rate >= best * (1 - 1e-9)]
    least = min(problem.bottleneck(plan)[0] for plan in tied)
    assert problem.bottleneck(found.counts)[0] <= least * (1 + 1e-5) + 1e-9
    several = spread(problem, RATE, worker, samples=3)
    assert several.proven
    assert best * (1 - 1e-9) <= several.best <= best * (1 + 1e-9)
