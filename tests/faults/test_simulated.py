"""A query that throws, a clock that is set, a kernel that is restarted: on simulated time."""

import math
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from wrapped_fluid import Interrupted

from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.journal import Journal
from workbench.measuring import CapacityEstimator, Configuration, measure, result_of
from workbench.study import Study, StudyHistory, measuring, run_study
from workbench.testbed import FluidTestbed
from workbench.workload import nexmark

CONFIGURATION = Configuration(nexmark.query("q1"), Budget(2, SlotProfile(1.0, 1024)))
ESTIMATOR = CapacityEstimator(tolerance=0.02)
STUDY = Study("nexmark:q1", (2e6,), (2, 4, 8), (512,), testbed="fluid", slot_cpus=1.0, most_runs=3, form="linear")
FAILURE = "Query 'q1' failed at run time: ValueError: no such shop. Fix the query or the data."


def throwing(at):
    """A testbed whose query throws in the window of this number, after minutes of simulated time."""

    def look(number):
        if number == at:
            raise WorkbenchError(FAILURE)

    return Interrupted(look)


def measured(journal, testbed):
    return result_of(measure(CONFIGURATION, testbed, ESTIMATOR, journal))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """What is measured when nothing happens, and in how many windows."""
    testbed = throwing(0)
    return measured(Journal(tmp_path_factory.mktemp("calm") / "j.jsonl"), testbed), testbed.observed


@pytest.mark.fault("a query throws after minutes")
def test_a_query_that_throws(undisturbed, tmp_path, injected):
    calm, windows = undisturbed
    held = []
    for at in injected.moments(windows, 6):
        journal = Journal(tmp_path / f"{at}.jsonl")
        with pytest.raises(WorkbenchError, match="failed at run time") as seen:
            measured(journal, throwing(at))
        kept = journal.entries("probe") + journal.entries("load")
        held.append(len(kept))
        injected.seen(str(seen.value))
        again = measured(journal, FluidTestbed())
        assert (again.estimate.low, again.estimate.high) == (calm.estimate.low, calm.estimate.high)
        found = journal.entries("probe") + journal.entries("load")
        assert all(entry in found for entry in kept)
        assert len({(entry.kind, entry.data["number"], entry.data["attempt"]) for entry in found}) == len(found)
    assert max(held) > 0


@pytest.mark.fault("a query of a study throws after minutes")
def test_a_study_goes_on_with_its_other_runs(tmp_path, injected):
    calm = run_study(STUDY, Journal(tmp_path / "calm.jsonl"))
    for at in injected.moments(9):
        journal = Journal(tmp_path / f"{at}.jsonl")
        broken = None
        try:
            broken = run_study(STUDY, journal, testbed=throwing(at))
        except WorkbenchError as error:  # too few runs are left for a model
            assert "no such shop" in str(error)  # noqa: PT017 - either is right
        if broken is not None:
            assert any(getattr(run, "failure", None) == FAILURE for run in broken.exploration.runs)
        injected.seen(FAILURE)
        assert run_study(STUDY, journal).plans == calm.plans


class SetClock(datetime):
    """A clock that is set by an hour, back and forth, each time it is looked at."""

    looked = 0

    @classmethod
    def now(cls, tz=None):
        cls.looked += 1
        return datetime(2026, 1, 31, 12, tzinfo=tz) + timedelta(hours=(-1) ** cls.looked, seconds=cls.looked)


@pytest.mark.fault("the clock is set by an hour, both ways", times=8)
def test_a_clock_that_is_set(tmp_path, monkeypatch, injected):
    calm = run_study(STUDY, Journal(tmp_path / "calm.jsonl"))
    monkeypatch.setattr("workbench.measuring._measure.datetime", SetClock)
    found = run_study(STUDY, Journal(tmp_path / "set.jsonl"))
    assert SetClock.looked
    plain = [replace(plan, verdict=None) for plan in found.plans]
    assert plain == [replace(plan, verdict=None) for plan in calm.plans]
    history = StudyHistory(tmp_path / "weekly", clock=lambda: SetClock.now(UTC))
    before = None
    for run in range(4):
        _, previous = history.run(STUDY, testbed=FluidTestbed(seed=run))
        assert previous == before  # the run before, and not the one with the latest time
        before = history.runs[-1]
        injected.seen("nothing: times name runs, and a run is always named after the one before")
    assert len(history.runs) == 4
    assert not history.journal.path.exists()


@pytest.mark.fault("a notebook's kernel is restarted under a running estimate")
def test_a_kernel_that_is_restarted(undisturbed, tmp_path, injected):
    calm, windows = undisturbed
    query, budget = CONFIGURATION.query, CONFIGURATION.budget
    for at in injected.moments(windows):
        journal = Journal(tmp_path / f"{at}.jsonl")
        reached, never = threading.Event(), threading.Event()

        def stop(number, *, at=at, reached=reached, never=never):
            if number == at:
                reached.set()
                never.wait()

        runner = measuring(query, budget, Interrupted(stop), journal, ESTIMATOR)
        runner.start()
        assert reached.wait(60)  # here the kernel is gone: the thread does nothing any more
        kept = journal.path.read_bytes() if journal.path.exists() else b""
        again = measuring(query, budget, FluidTestbed(), journal, ESTIMATOR)
        again.start()
        assert again.wait(60).state == "done"
        assert (again.result.estimate.low, again.result.estimate.high) == (calm.estimate.low, calm.estimate.high)
        assert journal.path.read_bytes().startswith(kept)
        assert math.isclose(again.result.estimate.middle, calm.estimate.middle)
        injected.seen("the panel of the new kernel goes on from the last probe")
