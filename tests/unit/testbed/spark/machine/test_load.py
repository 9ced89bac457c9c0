"""What others take of the machine, of all of it or of the slots' cores."""

import pytest

from workbench.testbed.spark.machine.load import Load, load


def at(second, *, busy, ours, slots=None):
    return Load(second, busy, 0.0, ours, 32, slots=slots)


def test_others_are_told_as_a_share_of_all_cores():
    seen = at(10.0, busy=40.0, ours=8.0).disturbance_since(at(0.0, busy=0.0, ours=0.0))
    assert seen.other_load == pytest.approx(0.1)


def test_others_on_the_slots_cores_are_told_as_a_share_of_these():
    before = at(0.0, busy=0.0, ours=0.0, slots=(1, 100.0, 60.0, 0.0))
    after = at(10.0, busy=15.0, ours=10.0, slots=(1, 110.0, 65.0, 0.0))
    assert after.disturbance_since(before).other_load == pytest.approx(0.5)


def test_who_is_nowhere_near_the_slots_counts_for_all_cores_only():
    before = at(0.0, busy=0.0, ours=0.0, slots=(2, 100.0, 60.0, 0.0))
    after = at(10.0, busy=26.0, ours=10.0, slots=(2, 110.0, 70.0, 0.0))
    assert after.disturbance_since(before).other_load == pytest.approx(0.05)


def test_time_stolen_from_the_slots_cores_counts_for_these():
    before = at(0.0, busy=0.0, ours=0.0, slots=(1, 100.0, 60.0, 7.0))
    after = at(10.0, busy=8.0, ours=8.0, slots=(1, 108.0, 68.0, 8.0))
    assert after.disturbance_since(before).steal == pytest.approx(0.1)


def test_cores_that_the_system_numbers_otherwise_are_not_told_apart():
    assert load((), 1.0, {0, 10_000}, 2.5).slots is None


def test_the_slots_cores_are_read_apart():
    seen = load((), 1.0, {0}, 2.5)
    assert (seen.slots[0], seen.slots[2]) == (1, 2.5)
    assert 0 < seen.slots[1] <= seen.busy_s
    assert load((), 1.0).slots is None
