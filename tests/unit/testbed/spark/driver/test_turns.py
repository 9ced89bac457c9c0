"""How many rows the first batches of a turn have."""

import pytest

from workbench.dataflow import Budget, SlotProfile
from workbench.testbed.spark.driver.turns import LEAST_BATCH_ROWS, FirstRows, Turn


def turn(slots, interval_s=2.0, partitions=None):
    return Turn(Budget(slots, SlotProfile(0.2, 1024), interval_s), partitions or slots, partitions or slots)


def test_a_turn_begins_where_its_last_one_ended():
    rows = FirstRows()
    rows.keep(turn(4), 4000)
    rows.keep(turn(1), 900)
    assert rows.of(turn(1)) == 900


def test_a_first_turn_begins_in_proportion_to_the_nearest_one():
    rows = FirstRows()
    rows.keep(turn(8), 8000)
    rows.keep(turn(1), 900)
    assert rows.of(turn(4)) == 4000
    assert rows.of(turn(2)) == 900  # as near to 1 as to 4: the first known is 8; never more than fitted before
    assert rows.of(turn(8, 1.0)) == 4000
    assert rows.of(turn(1, partitions=4)) == 900
    rows.keep(turn(1), 1)
    assert rows.of(turn(1, partitions=2)) == LEAST_BATCH_ROWS


def test_nothing_known_is_refused():
    with pytest.raises(ValueError, match="empty"):
        FirstRows().of(turn(1))
