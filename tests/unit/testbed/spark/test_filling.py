"""When a state has its working size."""

from types import SimpleNamespace

import pytest

from workbench.testbed.spark.event_log import BatchLog
from workbench.testbed.spark.filling import full
from workbench.testbed.spark.live import CompletedBatch


def batch(at_s, *states, records=100):
    """A batch of 2 s, with (rows updated, rows removed) of each state."""
    listed = [{"numRowsUpdated": updated, "numRowsRemoved": removed} for updated, removed in states]
    progress = {"durationMs": {"triggerExecution": 2000}, "stateOperators": listed}
    return CompletedBatch(
        SimpleNamespace(at_s=at_s, records=records, due=0.0, queue=0.0), SimpleNamespace(log=BatchLog(0, progress, ()))
    )


@pytest.mark.parametrize(
    ("batches", "now_s", "expected"),
    [
        ([], 100, False),  # nothing is known yet
        ([batch(0), batch(2)], 4, True),  # no state
        ([batch(0, (5, 0)), batch(2, (5, 0))], 100, False),  # nothing left it
        ([batch(0, (0, 0), records=1)], 4, False),  # the batch that starts the clock
        ([batch(0, (5, 0)), batch(14, (5, 3))], 31, False),  # the first left after 16 s
        ([batch(0, (5, 0)), batch(14, (5, 3)), batch(16, (5, 0))], 32, True),
        ([batch(0, (5, 0), (0, 0)), batch(14, (5, 3), (1, 0))], 40, False),  # the second state has rows now
        ([batch(0, (5, 0), (0, 0)), batch(14, (5, 3), (1, 0)), batch(18, (5, 3), (1, 1))], 39, False),
        ([batch(0, (5, 0), (0, 0)), batch(14, (5, 3), (1, 0)), batch(18, (5, 3), (1, 1))], 40, True),
        ([batch(0, (5, 0), (0, 0)), batch(14, (5, 3), (0, 0))], 32, True),  # a state without rows is no state
    ],
)
def test_full(batches, now_s, expected):
    assert full(batches, now_s) is expected
