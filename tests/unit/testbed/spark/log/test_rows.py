"""Rows that were released and never read, or that came too late."""

from types import SimpleNamespace

import pytest

from workbench.errors import WorkbenchError
from workbench.testbed.spark.log.batches import BatchLog, Node, Stage, Task
from workbench.testbed.spark.log.rows import check_read, dropped_late

SCAN = Node("MicroBatchScan", "", {"number of output rows": 1})


def batch(released, *read, scanned=True, dropped=0):
    """A batch with one stage per number of rows in `read`."""
    stages = tuple(
        Stage(n, (), (Task(0, rows, 0, 1.0, 1.0, 0, 0.0),), (SCAN,) if scanned else ()) for n, rows in enumerate(read)
    )
    source = {"startOffset": {"n": 0}, "endOffset": {"n": released}}
    return BatchLog(0, {"sources": [source], "stateOperators": [{"numRowsDroppedByWatermark": dropped}]}, stages)


def test_what_every_scan_read_whole_passes_and_rows_that_were_never_read_are_no_throughput():
    check_read("q", [batch(100, 100, 100), batch(50, 50, 50)])
    check_read("q", [batch(100, 60, scanned=False)])  # which stage reads is not known
    check_read("q", [])
    with pytest.raises(WorkbenchError, match=r"'q' released 200 rows, .* read 190, so its rate is unknown.* \(limit\)"):
        check_read("q", [batch(100, 100), batch(100, 90)])


@pytest.mark.parametrize(("dropped", "share"), [(0, 0.0), (5, 0.05), (50, 50 / 145)])
def test_the_share_that_came_late_is_told_and_when_most_are_late_there_is_no_rate(dropped, share):
    kept = [SimpleNamespace(state_rows_updated=95), SimpleNamespace(state_rows_updated=None)]
    assert dropped_late("q", [batch(100, 100, dropped=dropped)], kept) == pytest.approx(share)
    with pytest.raises(WorkbenchError, match=r"'q' drops 90 % of what reaches its state"):
        dropped_late("q", [batch(100, 100, dropped=90)], [SimpleNamespace(state_rows_updated=10)])
