import json
import math
from dataclasses import replace

import pytest
from example_measurement import example_measurement
from placement_file import PROBLEM, written
from refusals import refusals

from workbench import units
from workbench.cli import main
from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.journal import Journal
from workbench.measuring import CapacityEstimator
from workbench.placement import measured_query, place, read_placement_input
from workbench.records import InstanceType, Price
from workbench.simulation import preset
from workbench.study import Study, run_study, write_planned
from workbench.testbed import FluidTestbed


def test_a_problem_file_is_the_problem_it_describes_scaled_to_another_rate_and_cluster(tmp_path):
    given = read_placement_input(written(tmp_path, PROBLEM))
    problem = given.problem
    assert problem.operators == ("A", "B", "C")
    assert problem.parallelism == (2, 3, 1)
    assert (problem.cpu, problem.io, problem.net) == ((4, 6, 1), (0, 5, 0), (10, 2, 0))
    assert problem.edges == ((0, 1, "shuffle"), (1, 2, "shuffle"))
    assert (given.rate, given.worker.cpus, given.worker.io_bytes_per_s) == (100, 2, math.inf)
    assert tuple(problem.cost([[1, 1], [2, 1], [0, 1]])) == pytest.approx((5 / 9, 1 / 3, 1 / 3))  # Example A
    given = read_placement_input(written(tmp_path, PROBLEM), rate=50, workers=6, slots=1, speeds=[2, 1, 1, 1, 1, 1])
    assert given.problem.cpu == (2, 3, 0.5)
    assert (given.problem.workers, given.problem.slots, given.problem.speeds[0]) == (6, 1, 2)
    assert given.rate == 50


def test_yaml_is_read_as_well_and_several_queries_are_one_graph(tmp_path):
    text = "workers: 1\nslots: 2\noperators:\n  map: {tasks: 2, cpu: 5e-1, io: 2e7}\n"
    problem = read_placement_input(written(tmp_path, text, "problem.yaml")).problem
    assert (problem.cpu, problem.io) == ((0.5,), (2e7,))
    with pytest.raises(WorkbenchError, match=r"nowhere.json cannot be read: No such file"):
        read_placement_input(tmp_path / "nowhere.json")
    query = {key: PROBLEM[key] for key in ("operators", "edges")}
    given = read_placement_input(written(tmp_path, {"workers": 4, "slots": 3, "queries": {"x": query, "y": query}}))
    assert given.problem.operators == ("x.A", "x.B", "x.C", "y.A", "y.B", "y.C")
    assert given.problem.tasks == 12
    assert given.problem.edges[2] == (3, 4, "shuffle")
    assert given.rate is None


def without(*keys, **changed):
    return {key: value for key, value in (PROBLEM | changed).items() if key not in keys}


def operators(**changed):
    return without(operators=PROBLEM["operators"] | changed)


test_bad_files_are_named = refusals(
    lambda tmp_path, document: read_placement_input(written(tmp_path, document)),
    ("{", r"cannot be read as JSON or YAML"),
    ("null", r"problem.json is empty; it must be an object with operators"),
    ('{"workers": 1, "workers": 2}', r"problem.json cannot be read as .* key 'workers' appears twice; .* Correct"),
    (without(operators={"\ud800": {"tasks": 1}}, edges=[]), r"operator name '\\ud800' has half a character"),
    ("[" * 100_000, r"it is nested more than 64 deep"),
    (without("workers"), r"lacks 'workers'; add it"),
    (without("operators"), r"lacks 'operators'; add it"),
    (without(workers=2.5), r"workers is 2.5; it must be a whole number"),
    (without(rate=0), r"rate is 0; it must be a finite number above 0"),
    (operators(C={"tasks": 1, "cpu": 1e40}), r"cpu of operator 'C' is 1e\+40; it must be a number of at most"),
    (without(edges=[["A"] * 500]), r"Edge .{60,80}\.\.\. is not \(upstream"),
    (without(worker={"disk": 3}), r"unknown key 'disk' of the worker; known are cpus, io, net"),
    (without(speed=[1, 1]), r"unknown key 'speed'; known are edges, operators"),
    (without(speeds=[1, "x"]), r"speed of worker 1 is 'x'; it must be a finite number above 0"),
    (without(edges=[["A", "Z"]]), r"names the unknown operator 'Z'; the operators are A, B, C"),
    (without(edges=[["A", 1]]), r"it must be a list such as"),
    (without(operators={"A": 3}), r"operator 'A' is 3; it must be like"),
    (operators(C={"cpu": 1}), r"lacks 'tasks' of operator 'C'; add it"),
    (operators(C={"tasks": 1, "cpu": "1"}), r"cpu of operator 'C' is '1'; it must be a number"),
    (without("operators", "edges", queries={}), r"no queries to place together"),
    (without("operators", "edges", queries={"x": 1}), r"1 of query 'x' is not an object with operators"),
    ({"estimate": {"observation": None}, "budget": {}}, r"has version None; this workbench reads version 2"),
    ({"plans": [], "runs": []}, r"holds no plans \('version'\); make them with workbench plan"),
    fixture="tmp_path",
)


@pytest.mark.parametrize("rate", [math.nan, 0, 10**400, 1e300])
def test_the_rate_is_named_where_it_is_wrong(tmp_path, rate):
    with pytest.raises(WorkbenchError, match=r"^The rate to place for is .* above 0 and at most 1e\+15 \(records/s"):
        read_placement_input(written(tmp_path, PROBLEM), rate=rate)


def test_a_plan_is_placed_on_its_own_workers_and_executors_that_share_one_on_it(planned, tmp_path):
    made, path = planned
    one, problem = made.plans[-1], read_placement_input(path).problem
    assert (problem.workers, problem.slots) == (one.executors, one.executor.slots)
    assert sum(problem.parallelism) == one.budget.slots
    slots = 2 * math.ceil(one.budget.slots / 2)
    workers = math.ceil(slots / 6)
    instance = InstanceType("m.large", "a", "b", 8.0, 65_536.0, 0.1, "USD", "c", "2026-01-01")
    price = Price(instance, workers, 6, 0.1 * workers, 6 * workers - slots)
    whole = replace(one, executors=slots // 2, executor_slots=2, price=price)
    write_planned(replace(made, plans=(whole,)), tmp_path / "p.json")
    problem = read_placement_input(tmp_path / "p.json").problem
    assert (problem.workers, problem.slots) == (workers, 2 * math.ceil(slots / 2 / workers))
    assert workers < whole.executors


@pytest.fixture
def measured(tmp_path):
    example_measurement().to_json(tmp_path / "measured.json")
    return json.loads((tmp_path / "measured.json").read_text())


def test_a_measurement_gives_unit_costs(measured, tmp_path):
    measurement, path = example_measurement(), written(tmp_path, measured)
    given = read_placement_input(path, workers=2, slots=4, rate=10_000)
    seen = {one.operator: one for one in measurement.estimate.observation.operators}
    window = seen["2 window aggregate"]
    problem = given.problem
    assert problem.operators == tuple(seen)  # a chain, the source apart
    assert problem.edges == ((0, 1, "shuffle"), (1, 2, "shuffle"))
    total = problem.cpu[1] * problem.parallelism[1]
    ratio = window.records_in / measurement.estimate.observation.consumed_records
    assert total == pytest.approx(10_000 * ratio * window.cpu_s / window.records_in, rel=1e-3)
    assert max(problem.cpu) <= 1  # fewest tasks that keep below a core
    assert given.worker.cpus == pytest.approx(4 * measurement.budget.profile.cpus)
    with pytest.raises(WorkbenchError, match=r"says nothing of the workers; .* and slots \(workers, slots\)\."):
        read_placement_input(path)


@pytest.fixture(scope="module")
def simulated():
    testbed = FluidTestbed(seed=1)
    with testbed.deploy(preset("q8"), Budget(9, SlotProfile(1.0, 2048))) as run:
        return CapacityEstimator(clock=testbed.clock).estimate(run)


def test_a_simulated_query_keeps_its_graph_and_other_edges_can_be_said(simulated):
    measured = measured_query("q8", simulated.observation.operators)
    assert measured.dataflow is preset("q8").dataflow
    true = preset("q8").operators["filter persons"].profile
    assert measured.profiles["filter persons"].selectivity == pytest.approx(true.selectivity, rel=0.05)
    assert len(measured.profiles) == 9
    chosen = list(simulated.observation.operators)[:3]
    a, b, c = (one.operator for one in chosen)
    measured = measured_query("mine", chosen, [(a, c), (b, c)])
    edges = {(edge.upstream, edge.downstream) for edge in measured.dataflow.edges}
    assert edges == {("source", a), ("source", b), (a, c), (b, c)}


def test_edges_that_were_observed_are_those_of_the_problem(measured, tmp_path):
    seen = measured["estimate"]["observation"]
    first, *others = (one["operator"] for one in seen["operators"])
    seen["edges"] = [[first, name] for name in others]
    problem = read_placement_input(written(tmp_path, measured), workers=4, slots=8).problem
    joins = {(problem.operators[u], problem.operators[v]) for u, v, _ in problem.edges}
    assert joins == {(first, name) for name in problem.operators if name != first}


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("planned")
    study = Study("nexmark:q8", (2e6, 4e6), (9, 12, 16), (2048,), testbed="fluid", slot_cpus=1.0, most_runs=4)
    made = run_study(study, Journal(folder / "journal.jsonl"))
    write_planned(made, folder / "plans.json")
    return made, folder / "plans.json"


@pytest.fixture
def document(planned):
    return json.loads(planned[1].read_text(encoding="utf-8"))


def test_an_operator_that_is_none_is_named(measured, tmp_path):
    measured["estimate"]["observation"]["operators"] = [{}]
    with pytest.raises(WorkbenchError, match=r"cannot be read: .*operators"):
        read_placement_input(written(tmp_path, measured), workers=2, slots=4)
    measured["estimate"]["observation"] = None
    with pytest.raises(WorkbenchError, match="sustained no rate, so its operators' costs are unknown; measure again"):
        read_placement_input(written(tmp_path, measured), workers=2, slots=4)


def test_plans_without_what_a_placement_needs_are_refused(document, tmp_path):
    for empty, message in (
        ("plans", r"has no plans, so there is nothing to place; plan again"),
        ("runs", r"has no run that sustained a rate, so no costs are known; plan again"),
    ):
        with pytest.raises(WorkbenchError, match=message):
            read_placement_input(written(tmp_path, document | {empty: []}), workers=9, slots=16)
    document["plans"][-1]["allocation"]["tasks"]["typo"] = 3
    with pytest.raises(WorkbenchError, match="parallelism is given for 'typo', no operator of dataflow"):
        read_placement_input(written(tmp_path, document), workers=9, slots=16)


def test_a_plan_is_placed_as_it_was_allocated(planned):
    made, path = planned
    for plan in made.plans:
        workers = -(-plan.budget.slots // 4)
        given = read_placement_input(path, workers=workers, slots=4, rate=plan.rate)
        problem = given.problem
        assert dict(zip(problem.operators, problem.parallelism, strict=True)) == dict(plan.allocation.tasks)
        assert given.rate == plan.rate
        assert given.worker.cpus == 4
        assert max(problem.cpu) == pytest.approx(plan.rate / plan.expected_rate)
        assert len(problem.edges) == 9 - 1  # the graph of q8 without its source
    with pytest.raises(WorkbenchError, match=r"no plan for 5 records/s; .* its rates \(records/s\): 2e\+06, 4e\+06"):
        read_placement_input(path, workers=9, slots=16, rate=5)


def test_the_last_of_several_plans_is_placed_and_named(planned, document, tmp_path):
    made, path = planned
    first, last = (read_placement_input(path, workers=9, slots=16, rate=rate) for rate in (made.plans[0].rate, None))
    assert last.rate == made.plans[-1].rate
    assert last.chosen == "for 4 M records/s; others: 2 M"
    assert first.chosen == "for 2 M records/s; others: 4 M"
    alone = document | {"plans": document["plans"][:1]}
    assert read_placement_input(written(tmp_path, alone), workers=9, slots=16).chosen == ""


@pytest.mark.parametrize(("workers", "slots"), [(9, 16), (5, 12), (60, 1)])
def test_a_placed_plan_sustains_the_plans_capacity(planned, workers, slots):
    made, path = planned
    for plan in made.plans:
        given = read_placement_input(path, workers=workers, slots=slots, rate=plan.rate)
        assert place(given, "round-robin").rate.rate == pytest.approx(plan.expected_rate)
        assert f"these {plan.budget.slots} slots is {units.rate(plan.expected_rate)} (90 % interval" in given.basis


def test_one_task_has_no_more_than_its_slot_and_one_slot_is_not_these_slots(document, tmp_path):
    plan = document["plans"][-1]
    plan["budget"] |= {"slots": 1, "profile": plan["budget"]["profile"] | {"cpus": 0.5}}
    given = read_placement_input(written(tmp_path, document), workers=9, slots=16)
    assert place(given, "round-robin").rate.rate == pytest.approx(plan["expected_rate"])
    assert (given.worker.cpus, given.unit_cpus) == (16, 0.5)
    assert given.basis.startswith("The plan's capacity on this slot is ")


def test_the_command_says_which_plan_is_placed(planned, capsys):
    call = ["place", str(planned[1]), "--workers", "9", "--slots", "16", "--method", "round-robin"]
    assert main(call) == 0
    assert "CALCULATED · the plan for 4 M records/s; others: 2 M · " in capsys.readouterr().out
    assert main([*call, "--rate", "2e6", "--json"]) == 0
    assert "The plan is for 2 M records/s; others: 4 M." in capsys.readouterr().err


def test_a_micro_batch_plan_has_the_fewest_tasks(document, tmp_path):
    for plan in document["plans"]:
        plan["allocation"] = None
    problem = read_placement_input(written(tmp_path, document), workers=9, slots=16).problem
    assert max(problem.cpu) <= 1
    assert max(problem.cpu[i] * n / max(1, n - 1) for i, n in enumerate(problem.parallelism) if n > 1) > 1


@pytest.mark.parametrize(
    ("speeds", "more"), [([1.0, 0.2, 1.0], 1.0), ([1.0, 0.5], 0.5), ([0.4, 0.2, 1.0, 0.8], 0.4), ([2.0], 2.0)]
)
def test_one_worker_more_is_taken_for_as_fast_as_the_middle_one(tmp_path, speeds, more):
    """The next worker need not be slow because one is; of two that differ, the slower one is the safer guess."""
    asked = PROBLEM | {"workers": len(speeds), "slots": 6, "speeds": speeds}
    assert read_placement_input(written(tmp_path, asked)).speeds_with_one_more == (*speeds, more)
