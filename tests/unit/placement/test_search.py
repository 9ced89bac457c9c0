import pytest
from placement_oracle import chain, example_a, example_b

from workbench.errors import WorkbenchError
from workbench.placement import CostVector, PlacementProblem, count_within, search, trace_search
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


def test_operators_of_high_load_come_first_and_prune_earlier_under_thresholds():
    problem, thresholds = example_b((4, 6, 5, 8, 1), 4, 6), CostVector(0.1, 0.1, 0.7)
    assert 10 * search(problem, thresholds).nodes < search(problem, thresholds, reorder=False).nodes
    problem = example_b((4, 6, 5, 8, 1), 4, 6)
    assert search_order(problem, CostVector()) == (0, 1, 2, 3, 4)
    assert search_order(problem, CostVector(cpu=0.1)) == (3, 1, 2, 0, 4)
    assert search_order(problem, CostVector(net=0.1)) == (0, 2, 1, 3, 4)
    assert search_order(problem, CostVector(io=0.1)) == (3, 0, 1, 2, 4)


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


def test_a_search_out_of_time_says_so_and_plans_are_read_only():
    result = search(example_b((20, 36, 28, 40, 4), 8, 16), timeout_s=0.01)
    assert not result.exhausted
    assert result.nodes > 0
    with pytest.raises(ValueError, match="read-only"):
        search(example_a()).best.counts[0, 0] = 3


def figure_4():
    return PlacementProblem((2, 2, 4, 1), chain(2, 2, 4, 1), 3, 3, (1, 2, 3, 1), (0, 0, 1, 0), (1, 1, 1, 0))


def test_figure_4_s_tree_ends_in_16_plans():
    tree = trace_search(figure_4())
    assert sum(node.plan is not None for node in tree.walk()) == 16
    # the first layer separates the two sources or puts them together
    first = [node for node in tree.children if node.pruned is None]
    assert [(node.operator, node.worker, node.count) for node in first] == [("0", 0, 1), ("0", 0, 2)]


@pytest.mark.parametrize("thresholds", [None, CostVector(0.5, 0.4, 0.9), CostVector(0.2, 0, 0.5)])
@pytest.mark.parametrize("reorder", [False, True])
def test_the_tree_has_the_nodes_and_plans_of_the_search(thresholds, reorder):
    tree = trace_search(figure_4(), thresholds, reorder=reorder)
    result = search(figure_4(), thresholds, reorder=reorder)
    assert sum(node.plan is not None for node in tree.walk()) == result.count
    assert sum(node.pruned is None for node in tree.walk()) - 1 == result.nodes


def test_every_pruned_branch_says_why():
    problem = PlacementProblem((5, 2), chain(5, 2), 3, 4, (3, 1), (0, 0), (1, 0))
    tree = trace_search(problem, CostVector(cpu=0.8))
    reasons = {node.pruned for node in tree.walk() if node.pruned}
    assert "cpu cost 1 exceeds its threshold 0.8" in reasons
    assert "duplicate: worker 0 had the same tasks, the counts may be exchanged" in reasons
    assert "the later workers can take 0 to 2 tasks, not 4" in reasons
    assert all(not node.children and node.plan is None for node in tree.walk() if node.pruned)
    (only,) = trace_search(example_a(), CostVector(cpu=0, io=0)).children  # a layer without room
    assert (only.operator, only.worker) == ("1", None)
    assert only.pruned == "the workers can take 0 to 2 tasks, not 3"


def test_a_tree_too_large_to_show_is_refused():
    with pytest.raises(WorkbenchError, match="more than 100 nodes; trace a smaller problem, or set tighter thresholds"):
        trace_search(example_b((4, 6, 5, 8, 1), 4, 6), most_nodes=100)
