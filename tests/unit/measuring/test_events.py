"""Events of measuring: their codec, their fold, and what reads them."""

import math
import re
from dataclasses import replace

import pytest
from example_measurement import example_measurement

from workbench.dataflow import Budget, SlotProfile
from workbench.measuring import (
    Abandoned,
    Deployed,
    Finished,
    LoadProbed,
    Probed,
    Reused,
    describe,
    describe_run,
    recorded,
    replay,
)
from workbench.measuring.events import Deployment, State, record
from workbench.records import SIMULATED, Machine

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
        Abandoned(KEY, "the grid changed"),
        Finished(KEY, measurement),
    ]


def test_what_is_recorded_is_read_again(journal, events):
    for event in events:
        record(journal, event)
    assert list(recorded(journal)) == events
    assert list(recorded(journal, "another")) == []
    assert [entry.kind for entry in journal.entries()][-3:] == ["load", "given up", "finished"]


def test_lines_of_another_kind_are_passed_over(journal, events):
    journal.append("remark", KEY, {"text": "lunch"})
    record(journal, events[0])
    assert list(recorded(journal)) == [events[0]]


def test_the_state_is_what_came_after_the_last_end(journal, events):
    deployed, warm_up, *_, load, given_up, finished = events
    for event in (deployed, warm_up, finished, deployed, warm_up, deployed, load):
        record(journal, event)
    state = replay(journal, KEY)
    assert state.finished == (finished.measurement,)
    assert state.deployments == (Deployment((warm_up.probe,)), Deployment((), (load.probe,)))
    assert (state.history, state.load_curve) == ((warm_up.probe,), (load.probe,))
    record(journal, given_up)
    assert replay(journal, KEY) == State((finished.measurement,))


def test_a_probe_of_another_process_is_passed_over(journal, events):
    record(journal, events[1])
    assert replay(journal, KEY) == State()


def test_the_line_of_a_run_says_which_it_is_and_what_it_found():
    run = example_measurement()
    said = describe_run(run, 2, (3, 3))
    assert re.fullmatch(r"run 2/3 · 4 slots of [0-9,]+ MB · 12\.9 k records/s \(.+ to .+\) · \d+ probes", said)
    assert describe_run(run, 2, (3, 20)).startswith("run 2 of at most 20 · ")
    assert describe_run(run, 4, (3, 3)).startswith("run 4 · ")


def test_every_step_has_its_line(events):
    said = [describe(event) for event in events]
    assert said[0] == "deployed on 2 slots of 1,024 MB at a trigger interval of 2 s"
    assert said[1].startswith("warm-up: ")
    assert said[-2:] == ["starting again: the grid changed", None]
    assert describe(Reused(KEY, example_measurement())) is None
    simulated = replace(events[0], machine=Machine(slots=SIMULATED))
    assert describe(simulated) == "simulated: 2 slots of 1,024 MB"


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0.0, math.inf, ": sustained. "),
        (602e3, math.inf, ": sustained (so far 602 k or more). "),
        (0.0, 640e3, ": sustained (so far below 640 k). "),
        (602e3, 640e3, ": sustained (so far 602 k to 640 k). "),
    ],
)
def test_the_line_of_a_probe_says_where_the_maximum_is_so_far(low, high, text):
    probe = next(one for one in example_measurement().estimate.probes if one.answered("sustained"))
    assert text in describe(Probed(KEY, probe, low, high))
