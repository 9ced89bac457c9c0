"""How fast memory answers, compared with the quickest observation under no less load."""

import math

import numpy as np
import pytest

from workbench.testbed.spark import memory_speed
from workbench.testbed.spark.memory_speed import MemoryReader, slowdown


def test_the_last_observation_is_compared_with_the_quickest():
    assert slowdown([(math.inf, 10e-9), (1000.0, 16e-9), (1000.0, 12e-9)]) == pytest.approx(0.2)


def test_the_quickest_is_not_slowed():
    assert slowdown([]) == 0.0
    assert slowdown([(math.inf, 16e-9)]) == 0.0
    assert slowdown([(math.inf, 16e-9), (1000.0, 12e-9)]) == 0.0


def test_less_load_is_not_comparable_and_more_is():
    """A query at a low rate leaves memory freer: a higher one must not look disturbed by itself."""
    assert slowdown([(790.0, 10e-9), (1000.0, 15e-9)]) == 0.0
    assert slowdown([(810.0, 10e-9), (1000.0, 15e-9)]) == pytest.approx(0.5)
    assert slowdown([(1000.0, 10e-9), (100.0, 15e-9)]) == pytest.approx(0.5)


def test_a_clock_that_stands_still_tells_nothing():
    assert slowdown([(1000.0, 0.0), (1000.0, 15e-9)]) == 0.0


def test_a_read_takes_its_share_of_the_time_between_two_looks_at_the_clock():
    times = iter([1.0, 1.5, 7.0, 7.1])
    reader = MemoryReader(cpu_s=lambda: next(times), cells=1000)
    assert reader.read_s() * memory_speed._READS == pytest.approx(0.5)
    assert reader.read_s() * memory_speed._READS == pytest.approx(0.1)


def test_each_time_other_cells_are_read():
    reader = MemoryReader(cells=memory_speed._CELLS)
    reader.read_s()
    before = reader._places
    reader.read_s()
    assert len(np.intersect1d(before, reader._places)) < 0.01 * memory_speed._READS
    assert reader._places.max() < memory_speed._CELLS
