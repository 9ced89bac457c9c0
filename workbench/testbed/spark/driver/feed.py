"""The feeds of a query, which obey the same commands: the workbench's own rate-limited source, and Kafka's.

Spark's own Kafka source reads a topic that was filled before at a commanded rate. Spark admits ``maxOffsetsPerTrigger``
records to a batch, and reads this option when the query starts. So a new rate starts the query again, from the same
checkpoint: its state stays, and it continues where it was. Where too few records are left, it begins again at the
topic's earliest offset with a fresh checkpoint, because event time would go back.

Spark divides the cap by what is left in each partition and rounds down, though to one record at least. The cap is the
lowest with which the next batches, divided like that, take the commanded rate. The records that a batch read are what
counts: some offsets hold none, after compaction or where a transaction ended. A topic with many such offsets is
refused, because they are offered in place of records.
"""

import bisect
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from workbench import units
from workbench.errors import QueryError, WorkbenchError
from workbench.testbed.spark.log.event_log import BatchLog, by_partition
from workbench.testbed.spark.machine.broker import answers, offsets_of
from workbench.workload import ENCODED, Command, Release, read_releases, write_command
from workbench.workload.kafka import COLUMNS, VALUE, Topic, client_settings, field_of, java_settings

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_SEVERAL = 4  # batches of one command: the first of them includes the start, and a few are compared
_PROBE_S = 60.0
_AHEAD = 10  # batches for which the cap is chosen: about a window
_LONGEST = 2**31 - 1  # bytes of a value
_LEAST_HELD, _FEWEST_OFFSETS = 0.99, 100  # records per offset, from this many offsets on


class ReplayFeed:
    """Replays rows with the workbench's own source, under a control file in `folder`."""

    restarts = False  # whether the query must start again to obey a command
    exhausted = False  # whether too few rows are left for a batch, so that the query must begin at the first row
    partitions = None  # partitions that the last batch read, where the feed chooses them

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._released: dict[int, Release] = {}
        self._offset = 0

    def streams(
        self,
        spark: "SparkSession",
        rows: Any,  # noqa: ANN401 - a Generator, or one for each input
        partitions: int,
    ) -> "Sequence[DataFrame]":
        """Return the query's inputs: `rows`, each input in a number of `partitions`."""
        from workbench.workload.source import rate_source  # noqa: PLC0415 - only the driver process loads Spark

        name = f"workbench_{self._folder.name}"
        several = [*enumerate(rows)] if isinstance(rows, tuple) else [(None, rows)]
        found = []
        for number, one in several:
            named = name if number is None else f"{name}_{number}"
            spark.dataSource.register(rate_source(one, self._folder, partitions, named, number))
            found.append(spark.readStream.format(named).load())
        return found

    def offer(self, command: Command) -> None:
        """Obey `command` from the next batch on, or from the next start of the query."""
        write_command(self._folder, command)

    def release(self, log: BatchLog) -> Release | None:
        """Return which rows a committed batch has taken; None if it does not belong to a command."""
        releases, self._offset = read_releases(self._folder, self._offset)
        self._released.update({release.last: release for release in releases if release.records})
        return self._released.pop(log.last_row, None)

    def starts(self, last_batch: int) -> bool:  # noqa: ARG002 - a topic's
        """Note that the query starts after batch `last_batch`; return whether its state must begin empty."""
        return False


@dataclass(frozen=True)
class TopicRows:
    """The records of a topic, as rows."""

    url: str
    schema: pa.Schema  # of the rows: the columns of a sample of the topic
    decoded: bool = True  # otherwise a record becomes one narrow column, to measure the source alone


@dataclass
class TopicFeed:
    """Reads `rows` with Spark's Kafka source."""

    rows: TopicRows
    jvm: Any = None  # with the connector
    exhausted: bool = False
    restarts: bool = True
    partitions: int | None = None
    _command: Command | None = None
    _wanted: int = 0
    _last: Release | None = None
    _ready_after: int = -1
    _ends: dict[int, tuple[int, int]] = field(default_factory=dict)
    _reached: dict[int, int] = field(default_factory=dict)
    _offsets: int = 0
    _records: int = 0

    def __post_init__(self) -> None:
        self._topic = Topic.parse(self.rows.url)
        self._settings = client_settings()
        self._clock_s = time.monotonic() - time.time()

    def streams(self, spark: "SparkSession", rows: TopicRows, partitions: int) -> "Sequence[DataFrame]":  # noqa: ARG002
        """Read the topic in its own partitions, at most the commanded records in a batch."""
        from pyspark.sql import functions as f  # noqa: PLC0415 - only the driver process loads Spark

        reader = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", self._topic.servers)
            .option("subscribe", self._topic.name)
            .option("startingOffsets", "earliest")
        )
        for name, value in java_settings(self._settings).items():
            reader = reader.option(f"kafka.{name}", value)
        if self._command is not None:
            reader = reader.option("maxOffsetsPerTrigger", self.cap)
        records = reader.load()
        return [records.select(*_decoded(rows.schema)) if rows.decoded else records.select(f.lit(0).alias("row"))]

    def offer(self, command: Command) -> None:
        """Store the command; see `starts`."""
        self._command, self._wanted, self._last = command, command.max_records, None

    @property
    def cap(self) -> int:
        """Offsets to admit to a batch, so that it takes the wanted number of records."""
        return cap_for(math.ceil(self._wanted / self._held), self._sizes())

    def starts(self, last_batch: int) -> bool:
        """Look at the topic, and return whether the query must begin again at its earliest offset."""
        assert self._command is not None  # noqa: S101 - for the type checker
        check_broker(self._topic)
        self._ends = offsets_of(self._topic, self._settings, self.jvm)
        whole = sum(high - low for low, high in self._ends.values())
        if self._command.rate is None:  # no rate is promised, so smaller batches are as good
            self._wanted = min(self._wanted, max(1, whole // (2 * _SEVERAL)))
        if whole < self._wanted:
            raise WorkbenchError(
                f"The topic {self._topic.url} holds {whole:,} records, fewer than one batch of {self._wanted:,} that "
                "is asked of it. Fill it with enough for a minute (workbench fill), or use a shorter interval."
            )
        several = _SEVERAL * self._wanted if self._command.rate is None else self._wanted
        enough = max(several, min(_PROBE_S * (self._command.rate or 0.0), whole / 2))
        fresh = self.exhausted or not self._reached or sum(self._sizes()) < enough
        if not fresh and any(self._reached.get(number, low) < low for number, (low, _) in self._ends.items()):
            raise overtaken(self._topic.url)
        if fresh:
            self._reached = {number: low for number, (low, _) in self._ends.items()}
        # The first batch after a start includes it, and repeats one that was cut off.
        self._ready_after = 0 if fresh else last_batch + 1
        self.exhausted = False
        return fresh

    def release(self, log: BatchLog) -> Release | None:
        """Count the records that a batch read."""
        start, end, latest = (_offsets(log.progress, name) for name in ("startOffset", "endOffset", "latestOffset"))
        begun = start or {number: low for number, (low, _) in self._ends.items()}
        for number, high in latest.items():
            self._ends[number] = self._ends.get(number, (0, 0))[0], high
        self._reached = end
        self.exhausted = sum(self._sizes()) < self._wanted
        command, before = self._command, self._last
        if command is None or log.batch_id <= self._ready_after:
            return None
        passed = [reached - begun.get(number, 0) for number, reached in end.items()]
        self.partitions = sum(size > 0 for size in passed)
        taken = self._read(sum(passed), int(log.progress["sources"][0].get("numInputRows") or 0))
        at_s = log.start_s + self._clock_s
        first = before.last if before else 0
        last = first + taken
        due = (before.due if before else 0.0) + taken
        if command.rate is not None and before is not None:  # what was taken early was offered early
            due = max(before.due + command.rate * (at_s - before.at_s), float(last))
        self._last = Release(command.epoch, at_s, first, last, 0, 0, due, due - last)
        return self._last

    def _read(self, offsets: int, records: int) -> int:
        """Note how many records a range of offsets had; return them, once, however often the query reads it."""
        held = min(records, offsets)
        self._offsets += offsets
        self._records += held
        if self._offsets >= _FEWEST_OFFSETS and self._records < _LEAST_HELD * self._offsets:
            raise WorkbenchError(
                f"Only {units.percent(self._held)} of the {self._offsets:,} offsets that were read of the topic "
                f"{self._topic.url} hold a record; at least {units.percent(_LEAST_HELD)} must, because Spark's Kafka "
                "source is offered offsets. A compacted topic and one written in many small transactions have fewer, "
                "and a query must not stop reading (limit). Fill a topic of its own with these rows (workbench "
                "capture, workbench fill), and measure on that one.",
                settings=("dataset",),
            )
        return held

    @property
    def _held(self) -> float:
        """Records per offset, as seen so far."""
        return self._records / self._offsets if self._offsets else 1.0

    def _sizes(self) -> list[int]:
        return [high - self._reached.get(number, low) for number, (low, high) in self._ends.items()]


def overtaken(topic: str) -> WorkbenchError:
    """Return the error for a topic that dropped records before they were read."""
    return WorkbenchError(
        f"Records of {topic} were dropped before they were read: its retention overtook the run, or it was deleted. "
        "Raise its retention, or fill a topic of its own (workbench fill), then run the same command again; what was "
        "measured is kept."
    )


def cap_for(wanted: int, left: Sequence[int]) -> int:
    """Return the lowest ``maxOffsetsPerTrigger`` with which the next batches take `wanted` records on average."""
    batches = max(1, min(_AHEAD, sum(left) // max(1, wanted)))

    def taken(cap: int) -> int:
        sizes, total = [size for size in left if size > 0], 0
        for _ in range(batches):
            shares = divided(cap, sizes)
            total += sum(shares)
            sizes = [size - share for size, share in zip(sizes, shares, strict=True) if size > share]
        return total

    most = wanted + sum(size > 0 for size in left)
    return 1 + bisect.bisect_left(range(1, most), batches * wanted, key=taken)


def divided(cap: int, sizes: Sequence[int]) -> list[int]:
    """Return what Spark takes of each partition with `sizes` records left: see ``rateLimit`` of its Kafka source."""
    total = sum(sizes)
    shares = (cap * (size / total) for size in sizes)
    return [
        min(size, math.ceil(share) if share < 1 else math.floor(share))
        for size, share in zip(sizes, shares, strict=True)
    ]


def _offsets(progress: Mapping[str, Any], name: str) -> dict[int, int]:
    """Offsets by partition, of the first scan: all scans of one topic take the same records."""
    return {int(number): offset for (_, number), offset in by_partition(progress["sources"][0].get(name)).items()}


def _decoded(schema: pa.Schema) -> "list[Column]":
    """Return the columns of a captured sample, made of Kafka's."""
    from pyspark.sql import functions as f  # noqa: PLC0415
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415

    kinds = {one.name: one.dataType for one in from_arrow_schema(schema).fields}
    columns = {name: f.col(own).cast(kinds[name]) for name, own in COLUMNS.items() if name in kinds}
    inside = [one for one in schema if one.name not in columns]
    if [one.name for one in inside] == [VALUE]:  # the values are not JSON
        columns[VALUE] = f.col("value").cast(kinds[VALUE])
    else:
        fields = pa.schema([one.with_name(field_of(one.name)) for one in inside])
        text = f.col("value")
        if (schema.metadata or {}).get(ENCODED) == b"framed":  # behind the byte 0 and four of a schema's id
            text = behind_id(text)
        value = f.from_json(text.cast("string"), from_arrow_schema(fields))
        columns |= {one.name: value[field_of(one.name)] for one in inside}
    return [columns[name].alias(name) for name in kinds]


def behind_id(value: "Column") -> "Column":
    """Return a value without the byte 0 and four of a schema's id, with which no JSON begins."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    return f.when(f.substring(value, 1, 1) == f.lit(b"\0"), f.substring(value, 6, _LONGEST)).otherwise(value)


def check_broker(topic: Topic) -> None:
    """Notice that no server of a topic answers any longer; Spark itself gives up only after minutes."""
    if not answers(topic):
        raise QueryError(
            f"No broker of {topic.url} answers any longer. Start it, then run the same command again: it continues "
            "with the probe that was interrupted, and what was measured before is kept."
        )
