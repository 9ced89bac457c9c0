"""The whole loop on the fluid testbed: explore, model, plan; resumed after a kill, it ends the same."""

import json
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from workbench.capacity import plan
from workbench.capacity.planning import InstanceType
from workbench.errors import NoCapacityError, WorkbenchError
from workbench.journal import Journal
from workbench.measuring import Finished
from workbench.records import CapacityPlan
from workbench.study import SoFar, Study, read_planned, run_study, study_from, write_planned
from workbench.study.carry_out import _with_answers
from workbench.study.planned import plan_targets
from workbench.study.prepared import prepare
from workbench.testbed import FluidTestbed

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


def test_every_target_gets_a_plan_that_carries_it(planned):
    assert planned.refused == ()
    for one in planned.plans:
        assert one.low <= one.expected_rate <= one.high
        assert one.expected_rate >= 1.1 * one.rate * (1 - 1e-9)
        assert sum(one.allocation.tasks.values()) == one.budget.slots
        assert "fluid" in one.testbed
    assert planned.plans[0].budget.slots < planned.plans[1].budget.slots
    # the corners come first, and the minimal configuration before the optimised
    budgets = [(run.budget.slots, run.budget.profile.memory_mb) for run in planned.exploration.measurements]
    assert budgets[:4] == [(2, 512), (16, 512), (2, 1024), (16, 1024)]
    assert planned.exploration.measurements[0].tasks == {"convert": 1, "sink": 1}


@pytest.mark.fault("a study is killed at any line of its journal", sees="what the shell says; the same command goes on")
@pytest.mark.parametrize("entries", [40, *(pytest.param(one, marks=pytest.mark.long) for one in (1, 4, 11, 23))])
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


def test_what_was_written_is_read_with_the_same_plans_and_prices_without_the_list(tmp_path, planned):
    small = InstanceType("small", "x", "y", 2, 4096, 1.0, "USD", "test", "2024-01")
    priced = plan_targets(replace(STUDY, prices="gone.csv"), planned.exploration, (), (small,))
    for one in (planned, priced):
        write_planned(one, tmp_path / "plan.json")
        again = read_planned(tmp_path / "plan.json")
        assert outcome(again) == outcome(one)
        assert [plan.price for plan in again.plans] == [plan.price for plan in one.plans]
    assert again.instances == (small,) == (again.plans[0].price.instance,)
    document = json.loads((tmp_path / "plan.json").read_text())
    assert document["plans"][0]["spark_conf"]["spark.executor.cores"]
    with pytest.raises(WorkbenchError, match="A number of the result is NaN"):
        replace(planned.plans[0], overstatement=math.nan).to_json()
    assert json.loads(replace(planned.plans[0], high=math.inf).to_json())["high"] == "inf"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"study": []}, r"The study in .*plan.json lacks 'query'"),
        ({"study": 5}, r"plan.json holds no plans \('int' object is not iterable\); make them with workbench plan"),
        ({"runs": 5}, r"holds no plans \('int' object is not iterable\)"),
        ({"instances": [{"name": "a"}]}, r"An instance type in .* cannot be read: required field missing"),
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


def test_spark_is_told_what_was_planned_and_given_the_executors_and_environment_measured_with(planned):
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
    on = replace(planned.study, testbed="spark", master="yarn", checkpoint="hdfs://n/c", executor_slots=2, slots=(2, 4))
    packed = replace(on, environment="/home/me/my packages.zip")
    (one, *others) = plan_targets(packed, planned.exploration, (), ()).plans
    assert [each.executor.slots for each in (one, *others)] == [2, 2]
    assert planned.plans[-1].executor_slots is None
    command = one.command()
    assert "--archives 'my packages.zip#environment'" in command
    assert "--conf spark.pyspark.python=./environment/bin/python" in command
    assert "driver.python" not in command  # in the cluster it is unpacked for the driver, too
    assert "--conf spark.pyspark.driver.python=python3" in one.spark_submit(master="yarn")
    assert "--archives" not in planned.plans[0].command()
    assert CapacityPlan.from_json(one.to_json()) == one


def test_executors_that_no_worker_holds_are_refused_before_anything_is_measured(tmp_path, journal):
    prices = tmp_path / "prices.csv"
    prices.write_text(
        "name,provider,region,vcpus,memory_mb,price_per_hour,currency,source,date\nsmall,a,b,4,16384,0.1,USD,c,2026-01\n"
    )
    on = replace(STUDY, testbed="spark", master="yarn", checkpoint="hdfs://n/c", prices=str(prices), slots=(4, 8))
    with pytest.raises(WorkbenchError, match=r"holds 4 slots of 1 cores and 512 MB in one executor, apart from"):
        prepare(replace(on, executor_slots=4), journal, testbed=FluidTestbed())
    prepare(replace(on, executor_slots=2), journal, testbed=FluidTestbed())


@pytest.fixture(scope="module")
def stored():
    return read_planned(Path(__file__).parents[3] / "data" / "q5.recorded.json")


def test_the_plans_that_ship_advise_what_would_be_advised_now(stored):
    again = plan_targets(stored.study, stored.exploration, stored.sweep, stored.instances)
    assert [plan.verdict.advised for plan in stored.plans] == [plan.verdict.advised for plan in again.plans]


def test_what_was_sustained_answers_a_lower_rate_also_where_no_run_gives_a_capacity(stored):
    run = max(stored.exploration.measurements, key=lambda run: run.budget.slots)
    known = replace(run, estimate=replace(run.estimate, rate=None))
    study = replace(stored.study, targets=(20_000.0, 900_000.0))

    def steps(_):
        yield Finished("key", known)
        raise NoCapacityError("None of 1 runs gives a capacity.")

    ready = SimpleNamespace(study=study, query=None, instances=())
    with pytest.raises(NoCapacityError) as raised:
        list(_with_answers(SimpleNamespace(steps=steps), ready))
    assert "None of 1 runs gives a capacity. Known after 1 run: at least " in str(raised.value)
    assert str(raised.value).endswith("; enough for 20 k records/s.")


def test_a_first_answer_is_an_upper_bound_or_given_where_a_run_carries_the_rate_and_not_far_beyond(stored):
    fewest, *_, most = sorted(stored.exploration.measurements, key=lambda run: run.budget.slots)
    study = replace(stored.study, targets=(20_000.0,))
    said = [[line for line in SoFar(study, runs, ()).lines if "answer" in line] for runs in ((most,), (most, fewest))]
    assert [[" needs at most 4 slots " in line for line in lines] for lines in said] == [[True], [False]]
    most = max(stored.exploration.measurements, key=lambda run: run.budget.slots)
    said = SoFar(replace(stored.study, targets=(20_000.0, 1_000_000.0)), (most,), ()).lines
    assert [line.startswith("answer") for line in said] == [True, False]
    assert said[1].startswith("after 1 run: at least ")
    assert "slots, by a probe that was sustained; not answered yet: 1 M records/s" in said[1]
