"""How fast the slots' cores are, compared with the quickest observation under no less load; what others take."""

import math
from unittest.mock import MagicMock

import pytest

from workbench.speed import CoreSpeed
from workbench.testbed.spark.machine.disturbance import InterferenceProbe, Load, load, slowdown, spark_batch_s


def took(arithmetic=1.0, reads=1.0):
    return CoreSpeed(arithmetic, reads)


@pytest.mark.parametrize(
    ("seen", "slower"),
    [
        # arithmetic counts in full, and reads by half
        ([(math.inf, took()), (1000.0, took(1.2, 1.2))], 0.2),
        ([(math.inf, took()), (1000.0, took(1.1, 1.4))], 0.2),
        ([(math.inf, took()), (1000.0, took(1.0, 9.0))], 1.0),
        # each is compared with its own quickest, which is not slowed
        ([(math.inf, took(1.0, 2.0)), (1000.0, took(2.0, 1.0)), (1000.0, took(1.1, 1.1))], 0.1),
        ([], 0.0),
        ([(math.inf, took())], 0.0),
        ([(math.inf, took(1.5, 1.5)), (1000.0, took())], 0.0),
        # less load is not comparable, for it leaves caches and memory freer; more is
        ([(790.0, took()), (1000.0, took(1.5))], 0.0),
        ([(810.0, took()), (1000.0, took(1.5))], 0.5),
        ([(1000.0, took()), (100.0, took(1.5))], 0.5),
        # a clock that stands still shows nothing
        ([(1000.0, took(0.0, 0.0)), (1000.0, took())], 0.0),
    ],
)
def test_slowdown(seen, slower):
    assert slowdown(seen) == pytest.approx(slower)


class Cores:
    """Cores whose work takes what `took_at` says of the second, on a clock that goes on by 0.1 s a tick."""

    def __init__(self, took_at):
        self.took_at, self.now, self.timed = took_at, 0.0, 0
        self.interference = InterferenceProbe(self.time, lambda: self.now)

    def time(self):
        self.timed += 1
        return took(self.took_at(self.now))

    def tick(self):
        self.now += 0.1

    def wait(self, most_s=240.0, others=lambda: 0.0):
        self.interference.wait(1000.0, most_s, self.tick, others)

    def observe(self, rate=1000.0, seconds=10.0):
        end = self.now + seconds
        while self.now < end:
            self.tick()
            self.interference.sample()
        return self.interference.end(rate)[0]


@pytest.mark.parametrize(("seconds", "least", "most"), [(10.0, 30, 40), (0.0, 1, 1)])
def test_an_observation_times_the_work_four_times_a_second_and_once_at_least(seconds, least, most):
    cores = Cores(lambda _at: 1.0)
    assert cores.observe(seconds=seconds) == 0.0
    assert least <= cores.timed <= most


def test_each_observation_has_its_own_timings_and_none_that_are_taken_while_waiting():
    cores = Cores(lambda at: 1.3 if 10 < at < 20 else 1.0)
    assert [cores.observe() for _ in range(3)] == pytest.approx([0.0, 0.3, 0.0])
    cores = Cores(lambda at: 1.3 if 10 < at < 40 else 1.0)
    cores.observe()
    cores.observe()
    cores.wait(1.0)
    assert cores.now < 25
    cores.now = 40.0
    assert cores.observe() == 0.0


def test_it_waits_until_the_cores_have_been_fast_and_free_for_a_while_and_hardly_longer_than_asked():
    cores = Cores(lambda at: 1.3 if 10 < at < 60 else 1.0)
    cores.observe()
    cores.observe()
    cores.wait()
    assert 60 < cores.now < 70
    assert cores.observe() == 0.0
    cores = Cores(lambda _at: 1.0)
    cores.observe()
    cores.wait(others=lambda: 0.3 * (cores.now < 50))
    assert 50 < cores.now < 60
    cores = Cores(lambda at: 1.3 if at > 10 else 1.0)
    cores.observe()
    cores.observe()
    cores.wait(10.0)
    assert 30 <= cores.now < 35
    begun = cores.now
    cores.wait(0.0)
    assert cores.now == begun


def fixed_batch(costs):
    """Time the fixed batch on a Spark whose batches cost these CPU seconds, one after the other."""
    spark, used, coming = MagicMock(), [0.0], iter(costs)
    rows = spark.range.return_value.selectExpr.return_value.groupBy.return_value.count.return_value
    rows.write.format.return_value.mode.return_value.save.side_effect = lambda: used.append(used[-1] + next(coming))
    return spark_batch_s(spark, lambda: used[-1])


def test_the_fixed_batch_is_timed_once_its_code_is_compiled_and_its_cpu_seconds_are_seen():
    cold, warm = [9.0] * 15, [0.1, 0.3] * 5
    assert fixed_batch(cold + warm) == pytest.approx(0.2)
    assert fixed_batch([0.0] * 25) is None
    assert fixed_batch(cold + [-8.0] * 10) is None  # threads ended meanwhile


# --- what others take of the machine, of all of it or of the slots' cores


def at(second, *, busy, ours, slots=None):
    return Load(second, busy, 0.0, ours, 32, slots=slots)


@pytest.mark.parametrize(
    ("busy", "ours", "before", "after", "shown"),
    [
        (40.0, 8.0, None, None, (0.1, 0.0)),  # of all cores
        (15.0, 10.0, (1, 100.0, 60.0, 0.0), (1, 110.0, 65.0, 0.0), (0.5, 0.0)),  # of the slots' cores
        (26.0, 10.0, (2, 100.0, 60.0, 0.0), (2, 110.0, 70.0, 0.0), (0.05, 0.0)),  # nowhere near the slots
        (8.0, 8.0, (1, 100.0, 60.0, 7.0), (1, 108.0, 68.0, 8.0), (0.0, 0.1)),  # stolen from the slots' cores
    ],
)
def test_others_are_told_as_a_share_of_cores(busy, ours, before, after, shown):
    begun = at(0.0, busy=0.0, ours=0.0, slots=before)
    seen = at(10.0, busy=busy, ours=ours, slots=after).disturbance_since(begun)
    assert (seen.other_load, seen.steal) == pytest.approx(shown)


def test_the_slots_cores_are_read_apart_unless_the_system_numbers_them_otherwise():
    assert load((), 1.0, {0, 10_000}, 2.5).slots is None
    seen = load((), 1.0, {0}, 2.5)
    assert (seen.slots[0], seen.slots[2]) == (1, 2.5)
    assert 0 < seen.slots[1] <= seen.busy_s
    assert load((), 1.0).slots is None
