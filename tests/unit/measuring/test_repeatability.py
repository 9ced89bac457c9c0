"""The interval for the next deployment, against simulated repeats."""

import math
from dataclasses import replace

import numpy as np
import pytest

from workbench.errors import WorkbenchError
from workbench.measuring import EXPECTED_DEVIATION, expected_deviation
from workbench.measuring.repeatability import MOST_DISTURBED, disturbance_of, mst_interval, scatter
from workbench.metrics import Disturbance, Observation
from workbench.records import Machine, MstEstimate, Probe
from workbench.testbed.spark.machine.limits import describe


def estimate(low, high, limit="query"):
    return MstEstimate(low or None, low, high, (), None, limit, 60.0)


def test_one_measurement_rests_on_the_published_scatter():
    interval = mst_interval(estimate(100.0, 100.0))
    assert (interval.repeats, interval.level) == (1, 0.9)
    # Student's 0.95 quantile at 8 degrees of freedom is 1.8595
    assert interval.high == pytest.approx(100 * math.exp(1.8595 * 0.05 * math.sqrt(2)), rel=1e-4)
    assert interval.low * interval.high == pytest.approx(100.0**2)


def test_a_virtual_machine_is_expected_to_repeat_itself_less_well():
    assert describe().virtual in {True, False, None}
    shared, own = expected_deviation(Machine(virtual=True)), expected_deviation(Machine(virtual=False))
    assert expected_deviation(Machine(virtual=None)) == shared
    assert expected_deviation(Machine()) == own == EXPECTED_DEVIATION < shared
    wide, narrow = (mst_interval(estimate(100.0, 100.0), expected=one) for one in (shared, own))
    assert math.log(wide.high / 100) == pytest.approx(shared / own * math.log(narrow.high / 100))
    # six deployments of q5 next to a neighbour: each of their intervals is to hold all
    seen = [(148.0, 154.0), (155.0, 161.0), (157.0, 163.0), (160.0, 166.0), (163.0, 169.0), (167.0, 173.0)]
    spans = [mst_interval(estimate(*one), expected=shared) for one in seen]
    assert all(span.low <= math.sqrt(low * high) <= span.high for span in spans for low, high in seen)


def test_another_deployment_is_within_a_factor_of_1_6_of_a_bracket_of_4_percent():
    shared = expected_deviation(Machine(virtual=True))
    worst = replace(disturbed(0.5), low=669.0, high=696.0)
    interval = mst_interval(worst, expected=shared)
    assert interval.high / interval.low <= 1.6


def disturbed(share):
    """An estimate of a quiet probe and one that was disturbed by `share`."""
    seen = (Observation(100.0, 8.0, (), disturbance=Disturbance(slowdown=one)) for one in (0.0, share))
    return replace(estimate(100.0, 100.0), probes=tuple(Probe(1, "probe", 100.0, 1, one) for one in seen))


def test_neighbours_of_this_deployment_may_meet_the_next_one_or_not():
    quiet, noisy = (mst_interval(disturbed(share)) for share in (0.0, 0.2))
    assert quiet == mst_interval(estimate(100.0, 100.0))
    assert disturbance_of(disturbed(0.08)) == pytest.approx(0.04)
    assert disturbance_of(disturbed(0.2)) == MOST_DISTURBED
    always = Observation(100.0, 8.0, (), disturbance=Disturbance(slowdown=0.2))
    assert disturbance_of(replace(estimate(1.0, 1.0), probes=3 * (Probe(1, "probe", 1.0, 1, always),))) < 1e-9
    assert math.log(noisy.high / 100) == pytest.approx(math.hypot(0.05, 0.05) / 0.05 * math.log(quiet.high / 100))
    assert noisy.low * noisy.high == pytest.approx(100.0**2)


def test_the_bracket_widens_it_and_lies_within():
    narrow, wide = mst_interval(estimate(100.0, 101.0)), mst_interval(estimate(90.0, 112.0))
    assert wide.low < narrow.low < 90
    assert narrow.high < wide.high


def test_like_repeats_narrow_it_and_unlike_ones_widen_it():
    alone = mst_interval(estimate(100.0, 104.0))
    like = mst_interval(estimate(100.0, 104.0), [estimate(100.0, 104.0)] * 5)
    unlike = mst_interval(estimate(100.0, 104.0), [estimate(70.0, 73.0), estimate(140.0, 145.0)])
    assert like.repeats == 6
    assert like.deviation < EXPECTED_DEVIATION < unlike.deviation
    assert alone.low < like.low < like.high < alone.high
    assert unlike.low < 72
    assert unlike.high > 143


@pytest.mark.parametrize(
    "unbounded", [estimate(100.0, 120.0, "source"), estimate(0.0, 10.0), estimate(100.0, math.inf, "none")]
)
def test_without_a_bracket_of_the_querys_own_there_is_none(unbounded):
    assert mst_interval(unbounded) is None
    assert mst_interval(estimate(100.0, 104.0), [unbounded]).repeats == 1


def test_a_level_out_of_range_is_refused():
    with pytest.raises(WorkbenchError, match=r"level is 90; it must be between 0 and 1"):
        mst_interval(estimate(100.0, 104.0), level=90)


@pytest.mark.parametrize("repeats", [1, 2, 6])
def test_it_holds_the_next_deployment_as_often_as_it_says(repeats):
    """Over queries whose deviation is drawn from the prior: a scaled inverse chi-square of eight observations."""
    random = np.random.default_rng(repeats)
    held = 0
    trials = 4000
    for _ in range(trials):
        deviation = EXPECTED_DEVIATION * math.sqrt(8 / random.chisquare(8))
        *seen, following = np.exp(random.normal(0.0, deviation, repeats + 1)) * 1000.0
        estimates = [estimate(rate, rate) for rate in seen]
        interval = mst_interval(estimates[-1], estimates[:-1])
        held += interval.low <= following <= interval.high
    assert held / trials == pytest.approx(0.9, abs=0.02)


def test_scatter_is_pooled_within_groups_not_between_them():
    apart = scatter([[100.0, 100.0], [900.0, 900.0], [5.0]])
    assert apart == (pytest.approx(math.sqrt(8 * 0.05**2 / 10)), 10)
