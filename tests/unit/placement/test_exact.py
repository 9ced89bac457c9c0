import numpy as np
import pytest
from placement_oracle import Counted, example_a, example_b
from refusals import refusals

from workbench.placement import PlacementProblem, optimal, search, stopping_when, tune_thresholds
from workbench.placement._effort import Effort
from workbench.placement._level import raise_level
from workbench.placement._pattern_search import _cover_first, instance
from workbench.simulation import Worker


@pytest.mark.parametrize(
    ("tasks", "workers", "slots", "gap", "value"),
    [
        ((4, 6, 5, 8, 1), 4, 6, 1e-6, 0.368333),
        ((6, 10, 8, 14, 2), 5, 8, 1e-6, 0.347619),
        ((10, 18, 14, 20, 2), 8, 8, 1e-6, 0.363591),
        ((40, 72, 56, 80, 8), 16, 16, 2e-3, None),
        ((144, 259, 202, 288, 29), 16, 64, 2e-3, None),
    ],
)
def test_example_b_comes_within_the_gap(tasks, workers, slots, gap, value):
    problem = example_b(tasks, workers, slots)
    plan = optimal(problem, gap=gap, objective="cost")
    assert 0 <= plan.gap <= gap
    assert plan.bound == pytest.approx(plan.cost.worst * (1 - plan.gap))
    assert plan.cost == problem.cost(plan.counts)
    if value is not None:
        assert plan.cost.worst == pytest.approx(value, abs=5e-7)


def test_the_answer_is_the_same_every_time():
    problem = example_b((18, 32, 25, 36, 4), 8, 16)
    first, second = optimal(problem), optimal(problem)
    assert np.array_equal(first.counts, second.counts)
    assert (first.bound, first.gap) == (second.bound, second.gap)


def test_out_of_time_the_bound_is_what_was_proven():
    problem = example_b((40, 72, 56, 80, 8), 16, 16)
    for objective in ("rate", "cost"):
        plan = optimal(problem, gap=0, timeout_s=1e-6, objective=objective)
        assert 0 <= plan.bound <= optimal(problem, gap=0.01, objective=objective).value <= plan.value
    level = raise_level(instance(problem, (1, 1, 1)), 1.0, Effort(0.0))
    assert level.bound <= plan.cost.worst


def test_asked_to_stop_a_search_ends_with_the_best_so_far():
    problem = example_b((40, 72, 56, 80, 8), 16, 16)
    with stopping_when(lambda: True):
        plan = optimal(problem, gap=0)
        every = search(problem)
        quick = optimal(problem, worker=Worker(4.0, 100.0, 100.0))
    assert 0 <= plan.bound <= plan.value
    assert problem.checked(plan.counts).sum() == problem.checked(quick.counts).sum() == problem.tasks
    assert quick.bound <= quick.value
    assert every.best is not None
    assert not every.exhausted
    assert search(example_a()).exhausted  # after it


test_bad_arguments_are_refused_with_what_is_allowed = refusals(
    lambda find, arguments: find(example_a(), **arguments),
    (optimal, {"gap": -0.1}, "gap is -0.1; it must be at least 0 and at most 1"),
    (optimal, {"timeout_s": -1}, r"timeout_s is -1; it must be a finite number above 0 \(seconds, or None for"),
    (optimal, {"objective": "disk"}, "The objective is 'disk'; use one of 'rate', 'cost'"),
    (search, {"timeout_s": 0}, r"timeout_s is 0; it must be a finite number above 0 \(seconds, or None"),
    (tune_thresholds, {"relaxation": 1.0}, r"relaxation is 1.0; it must be a finite number above 1 \(a factor\)"),
    (tune_thresholds, {"timeout_s": 0}, "timeout_s is 0; it must be a finite number above 0"),
)


def test_operators_that_cover_most_edges_come_first_and_each_edge_is_taken_a_few_times():
    problem = PlacementProblem((1,) * 6, [(0, 3), (1, 3), (2, 3), (3, 4), (0, 5), (4, 5)], 6, 1, *((1,) * 6,) * 3)
    assert _cover_first(problem) == [3, 5, 0, 1, 2, 4]
    count = 300
    problem = PlacementProblem((1,) * count, [(o, o + 1) for o in range(count - 1)], count, 1, *((1,) * count,) * 3)
    object.__setattr__(problem, "edges", Counted(problem.edges))
    assert sorted(_cover_first(problem)) == list(range(count))
    assert problem.topological_order == tuple(range(count))
    assert problem.edges.walks <= 5
