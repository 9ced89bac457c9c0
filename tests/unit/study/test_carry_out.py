"""The whole loop on the fluid testbed: explore, model, plan; resumed after a kill, it ends the same."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from workbench.capacity import ConfigurationOptimizer, ResourceExplorer, Space, plan
from workbench.capacity.allocation import allocate
from workbench.capacity.explore import conclude, overstatement
from workbench.capacity.explore.acquisition import propose
from workbench.capacity.explore.exploration import stopping_row
from workbench.capacity.planning import InstanceType, cheapest, read_instances
from workbench.capacity.planning.prices import Price, prices
from workbench.dataflow import SlotProfile
from workbench.errors import WorkbenchError
from workbench.journal import Journal
from workbench.measuring import CapacityEstimator, result_of
from workbench.study import Study, read_planned, read_study, run_study, study_from, write_planned
from workbench.study.carry_out import estimator_of, plan_targets
from workbench.study.carry_out import testbed_of as asked_testbed
from workbench.testbed import FluidTestbed
from workbench.workload import nexmark

STUDY = Study("nexmark:q1", (2e6, 2e7), (2, 4, 8, 16), (512, 1024), testbed="fluid", slot_cpus=1.0, most_runs=9)


class Killed(BaseException):
    """As kill -9: nothing after it is done."""


class DyingJournal(Journal):
    """Dies before its entry of this number is written."""

    def __init__(self, path, entries):
        super().__init__(path)
        self.left = entries

    def append(self, kind, key, data):
        if self.left == 0:
            raise Killed
        self.left -= 1
        super().append(kind, key, data)


def outcome(planned):
    return [(one.budget, one.expected_rate, one.allocation.tasks) for one in planned.plans]


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    return run_study(STUDY, Journal(tmp_path_factory.mktemp("calm") / "j.jsonl"))


def test_every_target_gets_a_plan_that_carries_it(planned):
    assert planned.refused == ()
    for one in planned.plans:
        assert one.low <= one.expected_rate <= one.high
        assert one.expected_rate >= 1.1 * one.rate * (1 - 1e-9)
        assert sum(one.allocation.tasks.values()) == one.budget.slots
        assert "fluid" in one.testbed
    assert planned.plans[0].budget.slots < planned.plans[1].budget.slots


@pytest.mark.parametrize("entries", [1, 4, 11, 23, 40])
def test_a_killed_exploration_ends_as_an_undisturbed_one_and_repeats_nothing(tmp_path, planned, entries):
    journal = tmp_path / "j.jsonl"
    with pytest.raises(Killed):
        run_study(STUDY, DyingJournal(journal, entries))
    before = [entry.key for entry in Journal(journal).entries("finished")]
    resumed = run_study(STUDY, Journal(journal))
    assert outcome(resumed) == outcome(planned)
    finished = [entry.key for entry in Journal(journal).entries("finished")]
    assert len(set(finished)) == len(finished)
    assert finished[: len(before)] == before


def test_what_was_written_is_read_with_the_same_plans(tmp_path, planned):
    write_planned(planned, tmp_path / "plan.json")
    assert outcome(read_planned(tmp_path / "plan.json")) == outcome(planned)
    document = json.loads((tmp_path / "plan.json").read_text())
    assert document["plans"][0]["spark_conf"]["spark.executor.cores"]


def test_plans_are_priced_again_as_they_were_without_the_list(tmp_path, planned):
    small = InstanceType("small", "x", "y", 2, 4096, 1.0, "USD", "test", "2024-01")
    priced = plan_targets(replace(STUDY, prices="gone.csv"), planned.exploration, (), (small,))
    write_planned(priced, tmp_path / "plan.json")
    again = read_planned(tmp_path / "plan.json")
    assert again.instances == (small,)
    assert [one.price for one in again.plans] == [one.price for one in priced.plans]
    assert again.plans[0].price.instance == small


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"study": []}, r"The study in .*plan.json lacks 'query'"),
        ({"study": 5}, r"plan.json holds no plans \('int' object is not iterable\); make them with workbench plan"),
        ({"runs": 5}, r"holds no plans \('int' object is not iterable\)"),
        ({"instances": [{"name": "a"}]}, r"holds no plans \(.*missing 8 required positional arguments"),
        ({"version": 1}, r"have version 1; this workbench reads version 2\. Plan again\."),
    ],
)
def test_what_holds_no_plans_is_refused(tmp_path, planned, change, message):
    path = tmp_path / "plan.json"
    write_planned(planned, path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(WorkbenchError, match=message):
        read_planned(path)


def test_a_risk_takes_the_place_of_the_margin(planned):
    def slots(**settings):
        return plan(planned.exploration, 2e6, memory_mb=(512,), **settings).budget.slots

    model = planned.exploration.model
    assert slots() == model.slots_for(2e6, 512, 1.1, min_slots=2)
    assert slots(risk=0.05) == model.slots_for(2e6, 512, 1.0, min_slots=2, risk=0.05)
    assert slots(margin=1.5, risk=0.05) == model.slots_for(2e6, 512, 1.5, min_slots=2, risk=0.05)
    assert study_from({"query": "q", "targets": [1], "slots": [1, 2], "memory_mb": [512]}).margin is None


def test_one_slot_is_no_slots(planned):
    one = replace(planned.plans[0], budget=replace(planned.plans[0].budget, slots=1))
    assert " take 1 slot of 1 core " in one.sentence()


def test_no_number_of_a_plan_is_nan(planned):
    with pytest.raises(ValueError, match="Out of range float values are not JSON compliant"):
        replace(planned.plans[0], overstatement=math.nan).to_json()
    assert json.loads(replace(planned.plans[0], high=math.inf).to_json())["high"] == "inf"


def test_the_corners_come_first_and_the_minimal_configuration_before_the_optimised(planned):
    budgets = [(run.budget.slots, run.budget.profile.memory_mb) for run in planned.exploration.measurements]
    assert budgets[:4] == [(2, 512), (16, 512), (2, 1024), (16, 1024)]
    assert planned.exploration.measurements[0].tasks == {"convert": 1, "sink": 1}


def test_a_minimal_budget_that_is_asked_for_again_is_measured_again(tmp_path):
    journal, query, budget = Journal(tmp_path / "j.jsonl"), nexmark.query("q1"), Space((2, 8), (512,)).budget(2, 512)
    optimizer = ConfigurationOptimizer(FluidTestbed(), CapacityEstimator(), journal)
    first, again = (optimizer.measure(query, budget) for _ in range(2))
    assert first.estimate.rate != again.estimate.rate
    resumed = ConfigurationOptimizer(FluidTestbed(), CapacityEstimator(), journal)
    found = [resumed.measure(query, budget).estimate.rate for _ in range(2)]
    assert found == [first.estimate.rate, again.estimate.rate]
    assert len(journal.entries("finished")) == 2


def test_a_minimal_budget_that_was_measured_on_the_way_is_measured_when_it_is_asked_for(tmp_path):
    journal, query, space = Journal(tmp_path / "j.jsonl"), nexmark.query("q1"), Space((2, 8), (512,))
    optimizer = ConfigurationOptimizer(FluidTestbed(), CapacityEstimator(), journal)
    minimal, _ = result_of(optimizer.steps(query, space.budget(8, 512)))
    (asked,) = result_of(optimizer.steps(query, space.budget(2, 512)))
    assert asked.budget == minimal.budget
    assert asked.estimate != minimal.estimate
    assert len(journal.entries("finished")) == 3


def test_an_optimised_configuration_follows_bids2(tmp_path):
    optimizer = ConfigurationOptimizer(FluidTestbed(), CapacityEstimator(), Journal(tmp_path / "j.jsonl"))
    budget = Space((2, 8), (512,)).budget(12, 512)
    minimal, best = result_of(optimizer.steps(nexmark.query("q5"), budget))
    found = allocate(minimal, 12)
    assert best.tasks == found.tasks
    assert best.predicted_rate == found.source_rate
    assert overstatement([minimal, best]) == pytest.approx(best.estimate.rate / found.source_rate)


def test_too_few_slots_are_refused_with_the_operators(tmp_path):
    optimizer = ConfigurationOptimizer(FluidTestbed(), CapacityEstimator(), Journal(tmp_path / "j.jsonl"))
    with pytest.raises(WorkbenchError, match=r"operators besides its sources \(.*\); 1 slots are too few"):
        optimizer.measure(nexmark.query("q5"), Space((1, 8), (512,)).budget(1, 512))


@pytest.mark.parametrize(
    ("costs", "row"),
    [
        ([9, 9, 9, 9, 9, 9, 9], None),  # seven runs are kept whatever their cost
        ([9, 9, 9, 9, 9, 9, 1, 1.09], None),
        ([9, 9, 9, 9, 9, 9, 1, 1.11], 7),
        ([9, 9, 9, 9, 9, 9, 1, 1.09, 1.3], 8),
        ([1, 2, 4, 8, 16, 32, 64], None),
    ],
)
def test_the_exploration_stops_when_the_cost_grows_by_a_tenth(costs, row):
    assert stopping_row(costs) == row


def test_the_same_runs_and_seed_propose_the_same_point():
    points, costs = [(0, 0), (3, 0), (0, 4), (3, 4), (1, 2)], [5.0, 5.0, 5.0, 5.0, 3.0]
    found = propose(points, costs, (4, 5), seed=3)
    assert found == propose(points, costs, (4, 5), seed=3)
    assert 0 <= found[0] < 4
    assert 0 <= found[1] < 5
    assert propose([(0, 0), (3, 0)], [1.0, 1.0], (4, 1), seed=0)[1] == 0


@pytest.mark.parametrize("seed", [2**32 - 1, 202601311200, 10**30])
def test_any_seed_that_a_study_may_have_proposes_a_point(seed):
    assert propose([(0, 0), (3, 0)], [1.0, 1.0], (4, 1), seed=seed)[1] == 0


def explorer_in(folder, space, **settings):
    optimizer = ConfigurationOptimizer(FluidTestbed(), CapacityEstimator(tolerance=0.04), Journal(folder / "j.jsonl"))
    return ResourceExplorer(optimizer, space, **settings)


@pytest.mark.parametrize("told", ["answers", "steps"])
@pytest.mark.parametrize(
    "settings",
    [{"most_runs": 9}, {"choice": "edge", "most_calls": 6, "estimates": 2}, {"most_runs": 8, "estimates": 2}],
)
def test_a_loop_of_ones_own_makes_the_runs_of_explore(tmp_path, settings, told):
    query, space = nexmark.query("q1"), Space((4, 6, 9), (512, 1024, 2048))  # two slots would do: runs on the way
    alone = explorer_in(tmp_path / "alone", space, **settings).run(query)
    explorer = explorer_in(tmp_path / "own", space, **settings)
    while (budget := explorer.ask()) is not None:
        assert explorer.ask() == budget
        if told == "answers":
            explorer.tell(explorer.optimizer.measure(query, budget))
        else:
            for run in result_of(explorer.optimizer.steps(query, budget)):
                explorer.tell(run)
    assert [run.estimate for run in explorer.runs] == [run.estimate for run in alone.measurements]
    assert explorer.reason() == alone.reason
    np.testing.assert_array_equal(
        explorer.conclude().model.predict([[512, 40]]), explorer.explore(query).predict([[512, 40]])
    )
    assert explorer.ask() is None


def test_no_more_runs_are_made_than_asked_for(tmp_path):
    explorer = explorer_in(tmp_path, Space((4, 8), (512, 1024)), most_runs=4)
    found = explorer.run(nexmark.query("q1"))
    assert [run.budget.slots for run in found.measurements] == [2, 4, 8]  # at 1024 MB two more would be needed
    assert found.reason == "3 runs were made, and the next budget takes 2 of at most 4"


def test_the_space_is_filled_while_there_is_no_cost_to_improve(tmp_path):
    found = explorer_in(tmp_path, Space((2, 4, 8, 16, 32), (512,)), most_runs=4).run(nexmark.query("q1"))
    assert [run.budget.slots for run in found.measurements] == [2, 32, 8, 16]


def test_a_run_that_sustained_nothing_is_kept_and_not_fitted(planned):
    runs = list(planned.exploration.measurements)
    nothing = replace(runs[0].estimate, rate=None, low=0.0, observation=None)
    found = conclude([replace(runs[0], estimate=nothing), *runs[1:]], "ended")
    assert 0 not in found.fitted
    with pytest.raises(WorkbenchError, match=r"Only 2 of 2 runs give a capacity; a model needs at least 3"):
        conclude(runs[:2], "ended")


def test_spark_is_told_what_was_planned(planned):
    one = planned.plans[1]
    conf = one.spark_conf()
    assert int(conf["spark.executor.cores"]) * int(conf["spark.executor.instances"]) >= one.budget.slots
    command = one.spark_submit("job.py")
    assert "--deploy-mode cluster" in command
    assert "spark.kubernetes.container.image=CONTAINER-IMAGE" in command
    assert "kubernetes.container" not in one.spark_submit("job.py", "yarn")
    assert command.startswith("spark-submit")
    assert all(f"--conf {key}={value}" in command for key, value in conf.items())
    assert one.kubernetes()["resources"]["requests"]["memory"].endswith("Mi")


def test_the_cheapest_memory_is_planned(planned):
    small = InstanceType("small", "x", "y", 2, 2048, 1.0, "USD", "test", "2024-01")
    one = plan(planned.exploration, 2e6, memory_mb=(512, 1024), instances=[small])
    for memory in (512, 1024):
        other = plan(planned.exploration, 2e6, memory_mb=(memory,), instances=[small])
        assert one.price.per_hour <= other.price.per_hour


def test_prices_count_whole_workers():
    small = InstanceType("small", "x", "y", 4, 8192, 1.0, "USD", "test", "2024-01")
    large = InstanceType("large", "x", "y", 16, 65536, 3.5, "USD", "test", "2024-01")
    found = prices([small, large], 10, SlotProfile(1.0, 4096))
    assert [(price.instance.name, price.workers, price.per_hour, price.idle_slots) for price in found] == [
        ("large", 1, 3.5, 3),
        ("small", 10, 10.0, 0),
    ]
    with pytest.raises(WorkbenchError, match=r"None of the 1 instance types holds a slot of 8 cores"):
        cheapest([small], 1, SlotProfile(8.0, 1024))


@pytest.mark.parametrize(
    ("amount", "said"), [(0.5, "0.50"), (0.085, "0.085"), (0.004, "0.004"), (12345.678, "12,345.68")]
)
def test_small_prices_keep_their_digits(planned, amount, said):
    one = planned.plans[0]
    instance = InstanceType("tiny", "me", "here", 4, 8192, amount, "USD", "list", "2026")
    priced = replace(one, price=Price(instance, 1, 4, amount, 0))
    assert f"with room for 4 each at {said} USD/h" in priced.sentence()


def test_a_wrong_price_is_refused_with_its_line(tmp_path):
    path = tmp_path / "prices.csv"
    header = "name,provider,region,vcpus,memory_mb,price_per_hour,currency,source,date\n"
    path.write_text(header + "a,b,c,2,4096,0.1,USD,x,2024\nd,e,f,2,4096,-1,USD,x,2024\n")
    with pytest.raises(WorkbenchError, match=r"Line 3 of the price list .*price_per_hour .*-1"):
        read_instances(path)
    path.write_text(header + "a,b,c,2,4096,0.1,USD,x,2024\nd,e,f,2,4096,0.1\n")
    with pytest.raises(WorkbenchError, match=r"Line 3 of the price list .* is wrong: it ends before currency, source"):
        read_instances(path)
    path.write_text("name,vcpus\n")
    with pytest.raises(WorkbenchError, match=r"lacks currency, date"):
        read_instances(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"slotz": [1]}, r"unknown key 'slotz'; did you mean 'slots'\?"),
        ({"targets": []}, r"targets is \[\]; it must be a list of rates above 0"),
        ({"targets": [-5]}, r"targets is \[-5\]"),
        ({"slots": [4, 2]}, r"slots of the space is \[4, 2\].*ascending"),
        ({"testbed": "flink"}, r"testbed is 'flink'; it must be one of spark, fluid, recorded"),
        ({"testbed": "recorded"}, r"recorded testbed needs a table of measurements\. Add 'table: FILE'"),
        ({"table": "rates.csv"}, r"table is 'rates.csv', which the spark testbed does not read"),
        ({"plan_memory_mb": [1024, 512]}, r"plan_memory_mb is \[1024, 512\]; it must be a list .* ascending"),
        ({"targets": [10**400]}, r"targets is \[10+\]; it must be a list of rates"),
        ({"targets": [10**5000]}, r"targets is a number of thousands of digits; it must be a list of rates"),
        ({"warmup_s": 0}, r"warmup_s is 0; it must be a number of seconds above 0"),
        ({"patience_s": -1}, r"patience_s is -1; it must be a number of seconds of at least 0"),
        ({"max_repeats": 1.5}, r"max_repeats is 1.5; it must be a whole number of at least 0"),
        ({"seed": True}, r"seed is True; it must be a whole number"),
        ({"risk": 2}, r"risk is 2; it must be a probability"),
    ],
)
def test_a_wrong_study_is_refused_with_the_mend(change, message):
    right = {"query": "nexmark:q1", "targets": [1000], "slots": [2, 4], "memory_mb": [512]}
    with pytest.raises(WorkbenchError, match=message):
        study_from(right | change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"targets": 1e6}, r"^targets is 1000000.0; it must be a list of rates above 0, records/s. Correct it.$"),
        ({"testbed": "Fluid"}, r"^testbed is 'Fluid'; it must be one of spark, fluid, recorded"),
        ({"form": "loq"}, r"^form is 'loq'; it must be one of linear"),
        ({"slots": (4, 2)}, r"^slots of the space is \[4, 2\]"),
        ({"intervals": (1.0, 5.0)}, r"^intervals is \[1.0, 5.0\] without the interval_s of 2 s"),
    ],
)
def test_a_study_made_in_python_is_checked_before_anything_is_measured(change, message):
    right = {"query": "nexmark:q1", "targets": (1000,), "slots": (2, 4), "memory_mb": (512,)}
    with pytest.raises(WorkbenchError, match=message):
        Study(**right | change)


def test_a_study_holds_the_values_its_types_promise():
    study = Study("nexmark:q1", [1000], [2, 4], [512], interval_s=2)
    assert study == Study("nexmark:q1", (1000.0,), (2, 4), (512,), interval_s=2.0)
    assert (study.targets, repr(study.interval_s)) == ((1000.0,), "2.0")  # numbers go into a journal's keys


def test_numbers_of_a_study_file_may_have_an_exponent(tmp_path):
    path = tmp_path / "study.yaml"
    path.write_text("query: nexmark:q1\ntargets: [1e6, 2.5E+5, 1_000]\nslots: [2, 4]\nmemory_mb: [512]\n")
    assert read_study(path).targets == (1e6, 2.5e5, 1000.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("slots: [1, 2]\nslots: [2, 4]\n", r"study.yaml: key 'slots' is there twice; all would be lost but the last"),
        ("event_time: 2024-13-45\n", r"study.yaml is not YAML: month must be in 1..12"),
        ("query: !!python/name:os.system\n", r"is not YAML: could not determine a constructor"),
        ("[" * 3000, r"is not YAML: .*recursion"),
    ],
)
def test_yaml_that_does_not_say_what_it_seems_to_is_refused(tmp_path, text, message):
    path = tmp_path / "study.yaml"
    path.write_text(text)
    with pytest.raises(WorkbenchError, match=message):
        read_study(path)


def test_a_short_warm_up_is_short_in_both_places():
    study = replace(STUDY, testbed="spark", warmup_s=20.0)
    assert asked_testbed(study, print).warmup_cap_s == 20.0
    assert (estimator_of(study).warmup_min_s, estimator_of(study).warmup_cap_s) == (20.0, 20.0)
    assert asked_testbed(replace(study, warmup_s=180.0), print).warmup_cap_s == 120.0
    assert estimator_of(replace(study, warmup_s=90.0)).warmup_min_s == 30.0


def test_a_study_says_how_long_to_wait_for_neighbours_and_how_often_to_repeat():
    given = {"query": "nexmark:q1", "targets": [1000], "slots": [2, 4], "memory_mb": [512]}
    unset, hurried = study_from(given), study_from(given | {"patience_s": 0, "max_repeats": 1})
    assert (estimator_of(unset).patience_s, estimator_of(unset).max_repeats) == (120.0, 3)
    assert (estimator_of(hurried).patience_s, estimator_of(hurried).max_repeats) == (0.0, 1)


def test_a_study_file_that_is_none_is_refused(tmp_path):
    path = tmp_path / "study.yaml"
    with pytest.raises(WorkbenchError, match=r"cannot be read"):
        read_study(path)
    path.write_text("query: [")
    with pytest.raises(WorkbenchError, match=r"is not YAML"):
        read_study(path)
    path.write_text("- a\n")
    with pytest.raises(WorkbenchError, match=r"not a mapping of keys"):
        read_study(path)
    path.write_text("query: nexmark:q1\n")
    with pytest.raises(WorkbenchError, match=r"lacks 'targets'; add it. For example: targets: \[100000, 200000\]"):
        read_study(path)


def asked_for(tmp_path, **settings):
    """Explore q2 and give the budgets of all runs."""
    optimizer = ConfigurationOptimizer(FluidTestbed(), CapacityEstimator(), Journal(tmp_path / "j.jsonl"))
    explorer = ResourceExplorer(optimizer, Space((2, 4, 6), (512, 1024, 2048)), choice="edge", **settings)
    found = explorer.run(nexmark.query("q2"))
    return found, [(run.budget.slots, run.budget.profile.memory_mb) for run in found.measurements]


def test_the_edge_is_measured_after_the_corners_and_the_middle(tmp_path):
    found, budgets = asked_for(tmp_path, most_calls=9)
    assert budgets == [(2, 512), (6, 512), (2, 2048), (6, 2048), (4, 512), (4, 2048), (6, 512), (6, 2048), (6, 512)]
    assert found.reason == "9 budgets were asked for"
    assert found.fitted == tuple(range(9))  # no run ends it, so none is left out
    assert len({run.estimate.rate for run in found.measurements}) == 9


def test_calls_may_make_several_runs_after_the_corners(tmp_path):
    _, budgets = asked_for(tmp_path, most_calls=6, estimates=2)
    assert budgets[4:] == [(4, 512), (4, 512), (4, 2048), (4, 2048)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"most_calls": 3}, r"most_calls is 3; the corners of the space alone are 4 calls\. Raise it\."),
        ({"estimates": 0}, r"estimates is 0; a call of the optimizer takes at least 1 run\."),
        ({"choice": "edges"}, r"The choice is 'edges'; use one of improvement, edge\."),
    ],
)
def test_a_wrong_way_to_explore_is_refused(tmp_path, settings, message):
    optimizer = ConfigurationOptimizer(FluidTestbed(), CapacityEstimator(), Journal(tmp_path / "j.jsonl"))
    with pytest.raises(WorkbenchError, match=message):
        ResourceExplorer(optimizer, Space((2, 4), (512, 1024)), **settings)


def test_a_study_may_explore_at_the_edge(tmp_path):
    study = study_from(
        {"query": "nexmark:q1", "targets": [2e6], "slots": [2, 4, 8, 16], "memory_mb": [512], "testbed": "fluid"}
        | {"slot_cpus": 1.0, "choice": "edge", "most_calls": 5, "estimates": 2}
    )
    made = run_study(study, Journal(tmp_path / "j.jsonl"))
    budgets = [run.budget.slots for run in made.exploration.measurements]
    assert made.exploration.reason == "5 budgets were asked for"
    assert budgets[-6:] == [8, 8, 16, 16, 16, 16]  # the middle first, then the most, twice each
    write_planned(made, tmp_path / "p.json")
    assert outcome(read_planned(tmp_path / "p.json")) == outcome(made)
    with pytest.raises(WorkbenchError, match=r"choice is 'random'; it must be one of improvement, edge"):
        study_from({"query": "q", "targets": [1], "slots": [1], "memory_mb": [512], "choice": "random"})
