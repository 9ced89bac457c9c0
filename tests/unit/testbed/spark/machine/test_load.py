"""What others take of the machine, of all of it or of the slots' cores."""

import pytest

from workbench.testbed.spark.machine.load import Load, load


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
