"""Documents in ``tests/stored`` are read as they were written."""

import json
from pathlib import Path

import pytest

from workbench.errors import WorkbenchError
from workbench.placement import read_placement_input
from workbench.records import CapacityPlan, Measurement, PlannedStudy
from workbench.records.plan import plan_from_dict
from workbench.study import planned_start, read_planned

STORED = Path(__file__).parents[2] / "stored"
PLANS = ["plan-fluid.json", "plan-spark.json"]


def document(name):
    return json.loads((STORED / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", PLANS)
def test_a_planned_study_is_the_same_after_writing_and_reading(name, tmp_path):
    planned = PlannedStudy.from_json(STORED / name)
    planned.to_json(tmp_path / "plan.json")
    assert PlannedStudy.from_json(tmp_path / "plan.json") == planned
    for plan in planned.plans:
        assert CapacityPlan.from_json(plan.to_json()) == plan


def test_a_changed_plan_is_shown_as_it_is_stored(tmp_path):
    """Nothing is planned again: what is on the disk is what is shown, placed and replayed."""
    stored = document("plan-fluid.json")
    stored["plans"][0] |= {"expected_rate": 123.0}
    stored["plans"][0]["allocation"]["tasks"]["convert"] = 7
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(stored), encoding="utf-8")
    plan = read_planned(path).plans[0]
    assert (plan.expected_rate, plan.allocation.tasks["convert"]) == (123.0, 7)
    placed = read_placement_input(path, rate=plan.rate, workers=8, slots=8).problem
    assert dict(zip(placed.operators, placed.parallelism, strict=True))["convert"] == 7
    assert planned_start(path, plan.rate).tasks["convert"] == 7


@pytest.mark.parametrize("version", [1, 9, None])
def test_documents_of_another_version_say_plan_again(version, tmp_path):
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(document("plan-fluid.json") | {"version": version}), encoding="utf-8")
    with pytest.raises(WorkbenchError, match=rf"have version {version}; .* Plan again with workbench plan"):
        PlannedStudy.from_json(path)
    plan = document("plan-fluid.json")["plans"][0] | {"version": version}
    with pytest.raises(WorkbenchError, match=rf"has version {version}; .* Plan again with workbench plan"):
        plan_from_dict(plan)


def test_what_a_machine_is_said_to_be_is_text(tmp_path):
    measured = document("measurement.json")
    measured["machine"]["slots"] = 10**300
    (tmp_path / "m.json").write_text(json.dumps(measured))
    with pytest.raises(WorkbenchError, match="is not of type str"):
        Measurement.from_json(tmp_path / "m.json")
