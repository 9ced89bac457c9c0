"""How many rows fit a batch, the first sizes of a turn, and a feed that obeys only when the query starts again."""

import json
import math
from pathlib import Path
from random import Random
from statistics import mean
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.testbed.spark.driver import live as live_module
from workbench.testbed.spark.driver.feed import ReplayFeed
from workbench.testbed.spark.driver.live import (
    _MOST_STARTS,
    LEAST_BATCH_ROWS,
    MOST_FITTING,
    LiveQuery,
    _root_cause,
    first_rows,
    fitting_rows,
)
from workbench.testbed.spark.driver.session import Turn, Writes
from workbench.testbed.spark.log.event_log import BatchLog, EventLog
from workbench.workload import Release


@given(st.floats(0.0, 1.8), st.floats(1e-6, 1e-3), st.integers(100, 10**6))
def test_it_converges_to_the_batch_that_fills_the_interval(fixed, per_row, rows):
    seen = []
    for _ in range(60):
        seen.append((rows, fixed + per_row * rows))
        rows = fitting_rows(seen, 2.0)
    wanted = max(LEAST_BATCH_ROWS, (2.0 - fixed) / per_row)
    assert rows == pytest.approx(wanted, rel=0.05, abs=2)


def test_rows_leap_until_their_cost_shows_also_where_a_cold_driver_overruns_the_interval():
    """A batch takes about a second whatever it holds; 100,000 rows would fill the interval."""
    needed = []
    for seed in range(200):
        random = Random(seed)
        seen, rows = [], 500
        while rows < 80_000:
            seen.append((rows, random.uniform(0.8, 1.2) + 1e-5 * rows))
            rows = fitting_rows(seen, 2.0)
        needed.append(len(seen))
        assert rows < 640_000  # eight times a size that showed nothing
    assert mean(needed) < 6
    # Batches of 443 rows took 1.2 to 2.0 s, of which the slots worked a third: more rows cost next to nothing.
    seen, rows = [], 443
    while rows < 100_000:
        seen.append((rows, 2.2 + 1e-6 * rows))
        rows = fitting_rows(seen, 2.0)
    assert len(seen) <= 6


def test_a_size_that_has_filled_the_interval_is_left_in_small_steps_down_to_the_least_batch():
    assert fitting_rows([(60_000, 2.1), (55_000, 1.5), (58_000, 1.4)], 2.0) <= 1.25 * 58_000
    larger = [(100_000, 2.1), (105_000, 2.3), (60_000, 1.75), (80_000, 1.5)]  # count more than one fast batch
    assert fitting_rows(larger, 2.0) < 100_000
    assert fitting_rows([(50_000, 1.1), (70_000, 1.0)], 2.0) == 560_000  # rows cost nothing yet
    cold = [(1, 2.5), (2_000, 1.0), (4_000, 1.0)]  # the first batch pays for the plan
    assert fitting_rows(cold, 2.0) == 32_000
    rows = 5_000
    for _ in range(40):
        rows = fitting_rows([(rows, 9.0)], 2.0)
    assert rows == LEAST_BATCH_ROWS


def living(folder, feed=None, **options):
    spec = SimpleNamespace(name="q", checkpoints="", quota=None, writes=Writes())
    return LiveQuery(spec, folder, 2.0, EventLog(folder / "log"), feed or ReplayFeed(folder), None, **options)


def commanded(folder):
    return json.loads((folder / "control.json").read_text())


@pytest.mark.parametrize(
    ("rate", "rows"),
    [(35_000.0, 87_500), (45_000.0, 100_000), (1_000.0, 100_000), (0.0, 100_000)],  # the last two are too far away
)
def test_the_maximum_rate_begins_near_what_was_carried(tmp_path, rate, rows):
    live = living(tmp_path)
    live.expect(100_000)
    live.command(rate)
    live.command(math.inf)
    assert commanded(tmp_path)["max_records"] == rows


class Taken(ReplayFeed):
    """A feed of which every batch took the rows that it was commanded last."""

    def release(self, log):
        rows = commanded(self._folder)["max_records"]
        return Release(1, log.batch_id, 0, rows, 0, 0, rows, 0)


def test_the_first_batch_of_a_query_pays_for_its_start_and_says_little_of_a_row(tmp_path):
    live = living(tmp_path, Taken(tmp_path))
    live.expect(1_149)
    live.command(math.inf)
    sizes = []
    for number, took_ms in enumerate((6_600, 620, 620, 630)):
        live.take(BatchLog(number, {"durationMs": {"triggerExecution": took_ms}}, ()), None, 0.0)
        sizes.append(live.rows_fitting)
    assert sizes[0] == 766  # there is no other
    assert sizes[1:] == [4_941, 39_528, 316_224]


def test_a_rate_that_is_far_too_high_makes_no_batch_without_end(tmp_path):
    live = living(tmp_path)
    live.expect(1_000)
    for rate, rows in ((200.0, 400), (1e9, 1_000 * MOST_FITTING)):
        live.command(rate)
        command = commanded(tmp_path)
        assert (command["rate"], command["max_records"], command["interval_s"]) == (rate, rows, 2.0)


class Ended:
    """A query that has ended because its source's Python process did not start in time."""

    id = "one"
    isActive = False  # noqa: N815 - Spark's name

    def exception(self):
        return "SparkException: Python worker failed to connect back."


def test_a_source_whose_python_starts_too_slowly_is_started_again_some_times(tmp_path):
    begun = []
    live = living(tmp_path, query=Ended())
    live._begin = lambda: begun.append(True) or Ended()
    for _ in range(_MOST_STARTS - 1):
        live.check()
    assert len(begun) == _MOST_STARTS - 1
    with pytest.raises(WorkbenchError, match="failed to connect back"):
        live.check()


def test_a_python_error_is_found_among_java_causes_else_the_innermost_of_these():
    text = (
        "Job aborted\nCaused by: org.apache.spark.SparkException: wrapped\n"
        "Traceback (most recent call last):\nZeroDivisionError: division by zero\n\tat java.lang.Thread.run"
    )
    assert _root_cause(text) == "ZeroDivisionError: division by zero"
    assert _root_cause("x\nCaused by: a.B: outer\nCaused by: a.C: inner.") == "a.C: inner"


@pytest.mark.parametrize("row_s", [1e-4, 1e-5, 3e-6])
@pytest.mark.parametrize("fixed_s", [0.1, 0.5, 1.0])
def test_the_ramp_fills_the_interval_within_six_batches(fixed_s, row_s):
    seen, rows = [], 2_000
    while not seen or seen[-1][1] < 0.8 * 2.0:
        seen.append((rows, fixed_s + row_s * rows))
        rows = fitting_rows(seen, 2.0)
    assert len(seen) <= 6


def turn(slots, interval_s=2.0, partitions=None):
    return Turn(Budget(slots, SlotProfile(0.2, 1024), interval_s), partitions or slots, partitions or slots)


def test_a_turn_begins_where_its_last_one_ended_or_in_proportion_to_the_nearest_one():
    fitted = {turn(8): 8000, turn(1): 900}
    assert first_rows(turn(1), fitted) == 900
    assert first_rows(turn(4), fitted) == 4000
    assert first_rows(turn(2), fitted) == 900  # never more than fitted before
    assert first_rows(turn(8, 1.0), fitted) == 4000
    assert first_rows(turn(1, partitions=4), fitted) == 900
    assert first_rows(turn(1, partitions=2), {**fitted, turn(1): 1}) == LEAST_BATCH_ROWS
    with pytest.raises(ValueError, match="empty"):
        first_rows(turn(1), {})


class Topic:
    restarts, exhausted, fresh = True, False, True

    def __init__(self):
        self.offered, self.begun = [], []

    def offer(self, command):
        self.offered.append(command.max_records)

    def starts(self, last_batch):
        self.begun.append(last_batch)
        self.exhausted = False
        return self.fresh


@pytest.fixture
def live(tmp_path, monkeypatch):
    query = living(tmp_path / "live", Topic())
    runs = []

    def run(self, frame):
        place = Path(self._checkpoint)
        runs.append((frame, place.name))
        (place / "offsets").mkdir(parents=True, exist_ok=True)
        (place / "offsets" / "7").touch()
        self.query = SimpleNamespace(id="1", isActive=True, stop=lambda: None)

    monkeypatch.setattr(LiveQuery, "_run", run)
    query._frame = lambda: "frame"
    query.expect(1_000)
    return query, runs


def test_a_new_rate_starts_it_again_from_its_checkpoint_and_rate_0_pauses_it(live):
    query, runs = live
    query.command(0.0)
    assert query.paused
    query.check()  # it is not a failure that it does not run
    assert runs == []
    query.feed.offered.clear()
    query.command(100.0)
    assert not query.paused
    query.feed.fresh = False
    query.command(200.0)
    assert query.feed.offered == [200, 400]
    assert query.feed.begun == [-1, 7]
    assert runs == [("frame", "checkpoint1")] * 2


def test_on_a_cluster_its_checkpoints_are_those_that_all_reach(live, tmp_path, monkeypatch):
    query, runs = live
    query.spec.checkpoints = shared = str(tmp_path / "shared")
    asked = []
    monkeypatch.setattr(live_module, "names_in", lambda _, place: asked.append(place) or ["3", "x"])
    monkeypatch.setattr(live_module, "remove", lambda *_: None)
    query.command(100.0)
    query.command(200.0)  # its topic has run out: it begins again with an empty state
    assert query.feed.begun == [3, 3]
    assert asked == [f"{shared}/live/offsets", f"{shared}/live1/offsets"]
    assert [checkpoint for _, checkpoint in runs] == ["live1", "live2"]


def test_an_exhausted_feed_begins_again_with_an_empty_state_and_a_new_epoch(live):
    query, runs = live
    query.command(100.0)
    epoch = query.epoch
    query.feed.exhausted = True
    query.check()
    assert [checkpoint for _, checkpoint in runs] == ["checkpoint1", "checkpoint2"]
    assert not (query.folder / "checkpoint1").exists()
    assert (query.epoch, query.feed.offered) == (epoch + 1, [200, 200])
    query.check()
    assert len(runs) == 2


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        ('Partition orders-0 lost. set the source option "failOnDataLoss" to "false".', "its retention overtook"),
        ("Caused by: org.apache.kafka.clients.consumer.OffsetOutOfRangeException: x", "its retention overtook"),
        ("java.lang.ArithmeticException: Division by zero", "Fix the query or the data"),
    ],
)
def test_records_that_a_topic_dropped_are_no_fault_of_the_query(live, failure, said):
    query, _ = live
    query.command(100.0)
    query.query.isActive, query.query.exception = False, lambda: failure
    with pytest.raises(WorkbenchError, match=said):
        query.check()
