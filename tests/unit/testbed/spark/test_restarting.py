"""A query whose feed obeys a command only when the query starts again."""

from types import SimpleNamespace

import pytest

from workbench.errors import WorkbenchError
from workbench.testbed.spark.event_log import EventLog
from workbench.testbed.spark.live import LiveQuery, Meter


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
    query = LiveQuery("q", tmp_path / "live", 2.0, EventLog(tmp_path / "log"), Meter(None, 1), Topic())
    runs = []

    def run(self, frame):
        runs.append((frame, self._checkpoint.name))
        (self._checkpoint / "offsets").mkdir(parents=True, exist_ok=True)
        (self._checkpoint / "offsets" / "7").touch()
        self.query = SimpleNamespace(id="1", isActive=True, stop=lambda: None)

    monkeypatch.setattr(LiveQuery, "_run", run)
    query._frame = lambda: "frame"
    query.expect(1_000)
    return query, runs


def test_a_new_rate_starts_it_again_from_its_checkpoint(live):
    query, runs = live
    query.command(100.0)
    query.feed.fresh = False
    query.command(200.0)
    assert query.feed.offered == [200, 400]
    assert query.feed.begun == [-1, 7]
    assert runs == [("frame", "checkpoint1")] * 2


def test_rate_0_pauses_it(live):
    query, runs = live
    query.command(0.0)
    assert query.paused
    query.check()  # it is no failure that it does not run
    assert runs == []
    query.command(100.0)
    assert not query.paused


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
