"""When a state has its working size."""

from types import SimpleNamespace

import pytest

from workbench.testbed.spark.driver.live import CompletedBatch
from workbench.testbed.spark.driver.queries import Queries, full


def batch(at_s, *states, records=100):
    """A batch of 2 s, with (rows updated, rows removed) of each state."""
    listed = [{"numRowsUpdated": updated, "numRowsRemoved": removed} for updated, removed in states]
    progress = {"durationMs": {"triggerExecution": 2000}, "stateOperators": listed}
    release = SimpleNamespace(at_s=at_s, records=records, due=0.0, queue=0.0)
    return CompletedBatch(0, progress, (), release=release)


@pytest.mark.parametrize(
    ("batches", "now_s", "expected"),
    [
        ([], 100, False),  # nothing is known yet
        ([batch(0), batch(2)], 4, True),  # no state
        ([batch(0, (0, 0)), batch(2, (0, 0))], 100, False),  # no row has reached it
        ([batch(0, (5, 0)), batch(2, (5, 0))], 100, False),  # nothing left it
        ([batch(0, (0, 0), records=1)], 4, False),  # the batch that starts the clock
        ([batch(0, (5, 0)), batch(14, (5, 3))], 23, False),  # the first left after 16 s
        ([batch(0, (5, 0)), batch(14, (5, 3)), batch(16, (5, 0))], 32, True),
        ([batch(0, (5, 0), (0, 0)), batch(14, (5, 3), (1, 0))], 40, False),  # the second state has rows now
        ([batch(0, (5, 0), (0, 0)), batch(14, (5, 3), (1, 0)), batch(18, (5, 3), (1, 1))], 29, False),
        ([batch(0, (5, 0), (0, 0)), batch(14, (5, 3), (1, 0)), batch(18, (5, 3), (1, 1))], 40, True),
        ([batch(0, (5, 0), (0, 0)), batch(14, (5, 3), (0, 0))], 32, True),  # a state without rows is not a state
    ],
)
def test_full(batches, now_s, expected):
    assert full(batches, now_s) is expected


def test_waiting_ends_with_the_state_or_at_the_most(monkeypatch):
    clock, live = iter(range(1000)), SimpleNamespace(since_empty=[])
    monkeypatch.setattr("workbench.testbed.spark.driver.queries.now_s", lambda: now[0])
    now = [0.0]

    class Ticking(Queries):
        def tick(self):
            now[0] = float(next(clock))
            if now[0] == 20:
                live.since_empty = [batch(0)]

    queries = Ticking(None, None, None, lambda: None)
    assert queries.fill(live, 5, 10) is False
    assert now[0] == pytest.approx(10, abs=1)
    assert queries.fill(live, 0, 60) is True
    assert now[0] == 20
    assert queries.fill(live, 8, 60) is True
    assert now[0] == pytest.approx(28, abs=1)
