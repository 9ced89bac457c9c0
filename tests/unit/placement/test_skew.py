import pytest
from refusals import refusals

from workbench.errors import WorkbenchError
from workbench.placement import PlacementProblem, optimal, placement_groups


def query():
    """A source feeds four tasks, each forwarded to one of four sinks."""
    edges = [("source", "count"), ("count", "sink", "forward")]
    return PlacementProblem(
        {"source": 2, "count": 4, "sink": 4}, edges, 4, 3, cpu=(1, 10, 2), io=(0, 5, 0), net=(8, 4, 0)
    )


def test_tasks_of_about_equal_share_form_a_group_with_their_mean_load():
    groups = placement_groups(query(), {"count": [100, 10, 50, 95]}, tolerance=0.1)
    problem = groups.problem
    assert problem.operators == ("source", "count/1", "count/2", "count/3", "sink/1", "sink/2", "sink/3")
    assert problem.parallelism == (2, 2, 1, 1, 2, 1, 1)
    assert groups.members["count/1"] == ("count", (0, 3))
    assert groups.members["count/3"] == ("count", (1,))
    assert groups.members["source"] == ("source", (0, 1))
    # shares 97.5, 97.5, 50, 10 of 255 for four tasks of load 10 on average
    assert problem.cpu[1:4] == pytest.approx((10 * 97.5 * 4 / 255, 10 * 50 * 4 / 255, 10 * 10 * 4 / 255))
    assert sum(load * tasks for load, tasks in zip(problem.cpu, problem.parallelism, strict=True)) == pytest.approx(50)


def test_shuffles_reach_every_group_and_forward_edges_join_the_same_tasks():
    problem = placement_groups(query(), {"count": [3, 1, 1, 1]}).problem
    names = [(problem.operators[u], problem.operators[v], way) for u, v, way in problem.edges]
    assert names == [
        ("source", "count/1", "shuffle"),
        ("source", "count/2", "shuffle"),
        ("count/1", "sink/1", "forward"),
        ("count/2", "sink/2", "forward"),
    ]
    # every source task still has four links of a quarter of its output
    assert problem.link_loads[:2].tolist() == [2, 2]


def test_the_heavy_task_is_kept_apart_and_equal_ones_are_not():
    assert placement_groups(query(), {"count": [7, 7, 7, 7]}).problem == query()
    problem = placement_groups(query(), {"count": [6, 1, 1, 1]}).problem
    plan = optimal(problem, gap=0)
    heavy = plan.counts[problem.operators.index("count/1")].argmax()
    assert plan.counts[:, heavy].sum() - plan.counts[problem.operators.index("sink/1"), heavy] == 1


test_shares_that_do_not_fit_are_refused = refusals(
    lambda shares, tolerance=0.1: placement_groups(query(), shares, tolerance=tolerance),
    ({"join": [1]}, "unknown operator 'join'; the operators are source, count, sink"),
    ({"count": [1, 2]}, r"The 2 shares of operator 'count' are \[1, 2\]; give a finite number from 0 on for each"),
    ({"count": [0, 0, 0, 0]}, "not all 0"),
    ({"count": [1, -1, 1, 1]}, "give a finite number from 0 on"),
    ({"count": [0.5] * 2_000}, r"The 2,000 shares of operator 'count' are \[[0-9., ]{1,60}\.\.\.; give a finite"),
    ({"count": [1, 2, 3, 4], "sink": [4, 3, 2, 1]}, "'count' and 'sink' are joined by a forward edge but given"),
    ({"count": [1, 2, 3, 4]}, 1, "tolerance is 1; it must be at least 0 and below 1"),
)


@pytest.mark.parametrize("names", [("a", "a/1"), ("a/1", "a")])
def test_an_operator_named_like_a_group_is_refused(names):
    tasks = {name: 2 if name == "a" else 3 for name in names}
    problem = PlacementProblem(tasks, [], 3, 2, *[dict.fromkeys(names, 1)] * 3)
    with pytest.raises(WorkbenchError, match=f"Operators '{names[0]}' and '{names[1]}' would both be called 'a/1'"):
        placement_groups(problem, {"a": [3, 1]})
    assert placement_groups(problem, {"a": [1, 1]}).problem.operators == names
