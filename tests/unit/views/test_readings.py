"""A measurement from readings is described as one: no rate of it was confirmed as sustained or not."""

from dataclasses import replace
from pathlib import Path

import pytest

from workbench.metrics import Disturbance
from workbench.study import read_planned
from workbench.views.figures import batch_times, probes
from workbench.views.health import checks

RECORDED = Path(__file__).parents[3] / "data" / "q5.recorded.json"


@pytest.fixture
def run():
    """Measured when budgets took turns and were read at the maximum rate."""
    return next(one for one in read_planned(RECORDED).exploration.measurements if one.estimate.from_readings)


def changed(run, **what):
    """Give the measurement with its readings changed."""
    readings = tuple(replace(probe, **what) for probe in run.estimate.probes)
    return replace(run, estimate=replace(run.estimate, probes=readings))


def check(run, question):
    return next(one for one in checks(run) if one.question == question)


def disturbed(run, *rounds):
    readings = tuple(
        replace(p, observation=replace(p.observation, disturbance=Disturbance(other_load=0.2 * (p.number in rounds))))
        for p in run.estimate.probes
    )
    return replace(run, estimate=replace(run.estimate, probes=readings))


def test_figures_mark_the_mean_and_show_the_batches(run):
    mark = probes(run.query, run.budget, run.estimate)
    assert (mark.marked, mark.mark) == (run.estimate.middle, "mean of the readings")
    drawn = batch_times(run.query, run.budget, run.estimate)
    assert drawn.marked == pytest.approx(2 * run.estimate.middle)
    assert set(drawn.verdicts) == {"reading"}
    assert len(drawn.rows) == sum(len(p.observation.batches) - 1 for p in run.estimate.probes)


def test_health_names_rounds(run):
    assert check(run, "Were the readings steady?").advice == ""
    loose = check(changed(run, steady=False), "Were the readings steady?")
    assert loose.finding.startswith("In round 2 the second half of the reading was still faster or slower")
    assert "deployment: separate" in loose.advice
    assert "agree nearly as well as asked" in check(run, "Were there enough rounds?").finding
    out = replace(run, estimate=replace(run.estimate, exhausted=True))
    assert "The rounds ran out" in check(out, "Were there enough rounds?").finding


def test_a_state_that_no_row_left_is_a_young_one(run):
    question = "Had the state its working size?"
    run = changed(run, filled=True)
    look, *later = run.estimate.probes
    assert check(run, question).advice == ""
    mixed = replace(run.estimate, probes=(replace(look, filled=False), *later))
    assert check(replace(run, estimate=mixed), question).advice == ""
    assert "whose state is not emptied between probes" in check(changed(run, filled=False), question).advice
    assert check(changed(run, filled=None), question).finding is None  # of an earlier version


def test_a_disturbed_reading_is_named_and_only_counts_against_the_rate_where_no_quiet_one_is(run):
    question = "Was the machine left alone?"
    assert check(run, question).finding == "No reading was disturbed."
    one, both = disturbed(run, 2), disturbed(run, 1, 2)
    assert not one.estimate.disturbed
    assert check(one, question).advice == ""
    assert "The reading of round 2 was taken while others used the machine" in check(one, question).finding
    assert both.estimate.disturbed
    assert "measure again" in check(both, question).advice
