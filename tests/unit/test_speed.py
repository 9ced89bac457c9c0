"""How fast cores are: what is timed, what counts as typical, and the cores of two machines compared."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench import speed
from workbench.records import PlannedStudy
from workbench.speed import REFERENCE, CoreSpeed, CoreTimer, measure_speed, relative_speed, slowness, typical

RECORDED = Path(__file__).parents[2] / "data" / "q5.recorded.json"
SECONDS = st.floats(1e-6, 10)


def took(arithmetic=1.0, reads=1.0, batch=None):
    return CoreSpeed(arithmetic, reads, batch)


def test_each_half_is_what_the_clock_says_and_each_time_other_cells_are_read():
    times = iter([1.0, 1.5, 1.6])
    timing = CoreTimer(cpu_s=lambda: next(times), cells=1000).time()
    assert timing.arithmetic_s == pytest.approx(0.5)
    assert timing.reads_s == pytest.approx(0.1)
    timer = CoreTimer(cells=speed._CELLS)
    timer.time()
    before = timer._places
    timer.time()
    assert len(np.intersect1d(before, timer._places)) < 0.01 * len(before)
    assert timer._places.max() < speed._CELLS


def test_the_work_is_done_on_the_slots_cores_if_they_are_there_and_the_thread_moved_back():
    cores = os.sched_getaffinity(0)
    there = []
    chosen = {max(cores)}
    CoreTimer(chosen, cpu_s=lambda: there.append(os.sched_getaffinity(0)) or 0.0, cells=1000).time()
    assert there == [chosen] * 3
    assert os.sched_getaffinity(0) == cores
    assert CoreTimer({10_000}, cells=1000).time().reads_s >= 0
    assert os.sched_getaffinity(0) == cores


def measured(timings, seconds):
    """Measure for `seconds` on a clock of its own, on which the work takes no time."""
    now, each = [0.0], iter(timings)

    def sleep(seconds):
        now[0] += seconds

    found = measure_speed(seconds, time_once=lambda: next(each), clock=lambda: now[0], sleep=sleep)
    return found, now[0], sum(1 for _ in each)


def test_a_machine_is_timed_four_times_a_second_and_its_median_counts():
    timings = [took(9, 9), *[took(1.0, 2.0)] * 40, *[took(1.2, 2.2)] * 41, *[took(7, 7)] * 10]
    found, ended_s, left = measured(timings, 20.0)
    assert found == took(1.2, 2.2)
    assert ended_s == 20.0
    assert left == 10  # the first one is cold, then one at the start and four a second
    assert measured([took(9, 9), took(1.0, 2.0)], 0.0) == (took(1.0, 2.0), 0.0, 0)


def test_a_stalled_read_does_not_disturb_and_slowness_is_relative_to_the_median():
    assert typical([took(1.0, 2.0), took(1.1, 200.0), took(5.0, 2.1)]) == took(1.1, 2.1)
    assert typical([took(1, 1), took(1, 1, 0.2), took(1, 1, 0.4)]).warm_batch_s == pytest.approx(0.3)
    assert typical([took(1, 1)]).warm_batch_s is None
    assert str(took(0.00025, 0.000304, 0.21)) == "arithmetic 0.25 ms, random reads 0.30 ms, Spark batch 210 ms"
    assert slowness([took(1.0), took(1.1), took(1.2)]) == pytest.approx([1 / 1.1, 1.0, 1.2 / 1.1])
    assert slowness([took(1.0), None]) == [1.0, 1.0]


def test_cores_are_compared_by_the_pieces_that_both_have():
    untimed = took(0.0, 0.0)
    assert not untimed.pieces
    assert relative_speed(None, took()) is relative_speed(took(), None) is relative_speed(took(), untimed) is None
    found = relative_speed(took(1.65, 1.65, 2.1), took(1.0, 1.0))
    assert found.times == pytest.approx(1 / 1.65)
    assert (found.low, found.high) == pytest.approx((1 / 1.65 / 1.15, 1.15 / 1.65))
    assert found.differs
    three = relative_speed(took(2.0, 1.0, 0.8), took(1.0, 1.0, 0.1))
    assert tuple(three) == pytest.approx(((1 / 2 * 1 * 1 / 8) ** (1 / 3), 1 / 8, 1.0))
    assert not three.differs


@given(here=st.builds(took, SECONDS, SECONDS, SECONDS | st.none()), there=st.builds(took, SECONDS, SECONDS))
def test_the_interval_holds_every_piece_and_is_never_narrow(here, there):
    times, low, high = relative_speed(here, there)
    for piece in (there.arithmetic_s / here.arithmetic_s, there.reads_s / here.reads_s):
        assert low <= piece <= high
    assert low <= times / 1.15 * (1 + 1e-12)
    assert high >= times * 1.15 * (1 - 1e-12)
    back = relative_speed(there, here)
    assert (back.times, back.low, back.high) == pytest.approx((1 / times, 1 / high, 1 / low))


def test_the_reference_machine_is_the_recorded_one():
    stored = PlannedStudy.from_json(RECORDED)
    assert "batch_s" in RECORDED.read_text()  # of a Spark batch whose code was being compiled: it is not compared
    assert all(run.core_speed.warm_batch_s is None for run in stored.measurements)
    seen = typical([run.core_speed for run in stored.measurements])
    assert seen.arithmetic_s == pytest.approx(REFERENCE.arithmetic_s, rel=0.02)
    assert seen.reads_s == pytest.approx(REFERENCE.reads_s, rel=0.02)
