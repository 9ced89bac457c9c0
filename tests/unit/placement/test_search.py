import pytest
from placement_oracle import example_a, example_b

from workbench.placement import CostVector, count_within, search
from workbench.placement._search import search_order


@pytest.mark.parametrize("reorder", [False, True])
@pytest.mark.parametrize(
    ("thresholds", "plans"),
    [(None, 12_214), ((0.3, 0.3, 0.9), 1827), ((0.1, 0.1, 0.7), 20), ((0.05, 0.05, 0.6), 2), ((0.01, 0, 0.1), 0)],
)
def test_example_b_has_the_reference_s_plans_in_either_order(thresholds, plans, reorder):
    problem, limits = example_b((4, 6, 5, 8, 1), 4, 6), thresholds and CostVector(*thresholds)
    result = search(problem, limits, reorder=reorder)
    assert (result.count, result.exhausted) == (plans, True)
    assert count_within(problem, limits) == plans


def test_reordering_prunes_earlier_under_thresholds():
    problem, thresholds = example_b((4, 6, 5, 8, 1), 4, 6), CostVector(0.1, 0.1, 0.7)
    assert 10 * search(problem, thresholds).nodes < search(problem, thresholds, reorder=False).nodes


@pytest.mark.parametrize(
    ("tasks", "workers", "slots", "thresholds"),
    [
        ((6, 10, 8, 14, 2), 5, 8, (0.1, 0.1, 0.7)),
        ((20, 36, 28, 40, 4), 8, 16, (0.1, 0.1, 0.7)),
        ((40, 72, 56, 80, 8), 16, 16, (0.05, 0.05, 0.6)),
    ],
)
def test_the_first_plan_of_a_large_problem_takes_few_nodes(tasks, workers, slots, thresholds):
    result = search(example_b(tasks, workers, slots), CostVector(*thresholds), first=True)
    assert (result.count, result.exhausted) == (1, False)
    assert result.best.cost.within(CostVector(*thresholds))
    assert result.nodes < 200


def test_operators_of_high_load_in_the_limited_dimensions_come_first():
    problem = example_b((4, 6, 5, 8, 1), 4, 6)
    assert search_order(problem, CostVector()) == (0, 1, 2, 3, 4)
    assert search_order(problem, CostVector(cpu=0.1)) == (3, 1, 2, 0, 4)
    assert search_order(problem, CostVector(net=0.1)) == (0, 2, 1, 3, 4)
    assert search_order(problem, CostVector(io=0.1)) == (3, 0, 1, 2, 4)


def test_a_search_out_of_time_says_so():
    result = search(example_b((20, 36, 28, 40, 4), 8, 16), timeout_s=0.01)
    assert not result.exhausted
    assert result.nodes > 0


def test_plans_are_read_only():
    with pytest.raises(ValueError, match="read-only"):
        search(example_a()).best.counts[0, 0] = 3
