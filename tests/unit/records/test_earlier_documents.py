"""Documents that earlier versions wrote, in ``tests/earlier``, are still read."""

import json
import math
import shutil
from pathlib import Path

import pytest

from workbench.errors import WorkbenchError
from workbench.journal import Journal
from workbench.measuring import Deployed, Finished, Probed, recorded, replay
from workbench.placement import read_placement_input
from workbench.records import CapacityPlan, Machine, Measurement, PlannedStudy
from workbench.records.plan import plan_from_dict
from workbench.study import planned_start, read_planned
from workbench.views.front import cares

EARLIER = Path(__file__).parents[2] / "earlier"


def stored(name):
    return json.loads((EARLIER / name).read_text(encoding="utf-8"))


def test_a_journal_is_read_with_its_machine_and_its_probes():
    key = "nexmark:q1/7a345fcbdde99f1f"
    journal = Journal(EARLIER / "journal.jsonl")
    events = list(recorded(journal, key))
    assert [type(one) for one in events] == [Deployed, *[Probed] * 5, Finished]
    assert events[0].machine == Machine(slots="simulated")
    (finished,) = replay(journal, key).finished
    assert finished.estimate.probes == tuple(one.probe for one in events[1:-1])
    assert (finished.testbed_kind, finished.machine.virtual) == ("fluid", False)


def test_a_measurement_is_read_and_written_in_the_present_version(tmp_path):
    measured = Measurement.from_json(EARLIER / "measurement.json")
    assert measured.testbed_kind == "fluid"
    assert measured.estimate.low == stored("measurement.json")["estimate"]["low"]
    measured.to_json(tmp_path / "again.json")
    assert Measurement.from_json(tmp_path / "again.json") == measured
    assert json.loads((tmp_path / "again.json").read_text())["version"] == 2


@pytest.mark.parametrize("name", ["plan-fluid.json", "plan-spark.json"])
def test_plans_are_those_that_were_stored(name):
    was = stored(name)
    planned = read_planned(EARLIER / name)
    assert len(planned.plans) == len(was["plans"])
    for plan, before in zip(planned.plans, was["plans"], strict=True):
        assert before["spark_conf"].items() <= plan.spark_conf().items()  # later ones name more settings
        assert all(f"{key}={value}" in plan.spark_submit() for key, value in plan.spark_conf().items())
        assert plan.kubernetes() == before["kubernetes"]
        assert (plan.rate, plan.expected_rate, plan.low, plan.high) == tuple(
            before[key] for key in ("rate", "expected_rate", "low", "high")
        )
        assert [card.finding for card in plan.cards] == [card["finding"] for card in before["cards"]]
    assert [run.estimate.low for run in planned.exploration.runs] == [run["estimate"]["low"] for run in was["runs"]]


def test_a_layout_gets_the_stages_of_the_run_it_was_made_from():
    plan = read_planned(EARLIER / "plan-spark.json").plans[0]
    assert plan.stateful
    assert [stage.name for stage in plan.layout.stages] == list(plan.layout.partitions)
    assert (plan.layout.source_partitions, plan.layout.stateful_partitions) == ({"1 scan filter": 19}, 44)
    assert math.isclose(plan.layout.batch_s[19], stored("plan-spark.json")["plans"][0]["layout"]["batch_s"]["19"])


def test_a_changed_plan_is_shown_as_it_is_stored(tmp_path):
    """Nothing is planned again: what is on the disk is what is shown, placed and replayed."""
    document = stored("plan-fluid.json")
    document["plans"][0] |= {"expected_rate": 123.0, "allocation": document["plans"][0]["allocation"]}
    document["plans"][0]["allocation"]["tasks"]["convert"] = 7
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    plan = read_planned(path).plans[0]
    assert (plan.expected_rate, plan.allocation.tasks["convert"]) == (123.0, 7)
    placed = read_placement_input(path, rate=plan.rate, workers=8, slots=8).problem
    assert dict(zip(placed.operators, placed.parallelism, strict=True))["convert"] == 7
    assert planned_start(path, plan.rate).tasks["convert"] == 7


def test_a_single_plan_that_lacks_its_stages_says_plan_again():
    plan = json.dumps(stored("plan-spark.json")["plans"][0])
    with pytest.raises(WorkbenchError, match=r"layout lacks its stages. Plan again with workbench plan"):
        CapacityPlan.from_json(plan)


def test_plans_of_an_unknown_version_say_plan_again(tmp_path):
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(stored("plan-fluid.json") | {"version": 9}), encoding="utf-8")
    with pytest.raises(WorkbenchError, match=r"have version 9; .* Plan again with workbench plan"):
        PlannedStudy.from_json(path)


@pytest.mark.parametrize("name", ["plan-fluid.json", "plan-spark.json"])
def test_a_planned_study_is_the_same_after_writing_and_reading(name, tmp_path):
    planned = PlannedStudy.from_json(EARLIER / name)
    planned.to_json(tmp_path / "plan.json")
    assert PlannedStudy.from_json(tmp_path / "plan.json") == planned
    for plan in planned.plans:
        assert CapacityPlan.from_json(plan.to_json()) == plan


def test_a_report_shows_a_file_of_an_earlier_version(tmp_path):
    shutil.copy(EARLIER / "plan-spark.json", tmp_path / "plan.json")
    assert read_planned(tmp_path / "plan.json").plans[0].sentence().startswith("q5 at 50 k records/s needs 19 slots")


def test_doubts_that_needed_nothing_before_that_was_a_value_are_no_reasons_for_care():
    document = stored("plan-fluid.json")["plans"][0]
    keys = {"concern": "keys", "value": 1.1, "finding": "The keys are even.", "advice": "Nothing to do."}
    few, settled = plan_from_dict(document | {"cards": [document["cards"][0], keys]}).cards
    assert (few.settled, settled.settled) == (False, True)
    assert list(cares([plan_from_dict(document | {"cards": [keys]})])) == []
    kept = plan_from_dict(document | {"cards": [keys | {"settled": False}]}).cards
    assert [card.settled for card in kept] == [False]
    for cards in (7, "keys", [7], {"keys": 1}):
        with pytest.raises(WorkbenchError, match="cannot be read"):
            plan_from_dict(document | {"cards": cards})


def test_what_is_told_of_a_machine_is_text(tmp_path):
    document = stored("measurement.json")
    document["machine"]["slots are"] = 10**300
    (tmp_path / "m.json").write_text(json.dumps(document))
    with pytest.raises(WorkbenchError, match="is not of type str"):
        Measurement.from_json(tmp_path / "m.json")
