"""What readings say: against least squares written out, and on simulated machines with a known truth."""

import math
from dataclasses import replace

import numpy as np
import pytest

from workbench.errors import WorkbenchError
from workbench.measuring.readings import (
    Rounds,
    enough,
    estimate,
    filling_rate,
    levels,
    reading_estimate,
    steady,
    weights_of,
)
from workbench.metrics import Batch, Disturbance, Observation
from workbench.records import Probe
from workbench.speed import CoreSpeed

INTERVAL = 2.0


def batches(rows, seconds):
    return tuple(
        Batch(float(place), took, count, 0.0, 0.0)
        for place, (count, took) in enumerate(zip(rows, seconds, strict=True))
    )


def reading(number, rate, *, rows=(0.9, 1.0, 1.1, 1.2), slower=0.0, limit=math.inf):
    """A reading whose batches, apart from the first, fill an interval at `rate`."""
    counts = [round(share * rate * INTERVAL) for share in (1.0, *rows)]
    took = [INTERVAL * share for share in (1.0, *rows)]
    seen = Observation(
        math.inf, 8.0, batches(counts, took), source_rate_limit=limit, disturbance=Disturbance(slowdown=slower)
    )
    return Probe(number, "reading", math.inf, 1, seen, seconds=20.0, steady=True)


def test_a_batch_that_lasts_the_interval_gives_its_own_rate():
    assert filling_rate(batches([1000], [INTERVAL])) == 500
    assert filling_rate(batches([500], [1.0])) == 500
    assert filling_rate(batches([0, 100, 200, 900], [0.1, 1, 2, 3])) == 200  # a slow batch costs its time
    assert filling_rate(()) == 0


def test_readings_are_steady_as_far_as_their_scatter_can_say():
    def seen(rates):
        return Observation(
            math.inf, 8.0, batches([100, *(round(100 * rate) for rate in rates)], [1.0] * (len(rates) + 1))
        )

    assert steady(seen([10, 10, 10, 10]), 0.05)
    assert not steady(seen([10, 10, 14, 14]), 0.05)
    assert steady(seen([10, 15, 11, 16]), 0.05)
    assert not steady(seen([]), 0.05)


def test_rounds_cancel_in_the_ratios():
    drifting = {1: 1.0, 2: 1.5, 3: 0.8}
    small = [reading(n, 100 * factor) for n, factor in drifting.items()]
    large = [reading(n, 390 * factor) for n, factor in drifting.items()]
    found = levels([small, large], 0.05)
    assert found.rates[1] / found.rates[0] == pytest.approx(3.9, rel=0.01)
    assert found.rounds == 3
    assert found.drift == pytest.approx(np.std(np.log([1.0, 1.5, 0.8]), ddof=1), rel=0.02)
    assert found.half_widths[0] < levels([small[:1], large[:1]], 0.05).half_widths[0]


def test_equal_weights_give_the_mean_of_the_logarithms():
    random = np.random.default_rng(1)
    rates = np.exp(random.normal(6, 1, (3, 4)))
    readings = [[reading(n + 1, rate, rows=(1.0, 1.0)) for n, rate in enumerate(own)] for own in rates]
    found = levels(readings, 0.05)
    assert found.rates == pytest.approx(np.exp(np.log(rates).mean(axis=1)), rel=0.01)
    assert len(set(np.round(found.half_widths, 9))) == 1


def test_a_disturbed_reading_counts_little_and_a_cut_round_not_at_all():
    quiet = [reading(1, 100), reading(2, 100), reading(3, 100)]
    hit = [reading(1, 200), reading(2, 140, slower=0.3), reading(3, 200), reading(4, 999)]
    assert weights_of(hit, 0.05)[2] < 0.05
    found = levels([quiet, hit], 0.05)
    assert found.rates[1] == pytest.approx(200, rel=0.03)
    assert levels([quiet, []], 0.05) is None
    assert found.half_widths[1] > found.half_widths[0] * 0.99


def test_a_look_before_the_state_is_filled_does_not_count_where_every_budget_was_read_later():
    def read(number, rate, *, filled):
        return replace(reading(number, rate), filled=filled)

    rates = (100, 200, 400)
    looked = [[read(1, 1.3 * rate, filled=False), read(2, rate, filled=True)] for rate in rates]
    assert levels(looked, 0.05).rates == pytest.approx(rates, rel=1e-9)
    assert levels(looked, 0.05).rounds == 2
    looked[0][0] = read(1, 0.2 * rates[0], filled=False)  # the driver was still cold
    assert levels(looked, 0.05).rates == pytest.approx(rates, rel=1e-9)
    young = [[read(1, 1.3 * rate, filled=False), read(2, rate, filled=False)] for rate in rates]
    found = levels(young, 0.05)
    assert found.rates == pytest.approx([1.3**0.5 * rate for rate in rates], rel=0.02)
    known = levels([[reading(1, rate), reading(2, rate)] for rate in rates], 0.05)
    assert found.half_widths == pytest.approx(known.half_widths, rel=0.05)


def test_other_load_counts_as_far_as_the_slots_had_quota_left():
    def next_to(load, quota_left):
        seen = replace(reading(1, 100).observation, disturbance=Disturbance(other_load=load, open=quota_left))
        return weights_of([replace(reading(1, 100), observation=seen)], 0.05)[1]

    assert next_to(0.5, 1.0) == pytest.approx(0.01, abs=0.001)
    assert next_to(0.5, 0.1) == pytest.approx(0.5)
    assert next_to(0.5, 0.0) == 1


@pytest.mark.parametrize("rates", [(100,), (100, 200, 400)])
def test_a_round_in_which_every_budget_was_disturbed_lowers_no_rate(rates):
    readings = [[reading(1, rate), reading(2, 0.6 * rate, slower=0.4), reading(3, rate)] for rate in rates]
    found = levels(readings, 0.05)
    assert found.rates == pytest.approx(rates, rel=0.02)
    quiet = levels([[reading(n, rate) for n in (1, 2)] for rate in rates], 0.05)
    assert found.half_widths == pytest.approx(quiet.half_widths, rel=0.2)


def test_rounds_end_when_the_ratios_are_known():
    rounds = Rounds(least=2, most=3, precision=0.1)
    one = levels([[reading(1, 100)], [reading(1, 200)]], 0.001)
    two = levels([[reading(1, 100), reading(2, 100)], [reading(1, 200), reading(2, 200)]], 0.001)
    assert not enough(None, rounds)
    assert not enough(one, rounds)
    assert enough(two, rounds)
    assert not enough(levels([[reading(1, 100), reading(2, 100)]] * 2, 0.5), rounds)
    with pytest.raises(WorkbenchError, match="most is 1; it must be a whole number of at least 2"):
        Rounds(least=2, most=1)


def test_the_estimate_says_what_bounds_it():
    own = [reading(1, 1000), reading(2, 1000, limit=900)]
    made = reading_estimate(own)
    assert (made.limit, made.steady) == ("source", True)
    assert made.low < made.rate < made.high
    assert made.middle == pytest.approx(made.rate)
    assert made.seconds == 40
    found = levels([own], 0.05)
    assert estimate(own, found, 0, Rounds(precision=0.5)).exhausted is False
    assert reading_estimate([reading(1, 0, rows=(0, 0))]) is None


def test_a_first_round_that_was_cold_for_all_hardly_counts_and_one_that_was_not_does():
    cold = [[reading(1, 50), reading(2, 100), reading(3, 102)], [reading(1, 20), reading(2, 200), reading(3, 204)]]
    found = levels(cold, 0.1)
    assert found.rates == pytest.approx((101, 202), rel=0.06)
    warm = [[reading(1, 95), reading(2, 100), reading(3, 102)], [reading(1, 20), reading(2, 200), reading(3, 204)]]
    assert levels(warm, 0.1).rates[1] < 150  # one budget alone is noise, not the cold


def test_faster_cores_raise_no_rate():
    """One of two budgets is read while the cores are a fifth faster: the ratio is that of equal cores."""

    def timed(probe, arithmetic_s):
        return replace(probe, observation=replace(probe.observation, cores=CoreSpeed(arithmetic_s, 6e-4)))

    small = [timed(reading(n, 100), 4e-4) for n in (1, 2, 3)]
    large = [timed(reading(1, 200), 4e-4), timed(reading(2, 250), 3.2e-4), timed(reading(3, 200), 4e-4)]
    found = levels([small, large], 0.05)
    assert found.rates == pytest.approx((100, 200), rel=0.01)
    untimed = [large[0], replace(large[1], observation=replace(large[1].observation, cores=None)), large[2]]
    assert levels([small, untimed], 0.05).rates[1] > 210
