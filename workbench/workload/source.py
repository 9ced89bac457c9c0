"""The rate-limited source: a PySpark data source that releases rows by the clock.

A rate is commanded by a *control file*, read once per micro-batch, so that it changes without restarting the
query. Rows become *due* as the integral of the commanded rate over time; a batch releases what is due, but
at most one trigger interval's worth, so that a query which cannot finish its batches within the interval builds up
a *backlog* (due - released) instead of ever larger, cheaper batches. Each release is logged as one JSON line.

Two branches of a query that scan the source twice are two readers: they share the log, and a reader that asks for
the batch another one has just released gets the same rows.
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

# Event time begins well after 1970, where Spark's first watermark stands and would drop the row as late.
EVENT_TIME_ORIGIN_US = 1_700_000_000_000_000

_ON_TRIGGER = 0.9  # a batch that begins with as much of the interval left has begun on the trigger

Clock = Callable[[], float]


@dataclass(frozen=True)
class Command:
    """What the source is told.

    Parameters
    ----------
    epoch
        Changes with every command; a new epoch flushes the queue.
    rate
        Records/s that become due; None releases `max_records` at every trigger (as much as fits).
    max_records
        Admission cap of one batch: one trigger interval's worth of rows.
    event_rate
        Rows per second of event time; None ties event time to the due time (to the wall clock when `rate` is None).
    interval_s
        Trigger interval, seconds: tells whether a new epoch begins on a trigger; None takes it that it does.
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
    """Decide what the batch that begins at `now_s` releases after the rows up to `start`.

    Parameters
    ----------
    previous
        The last release, of whatever epoch; None at the very beginning.
    start
        ``{"n": rows so far, "us": event time so far}``.
    left
        Share of the trigger interval that is left until the next trigger: nearly 1 on a trigger, less where the batch
        before took longer than the interval.
    """
    same_epoch = previous is not None and previous.epoch == command.epoch
    passed_s = now_s - previous.at_s if previous else 0.0
    if command.rate is None:  # as much as fits: what is released counts as due
        take, queue = command.max_records, 0.0
        due = (previous.due if previous and same_epoch else 0.0) + take
    else:
        # A new epoch begins with one interval's worth; with a single row where that would be late at the next trigger,
        # for close to the MST a late start takes many batches to make good.
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
    """Share of the interval until the next trigger; Spark's lie at its multiples on the wall clock."""
    return 1.0 - wall_s / interval_s % 1.0 if interval_s else 1.0


def write_command(folder: Path, command: Command) -> None:
    """Change the offered load of the running query, atomically."""
    temporary = folder / "control.tmp"
    temporary.write_text(json.dumps(asdict(command)))
    temporary.replace(folder / "control.json")


def read_releases(folder: Path, offset: int = 0) -> tuple[list[Release], int]:
    """Releases logged after byte `offset`, and the offset behind them; an unfinished last line is left for later."""
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
    """Release the next rows after `start`, or return the same ones to a second reader of the same batch.

    `clock` gives the seconds between releases, `wall` those since 1970.
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
    """`latestOffset` and `partitions` run beside the driver, `read` in the executors' Python workers."""

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
        # Spark's workers collect garbage after every task, which costs more than many a task: keep them from
        # walking the imported libraries each time.
        if not gc.get_freeze_count():
            gc.freeze()
        return self._generator.batches(partition.first, partition.last, partition.clock)


@dataclass(frozen=True)
class RowsOnly:
    """Makes every row of `generator` but hands over one byte for it: what the source costs by itself.

    Handing over and decoding columns belongs to the query's scan, as it would with any other source.
    """

    generator: Generator

    def schema(self) -> "pa.Schema":
        """One narrow column."""
        import pyarrow as pa  # noqa: PLC0415 - in the processes that make rows only

        return pa.schema([("row", pa.int8())])

    def batches(self, first: int, last: int, clock: EventClock) -> "Iterator[pa.RecordBatch]":
        """One row for each row of the generator, made and thrown away."""
        import pyarrow as pa  # noqa: PLC0415

        for batch in self.generator.batches(first, last, clock):
            yield pa.record_batch([pa.nulls(batch.num_rows, pa.int8())], names=["row"])


def rate_source(generator: Generator, folder: Path, partitions: int, name: str = "workbench") -> type[DataSource]:
    """Make a data source class that replays `generator` under the control file in `folder`.

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
