"""A study whose budgets share a warm deployment, from the first answer to the stored plans."""

from dataclasses import replace

import pytest
from example_measurement import example_measurement
from warm_machine import WarmMachine

from workbench.capacity.explore import conclude
from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.journal import Journal
from workbench.measuring import CapacityEstimator
from workbench.study import Study, planning, read_planned, run_study, study_from, write_planned
from workbench.study.carry_out import plan_targets

STUDY = Study("nexmark:q1", (3e3, 2e4), (1, 2, 4), (1024,), slot_cpus=0.2, deployment="shared")
ESTIMATOR = CapacityEstimator(patience_s=0)


def test_the_first_round_answers_and_the_plans_are_read_again(tmp_path):
    said = []
    journal, path = Journal(tmp_path / "j.jsonl"), tmp_path / "plans.json"
    planned = run_study(STUDY, journal, progress=said.append, testbed=WarmMachine(), estimator=ESTIMATOR)
    first = [text for text in said if text.startswith("first answer, from one round: ")]
    assert len(first) == 2
    assert len([text for text in said if text.startswith("answer, from 2 rounds: ")]) == 2
    assert planned.exploration.reason == "3 budgets were measured in 1 warm deployment"
    assert [plan.budget.slots for plan in planned.plans] == [4, 22] or planned.plans[0].budget.slots <= 4
    write_planned(planned, path)
    again = read_planned(path)
    assert again.plans == planned.plans
    assert again.exploration.runs == planned.exploration.runs
    assert again.exploration.model.predict([[1024, 8]]) == pytest.approx(planned.exploration.model.predict([[1024, 8]]))


def separate_runs():
    """Eight budgets of a study that could not share a deployment; the stop rule would leave out the last."""
    example, runs = example_measurement(), []
    for memory, rates in {600: (3e3, 6e3, 12e3, 23e3), 1200: (3e3, 6.1e3, 12e3, 16e3)}.items():
        for slots, rate in zip((1, 2, 4, 8), rates, strict=True):
            estimate = replace(example.estimate, rate=rate, low=rate, high=1.01 * rate)
            runs.append(replace(example, budget=Budget(slots, SlotProfile(0.4, memory)), estimate=estimate))
    return runs


@pytest.mark.parametrize("choice", ["edge", "improvement"])
def test_a_model_that_is_read_is_the_one_that_was_planned_with(tmp_path, choice):
    study = replace(STUDY, targets=(4e4,), slots=(1, 2, 4, 8), memory_mb=(600, 1200), slot_cpus=0.4)
    explored = conclude(separate_runs(), "sharing failed", growth=study.grows, choice=choice)
    assert len(explored.fitted) == (8 if choice == "edge" else 7)
    planned = plan_targets(study, explored)
    write_planned(planned, tmp_path / "plans.json")
    again = read_planned(tmp_path / "plans.json")
    assert again.study == study
    assert (again.exploration.fitted, again.exploration.left_out) == (explored.fitted, explored.left_out)
    assert plan_targets(study, again.exploration).plans[0].budget == planned.plans[0].budget


def test_three_slot_counts_that_took_turns_are_no_few_runs(tmp_path):
    planned = run_study(STUDY, Journal(tmp_path / "j.jsonl"), testbed=WarmMachine(), estimator=ESTIMATOR)
    assert "few runs" not in [card.concern for one in planned.plans for card in one.cards]


def test_the_live_panel_follows_turns(tmp_path):
    runner = planning(STUDY, Journal(tmp_path / "j.jsonl"), WarmMachine(), ESTIMATOR)
    runner.start()
    last = runner.wait(60)
    assert last.state == "done", last.error
    assert (last.budget.slots, last.most_runs) == (4, 3)
    assert last.estimate.rate == pytest.approx(4000, rel=0.1)
    assert any("after round 1" in line.text for line in last.lines)


def test_who_shares():
    assert STUDY.shared
    assert replace(STUDY, deployment=None).shared
    for own in ({"choice": "edge"}, {"estimates": 2}, {"most_calls": 5}, {"form": "halves"}, {"testbed": "fluid"}):
        assert not replace(STUDY, deployment=None, **own).shared
    assert not replace(STUDY, deployment="separate").shared
    given = {"query": "nexmark:q1", "targets": [1e4], "slots": [1, 2], "memory_mb": [1024]}
    with pytest.raises(WorkbenchError, match="deployment is 'common'; it must be one of shared, separate"):
        study_from(given | {"deployment": "common"})
    with pytest.raises(WorkbenchError, match="deployment is 'shared', but the fluid testbed deploys each budget apart"):
        study_from(given | {"deployment": "shared", "testbed": "fluid"})
