"""A bounded sample of a topic as a Parquet file, with keys, timestamps, headers and places.

Only what is there when the capture begins is read: of every partition the records since one moment, up to its end, so
that keys and partitions have the shares of the traffic. That moment is chosen so that the limits are reached at the
end, for which a first poll shows how large records are. The file has the records in the order of their timestamps,
which is about the order of their arrival.
"""

import math
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from workbench import units
from workbench.checks import whole
from workbench.errors import WorkbenchError
from workbench.workload.kafka._client import consuming
from workbench.workload.kafka._newest import ASK_S, Ends, behind, ends_of, newest, offsets_at
from workbench.workload.kafka._sample import LEAST_SHARE, Sample, joined, records_of, traffic_s
from workbench.workload.kafka.schema import Schema
from workbench.workload.kafka.topic import Topic

_PART_ROWS = 50_000
_POLL_ROWS, _POLL_S = 1_000, 1.0
_SILENT_S = 30.0  # without a record although some are left
_MOST_MB, _MOST_S = 1024, 10 * 365 * 86400.0
_MOST_IDS = 5  # of schemas, in a message
_FILLED = 0.95  # of the bytes that are allowed, because sizes are estimated


@dataclass(frozen=True)
class Limits:
    """How much is captured: at most N rows, MiB of keys, values and headers, and seconds of new traffic."""

    rows: int = 1_000_000
    megabytes: int = 512
    seconds: float | None = None

    def __post_init__(self) -> None:
        whole("rows", self.rows, 1)
        whole("megabytes", self.megabytes, 1)
        if self.megabytes > _MOST_MB:
            raise WorkbenchError(
                f"megabytes is {self.megabytes}; it must be at most {_MOST_MB}, of which a data set is replayed."
            )
        if self.seconds is not None and not (math.isfinite(self.seconds) and 0 < self.seconds <= _MOST_S):
            raise WorkbenchError(
                f"seconds is {self.seconds!r}; it must be above 0 and at most {_MOST_S:g}. Correct it, or leave it out."
            )


@dataclass(frozen=True)
class Captured:
    """A finished capture.

    Parameters
    ----------
    path
        Of the Parquet file.
    rows, partitions
        Records captured, and partitions of the topic.
    columns
        Of the file.
    seconds
        Of traffic: from the first to the last timestamp.
    not_json
        Values that are no JSON object; their columns are empty.
    not_decoded
        Values that do not decode with the schema; their columns are empty.
    schema_ids
        Ids of schemas that stand before the values, in a schema registry's wire format.
    """

    path: Path
    rows: int
    partitions: int
    columns: tuple[str, ...]
    seconds: float
    not_json: int = 0
    not_decoded: int = 0
    schema_ids: tuple[int, ...] = ()


def capture(
    topic: Topic,
    target: Path,
    limits: Limits | None = None,
    settings: Mapping[str, Any] | None = None,
    *,
    schema: Schema | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Captured:
    """Write a sample of `topic` to the Parquet file `target`.

    Parameters
    ----------
    limits
        Whichever is reached first ends the capture.
    settings
        Of the client, in librdkafka's names; see `client_settings`.
    schema
        Of the values; None: they are JSON objects or become no columns.
    progress
        Called with one line of text after each part.
    """
    limits = limits or Limits()
    target = _checked(target)
    with consuming(topic, settings or {}) as consumer:
        ends = ends_of(consumer, topic)
        reading = _Reading(consumer, topic, _begin(consumer, topic, limits, ends), ends, limits, progress)
        tables = reading.read()
    if not tables:
        raise WorkbenchError(f"The topic {topic.url} has no records in what was asked for. Fill it, or ask for more.")
    sample = joined(tables, schema)
    if schema is not None and sample.wrong > (1 - LEAST_SHARE) * sample.values:
        raise _not_decoded(topic, schema, sample)
    _write(sample.table, target, topic)
    return Captured(
        target,
        sample.table.num_rows,
        len(ends),
        tuple(sample.table.column_names),
        traffic_s(sample.table),
        not_json=0 if schema else sample.wrong,
        not_decoded=sample.wrong if schema else 0,
        schema_ids=tuple(sorted(sample.numbers)),
    )


def _write(table: pa.Table, target: Path, topic: Topic) -> None:
    """Write a sample, all of it or nothing; only you can read it."""
    written = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        written.touch(mode=0o600)
        pq.write_table(table, written, compression="zstd")
        written.replace(target)
    except (OSError, pa.ArrowException) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise WorkbenchError(
            f"The sample of {topic.url} cannot be written to {target}: {reason}. Make room, or name another file, and "
            "run the same again."
        ) from error
    finally:
        with suppress(OSError):  # it is in place, or there is no room for it
            written.unlink()


def _not_decoded(topic: Topic, schema: Schema, sample: Sample) -> WorkbenchError:
    """Say which values are not what the schema says; none is quoted."""
    partition, offset = sample.first_wrong or (0, 0)
    if schema.kind == "AVRO":
        expected = f"the fields {', '.join(field['name'] for field in schema.definition['fields'])}, and nothing after"
    else:
        expected = "a JSON object"
    numbers = [str(number) for number, _ in Counter(sample.numbers).most_common(_MOST_IDS)]
    if numbers:
        found = f"The values are in a registry's wire format, with the schema id {' and '.join(numbers)}"
        found += ", ..." * (len(sample.numbers) > _MOST_IDS)
    else:
        found = "No value is in a registry's wire format, which would name its schema"
    return WorkbenchError(
        f"{sample.wrong:,} of {sample.values:,} values of {topic.url} do not decode with {schema.said}; at most "
        f"{units.percent(1 - LEAST_SHARE)} may. The first is in partition {partition}, at offset {offset}; expected "
        f"were {expected}. {found}. Name the schema that they were written with, and run the same again."
    )


def _checked(target: Path) -> Path:
    """Give the place that a name means; only a Parquet file may be there."""
    place = Path(os.path.realpath(target))
    if place.suffix != ".parquet" or (place.exists() and not place.is_file()):
        raise WorkbenchError(f"{str(target)!r} is no place for a sample; name a file that ends in .parquet.")
    return place


def _begin(consumer: Consumer, topic: Topic, limits: Limits, ends: Ends) -> Mapping[int, int]:
    """Choose where to begin in every partition so that the newest records are read."""
    now_ms = int(1000 * time.time())
    begin = {number: low for number, (low, _) in ends.items()}
    if limits.seconds is not None:
        begin = offsets_at(consumer, topic, max(0, now_ms - int(1000 * limits.seconds)), ends)
    rows = _rows_within(consumer, topic, limits, begin, ends)
    return newest(consumer, topic, rows, begin, ends, now_ms) if rows < behind(begin, ends) else begin


def _rows_within(consumer: Consumer, topic: Topic, limits: Limits, begin: Mapping[int, int], ends: Ends) -> int:
    """Give how many rows the limits allow; the size of a record is estimated from the last few of every partition."""
    each = -(-_POLL_ROWS // len(ends))
    last = {number: max(begin[number], high - each) for number, (_, high) in ends.items()}
    consumer.assign([TopicPartition(topic.name, number, offset) for number, offset in last.items()])
    sizes = list[int]()
    until = time.monotonic() + ASK_S
    while len(sizes) < behind(last, ends) and time.monotonic() < until:
        polled = consumer.consume(_POLL_ROWS, _POLL_S)
        if not polled:
            break
        sizes += [_size(message) for message in polled if message.error() is None]
    if not sum(sizes):
        return limits.rows
    return max(1, min(limits.rows, int(_FILLED * limits.megabytes * 2**20 * len(sizes) / sum(sizes))))


def _size(message: Message) -> int:
    return len(message.key() or b"") + len(message.value() or b"") + len(str(message.headers() or ""))


@dataclass
class _Reading:
    """A capture at work: the records of each partition from `following`, the next offset, up to its end."""

    consumer: Consumer
    topic: Topic
    begin: Mapping[int, int]
    ends: Ends
    limits: Limits
    progress: Callable[[str], None]
    tables: list[pa.Table] = field(default_factory=list)
    waiting: list[Message] = field(default_factory=list)
    rows: int = 0
    size: int = 0

    def __post_init__(self) -> None:
        self.following = dict(self.begin)

    @property
    def left(self) -> int:
        """Offsets that are not read yet."""
        return sum(max(0, high - self.following[number]) for number, (_, high) in self.ends.items())

    @property
    def room(self) -> int:
        """Records that may still be captured."""
        return 0 if self.size >= self.limits.megabytes * 2**20 else self.limits.rows - self.rows

    def read(self) -> list[pa.Table]:
        """Read what is left, and give it part by part."""
        left = [number for number, (_, high) in self.ends.items() if self.following[number] < high]
        self.consumer.assign([TopicPartition(self.topic.name, number, self.following[number]) for number in left])
        heard = time.monotonic()
        while self.left and self.room > 0:
            if self._take(self.consumer.consume(min(_POLL_ROWS, self.room), _POLL_S)):
                heard = time.monotonic()
            else:
                self._pass_gaps()
                if time.monotonic() - heard > _SILENT_S and self.left:
                    raise WorkbenchError(
                        f"The topic {self.topic.url} gave no record for {_SILENT_S:g} s although {self.left:,} are "
                        "left. Check the brokers, then run the same again."
                    )
            if len(self.waiting) >= _PART_ROWS:
                self._put_away()
                most = min(self.limits.rows, self.rows + self.left)
                self.progress(f"{self.rows:,} of about {most:,} records captured")
        self._put_away()
        return self.tables

    def _put_away(self) -> None:
        if self.waiting:
            self.tables.append(records_of(self.waiting))
            self.waiting = []

    def _take(self, messages: list[Message]) -> bool:
        """Keep the records that were there when the capture began; whether there were any."""
        before = self.rows
        for message in messages:
            if (failed := message.error()) is not None:
                raise KafkaException(failed)
            number, offset = int(message.partition() or 0), int(message.offset() or 0)
            if offset >= self.ends[number][1]:  # written since; the records before it may have been dropped
                self.following[number] = self.ends[number][1]
                self.consumer.pause([TopicPartition(self.topic.name, number)])
                continue
            self.waiting.append(message)
            self.following[number] = offset + 1
            self.rows += 1
            self.size += _size(message)
        return self.rows > before

    def _pass_gaps(self) -> None:
        """Note where the consumer stands: the last offsets of a partition may hold no records."""
        for place in self.consumer.position([TopicPartition(self.topic.name, number) for number in self.ends]):
            if place.offset >= 0:
                reached = min(place.offset, self.ends[place.partition][1])
                self.following[place.partition] = max(self.following[place.partition], reached)
