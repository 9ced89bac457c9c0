"""The trigger interval, seen from when batches began."""

import math
from itertools import pairwise

import pytest
from written_logs import BEGUN, application, progress, written

from workbench.observing import read_log, trigger_interval


@pytest.mark.parametrize("interval_s", [0.5, 1.0, 2.0, 5.0, 10.0, 60.0])
def test_the_trigger_interval_is_seen(interval_s):
    starts = [BEGUN + place * interval_s + 0.004 * (place % 3) for place in range(0, 60, 1)]
    skipped = [start for place, start in enumerate(starts) if place % 7]
    assert trigger_interval([(start, 0.3 * interval_s) for start in skipped]) == interval_s


@pytest.mark.parametrize("interval_s", [2.0, 10.0])
@pytest.mark.parametrize("version", ["3.4", "3.5"])
def test_rows_that_come_once_a_minute_do_not_hide_the_trigger_interval(tmp_path, interval_s, version):
    """Triggers in between find nothing, and Spark logs one of them every ten seconds."""
    log = list(application(4, "spark://m:7077"))
    for number in range(30):
        begun = BEGUN + 60 * number
        log.append(progress(number, 1000 + 100 * number, begun, batch_s=0.4))
        cleared_s = interval_s + 0.5  # of state, so that the trigger after it is late
        log.append(progress(number, 0, begun + interval_s, batch_s=cleared_s))
        log.append(progress(number, 0, begun + interval_s + cleared_s + 0.003, batch_s=0.01))
        for idle_s in range(12 if interval_s == 2.0 else 30, 60, 10):
            nothing = progress(number + 1, 0, begun + idle_s, batch_s=0.01)
            told = {name: nothing["progress"][name] for name in ("id", "runId", "timestamp")}
            idle = {"Event": nothing["Event"].replace("Progress", "Idle")} | told
            log.append(nothing if version == "3.4" else idle)
    assert read_log(written(tmp_path / "log", log)).interval_s == interval_s


def once_a_minute(interval_s):
    """Batches and logged idle triggers where rows come on the minute; Spark logs one of these in ten seconds."""
    batches, idle, told_s = [], [], 0.0
    for place in range(int(1800 / interval_s)):
        start_s = BEGUN + place * interval_s + 0.004 * (place % 3)
        if place * interval_s % 60 == 0:
            batches.append((start_s, 0.4))
            told_s = start_s + 0.4
        elif start_s - told_s >= 10:
            idle.append(start_s)
            told_s = start_s
    return batches, idle


@pytest.mark.parametrize("interval_s", [3.0, 4.0, 6.0, 12.0])
def test_no_trigger_interval_is_seen_where_several_leave_the_same_log(interval_s):
    assert {round(after - before) for before, after in pairwise(once_a_minute(interval_s)[1])} <= {12, 24}
    assert trigger_interval(*once_a_minute(interval_s)) is None


def test_a_trigger_interval_that_no_shorter_one_looks_like_is_seen():
    for interval_s in (2.0, 5.0, 10.0, 15.0, 20.0, 30.0):
        assert trigger_interval(*once_a_minute(interval_s)) == interval_s
    starts = [BEGUN + 12 * place for place in range(120) if place % 5]
    idle = [BEGUN + 12 * place for place in range(0, 120, 5)]
    assert trigger_interval([(start, 0.4) for start in starts], idle) == 12


def test_no_trigger_interval_is_seen_where_batches_follow_each_other():
    starts, now = [], BEGUN
    for place in range(60):
        length = 0.7 + 0.05 * math.sin(place)
        starts.append((now, length))
        now += length + 0.002
    assert trigger_interval(starts) is None
    assert trigger_interval([(start, 0.1) for start, _ in starts]) is None  # they waited, but not for a clock
