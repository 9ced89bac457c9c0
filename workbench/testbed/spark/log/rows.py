"""Check the released rows: whether the query read all of them, and how many it dropped as late."""

from collections.abc import Sequence

from workbench import units
from workbench.errors import QueryError
from workbench.metrics import OperatorMetrics
from workbench.testbed.spark.log.batches import BatchLog
from workbench.testbed.spark.log.operators import scans

LEAST_READ = 0.99
MOST_LATE = 0.5


def check_read(name: str, batches: Sequence[BatchLog]) -> None:
    """Refuse an observation in which released rows were never read."""
    released, read = 0, 0.0
    for batch in batches:
        reading = scans(batch)
        if batch.of_inputs:
            released += batch.records
            read += sum(batch.of_inputs.values())
        elif reading:
            released += batch.records
            read += sum(task.records_in for stage in reading for task in stage.tasks) / len(reading)
    if read < LEAST_READ * released:
        raise not_read(name, released, read)


def not_read(name: str, released: int, read: float) -> QueryError:
    """Return the error for query `name`, which read only `read` of the `released` rows."""
    return QueryError(
        f"The source of query {name!r} released {released:,} rows, but the query read {read:,.0f}, so its rate is "
        "unknown. A generator must make every row of the requested range; a query must not stop reading (limit)."
    )


def dropped_late(name: str, batches: Sequence[BatchLog], operators: Sequence[OperatorMetrics]) -> float:
    """Return the share of the rows that reach the state and are dropped as later than the watermark allows."""
    dropped = sum(
        int(state.get("numRowsDroppedByWatermark") or 0)
        for batch in batches
        for state in batch.progress.get("stateOperators") or []
    )
    if not dropped:
        return 0.0
    share = dropped / (dropped + sum(operator.state_rows_updated or 0 for operator in operators))
    if share > MOST_LATE:
        raise QueryError(
            f"Query {name!r} drops {units.percent(share)} of what reaches its state as later than its "
            "watermark allows, so its rate has no meaning. Name the event-time column, sort the data by it, or "
            "allow more delay in withWatermark.",
            settings=("event_time",),
        )
    return share
