"""The rate-limited source: a PySpark data source that releases rows by the clock.

A *control file*, read once per micro-batch, commands the rate, so that the rate can change without a restart of the
query. Rows become *due* as the integral of the commanded rate over time. A batch releases the due rows, but at most
one trigger interval's worth. So a query that cannot finish its batches within the interval builds up a *backlog*
(due - released) instead of ever larger, cheaper batches. Each release is logged as one JSON line.

If two branches of a query scan the source, they are two readers. They share the log, and a reader that requests the
batch that another reader has just released gets the same rows.
"""

import fcntl
import gc
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from workbench.workload.query import EventClock, Generator

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.streaming.datasource import ReadLimit
    from pyspark.sql.types import StructType

# Event time starts well after 1970: Spark's first watermark is 1970 and would drop the row as late.
EVENT_TIME_ORIGIN_US = 1_700_000_000_000_000

_ON_TRIGGER = 0.9  # a batch that starts with this share of the interval left has started on the trigger

Clock = Callable[[], float]


@dataclass(frozen=True)
class Command:
    """A command to the source.

    Parameters
    ----------
    epoch
        Changes with every command; a new epoch flushes the queue.
    rate
        Records/s that become due; None releases `max_records` at every trigger (the maximum rate).
    max_records
        Admission cap of one batch: one trigger interval's worth of rows.
    event_rate
        Rows per second of event time; None ties event time to the due time (to the wall clock when `rate` is None).
    interval_s
        Trigger interval, seconds, to determine whether a new epoch starts on a trigger; None assumes that it does.
    """

    epoch: int
    rate: float | None
    max_records: int
    event_rate: float | None = None
    interval_s: float | None = None


@dataclass(frozen=True)
class Release:
    """One release of rows; `due` and `queue` count rows of the epoch, `at_s` is ``time.monotonic()``."""

    epoch: int
    at_s: float
    first: int
    last: int
    first_us: int
    last_us: int
    due: float
    queue: float

    @property
    def records(self) -> int:
        """Rows released."""
        return self.last - self.first


def next_release(
    command: Command, previous: Release | None, start: dict[str, int], now_s: float, left: float = 1.0
) -> Release:
    """Determine which rows after `start` the batch that starts at `now_s` releases.

    Parameters
    ----------
    previous
        The last release, of any epoch; None before the first.
    start
        ``{"n": rows so far, "us": event time so far}``.
    left
        Share of the trigger interval that is left until the next trigger: almost 1 on a trigger, less if the batch
        before took longer than the interval.
    """
    same_epoch = previous is not None and previous.epoch == command.epoch
    passed_s = now_s - previous.at_s if previous else 0.0
    if command.rate is None:  # the maximum rate: released rows count as due
        take, queue = command.max_records, 0.0
        due = (previous.due if previous and same_epoch else 0.0) + take
    else:
        # A new epoch starts with one interval's worth of rows, or with a single row if one interval's worth would be
        # late at the next trigger: close to the MST, a late start takes many batches to recover.
        first = float(min(command.max_records, 1) if left < _ON_TRIGGER else command.max_records)
        arrived = command.rate * passed_s if same_epoch else first
        due = (previous.due if previous and same_epoch else 0.0) + arrived
        waiting = (previous.queue if previous and same_epoch else 0.0) + arrived
        take = min(int(waiting), command.max_records)
        queue = waiting - take
    if command.event_rate:
        span_us = take / command.event_rate * 1e6
    elif command.rate:
        span_us = take / command.rate * 1e6
    else:
        span_us = passed_s * 1e6 if take else 0.0
    return Release(
        command.epoch, now_s, start["n"], start["n"] + take, start["us"], start["us"] + int(span_us), due, queue
    )


def _left(interval_s: float | None, wall_s: float) -> float:
    """Share of the interval until the next trigger; Spark triggers at multiples of the interval on the wall clock."""
    return 1.0 - wall_s / interval_s % 1.0 if interval_s else 1.0


def write_command(folder: Path, command: Command) -> None:
    """Change the offered load of the running query, atomically."""
    temporary = folder / "control.tmp"
    temporary.write_text(json.dumps(asdict(command)))
    temporary.replace(folder / "control.json")


def read_releases(folder: Path, offset: int = 0) -> tuple[list[Release], int]:
    """Return the releases logged after byte `offset`, and the offset after them; an unfinished last line is left."""
    path = folder / "releases.jsonl"
    if not path.exists():
        return [], offset
    with path.open("rb") as log:
        log.seek(offset)
        text = log.read()
    whole = text[: text.rfind(b"\n") + 1]
    return [Release(**json.loads(line)) for line in whole.splitlines()], offset + len(whole)


def _last_release(log: IO[bytes]) -> Release | None:
    log.seek(0, os.SEEK_END)
    size = log.tell()
    log.seek(max(0, size - 4096))
    lines = log.read().splitlines()
    return Release(**json.loads(lines[-1])) if lines else None


def release(folder: Path, start: dict[str, int], clock: Clock, wall: Clock = time.time) -> Release:
    """Release the next rows after `start`; a second reader of the same batch gets the same rows.

    `clock` measures the seconds between releases, `wall` returns the seconds since 1970.
    """
    command = Command(**json.loads((folder / "control.json").read_text()))
    with (folder / "releases.jsonl").open("ab+") as log:
        fcntl.flock(log, fcntl.LOCK_EX)
        previous = _last_release(log)
        if previous and previous.records and previous.first == start["n"]:
            return previous
        this = next_release(command, previous, start, clock(), _left(command.interval_s, wall()))
        log.write(json.dumps(asdict(this)).encode() + b"\n")
        log.flush()
    return this


@dataclass
class _Slice(InputPartition):
    """Rows `first` to `last` of one release, for one task."""

    first: int
    last: int
    clock: EventClock


class _Reader(DataSourceStreamReader):
    """`latestOffset` and `partitions` run next to the driver, `read` in the executors' Python workers."""

    def __init__(self, generator: Generator, folder: Path, partitions: int) -> None:
        self._generator = generator
        self._folder = folder
        self._partitions = partitions

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        return {"n": 0, "us": EVENT_TIME_ORIGIN_US}

    def latestOffset(self, start: dict[str, int], limit: "ReadLimit") -> dict[str, int]:  # noqa: ARG002, N802
        this = release(self._folder, start, time.monotonic)
        return {"n": this.last, "us": this.last_us}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        rows = end["n"] - start["n"]
        if rows <= 0:
            return []
        clock = EventClock(start["us"], start["n"], (end["us"] - start["us"]) / rows)
        bounds = [start["n"] + rows * part // self._partitions for part in range(self._partitions + 1)]
        return [_Slice(lo, hi, clock) for lo, hi in pairwise(bounds) if hi > lo]

    def read(self, partition: _Slice) -> "Iterator[pa.RecordBatch]":  # type: ignore[override]
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

    def schema(self) -> "pa.Schema":
        """One narrow column."""
        import pyarrow as pa  # noqa: PLC0415 - in the processes that make rows only

        return pa.schema([("row", pa.int8())])

    def batches(self, first: int, last: int, clock: EventClock) -> "Iterator[pa.RecordBatch]":
        """Make each row of the generator, discard it, and give one narrow row for it."""
        import pyarrow as pa  # noqa: PLC0415

        for batch in self.generator.batches(first, last, clock):
            yield pa.record_batch([pa.nulls(batch.num_rows, pa.int8())], names=["row"])


def rate_source(generator: Generator, folder: Path, partitions: int, name: str = "workbench") -> type[DataSource]:
    """Return a data source class that replays `generator` under the control file in `folder`.

    Register it with ``spark.dataSource.register`` and read it with ``spark.readStream.format(name)``.

    Parameters
    ----------
    partitions
        Tasks that read one batch.
    """

    class RateSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return name

        def schema(self) -> "StructType":
            from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - in Spark's processes only

            return from_arrow_schema(generator.schema())

        def streamReader(self, schema: "StructType") -> DataSourceStreamReader:  # noqa: ARG002, N802
            return _Reader(generator, folder, partitions)

    return RateSource
