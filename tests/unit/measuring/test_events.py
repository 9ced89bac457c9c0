"""Events of measuring: their codec, their fold, and what reads them."""

import pytest
from example_measurement import example_measurement

from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.journal import Journal
from workbench.measuring import (
    CapacityEstimator,
    Deployed,
    Finished,
    GivenUp,
    LoadProbed,
    Probed,
    Reused,
    describe,
    recorded,
    replay,
    result_of,
)
from workbench.measuring.events import record
from workbench.measuring.state import Deployment, State

BUDGET = Budget(2, SlotProfile(0.4, 1024), 2.0)
KEY = "q1/abc"


@pytest.fixture
def events():
    measurement = example_measurement()
    warm_up, *probes = measurement.estimate.probes
    return [
        Deployed(KEY, measurement.machine, BUDGET),
        Probed(KEY, warm_up),
        *(Probed(KEY, probe) for probe in probes),
        LoadProbed(KEY, probes[0]),
        GivenUp(KEY, "the grid changed"),
        Finished(KEY, measurement),
    ]


def test_what_is_recorded_is_read_again(tmp_path, events):
    journal = Journal(tmp_path / "j.jsonl")
    for event in events:
        record(journal, event)
    assert list(recorded(journal)) == events
    assert list(recorded(journal, "another")) == []
    assert [entry.kind for entry in journal.entries()][-3:] == ["load", "given up", "finished"]


def test_lines_of_another_kind_are_passed_over(tmp_path, events):
    journal = Journal(tmp_path / "j.jsonl")
    journal.append("remark", KEY, {"text": "lunch"})
    record(journal, events[0])
    assert list(recorded(journal)) == [events[0]]


def test_the_state_is_what_came_after_the_last_end(tmp_path, events):
    journal = Journal(tmp_path / "j.jsonl")
    deployed, warm_up, *_, load, given_up, finished = events
    for event in (deployed, warm_up, finished, deployed, warm_up, deployed, load):
        record(journal, event)
    state = replay(journal, KEY)
    assert state.finished == (finished.measurement,)
    assert state.deployments == (Deployment((warm_up.probe,)), Deployment((), (load.probe,)))
    assert (state.history, state.load_curve) == ((warm_up.probe,), (load.probe,))
    record(journal, given_up)
    assert replay(journal, KEY) == State((finished.measurement,))


def test_a_probe_of_another_process_is_passed_over(tmp_path, events):
    journal = Journal(tmp_path / "j.jsonl")
    record(journal, events[1])
    assert replay(journal, KEY) == State()


def test_every_step_has_its_line(events):
    said = [describe(event) for event in events]
    assert said[0] == "deployed on 2 slots of 1024 MB at a trigger interval of 2 s"
    assert said[1].startswith("warm-up: ")
    assert said[-2:] == ["starting again: the grid changed", None]
    assert describe(Reused(KEY, example_measurement())) is None


def test_an_error_while_listening_releases_what_is_deployed(events):
    released = []

    def steps():
        try:
            yield from events
        finally:
            released.append(True)

    def refuse(_):
        raise WorkbenchError("enough")

    with pytest.raises(WorkbenchError, match="enough"):
        result_of(steps(), refuse)
    assert released == [True]


class Twice:
    """A schedule of your own: the warm-up, then two probes at fixed rates."""

    most_probes, strict = 2, True

    def __init__(self, like):
        self.like = like

    def times(self, interval_s):
        return self.like.times(interval_s)

    def next_step(self, history, interval_s):
        return self.like.next_step(history, interval_s) if len(history) < 3 else None

    def conclude(self, history, interval_s):
        return self.like.conclude(history, interval_s)


def test_a_schedule_can_be_injected():
    from simulated_run import SimulatedRun

    run = SimulatedRun()
    estimator = CapacityEstimator(0.02, schedule=Twice(CapacityEstimator(0.02).steps), clock=run.clock)
    assert len(estimator.estimate(run).probes) == 3
    with pytest.raises(WorkbenchError, match="schedule is 'random'; allowed are adaptive, streambed"):
        CapacityEstimator(schedule="random")
