"""Where a capture of a topic begins, so that its limits are reached at the newest records."""

import bisect
import math
import time

import pytest

from workbench.errors import WorkbenchError
from workbench.testbed.spark.kafka.sample import Limits, beginning

NOW_MS = 1_790_000_000_000


class Stamped:
    """A topic whose records, of 1 KiB, have the times of `stamps`, ms since 1970, by partition."""

    def __init__(self, stamps):
        self.stamps = stamps

    def since(self, at_ms, ends):
        return {number: bisect.bisect_left(self.stamps[number], at_ms) for number in ends}

    def row_bytes(self, begin):
        assert any(first < len(self.stamps[number]) for number, first in begin.items())
        return 1024.0


@pytest.fixture
def begun(monkeypatch):
    monkeypatch.setattr(time, "time", lambda: NOW_MS / 1000)

    def begin(stamps, **limits):
        ends = {number: (0, len(times)) for number, times in stamps.items()}
        first = beginning(Stamped(stamps), Limits(**limits), ends)
        return {number: len(times) - first[number] for number, times in stamps.items()}

    return begin


def spread(count, seconds, before_s=0):
    """Times of `count` records within `seconds`, until `before_s` ago."""
    return [NOW_MS - round(1000 * (before_s + seconds * (1 - place / count))) for place in range(count)]


@pytest.mark.parametrize("before_s", [0, 5, 40_000_000])
def test_partitions_are_captured_since_one_moment(begun, before_s):
    taken = begun({0: spread(90_000, 900, before_s), 1: spread(10_000, 900, before_s), 2: []}, rows=10_000)
    assert 9_990 <= sum(taken.values()) <= 10_000
    assert taken[0] == pytest.approx(9_000, abs=20)
    assert taken[2] == 0


@pytest.mark.parametrize(
    ("stamps", "limits", "taken"),
    [
        ({0: spread(5_000, 50), 1: spread(50_000, 500, before_s=100)}, {"rows": 1_000}, {0: 1_000, 1: 0}),  # no traffic
        ({0: spread(500, 5), 1: spread(7, 500)}, {"rows": 1_000}, {0: 500, 1: 7}),  # less than is asked: all
        ({0: spread(6_000, 600), 1: spread(600, 600)}, {"seconds": 60.0}, {0: 600, 1: 60}),
    ],
)
def test_what_is_captured_of_each_partition(begun, stamps, limits, taken):
    assert begun(stamps, **limits) == taken


@pytest.mark.parametrize("at_ms", [NOW_MS - 5_000, NOW_MS + 3_600_000, 0])
def test_records_of_one_time_are_shared_in_proportion(begun, at_ms):
    taken = begun({0: 9_000 * [at_ms], 1: 1_000 * [at_ms]}, rows=1_000)
    assert taken == pytest.approx({0: 900, 1: 100}, abs=1)


def test_of_large_records_fewer_are_read_so_that_they_are_the_newest(begun):
    taken = begun({0: spread(50_000, 500), 1: spread(50_000, 500)}, megabytes=10)
    assert taken == pytest.approx({0: 4_864, 1: 4_864}, abs=100)  # 95 % of 10 MiB, of 1 KiB each


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"rows": 0}, "rows is 0"),
        ({"seconds": -1.0}, "seconds is -1.0"),
        ({"seconds": math.inf}, "seconds is inf"),
        ({"megabytes": 2000}, "at most 1,024"),
    ],
)
def test_limits_are_checked(given, text):
    with pytest.raises(WorkbenchError, match=text):
        Limits(**given)
