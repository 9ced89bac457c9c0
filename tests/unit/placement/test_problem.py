import math
from dataclasses import replace
from fractions import Fraction

import pytest
from placement_oracle import example_a, flow_of
from refusals import refusals

from workbench.dataflow import OperatorProfile
from workbench.errors import WorkbenchError
from workbench.placement import CostVector, PlacementProblem, Subtask


def small(**changes):
    """Two operators on two workers of two slots, with `changes`."""
    arguments = {
        "parallelism": (2, 1),
        "edges": [(0, 1)],
        "workers": 2,
        "slots": 2,
        "cpu": (1, 1),
        "io": (0, 0),
        "net": (1, 0),
    }
    return PlacementProblem(**{**arguments, **changes})


@pytest.mark.parametrize(
    ("counts", "loads", "costs"),
    [
        ([(2, 0), (1, 2), (0, 1)], ("14", "10", "46/3"), ("1/9", "1/3", "23/33")),
        ([(2, 0), (0, 3), (1, 0)], ("18", "15", "20"), ("1", "1", "10/11")),
        ([(1, 1), (2, 1), (0, 1)], ("16", "10", "22/3"), ("5/9", "1/3", "1/3")),
    ],
)
def test_example_a_costs_what_the_reference_says(counts, loads, costs):
    problem = example_a()
    assert problem.worker_loads(counts).max(axis=1) == pytest.approx([float(Fraction(load)) for load in loads])
    assert [*problem.cost(counts)] == pytest.approx([float(Fraction(cost)) for cost in costs], abs=1e-12)
    assert problem.ideal.tolist() == [13.5, 7.5, 0]
    assert (problem.ideal + problem.span).tolist() == [18, 15, 22]
    assert problem.link_loads.tolist() == pytest.approx([10 / 3, 2])


def test_names_and_positions_make_the_same_problem_whose_subtasks_are_listed_by_operator():
    named = PlacementProblem({"a": 2, "b": 1}, [("a", "b")], 2, 2, {"b": 1, "a": 2}, {"a": 0, "b": 0}, {"a": 1, "b": 0})
    assert named.operators == ("a", "b")
    assert named == small(cpu=(2, 1), operators=("a", "b"))
    assert replace(named, workers=3, speeds=None).operators == ("a", "b")
    problem = PlacementProblem({"map": 2, "sink": 1}, [("map", "sink")], 2, 2, (1, 1), (0, 0), (1, 0))
    assert problem.subtasks([(1, 1), (0, 1)]) == [Subtask("map", 0, 0), Subtask("map", 1, 1), Subtask("sink", 0, 1)]


def test_forward_pairs_are_local_first_and_between_unequal_parallelisms_shuffled_with_a_warning():
    with pytest.warns(UserWarning, match=r"Edge 0 -> 1 is forward, but 2 tasks cannot feed 1 one to one"):
        problem = small(edges=[(0, 1, "forward")])
    assert problem.edges[0].partitioning == "shuffle"
    problem = small(parallelism=(2, 2), edges=[(0, 1, "forward")], slots=4)
    assert problem.cost([(2, 0), (2, 0)]).net == 0
    assert problem.worker_loads([(2, 0), (1, 1)])[2].tolist() == [1, 0]


def test_where_all_plans_are_alike_the_cost_is_zero_and_the_largest_sums_are_costed():
    problem = PlacementProblem((6,), [], 3, 2, (0.1,), (0.3,), (0.7,))
    assert problem.cost([(2, 2, 2)]) == CostVector(0, 0, 0)
    large = small(parallelism=(2, 1), edges=[], cpu=(4e307, 1e307))
    assert large.cost([(2, 0), (0, 1)]).cpu == pytest.approx(1)


def test_loads_are_divided_by_the_speed_of_the_worker_and_the_canonical_form_is_within_a_class():
    problem = small(parallelism=(2, 1), edges=[], speeds=(1, 2))
    assert problem.ideal[0] == 1
    assert problem.cost([(0, 2), (1, 0)]).cpu == 0  # one task at speed 1, two at speed 2
    assert problem.cost([(2, 0), (0, 1)]).cpu == 1
    assert problem.classes == ((1,), (0,))
    problem = small(parallelism=(2, 1), workers=3, speeds=(1, 2, 1))
    assert problem.plan([(0, 1, 1), (1, 0, 0)]).counts.tolist() == [[1, 1, 0], [0, 0, 1]]


FLOW = flow_of(
    "q",
    {"people": "source", "bids": "source", "join": "join", "sink": "sink"},
    [("people", "join"), ("bids", "join"), ("join", "sink", "forward")],
)
PROFILES = {
    "people": OperatorProfile(0.001, 0, 50, 1),
    "bids": OperatorProfile(0.002, 0, 100, 0.5),
    "join": OperatorProfile(0.01, 200, 10, 0.1),
    "sink": OperatorProfile(0.001, 0, 0, 0),
}
HUGE = {name: OperatorProfile(1e300, 0, 0, 1) for name in PROFILES}
RATES = {"people": 100, "bids": 400}


def test_loads_are_unit_costs_times_rates_shared_by_the_tasks():
    tasks = {"people": 1, "bids": 2, "join": 4, "sink": 1}
    with pytest.warns(UserWarning, match="forward"):
        problem = PlacementProblem.from_dataflow(FLOW, PROFILES, RATES, 3, 4, parallelism=tasks)
    # the join sees 100 + 400 / 2 records/s, the sink a tenth of them
    assert problem.parallelism == (1, 2, 4, 1)
    assert problem.cpu == pytest.approx((0.1, 0.4, 0.75, 0.03))
    assert problem.io == pytest.approx((0, 0, 15000, 0))
    assert problem.net == pytest.approx((5000, 20000, 750, 0))
    assert [edge.upstream for edge in problem.edges] == [0, 1, 2]


def test_without_parallelism_every_task_stays_below_one_cpu_and_sources_without_it_run_elsewhere():
    with pytest.warns(UserWarning, match="forward"):
        problem = PlacementProblem.from_dataflow(FLOW, PROFILES, {"people": 100, "bids": 1000}, 3, 4)
    assert problem.parallelism == (1, 2, 6, 1)  # bids exactly two
    problem = PlacementProblem.from_dataflow(FLOW, PROFILES, RATES, 3, 4, parallelism={"join": 4, "sink": 4})
    assert problem.operators == ("join", "sink")
    assert problem.edges == ((0, 1, "forward"),)


def test_one_number_is_the_rate_of_the_only_source():
    one = flow_of("q", {"s": "source", "m": "map"}, [("s", "m")])
    profiles = {"s": PROFILES["people"], "m": PROFILES["join"]}
    assert PlacementProblem.from_dataflow(one, profiles, 500, 2, 4).parallelism == (1, 5)
    with pytest.raises(WorkbenchError, match=r"'q' has 2 sources \(people, bids\), but the rate is one number"):
        PlacementProblem.from_dataflow(FLOW, PROFILES, 500, 2, 4)


test_a_dataflow_that_cannot_be_placed_says_what_is_missing = refusals(
    lambda changes: PlacementProblem.from_dataflow(
        **{"dataflow": FLOW, "profiles": PROFILES, "rate": RATES, "workers": 3, "slots": 4} | changes
    ),
    ({"rate": {"people": 1}}, "Rates are given for people; the sources are people, bids"),
    ({"rate": {"people": 1, "bids": math.nan}}, "rate of source 'bids' is nan; it must be a finite number"),
    ({"profiles": {"people": PROFILES["people"]}}, "Operator 'join' of dataflow 'q' has no profile"),
    ({"parallelism": {"join": 2}}, "Operator 'sink' of dataflow 'q' has no parallelism; those given are join"),
    ({"parallelism": {"join": 2, "sink": 1, "typo": 3}}, "given for 'typo', no operator of dataflow 'q'; there"),
    ({"rate": {"people": 1e300, "bids": 1e300}, "profiles": HUGE}, "would use inf CPU seconds per second; lower"),
    ({"parallelism": {"join": 0, "sink": 1}}, "parallelism of 'join' is 0; it must be a whole number of"),
)


def test_queries_placed_together_are_one_graph_in_which_no_operator_is_lost():
    one = small(operators=("map", "sink"), workers=3)
    both = PlacementProblem.together({"q1": one, "q2": small(parallelism=(1, 1), cpu=(5, 2), workers=3)})
    assert both.operators == ("q1.map", "q1.sink", "q2.0", "q2.1")
    assert both.parallelism == (2, 1, 1, 1)
    assert [edge[:2] for edge in both.edges] == [(0, 1), (2, 3)]
    assert both.cpu == (1, 1, 5, 2)
    with pytest.raises(WorkbenchError, match=r"theirs differ \(q1: 3 x 2, q2: 2 x 2\)"):
        PlacementProblem.together({"q1": one, "q2": small()})
    with pytest.raises(WorkbenchError, match="no queries to place together"):
        PlacementProblem.together({})
    one, other = (small(operators=(name, "d"), slots=4) for name in ("b.c", "c"))
    with pytest.raises(WorkbenchError, match=r"two queries are both named 'a\.b\.c' .* rename one of the queries"):
        PlacementProblem.together({"a": one, "a.b": other})
    assert PlacementProblem.together({"a": one, "b": other}).tasks == 6
    assert small().with_parallelism({"1": 1, "0": 1}).cpu == (2, 1)


test_bad_problems_are_refused_with_what_is_allowed = refusals(
    lambda changes: small(**changes),
    ({"operators": ("a", "a")}, "Two operators are named 'a'; give every operator a name of its own"),
    ({"operators": ("a", "\ud800")}, r"operator name '\\ud800' has half a character"),
    ({"parallelism": {}, "cpu": {}, "io": {}, "net": {}}, "has no operators; give at least one"),
    ({"parallelism": (4, 1)}, "There are 5 tasks, but 2 workers of 2 slots cannot hold more than 4; add workers"),
    ({"edges": [(0, 2)]}, r"Edge \(0, 2\) names the unknown operator 2; the operators are 0, 1"),
    ({"edges": [(0, 1), (1, 0)]}, "The edges form a cycle among the operators 0, 1; a dataflow must be acyclic"),
    ({"edges": [(0, 1, "hash")]}, "partitioning 'hash'; use one of shuffle, forward"),
    ({"edges": [(0,)]}, r"Edge \(0,\) is not \(upstream, downstream\)"),
    ({"cpu": (-1, 1)}, r"cpu load of operator '0' is -1; it must be a finite number of at least 0"),
    ({"net": (1,)}, "net has 1 entries for 2 operators; give one for each"),
    ({"net": {"0": 1}}, "net is given for 0; the operators are 0, 1"),
    ({"workers": 0}, "workers is 0; it must be a whole number of at least 1"),
    ({"workers": 10**5000}, "workers is a number of thousands of digits; it must be at most 100,000"),
    ({"parallelism": 3}, "parallelism is 3; give a sequence of numbers"),
    ({"cpu": 1.0}, "cpu is 1.0; give a sequence of numbers, one for each"),
    ({"speeds": 2}, "speeds is 2; give a sequence of numbers"),
    ({"edges": [(0, 1.5)]}, r"Edge \(0, 1.5\) names the unknown operator 1.5"),
    ({"edges": [5]}, r"Edge 5 is not \(upstream, downstream\)"),
    ({"cpu": (1.5e308, 1.5e308)}, "add up to more than a number can hold; give loads and speeds in other units"),
    ({"speeds": (1e-310, 1)}, "add up to more than a number can hold"),
    ({"speeds": (1,)}, "1 speed for 2 workers; give one for each"),
    ({"speeds": (1, 0)}, "speed of worker 1 is 0; it must be a finite number above 0"),
)


test_another_parallelism_is_of_the_same_operators = refusals(
    lambda parallelism: small().with_parallelism(parallelism),
    ((1,), "parallelism has 1 entries for 2 operators"),
    ({"0": 1, "1": 1, "2": 1}, "parallelism is given for 0, 1, 2; the operators are 0, 1"),
    ((1, 0), "parallelism of '1' is 0"),
)


test_counts_that_are_no_plan_are_refused = refusals(
    lambda counts: small().cost(counts),
    ([(1, 1)], r"The counts have shape \(1, 2\); a plan has shape \(2, 2\): operators, workers"),
    ([(3, -1), (1, 0)], "negative or broken count"),
    ([(1.5, 0.5), (1, 0)], "negative or broken count"),
    ([(1, 0), (1, 0)], "places 1 task of operator '0'; it has 2"),
    ([(2, 0), (1, 0)], "puts 3 tasks on worker 0, which has 2 slots"),
)


def test_a_threshold_is_any_number_from_zero_on():
    assert [*CostVector(cpu=3)] == [3, math.inf, math.inf]
    assert CostVector(0.1, 0.2, 0.4).worst == 0.4
    assert CostVector(0.1, 0, 0).within(CostVector(0.1 - 1e-10, math.inf, 0))
    assert not CostVector(0.1, 0, 0).within(CostVector(0.1 - 1e-8, math.inf, 0))
    for value in (-0.1, math.nan):
        with pytest.raises(WorkbenchError, match=r"The io entry of a cost vector is .*; give a number from 0 on, or"):
            CostVector(0, value, 0)
