"""Rows that were released and never read, or that came too late; what each of several inputs gave."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from workbench.errors import WorkbenchError
from workbench.testbed.spark.log.batches import BatchLog, Node, Stage, Task
from workbench.testbed.spark.log.event_log import _in_order
from workbench.testbed.spark.log.operators import SourceCost, input_rows, operator_metrics, times_read
from workbench.testbed.spark.log.rows import check_read, dropped_late

SCAN = Node("MicroBatchScan", "", {"number of output rows": 1})


def read_of(released, *read, scanned=True, dropped=0):
    """A batch with one stage per number of rows in `read`."""
    stages = tuple(
        Stage(n, (), (Task(0, rows, 0, 1.0, 1.0, 0, 0.0),), (SCAN,) if scanned else ()) for n, rows in enumerate(read)
    )
    source = {"startOffset": {"n": 0}, "endOffset": {"n": released}}
    return BatchLog(0, {"sources": [source], "stateOperators": [{"numRowsDroppedByWatermark": dropped}]}, stages)


def test_what_every_scan_read_whole_passes_and_rows_that_were_never_read_are_no_throughput():
    check_read("q", [read_of(100, 100, 100), read_of(50, 50, 50)])
    check_read("q", [read_of(100, 60, scanned=False)])  # which stage reads is not known
    check_read("q", [])
    with pytest.raises(WorkbenchError, match=r"'q' released 200 rows, .* read 190, so its rate is unknown.* \(limit\)"):
        check_read("q", [read_of(100, 100), read_of(100, 90)])


@pytest.mark.parametrize(("dropped", "share"), [(0, 0.0), (5, 0.05), (50, 50 / 145)])
def test_the_share_that_came_late_is_told_and_when_most_are_late_there_is_no_rate(dropped, share):
    kept = [SimpleNamespace(state_rows_updated=95), SimpleNamespace(state_rows_updated=None)]
    assert dropped_late("q", [read_of(100, 100, dropped=dropped)], kept) == pytest.approx(share)
    with pytest.raises(WorkbenchError, match=r"'q' drops 90 % of what reaches its state"):
        dropped_late("q", [read_of(100, 100, dropped=90)], [SimpleNamespace(state_rows_updated=10)])


# --- several inputs

FILTER = Node("Filter", "", {"number of output rows": 1})
JOIN = Node("StreamingSymmetricHashJoin", "", {"number of output rows": 1}, 0)


def source(number, read, last=300):
    return {"startOffset": {"n": 0}, "endOffset": {"n": last, "input": number}, "numInputRows": read}


def reading(number, read, written, *places):
    tasks = (Task(0, read, written, 0.1, 0.1, 0, 0.0),)
    return Stage(number, (), tasks, (FILTER, *(Node("MicroBatchScan", "", {}, None, place) for place in places)))


@pytest.fixture
def batch():
    """200 orders of which half pass a filter, and 100 payments; then they are joined."""
    joined = Stage(2, (0, 1), (Task(0, 200, 50, 0.1, 0.1, 0, 0.0),), (JOIN,))
    stages = (reading(0, 200, 100, 0), reading(1, 100, 100, 1), joined)
    return BatchLog(0, {"sources": [source(0, 200), source(1, 100)]}, stages)


def test_rows_backlog_and_selectivity_are_told_by_input(batch):
    orders, payments = input_rows(("orders", "payments"), [batch, batch], 30.0)
    assert (orders.name, orders.records, orders.selectivity) == ("orders", 400, 0.5)
    assert (payments.name, payments.records, payments.selectivity) == ("payments", 200, 1.0)
    assert (orders.backlog, payments.backlog) == (pytest.approx(20), pytest.approx(10))
    assert (orders.operators, payments.operators) == (("1 scan filter",), ("2 scan filter",))
    assert input_rows((), [batch], 0.0) == ()


def test_the_source_gives_the_rows_of_all_inputs_once(batch):
    (found, *_), _ = operator_metrics([batch], 1.0, 1.0, SourceCost())
    assert found.records_in == found.records_out == 300
    assert times_read(batch) == 1
    check_read("q", [batch])


def test_an_input_that_is_read_twice_or_written_to_two_places_counts_once(batch):
    again = replace(batch, progress={"sources": [source(0, 200), source(1, 100), source(0, 200)]})
    assert again.of_inputs == {0: 200, 1: 100}
    assert times_read(again) == 2
    twice = replace(batch, progress={"sources": [source(0, 400), source(1, 200)]})
    assert twice.of_inputs == {0: 200, 1: 100}


def test_a_stage_that_reads_both_has_no_selectivity_of_one(batch):
    both = replace(batch, stages=(reading(0, 300, 300, 0, 1),))
    orders, payments = input_rows(("orders", "payments"), [both], 0.0)
    assert (orders.records, orders.selectivity, orders.operators) == (200, None, ())
    assert payments.selectivity is None


def test_an_input_that_is_not_read_is_refused(batch):
    unread = replace(batch, progress={"sources": [source(0, 200)]})
    with pytest.raises(WorkbenchError, match=r"released 300 rows, but the query read 200"):
        check_read("q", [unread])


def test_one_input_has_no_rows_of_its_own(batch):
    alone = replace(batch, progress={"sources": [{"startOffset": None, "endOffset": {"n": 300}, "numInputRows": 300}]})
    assert alone.of_inputs == {}
    assert times_read(alone) == 2  # stages that scan


def test_stages_that_read_are_in_the_order_of_the_plan_however_spark_numbers_them(batch):
    one, two, joined = batch.stages
    swapped = {0: replace(two, stage_id=0), 1: replace(one, stage_id=1), 2: joined}
    assert [stage.scan for stage in _in_order(swapped)] == [0, 1, None]
    assert _in_order({0: one, 1: two, 2: joined}) == batch.stages
