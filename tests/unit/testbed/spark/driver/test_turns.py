"""How many rows the first batches of a turn have."""

import pytest

from workbench.dataflow import Budget, SlotProfile
from workbench.testbed.spark.driver.ramp import LEAST_BATCH_ROWS, first_rows
from workbench.testbed.spark.driver.spec import Turn


def turn(slots, interval_s=2.0, partitions=None):
    return Turn(Budget(slots, SlotProfile(0.2, 1024), interval_s), partitions or slots, partitions or slots)


def test_a_turn_begins_where_its_last_one_ended():
    assert first_rows(turn(1), {turn(4): 4000, turn(1): 900}) == 900


def test_a_first_turn_begins_in_proportion_to_the_nearest_one():
    fitted = {turn(8): 8000, turn(1): 900}
    assert first_rows(turn(4), fitted) == 4000
    assert first_rows(turn(2), fitted) == 900  # never more than fitted before
    assert first_rows(turn(8, 1.0), fitted) == 4000
    assert first_rows(turn(1, partitions=4), fitted) == 900
    assert first_rows(turn(1, partitions=2), {**fitted, turn(1): 1}) == LEAST_BATCH_ROWS


def test_nothing_known_is_refused():
    with pytest.raises(ValueError, match="empty"):
        first_rows(turn(1), {})
