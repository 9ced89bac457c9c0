"""A study whose budgets share a warm deployment, from the first answer to the stored plans."""

from dataclasses import replace

import pytest
from example_measurement import example_measurement
from warm_machine import WarmMachine

from workbench.capacity.explore import conclude
from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.measuring import CapacityEstimator, Concluded
from workbench.study import SoFar, Study, planned_so_far, planning, prepare, read_planned, run_study, write_planned
from workbench.study.planned import plan_targets
from workbench.testbed import WarmTestbed

STUDY = Study("nexmark:q1", (3e3, 2e4), (1, 2, 4), (1024,), slot_cpus=0.2, deployment="shared")
ESTIMATOR = CapacityEstimator(patience_s=0)


def test_the_first_run_answers_and_the_plans_are_read_again(tmp_path, journal):
    said, machine, path = [], WarmMachine(), tmp_path / "plans.json"

    def listen(event):
        if isinstance(event, Concluded) and isinstance(event.what, SoFar):
            said.extend(event.what.lines)

    planned = run_study(STUDY, journal, listen=listen, testbed=machine, estimator=ESTIMATOR)
    runs = planned.exploration.measurements
    assert [run.budget.slots for run in runs][:2] == [4, 1]  # the most first: no first answer goes beyond it
    assert sorted({run.budget.slots for run in runs}) == [1, 2, 4]
    assert len(runs) == 4  # the grid is the space: one of each, and one again, which shows drift
    assert (machine.deployments, planned.exploration.reason) == (1, "4 runs were made")
    assert [text for text in said if text.startswith("answer after 1 run: nexmark:q1 at 3 k records/s")]
    for run in runs:
        assert run.estimate.low <= 1050 * run.budget.slots
        assert run.estimate.high >= 950 * run.budget.slots
        assert run.estimate.limit == "query"
    write_planned(planned, path)
    again = read_planned(path)
    assert again.plans == planned.plans
    assert again.exploration.runs == planned.exploration.runs
    assert again.exploration.model.predict([[1024, 8]]) == pytest.approx(planned.exploration.model.predict([[1024, 8]]))


def test_each_memory_profile_has_a_deployment_and_a_failed_turn_ends_it(journal):
    study = replace(STUDY, memory_mb=(1024, 2048), most_runs=5)
    machine = WarmMachine()
    run_study(study, journal, testbed=machine, estimator=ESTIMATOR)
    assert machine.deployments == 2
    warm = WarmTestbed(machine, study.space.budgets)
    few, most = study.space.budget(1, 1024), study.space.budget(4, 1024)
    with warm:
        with warm.deploy(study.query, most), pytest.raises(WorkbenchError), warm.deploy(study.query, few):
            raise WorkbenchError("the query failed")
        with warm.deploy(study.query, few) as run:
            assert run.budget == few
        assert machine.deployments == 4  # a new one after the failure
        warm.part(few.profile)
        with warm.deploy(study.query, few):
            assert machine.deployments == 5


@pytest.mark.fault("a shared study is killed in a turn", sees="what the shell says; the same command goes on")
def test_a_killed_study_measures_only_what_it_lacks(journal):
    with pytest.raises(KeyboardInterrupt):
        run_study(STUDY, journal, testbed=WarmMachine(fails_at=3), estimator=ESTIMATOR)
    finished = [entry.key for entry in journal.entries("finished")]
    assert finished
    planned = run_study(STUDY, journal, testbed=WarmMachine(seed=1), estimator=ESTIMATOR)
    keys = [entry.key for entry in journal.entries("finished")]
    assert keys[: len(finished)] == finished
    assert len(keys) == len(set(keys)) == len(planned.exploration.runs)
    again = run_study(STUDY, journal, testbed=WarmMachine(seed=2), estimator=ESTIMATOR)
    assert again.exploration.runs == planned.exploration.runs
    so_far = planned_so_far(prepare(STUDY, journal, testbed=WarmMachine(), estimator=ESTIMATOR))
    assert so_far.exploration.runs == planned.exploration.runs


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
    explored = conclude(separate_runs(), "sharing failed", growth=study.growth, choice=choice)
    assert len(explored.fitted) == (8 if choice == "edge" else 7)
    planned = plan_targets(study, explored)
    write_planned(planned, tmp_path / "plans.json")
    again = read_planned(tmp_path / "plans.json")
    assert again.study == study
    assert (again.exploration.fitted, again.exploration.left_out) == (explored.fitted, explored.left_out)
    assert plan_targets(study, again.exploration).plans[0].budget == planned.plans[0].budget


def test_the_live_panel_follows_the_loop(journal):
    runner = planning(STUDY, journal, WarmMachine(), ESTIMATOR)
    runner.start()
    last = runner.wait(60)
    assert last.state == "done", last.error
    assert (last.run, last.most_runs) == (4, 4)
    assert [line.text for line in last.lines if line.text.startswith("answer after 4 runs: nexmark:q1 at 3 k")]
    assert [run.budget for run in last.so_far.runs] == [run.budget for run in runner.result.exploration.runs]
    assert last.estimate.rate == pytest.approx(1000 * last.budget.slots, rel=0.1)


def test_who_shares():
    assert STUDY.shared
    assert replace(STUDY, deployment=None).shared
    for own in ({"choice": "edge"}, {"estimates": 2}, {"most_calls": 5}, {"form": "halves"}):
        assert replace(STUDY, deployment=None, **own).shared
    assert not replace(STUDY, deployment=None, testbed="fluid").shared
    assert not replace(STUDY, deployment="separate").shared
    assert not replace(STUDY, deployment=None, source="kafka", dataset="kafka://localhost:9092/bids").shared
