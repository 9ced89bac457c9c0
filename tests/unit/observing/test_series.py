"""What rows cost and what grows by itself, and how often the interval of it holds the truth of simulated logs."""

from dataclasses import replace

import benchmark_script
import numpy as np
import pytest

from workbench.observing import headroom, read_log
from workbench.observing.running_query import SeenBatch
from workbench.observing.series import series_of


@pytest.fixture(scope="module")
def simulated():
    return benchmark_script.load("observed_intervals")


def queue(seconds_of, *, rate=5_000.0, interval_s=1.0, batches=600, grain=1.0):
    """Batches of a constant load that begin on the clock, or at once after one that overran it."""
    at_s, taken, seen, last = 0.0, 0.0, [], (-np.inf, -np.inf)
    for number in range(batches):
        there = np.floor(rate * at_s / grain) * grain
        rows, taken = there - taken, there
        lasts = seconds_of(number, rows)
        if rows:
            seen.append(SeenBatch(at_s, lasts, int(rows), 4, at_s - last[0], at_s - last[1], number=number))
        last = at_s, at_s + lasts
        at_s = max(np.floor(at_s / interval_s + 1e-9) * interval_s + interval_s, at_s + lasts)
    return seen[5:]


def test_a_drift_is_told_from_rows_that_follow_it():
    rng = np.random.default_rng(1)
    seen = queue(lambda number, rows: 0.2 + 2e-3 * number + 2e-6 * rows + rng.normal(0, 0.02))
    found = headroom(seen, 1.0)
    assert found.drift.low_s < 2e-3 < found.drift.high_s * 1.05
    assert found.drift.per_batch_s == pytest.approx(2e-3, rel=0.05)
    assert found.overrun.number == pytest.approx(395, abs=25)
    assert found.rate is None  # 1.4 s whatever it holds
    assert abs(found.neighbours_s - 2e-6) < 4 * found.neighbours_error_s
    assert found.drift.at_first > 5_000


def test_the_day_of_the_overrun_is_foretold():
    rng = np.random.default_rng(2)
    seen = queue(lambda number, rows: 0.2 + 5e-4 * number + 2e-6 * rows + rng.normal(0, 0.02))
    found = headroom(seen, 1.0)
    assert found.overrun is None
    assert found.drift.overrun_s == pytest.approx((1 - 0.21) / 5e-4, rel=0.1)


def test_weather_is_no_drift():
    rng = np.random.default_rng(3)
    weather = 0.0
    found = []
    for _ in range(20):

        def lasts(_, rows):
            nonlocal weather
            weather = 0.95 * weather + rng.normal(0, 0.03)
            return max(0.1, 0.4 + weather + 2e-6 * rows)

        found.append(headroom(queue(lasts, batches=300), 1.0).drift)
    assert sum(one is not None for one in found) <= 2


@pytest.mark.parametrize("grain", [5_000.0, 12_000.0])
def test_the_grain_of_a_source_is_no_peak(grain):
    rng = np.random.default_rng(4)
    found = headroom(queue(lambda *_: rng.uniform(0.9, 1.6), grain=grain), 1.0)
    assert found.mean_rate == pytest.approx(5_000, rel=0.02)
    assert 5_000 * 0.97 < found.peak_rate < 5_000 * 1.08


def test_a_constant_load_gives_a_bound():
    rng = np.random.default_rng(5)
    found = headroom(queue(lambda *_: 0.16 + rng.normal(0, 0.01), batches=494), 1.0)
    assert found.rate is None
    assert found.at_least == pytest.approx(31_000, rel=0.05)


@pytest.mark.parametrize(
    ("left", "rows", "held"),
    [(None, 5_000, True), (False, 5_000, False), (None, 5_010, False), (True, 5_000, True), (True, 5_010, True)],
)
def test_batches_that_are_all_alike_may_be_held_by_a_cap(left, rows, held):
    """Unless the source says that they left nothing, as Kafka does and files do not."""
    seen = queue(lambda *_: 0.16, batches=100)
    alike = [replace(one, left_rows=left, rows=rows if one.number % 4 else 5_000) for one in seen]
    found = headroom(alike, 1.0)
    assert found.rate is None
    assert found.may_be_held is held


def test_neighbours_are_not_sought_across_a_restart():
    """After it, batches take twice as long and hold twice as much: a slope between the two would be a cost."""
    rng = np.random.default_rng(6)
    first = [SeenBatch(1.0 * n, 0.3 + rng.normal(0, 0.01), int(rng.uniform(900, 1100)), 4, 1.0, 0.7) for n in range(80)]
    again = [
        SeenBatch(500.0 + n, 0.6 + rng.normal(0, 0.01), int(rng.uniform(1900, 2100)), 4, 1.0, 0.4, start=2)
        for n in range(80)
    ]
    found = headroom([*first, *again], 1.0)
    assert abs(found.neighbours_s) < 4 * found.neighbours_error_s
    assert found.neighbours_error_s < 1e-4


@pytest.mark.long
@pytest.mark.parametrize(("kind", "widest"), [("drift", 1.8), ("overrun", 1.6), ("sink that stalls", 2.0)])
def test_the_interval_holds_the_truth_of_each_kind(simulated, tmp_path, kind, widest):
    rooms = [
        headroom(read_log(simulated.of_kind(tmp_path / "log", simulated.KINDS[kind], seed)).batches, 2.0)
        for seed in range(12)
    ]
    _, inside, _, _, width, _ = simulated.summed(rooms)
    assert inside >= 0.75  # of 12, where nine in ten are meant
    assert width < widest


def costing(lasts_s, seed, batches=300):
    """A load that moves up to half of the 40,000 rows that fill an interval of 2 s."""
    rng = np.random.default_rng(seed)
    rows = 10_000 + 9_000 * np.sin(np.arange(batches) / 19)
    seconds = lasts_s(rows / 40_000) * np.exp(rng.normal(0, 0.05, batches))
    return [
        SeenBatch(2.0 * number, float(one), int(many), 4, 2.0, 1.0, number=number)
        for number, (many, one) in enumerate(zip(rows, seconds, strict=True))
    ]


def test_rows_that_cost_the_less_the_more_there_are_sustain_more_than_a_line_shows():
    found = [headroom(costing(lambda x: 0.2 + 0.9 * x + 0.9 * np.sqrt(x), seed), 2.0) for seed in range(10)]
    assert sum(one.low < 20_000 < one.high for one in found) >= 9
    assert np.median([one.rate for one in found]) == pytest.approx(20_000, rel=0.05)
    assert all(one.high < 1.6 * one.low for one in found)


@pytest.mark.parametrize("lasts_s", [lambda x: 0.2 + 1.8 * x, lambda x: 0.2 + 1.8 * x**1.3])
def test_rows_that_cost_alike_or_the_more_the_more_there_are_are_taken_for_a_line(lasts_s):
    """Of ten logs of a line few show a power, and it is close to 1."""
    powers = [series_of(costing(lasts_s, seed)).power for seed in range(10)]
    assert sum(one < 1 for one in powers) <= 3
    assert min(powers) > 0.85


def test_a_bend_is_followed_next_to_a_drift_too():
    bent = costing(lambda x: 0.2 + 0.9 * x + 0.9 * np.sqrt(x), 0)
    grown = [replace(one, batch_s=one.batch_s + 2e-3 * one.number) for one in bent]
    alone, found = series_of(bent), series_of(grown)
    assert found.drift is not None
    assert found.drift.per_batch_s == pytest.approx(2e-3, rel=0.1)
    assert alone.power < 0.9
    assert found.power == pytest.approx(alone.power, abs=0.05)


@pytest.mark.parametrize(("power", "ending"), [(0.5, 0.5), (2.0, 2.0)])
def test_a_drift_that_slows_down_or_speeds_up_is_followed_to_the_log_s_end(power, ending):
    """In 300 batches it adds .6 s: 2 ms a batch in the mean; a root adds half as much at the end, a square twice."""
    grown = [
        replace(one, batch_s=one.batch_s + 0.6 * (one.number / 299) ** power)
        for one in costing(lambda x: 0.2 + 1.2 * x, 0)
    ]
    found = headroom(grown, 2.0)
    assert found.low < 20_000 < found.high
    assert found.drift.per_batch_s == pytest.approx(2e-3, rel=0.3)  # a root is no parabola
    assert found.drift.ending_s == pytest.approx(ending * 2e-3, rel=0.4)
    assert found.drift.overrun_s > grown[-1].start_s


@pytest.mark.parametrize("ended", [120, 160, 195])
def test_a_drift_that_has_ended_meets_no_interval(ended):
    grown = [
        replace(one, batch_s=one.batch_s + 0.6 * min(1.0, one.number / ended))
        for one in costing(lambda x: 0.2 + 1.2 * x, 0)
    ]
    found = headroom(grown, 2.0)
    assert found.drift.ending_s <= 0
    assert found.drift.overrun_s is None
    assert found.low < 20_000 < found.high


def test_the_form_of_a_drift_is_doubted_where_the_noise_hides_it():
    """Another form would move the log's end by about .1 s; it is as likely as what it explains, next to the noise."""

    def ended(noise):
        rng = np.random.default_rng(1)
        return [
            replace(one, batch_s=one.batch_s + 0.4 * min(1.0, one.number / 190) + rng.normal(0, noise))
            for one in costing(lambda x: 0.2 + 1.2 * x, 0)
        ]

    hidden, clear = series_of(ended(0.15)), series_of(ended(0.0))
    assert hidden.drift.ending_s > 0 >= clear.drift.ending_s
    assert 0.02 < hidden.form_s < 0.2
    assert clear.form_s < 0.005
    assert series_of(costing(lambda x: 0.2 + 1.2 * x, 0)).form_s == 0


def in_a_day(lasts_s, seed, adds_s=2e-3, since=0):
    """A load of one hump, which a bent drift resembles, of batches that get longer from number `since` on."""
    rng = np.random.default_rng(seed)
    rows = 1_000 + 18_000 * np.sin(np.pi * np.arange(300) / 300)
    seconds = lasts_s(rows / 40_000) * np.exp(rng.normal(0, 0.05, 300))
    return [
        SeenBatch(2.0 * n, float(one) + adds_s * max(0, n - since), int(many), 4, 2.0, 1.0, number=n)
        for n, (many, one) in enumerate(zip(rows, seconds, strict=True))
    ]


@pytest.mark.parametrize("power", [1.0, 1.15, 1.3])
def test_a_bent_cost_is_no_bent_drift(power):
    for seed in range(5):
        drift = series_of(in_a_day(lambda x: 0.2 + 1.2 * x**power, seed)).drift
        assert drift.ending_s == pytest.approx(2e-3, rel=0.6)


def test_a_drift_that_begins_late_is_told_from_when_it_began():
    began = [series_of(in_a_day(lambda x: 0.2 + 1.2 * x, seed, since=120)).drift.since for seed in range(10)]
    assert sum(100 <= one <= 140 for one in began) >= 9


def test_a_table_that_is_compacted_in_the_end_leaves_times_above_0():
    """A drift is no fall, and what has fallen does not continue below what was seen."""
    for seed in range(5):
        grown = in_a_day(lambda x: 0.3 + 1.2 * x, seed)
        seen = [replace(one, batch_s=one.batch_s - 0.5 * (one.number > 255)) for one in grown]
        found = series_of(seen)
        assert found.now_s.min() > 0
        assert found.drift is None or found.drift.per_batch_s > 0


def test_three_batches_that_stall_in_the_end_are_no_growth():
    for seed in range(5):
        seen = in_a_day(lambda x: 0.3 + 1.2 * x, seed, adds_s=20e-3)[:45]
        seen[-3:] = [replace(one, batch_s=3 * one.batch_s) for one in seen[-3:]]
        drift = series_of(seen).drift
        assert drift is None or drift.ending_s == pytest.approx(20e-3, rel=0.5)


def inside(simulated, path, name, level, seeds):
    """Share of the logs whose interval holds the truth, and the median of high / low."""
    _, share, _, _, width, none = simulated.covered(path / "log", simulated.SHAPES[name], level, 120, range(seeds))
    assert none == 0
    return share, width


@pytest.mark.parametrize(("level", "widest"), [(0.3, 2.1), (0.7, 1.45)])
def test_the_interval_holds_what_a_query_with_pauses_sustains(simulated, tmp_path, level, widest):
    share, width = inside(simulated, tmp_path, "GC outliers", level, 4)
    assert share == 1
    assert width < widest


def test_the_interval_holds_what_a_query_with_a_neighbour_sustains(simulated, tmp_path):
    """What slows one batch slows the next ones, too, so a day's busiest batches are few readings."""
    share, width = inside(simulated, tmp_path, "neighbour", 0.7, 25)
    assert share >= 0.9
    assert width < 1.6


def test_weather_that_lasts_is_more_doubt_than_weather_that_changes():
    """The same deviations of batches, in turns of one batch or of fifteen."""
    rows = 20_000 + 15_000 * np.sin(np.arange(120) / 19)
    widths = []
    for turn in (1, 15):
        off = np.where(np.arange(120) // turn % 2, 1.1, 0.9)
        seconds = (0.3 + rows / 30_000) * off
        seen = [
            SeenBatch(2.0 * place, float(one), int(count), 4, 2.0, 1.0)
            for place, (count, one) in enumerate(zip(rows, seconds, strict=True))
        ]
        found = headroom(seen, 2.0)
        widths.append(found.high / found.low)
    assert widths[1] > 1.25 * widths[0]
