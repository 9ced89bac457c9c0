"""The rate-limited source: a PySpark data source that releases rows by the clock, as `workbench.workload.release` says.

If two branches of a query scan the source, they are two readers. They share the log, and a reader that requests the
batch that another reader has just released gets the same rows. So do the readers of several inputs: each makes those
rows of the batch that are its own, and its offsets say which input it is.
"""

import gc
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from workbench.workload.query import EventClock, Generator
from workbench.workload.release import release

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit
    from pyspark.sql.types import StructType

# Event time starts well after 1970: Spark's first watermark is 1970 and would drop the row as late.
EVENT_TIME_ORIGIN_US = 1_700_000_000_000_000


@dataclass
class _Slice(InputPartition):
    """Rows `first` to `last` of one release, for one task."""

    first: int
    last: int
    clock: EventClock


class _Reader(DataSourceStreamReader):
    """`latestOffset` and `partitions` run next to the driver, `read` in the executors' Python workers."""

    def __init__(self, generator: Generator, folder: Path, partitions: int, number: int | None) -> None:
        self._generator = generator
        self._folder = folder
        self._partitions = partitions
        self._which = {} if number is None else {"input": number}
        self._released: dict[str, int] | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        return {"n": 0, "us": EVENT_TIME_ORIGIN_US} | self._which

    def latestOffset(  # noqa: N802
        self,
        start: dict[str, int] | None = None,  # Spark 4.0 and 4.1 do not pass its name
        limit: "ReadLimit | None" = None,  # noqa: ARG002
    ) -> dict[str, int]:
        this = release(self._folder, start or self._released or self.initialOffset(), time.monotonic)
        self._released = {"n": this.last, "us": this.last_us} | self._which
        return self._released

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        rows = end["n"] - start["n"]
        if rows <= 0:
            return []
        clock = EventClock(start["us"], start["n"], (end["us"] - start["us"]) / rows)
        bounds = [start["n"] + rows * part // self._partitions for part in range(self._partitions + 1)]
        return [_Slice(lo, hi, clock) for lo, hi in pairwise(bounds) if hi > lo]

    def read(self, partition: _Slice) -> Iterator[pa.RecordBatch]:  # type: ignore[override]
        # Spark's workers collect garbage after every task, which can cost more than the task: freezing keeps the
        # imported libraries out of each collection.
        if not gc.get_freeze_count():
            gc.freeze()
        return self._generator.batches(partition.first, partition.last, partition.clock)


@dataclass(frozen=True)
class RowsOnly:
    """Makes every row of `generator` but transfers one byte per row, to measure the cost of the source alone.

    The transfer and decoding of columns belong to the query's scan, as with any other source.
    """

    generator: Generator

    def schema(self) -> pa.Schema:
        """One narrow column."""
        return pa.schema([("row", pa.int8())])

    def batches(self, first: int, last: int, clock: EventClock) -> Iterator[pa.RecordBatch]:
        """Make each row of the generator, discard it, and yield one narrow row for it."""
        for batch in self.generator.batches(first, last, clock):
            yield pa.record_batch([pa.nulls(batch.num_rows, pa.int8())], names=["row"])


def rate_source(
    generator: Generator, folder: Path, partitions: int, name: str = "workbench", number: int | None = None
) -> type[DataSource]:
    """Return a data source class that replays `generator` under the control file in `folder`.

    Register it with ``spark.dataSource.register`` and read it with ``spark.readStream.format(name)``. `number` is that
    of one of several inputs.
    """

    class RateSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return name

        def schema(self) -> "StructType":
            from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - in Spark's processes only

            return from_arrow_schema(generator.schema())

        def streamReader(self, schema: "StructType") -> DataSourceStreamReader:  # noqa: ARG002, N802
            return _Reader(generator, folder, partitions, number)

    return RateSource
