"""A bounded sample of a topic as a Parquet file, with keys, timestamps, headers and places.

Only what is there when the capture begins is read: of every partition the records since one moment, up to its end, so
that keys and partitions have the shares of the traffic. That moment is chosen so that the limits are reached at the
end, for which a first poll shows how large records are. What is read is written part by part, each with the place that
was reached, so an interrupted capture goes on from there. At the end the parts become one file, in the order of the
records' timestamps, which is about the order of their arrival.
"""

import fcntl
import json
import math
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from workbench import units
from workbench.checks import whole
from workbench.errors import WorkbenchError
from workbench.records import write_whole
from workbench.workload.kafka._client import consuming
from workbench.workload.kafka._newest import ASK_S, Ends, behind, end_of, ends_of, newest, offsets_at
from workbench.workload.kafka._sample import LEAST_SHARE, Sample, joined, traffic_s, write_part
from workbench.workload.kafka.schema import Schema
from workbench.workload.kafka.topic import Topic

_PART_ROWS, _PART_BYTES = 50_000, 32 << 20
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
    resumed
        Rows that an earlier, interrupted capture had read.
    not_json
        Values that are no JSON object; their columns are empty.
    expired
        Records that the topic dropped between an interrupted capture and this one.
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
    resumed: int = 0
    not_json: int = 0
    expired: int = 0
    not_decoded: int = 0
    schema_ids: tuple[int, ...] = ()


@dataclass
class _State:
    """How far a capture has come: the next offset and the end of every partition."""

    topic: str
    limits: dict[str, Any]
    following: dict[str, int]
    ends: dict[str, int]
    rows: int = 0
    size: int = 0
    parts: int = 0
    expired: int = 0

    @property
    def left(self) -> int:
        return sum(max(0, self.ends[name] - self.following[name]) for name in self.ends)


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
    try:
        with _alone(target) as parts:
            state, before = _captured(topic, parts, limits, settings or {}, progress)
            sample = joined([parts / f"{number}.parquet" for number in range(state.parts)], schema)
            table = sample.table
            if schema is not None and sample.wrong > (1 - LEAST_SHARE) * sample.values:
                raise _not_decoded(topic, schema, sample)
            written = parts / "whole.parquet"
            pq.write_table(table, written, compression="zstd")
            written.chmod(0o600)
            written.replace(target)
            shutil.rmtree(parts, ignore_errors=True)
    except (OSError, pa.ArrowException) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise WorkbenchError(
            f"The sample of {topic.url} cannot be written to {target}: {reason}. What was read is in "
            f"{_folder(target)}: make room and run the same again, or delete that folder to begin again."
        ) from error
    return Captured(
        target,
        table.num_rows,
        len(state.ends),
        tuple(table.column_names),
        traffic_s(table),
        before,
        not_json=0 if schema else sample.wrong,
        expired=state.expired,
        not_decoded=sample.wrong if schema else 0,
        schema_ids=tuple(sorted(sample.numbers)),
    )


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
        f"were {expected}. {found}. Name the schema that they were written with, and run the same again: what was read "
        "is kept."
    )


def _checked(target: Path) -> Path:
    """Give the place that a name means; only a Parquet file may be there."""
    place = Path(os.path.realpath(target))
    if place.suffix != ".parquet" or (place.exists() and not place.is_file()):
        raise WorkbenchError(f"{str(target)!r} is no place for a sample; name a file that ends in .parquet.")
    return place


def _folder(target: Path) -> Path:
    return target.with_name(f".{target.name}.capture")


@contextmanager
def _alone(target: Path) -> Iterator[Path]:
    """Give the folder of the parts, which no other process may use meanwhile."""
    parts = _folder(target)
    parts.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (parts / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise WorkbenchError(
                f"Another process is capturing to {target}. Wait until it is done, or name another file."
            ) from None
        yield parts


def _captured(
    topic: Topic, parts: Path, limits: Limits, settings: Mapping[str, Any], progress: Callable[[str], None]
) -> tuple[_State, int]:
    """Read what is asked for into parts; give where that ended, and the rows that had been read before."""
    with consuming(topic, settings) as consumer:
        state = _resumed(consumer, parts, topic, limits) or _begun(consumer, topic, limits)
        before = state.rows
        reading = _Reading(consumer, topic, state, limits, parts, progress)
        try:
            reading.read()
        finally:
            reading.write()
    if not state.rows:
        shutil.rmtree(parts, ignore_errors=True)
        raise WorkbenchError(f"The topic {topic.url} has no records in what was asked for. Fill it, or ask for more.")
    return state, before


def _begun(consumer: Consumer, topic: Topic, limits: Limits) -> _State:
    """Look at every partition's ends, and choose where to begin so that the newest records are read."""
    ends = ends_of(consumer, topic)
    now_ms = int(1000 * time.time())
    begin = {number: low for number, (low, _) in ends.items()}
    if limits.seconds is not None:
        begin = offsets_at(consumer, topic, max(0, now_ms - int(1000 * limits.seconds)), ends)
    rows = _rows_within(consumer, topic, limits, begin, ends)
    if rows < behind(begin, ends):
        begin = newest(consumer, topic, rows, begin, ends, now_ms)
    return _State(
        topic.url,
        asdict(limits),
        {str(number): begin[number] for number in ends},
        {str(number): high for number, (_, high) in ends.items()},
    )


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


def _resumed(consumer: Consumer, parts: Path, topic: Topic, limits: Limits) -> _State | None:
    """Give the state of an interrupted capture of the same topic and limits, past what has expired since.

    None where there is none, or the topic has been made again.
    """
    try:
        state = _State(**json.loads((parts / "state.json").read_text(encoding="utf-8")))
        for number in range(state.parts):
            pq.read_metadata(parts / f"{number}.parquet")
    except (OSError, ValueError, TypeError, AttributeError):
        return None
    if state.topic != topic.url or state.limits != asdict(limits):
        return None
    for name, end in state.ends.items():
        low, high = end_of(consumer, topic, int(name))
        if high < end:
            return None
        expired = max(0, min(low, end) - state.following[name])
        state.following[name] += expired
        state.expired += expired
    return state


@dataclass
class _Reading:
    """A capture at work."""

    consumer: Consumer
    topic: Topic
    state: _State
    limits: Limits
    parts: Path
    progress: Callable[[str], None]
    waiting: list[Message] = field(default_factory=list)
    waiting_size: int = 0

    @property
    def room(self) -> int:
        """Records that may still be captured."""
        full = self.state.size >= self.limits.megabytes * 2**20
        return 0 if full else self.limits.rows - self.state.rows - len(self.waiting)

    def read(self) -> None:
        """Read what is left, part by part."""
        state = self.state
        left = [name for name in state.ends if state.following[name] < state.ends[name]]
        self.consumer.assign([TopicPartition(self.topic.name, int(name), state.following[name]) for name in left])
        heard = time.monotonic()
        while state.left and self.room > 0:
            kept = self._take(self.consumer.consume(min(_POLL_ROWS, self.room), _POLL_S))
            if kept:
                heard = time.monotonic()
            else:
                self._pass_gaps()
                if time.monotonic() - heard > _SILENT_S and state.left:
                    raise WorkbenchError(
                        f"The topic {self.topic.url} gave no record for {_SILENT_S:g} s although {state.left:,} are "
                        "left. Check the brokers, then run the same again; what was read is kept."
                    )
            if len(self.waiting) >= _PART_ROWS or self.waiting_size >= _PART_BYTES:
                self.write()
                most = min(self.limits.rows, state.rows + state.left)
                self.progress(f"{state.rows:,} of about {most:,} records captured")

    def write(self) -> None:
        """Write a part, then the place that was reached."""
        if self.waiting:
            write_part(self.waiting, self.parts / f"{self.state.parts}.parquet")
            self.state.parts += 1
            self.state.rows += len(self.waiting)
            self.waiting, self.waiting_size = [], 0
        write_whole(self.parts / "state.json", json.dumps(asdict(self.state)))

    def _take(self, messages: list[Message]) -> bool:
        """Keep the records that were there when the capture began; whether there were any."""
        failed, before = None, len(self.waiting)
        for message in messages:
            if message.error() is not None:
                failed = failed or message.error()
                continue
            name, offset = str(message.partition()), int(message.offset() or 0)
            if offset >= self.state.ends[name]:  # written since; the records before it may have been dropped
                self.state.following[name] = self.state.ends[name]
                self.consumer.pause([TopicPartition(self.topic.name, int(name))])
                continue
            self.waiting.append(message)
            size = _size(message)
            self.state.following[name] = offset + 1
            self.state.size += size
            self.waiting_size += size
        if failed is not None:
            raise KafkaException(failed)
        return len(self.waiting) > before

    def _pass_gaps(self) -> None:
        """Note where the consumer stands: the last offsets of a partition may hold no records."""
        asked = [TopicPartition(self.topic.name, int(name)) for name in self.state.ends]
        for place in self.consumer.position(asked):
            name = str(place.partition)
            if place.offset >= 0:
                reached = min(place.offset, self.state.ends[name])
                self.state.following[name] = max(self.state.following[name], reached)
