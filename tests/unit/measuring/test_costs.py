import math
import random
from dataclasses import replace

import numpy as np
import pytest

from workbench.errors import WorkbenchError
from workbench.measuring import EXPECTED_DEVIATION, count_levels, expected_deviation, fit_costs, fit_line
from workbench.measuring.costs import MOST_DISTURBED, disturbance_of, mst_interval
from workbench.metrics import Disturbance, Observation, TaskSample
from workbench.records import Machine, MstEstimate, Probe
from workbench.testbed.spark.machine.quota import describe


def samples(operator, records, cost):
    return [TaskSample(operator, float(x), cost(x)) for x in records]


def test_exact_line_is_found_per_operator_and_three_levels_of_two_percent_each_are_needed():
    data = samples("scan", [100, 200, 400], lambda x: 0.5 + 0.01 * x) + samples("join", [10, 20, 30], lambda x: 0.1 * x)
    scan, join = fit_costs(data)
    assert (scan.operator, join.operator) == ("scan", "join")
    assert (scan.fixed_s, scan.per_record_s) == (pytest.approx(0.5), pytest.approx(0.01))
    assert scan.per_record_error == pytest.approx(0, abs=1e-9)
    assert (scan.records_low, scan.records_high, scan.samples, scan.levels) == (100, 400, 3, 3)
    assert (join.fixed_s, join.per_record_s) == (pytest.approx(0, abs=1e-12), pytest.approx(0.1))
    (cost,) = fit_costs(samples("scan", [100, 101, 200, 201, 202], lambda x: 0.5 + 0.01 * x))
    assert (cost.fixed_s, cost.per_record_s, cost.per_record_error) == (None, None, None)
    assert (cost.levels, cost.samples) == (2, 5)
    assert fit_costs([]) == ()
    assert fit_line([]) is None
    assert fit_line([(0.0, 1.0)]) is None
    assert fit_costs(samples("idle", [0, 0, 0], lambda _x: 1.0))[0].per_record_s is None
    assert count_levels([100, 102, 102.1, 104, 200]) == 3
    assert count_levels([0, 0, 1]) == 2


def test_costs_are_never_negative_and_their_error_is_the_textbook_one():
    (below,) = fit_costs(samples("o", [1, 2, 3], lambda x: x - 0.9))
    assert below.fixed_s == 0.0
    assert below.per_record_s == pytest.approx((0.1 + 2 * 1.1 + 3 * 2.1) / 14)
    (falling,) = fit_costs(samples("o", [1, 2, 3], lambda x: 4 - x))
    assert (falling.fixed_s, falling.per_record_s) == (pytest.approx(2.0), 0.0)
    from scipy.stats import linregress

    rng = random.Random(7)
    points = [(x, 2 + 0.3 * x + rng.gauss(0, 0.2)) for x in range(1, 40)]
    line, expected = fit_line(points), linregress(*zip(*points, strict=True))
    assert (line.fixed, line.slope, line.slope_error) == pytest.approx(
        (expected.intercept, expected.slope, expected.stderr)
    )


def estimate(low, high, limit="query"):
    return MstEstimate(low or None, low, high, (), None, limit, 60.0)


def test_one_measurement_rests_on_the_published_scatter_at_a_level_below_1():
    interval = mst_interval(estimate(100.0, 100.0))
    assert (interval.repeats, interval.level) == (1, 0.9)
    # Student's 0.95 quantile at 8 degrees of freedom is 1.8595
    assert interval.high == pytest.approx(100 * math.exp(1.8595 * 0.05 * math.sqrt(2)), rel=1e-4)
    assert interval.low * interval.high == pytest.approx(100.0**2)
    with pytest.raises(WorkbenchError, match=r"level is 90; it must be above 0 and below 1"):
        mst_interval(estimate(100.0, 104.0), level=90)


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


def disturbed(share):
    """An estimate of a quiet probe and one that was disturbed by `share`."""
    seen = (Observation(100.0, 8.0, (), disturbance=Disturbance(slowdown=one)) for one in (0.0, share))
    return replace(estimate(100.0, 100.0), probes=tuple(Probe(1, "probe", 100.0, 1, one) for one in seen))


def test_neighbours_of_this_deployment_may_meet_the_next_one_or_not_and_the_bracket_lies_within():
    quiet, noisy = (mst_interval(disturbed(share)) for share in (0.0, 0.2))
    assert quiet == mst_interval(estimate(100.0, 100.0))
    assert disturbance_of(disturbed(0.08)) == pytest.approx(0.04)
    assert disturbance_of(disturbed(0.2)) == MOST_DISTURBED
    always = Observation(100.0, 8.0, (), disturbance=Disturbance(slowdown=0.2))
    assert disturbance_of(replace(estimate(1.0, 1.0), probes=3 * (Probe(1, "probe", 1.0, 1, always),))) < 1e-9
    assert math.log(noisy.high / 100) == pytest.approx(math.hypot(0.05, 0.05) / 0.05 * math.log(quiet.high / 100))
    assert noisy.low * noisy.high == pytest.approx(100.0**2)
    narrow, wide = mst_interval(estimate(100.0, 101.0)), mst_interval(estimate(90.0, 112.0))
    assert wide.low < narrow.low < 90
    assert narrow.high < wide.high
    shared = expected_deviation(Machine(virtual=True))
    worst = replace(disturbed(0.5), low=669.0, high=696.0)
    interval = mst_interval(worst, expected=shared)
    assert interval.high / interval.low <= 1.6


def test_like_repeats_narrow_it_and_unlike_ones_widen_it_by_their_scatter():
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
