"""The highest rate against brute force, on workers of unequal speed."""

import numpy as np
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from placement_oracle import all_plans

from workbench.placement import PlacementProblem, optimal, placed_rate, spread
from workbench.simulation import Worker

RATE = 100.0
LOAD = st.sampled_from((0.0, 0.1, 0.15, 0.4, 1.0))


@st.composite
def cases(draw):
    tasks = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    workers, slots = draw(st.integers(2, 3)), draw(st.integers(1, 3))
    while sum(tasks) > workers * slots:
        slots += 1
    edges = [(u, v) for u in range(len(tasks)) for v in range(u + 1, len(tasks)) if draw(st.booleans())]
    cpu, io, net = (draw(st.lists(LOAD, min_size=len(tasks), max_size=len(tasks))) for _ in range(3))
    speeds = draw(st.lists(st.sampled_from((0.5, 1.0, 2.0, 4.0)), min_size=workers, max_size=workers))
    worker = Worker(*(draw(st.sampled_from((0.2, 1.0, 3.0, 16.0, np.inf))) for _ in range(3)))
    return PlacementProblem(tasks, edges, workers, slots, cpu, io, net, speeds), worker


@examples(80)
@given(cases())
def test_no_plan_of_all_is_faster(case):
    problem, worker = case
    best = max(placed_rate(problem, np.array(plan).T, RATE, worker).rate for plan in all_plans(problem))
    found = optimal(problem, 0, worker=worker)
    reached = placed_rate(problem, found.counts, RATE, worker).rate
    assert best / (1 + 1e-6) <= reached <= best * (1 + 1e-9)
    if found.of == "rate":
        assert RATE / found.value * (1 - 1e-6) <= reached
        assert best <= RATE / found.bound * (1 + 1e-9)
    plans = [np.array(plan).T for plan in all_plans(problem)]
    tied = [plan for plan in plans if placed_rate(problem, plan, RATE, worker).rate >= best * (1 - 1e-9)]
    loads = problem.worker_loads(found.counts)
    least = min((problem.worker_loads(plan) / problem.speeds)[0].max() for plan in tied)
    assert (loads / problem.speeds)[0].max() <= least * (1 + 1e-5) + 1e-9
    several = spread(problem, RATE, worker, samples=3)
    assert several.proven
    assert best * (1 - 1e-9) <= several.best <= best * (1 + 1e-9)
