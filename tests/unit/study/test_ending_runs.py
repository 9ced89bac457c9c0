"""A study whose runs end: rows and a deadline instead of a rate."""

import pytest

from workbench.errors import WorkbenchError
from workbench.journal import Journal
from workbench.study import read_planned, run_study, write_planned
from workbench.study.spec import study_from

FLUID = {"query": "nexmark:q1", "slots": [2, 3, 4], "memory_mb": [2048], "testbed": "fluid"}


def test_rows_and_a_deadline_are_a_rate():
    study = study_from(FLUID | {"rows": "400M", "deadline_s": 2700, "start_s": 60})
    assert study.targets == (pytest.approx(400e6 / 2640),)
    assert study.run.lasts_s(study.targets[0]) == pytest.approx(2700)


def test_the_plan_ends_in_time_and_is_read_again(tmp_path):
    study = study_from(FLUID | {"rows": 4e8, "deadline_s": 900})
    planned = run_study(study, Journal(tmp_path / "journal"))
    (plan,) = planned.plans
    assert plan.run.lasts_s(plan.expected_rate) < 900
    write_planned(planned, tmp_path / "plans.json")
    again = read_planned(tmp_path / "plans.json")
    assert again.plans[0].run == plan.run
    assert again.study.run == study.run


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"rows": 4e8, "targets": [1e3]}, "rows is given without deadline_s"),
        ({"deadline_s": 60, "targets": [1e3]}, "deadline_s is given without rows"),
        ({"rows": 4e8}, "lacks 'targets'"),
        ({"rows": 4e8, "deadline_s": 60}, "start_s is 60; it must be at least 0 and below the deadline of 60 s"),
        ({"rows": 4e8, "deadline_s": 600, "targets": [1e3]}, "Leave targets out"),
        ({"rows": "many", "deadline_s": 600}, "rows is 'many'; write a number above 0"),
        ({"targets": [1e3], "start_s": 30}, "start_s is given without rows and deadline_s"),
        ({"rows": 4e8, "deadline_s": 600, "outage_s": 60, "catch_up_s": 60}, "of a query that goes on"),
    ],
)
def test_what_is_asked_is_checked(keys, message):
    with pytest.raises(WorkbenchError, match=message):
        study_from(FLUID | keys)
