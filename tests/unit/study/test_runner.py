"""Long work in a thread: progress, cancel, resume. No test waits for a time to pass."""

import threading
from dataclasses import replace

import pytest
from wrapped_fluid import Interrupted, eventless

from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.journal import Journal
from workbench.measuring import CapacityEstimator, Configuration, measure, result_of
from workbench.simulation import preset
from workbench.study import Runner, Snapshot, Study, measuring, planning, run_study
from workbench.study.runner import time_left
from workbench.testbed import FluidTestbed

BUDGET = Budget(8, SlotProfile(1.0, 1024), 5.0)
ESTIMATOR = CapacityEstimator(tolerance=0.02)
STUDY = Study("nexmark:q1", (1e6,), (2, 8), (512, 1024), testbed="fluid", most_runs=4)
PATIENCE_S = 60


def ended(runner):
    """Start it, or resume it; what is known when it has ended."""
    runner.start()
    return runner.wait(PATIENCE_S)


def test_a_measurement_in_a_thread_is_the_same_measurement(tmp_path):
    runner = measuring(preset("q1"), BUDGET, FluidTestbed(), Journal(tmp_path / "a.jsonl"), ESTIMATOR)
    assert runner.snapshot().state == "idle"
    assert runner.snapshot().may_start
    assert not runner.snapshot().ran
    now = ended(runner)
    events = measure(Configuration(preset("q1"), BUDGET), FluidTestbed(), ESTIMATOR, Journal(tmp_path / "b.jsonl"))
    alone = result_of(events)
    assert (now.state, now.error, now.run, now.left_s) == ("done", None, 1, None)
    assert runner.result.estimate == alone.estimate
    assert now.estimate == alone.estimate
    assert now.probes == len(alone.estimate.probes) - 1
    assert now.most_probes == ESTIMATOR.max_probes
    assert [line.text for line in now.lines[-1:]] == ["finished"]
    assert "q1 on 8 slots of 1 core and 1,024 MB" in now.what


def test_cancelled_and_resumed_it_repeats_no_finished_probe(journal):
    runner = None

    def cancel_at_fifth(number):
        if number == 5:
            runner.cancel()
            assert runner.snapshot().state == "stopping"

    testbed = Interrupted(cancel_at_fifth)
    runner = measuring(preset("q1"), BUDGET, testbed, journal, ESTIMATOR)
    now = ended(runner)
    assert (now.state, now.may_start, now.error) == ("cancelled", True, None)
    assert now.lines[-1].text == "cancelled; what was measured is kept"
    recorded = len(journal.entries("probe"))
    assert recorded == now.probes + 1  # the warm-up
    with pytest.raises(WorkbenchError, match="has no result yet: it is cancelled"):
        _ = runner.result
    now = ended(runner)
    assert now.state == "done"
    assert any(line.text.startswith(f"resuming: {recorded} finished probes") for line in now.lines)
    probes = journal.entries("probe")
    assert [entry.data["number"] for entry in probes] == list(range(len(probes)))
    assert now.probes == len(probes) - 1


@pytest.mark.fault("an estimate is cancelled with its kernel", sees="cancelled; what was measured is kept")
def test_a_measurement_cancelled_with_its_kernel_goes_on_in_another(journal):
    first = None
    testbed = Interrupted(lambda number: first.cancel() if number == 4 else None)
    first = measuring(preset("q1"), BUDGET, testbed, journal, ESTIMATOR)
    done = ended(first).probes
    assert done > 0
    seen = []
    watched = Interrupted(lambda _: seen.append(second.snapshot().probes))
    second = measuring(preset("q1"), BUDGET, watched, journal, ESTIMATOR)
    assert ended(second).state == "done"
    assert seen[0] == done


def test_what_goes_wrong_is_told(journal):
    few = Budget(1, SlotProfile(1.0, 1024))
    runner = measuring(preset("q5"), few, FluidTestbed(), journal, ESTIMATOR)
    now = ended(runner)
    assert now.state == "failed"
    assert now.may_start
    assert now.error[0] == "WorkbenchError"
    assert now.lines[-1].text == now.error[1]
    with pytest.raises(WorkbenchError, match="it is failed"):
        _ = runner.result


def test_the_kernel_is_free_while_it_works_and_a_second_start_does_nothing():
    begun, go_on, times = threading.Event(), threading.Event(), []
    clock = iter(range(1000))

    def work(report):
        times.append(1)
        report.say("at work")
        begun.set()
        assert go_on.wait(PATIENCE_S)
        return "result"

    runner = Runner(Snapshot("nothing"), eventless(work), ESTIMATOR, clock=lambda: next(clock))
    runner.start()
    assert begun.wait(PATIENCE_S)
    now = runner.snapshot()
    assert (now.state, now.step, now.estimate, now.left_s) == ("running", "at work", None, None)
    assert now.elapsed_s > 0
    runner.start()
    go_on.set()
    assert runner.wait(PATIENCE_S).state == "done"
    runner.start()
    assert (runner.result, times) == ("result", [1])
    assert runner.snapshot().elapsed_s == runner.snapshot().elapsed_s  # it stands still


def test_a_study_is_planned_and_goes_on_after_a_cancellation(tmp_path):
    runner = None
    testbed = Interrupted(lambda number: runner.cancel() if number == 12 else None)
    runner = planning(STUDY, Journal(tmp_path / "a.jsonl"), testbed)
    cancelled = ended(runner)
    assert cancelled.state == "cancelled"
    now = ended(runner)
    assert now.state == "done"
    assert now.most_runs == 4
    assert now.run >= 4
    alone = run_study(STUDY, Journal(tmp_path / "b.jsonl"), testbed=FluidTestbed())
    assert [plan.budget for plan in runner.result.plans] == [plan.budget for plan in alone.plans]


def test_a_study_tells_which_query_and_budget_is_measured_now(journal):
    seen = []

    def look(_):
        now = runner.snapshot()
        seen.append((now.query, now.budget))

    runner = planning(STUDY, journal, Interrupted(look))
    assert (runner.snapshot().budget, runner.snapshot().ran) == (None, False)
    assert planning(replace(STUDY, testbed="spark"), journal).snapshot().ran  # time passes
    assert ended(runner).state == "done"
    measured = [run.budget for run in runner.result.exploration.measurements]
    assert {query for query, _ in seen} == {"nexmark:q1"}
    assert list(dict.fromkeys(budget for _, budget in seen)) == list(dict.fromkeys(measured))


def test_time_left_counts_halvings_of_the_bracket(journal):
    runner = measuring(preset("q1"), BUDGET, FluidTestbed(), journal, ESTIMATOR, costs=False)
    estimate = ended(runner).estimate
    assert time_left(None, 0.02, 0, 0, None) is None
    assert time_left(estimate, 0.02, 0, 0, None) == 0
    made = [probe.seconds for probe in estimate.probes if probe.phase == "probe"]
    mean = sum(made) / len(made)
    assert time_left(estimate, 0.02, 3, 0, None) == pytest.approx(3 * mean)
    assert time_left(estimate, 0.0049, 0, 0, None) == pytest.approx(3 * mean)  # a fourth of 2 % and a little
    assert time_left(estimate, 0.02, 0, 2, 100.0) == pytest.approx(200)
