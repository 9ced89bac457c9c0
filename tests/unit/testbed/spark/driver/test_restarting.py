"""A query whose feed obeys a command only when the query starts again."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from workbench.errors import WorkbenchError
from workbench.testbed.spark.driver import live as live_module
from workbench.testbed.spark.driver.live import LiveQuery, Meter
from workbench.testbed.spark.log.event_log import EventLog


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
    query.checkpoint = str(tmp_path / "shared")
    asked = []
    monkeypatch.setattr(live_module, "names_in", lambda _, place: asked.append(place) or ["3", "x"])
    monkeypatch.setattr(live_module, "remove", lambda *_: None)
    query.command(100.0)
    query.command(200.0)  # its topic has run out: it begins again with an empty state
    assert query.feed.begun == [3, 3]
    assert asked == [f"{query.checkpoint}/offsets", f"{query.checkpoint}1/offsets"]
    assert [checkpoint for _, checkpoint in runs] == ["shared1", "shared2"]


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
