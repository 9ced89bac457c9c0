"""What became of the rows that were released: whether all were read, and how many came too late to count."""

from collections.abc import Sequence

from workbench.errors import WorkbenchError
from workbench.metrics import OperatorMetrics
from workbench.testbed.spark.event_log import BatchLog
from workbench.testbed.spark.operators import scans

LEAST_READ = 0.99
MOST_LATE = 0.5


def check_read(name: str, batches: Sequence[BatchLog]) -> None:
    """Refuse to count rows that were released but never read.

    Raises
    ------
    WorkbenchError
        When the tasks read fewer rows than the source released.
    """
    released, read = 0, 0.0
    for batch in batches:
        reading = scans(batch)
        if reading:
            released += batch.records
            read += sum(task.records_in for stage in reading for task in stage.tasks) / len(reading)
    if read < LEAST_READ * released:
        raise not_read(name, released, read)


def not_read(name: str, released: int, read: float) -> WorkbenchError:
    """Tell that query `name` read only `read` of the `released` rows."""
    return WorkbenchError(
        f"The source of query {name!r} released {released:,} rows, of which the query read {read:,.0f}: no rate "
        "can be told. A generator must make every row of the range it is asked for; a query must not stop reading "
        "(limit)."
    )


def dropped_late(name: str, batches: Sequence[BatchLog], operators: Sequence[OperatorMetrics]) -> float:
    """Share of the rows reaching the state that were dropped as later than the watermark allows.

    Raises
    ------
    WorkbenchError
        When most of them were: that must not pass for throughput.
    """
    dropped = sum(
        int(state.get("numRowsDroppedByWatermark") or 0)
        for batch in batches
        for state in batch.progress.get("stateOperators") or []
    )
    if not dropped:
        return 0.0
    share = dropped / (dropped + sum(operator.state_rows_updated or 0 for operator in operators))
    if share > MOST_LATE:
        raise WorkbenchError(
            f"Query {name!r} drops {share:.0%} of what reaches its state as later than its "
            "watermark allows, so its rate would mean nothing. Name the event-time column (--event-time), sort the "
            "data by it, or allow more delay in withWatermark."
        )
    return share
