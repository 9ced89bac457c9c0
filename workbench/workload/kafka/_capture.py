"""A bounded sample of a topic as a Parquet file, with keys, timestamps, headers and places.

Only what is there when the capture begins is read: of every partition the newest records up to its end. Each part is
written before the next is read, with the place that was reached, so an interrupted capture goes on from there. At the
end the parts become one file, in the order of the records' timestamps, which is about the order of their arrival.

Values that are JSON objects become columns, with the types that the whole sample shows; others stay bytes or text.
"""

import json
import re
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
import pyarrow.parquet as pq
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from workbench.checks import whole
from workbench.errors import WorkbenchError
from workbench.records.documents import write_whole
from workbench.workload.kafka.topic import Topic

KEY, TIMESTAMP, PARTITION, OFFSET, HEADERS, VALUE = "_key", "_timestamp", "_partition", "_offset", "_headers", "value"

_PART_ROWS, _POLL_ROWS, _POLL_S = 50_000, 5_000, 1.0
_ASK_S, _SILENT_S = 10.0, 30.0  # for metadata; without a record although some are left
_JSON_SHARE = 0.99  # of the values that must be objects
_SECRET = re.compile(r"password|secret|token|jaas|key|credential", re.IGNORECASE)
_STORED = pa.schema(
    [
        (KEY, pa.binary()),
        (VALUE, pa.binary()),
        (TIMESTAMP, pa.timestamp("ms", "UTC")),
        (PARTITION, pa.int32()),
        (OFFSET, pa.int64()),
        (HEADERS, pa.string()),
    ]
)


@dataclass(frozen=True)
class Limits:
    """How much is captured: at most so many rows, bytes of keys and values, and seconds of the newest traffic."""

    rows: int = 1_000_000
    megabytes: int = 512
    seconds: float | None = None

    def __post_init__(self) -> None:
        whole("rows", self.rows, 1)
        whole("megabytes", self.megabytes, 1)
        if self.seconds is not None and not self.seconds > 0:
            raise WorkbenchError(f"seconds is {self.seconds!r}; it must be above 0. Correct it, or leave it out.")


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
    """

    path: Path
    rows: int
    partitions: int
    columns: tuple[str, ...]
    seconds: float
    resumed: int = 0
    not_json: int = 0


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

    @property
    def left(self) -> int:
        return sum(max(0, self.ends[name] - self.following[name]) for name in self.ends)


def capture(
    topic: Topic,
    target: Path,
    limits: Limits | None = None,
    settings: Mapping[str, Any] | None = None,
    *,
    progress: Callable[[str], None] = lambda _: None,
) -> Captured:
    """Write a sample of `topic` to the Parquet file `target`.

    Parameters
    ----------
    limits
        Whichever is reached first ends the capture.
    settings
        Of the client, in librdkafka's names; see `client_settings`.
    progress
        Called with one line of text after each part.

    Raises
    ------
    WorkbenchError
        When the cluster does not answer, the topic is missing or empty, or records stop although some are left. What
        was read is kept, and the same call goes on from there.
    """
    limits = limits or Limits()
    parts = target.with_name(f"{target.name}.parts")
    consumer = _consumer(topic, settings or {})
    try:
        state = _resumed(parts, topic, limits) or _begun(consumer, topic, limits)
        before = state.rows
        parts.mkdir(parents=True, exist_ok=True)
        _keep(parts, state)
        reading = _Reading(consumer, topic, state, limits, parts, progress)
        try:
            reading.read()
        except KafkaException:
            reading.write()
            raise
    except KafkaException as error:
        raise _told(topic, error.args[0]) from error
    finally:
        consumer.close()
    if not state.rows:
        shutil.rmtree(parts, ignore_errors=True)
        raise WorkbenchError(f"The topic {topic.url} has no records in what was asked for. Fill it, or ask for more.")
    table, not_json = _joined([parts / f"{number}.parquet" for number in range(state.parts)])
    written = target.with_name(f".{target.name}.new")
    pq.write_table(table, written, compression="zstd")
    written.replace(target)
    shutil.rmtree(parts, ignore_errors=True)
    first, last = (at.as_py().timestamp() for at in (table[TIMESTAMP][0], table[TIMESTAMP][-1]))
    return Captured(target, table.num_rows, len(state.ends), tuple(table.column_names), last - first, before, not_json)


def _consumer(topic: Topic, settings: Mapping[str, Any]) -> Consumer:
    ours = {
        "bootstrap.servers": topic.servers,
        "group.id": "streaming-capacity-workbench",  # nothing is ever committed
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "enable.partition.eof": False,
        "queued.min.messages": 20_000,  # of a partition; what waits in the client is lost when it is interrupted
        "log_level": 0,  # librdkafka's own log may quote settings
    }
    try:
        return Consumer({**settings, **ours})
    except (KafkaException, ValueError, TypeError) as error:
        raise _refused(error, settings) from error


def _refused(error: Exception, settings: Mapping[str, Any]) -> WorkbenchError:
    """Say what is wrong with the client's settings without quoting a value of theirs."""
    first = error.args[0] if error.args else error
    said = first.str() if isinstance(first, KafkaError) else str(first)
    for name, value in settings.items():
        if value and _SECRET.search(name):
            said = said.replace(str(value), "***")
    return WorkbenchError(f"The Kafka client refuses its settings: {said}. Correct the file of client settings.")


def _told(topic: Topic, error: KafkaError | object) -> WorkbenchError:
    said = error.str() if isinstance(error, KafkaError) else str(error)
    return WorkbenchError(
        f"Kafka does not give the topic {topic.url}: {said.rstrip('.')}. Check the servers, the topic and the client "
        "settings, then run the same again; what was read is kept."
    )


def _begun(consumer: Consumer, topic: Topic, limits: Limits) -> _State:
    """Look at every partition's ends, and choose where to begin so that the newest records are read."""
    known = consumer.list_topics(topic.name, timeout=_ASK_S).topics.get(topic.name)
    if known is None or known.error is not None or not known.partitions:
        reason = "" if known is None or known.error is None else f" ({known.error.str()})"
        raise WorkbenchError(f"The topic {topic.url} does not exist{reason}. Check its name.")
    places = [TopicPartition(topic.name, number) for number in sorted(known.partitions)]
    ends = {place.partition: consumer.get_watermark_offsets(place, timeout=_ASK_S) for place in places}
    each = -(-limits.rows // len(places))
    begin = {number: max(low, high - each) for number, (low, high) in ends.items()}
    if limits.seconds is not None:
        since = int(1000 * (time.time() - limits.seconds))
        asked = [TopicPartition(topic.name, number, since) for number in ends]
        for found in consumer.offsets_for_times(asked, timeout=_ASK_S):
            _, high = ends[found.partition]
            begin[found.partition] = max(begin[found.partition], found.offset if found.offset >= 0 else high)
    return _State(
        topic.url,
        asdict(limits),
        {str(number): offset for number, offset in begin.items()},
        {str(number): high for number, (_, high) in ends.items()},
    )


def _resumed(parts: Path, topic: Topic, limits: Limits) -> _State | None:
    """Give the state of an interrupted capture of the same topic and limits."""
    try:
        state = _State(**json.loads((parts / "state.json").read_text(encoding="utf-8")))
        same = state.topic == topic.url and state.limits == asdict(limits)
        there = all((parts / f"{number}.parquet").is_file() for number in range(state.parts))
    except (OSError, ValueError, TypeError, AttributeError):
        return None
    return state if same and there else None


def _keep(parts: Path, state: _State) -> None:
    write_whole(parts / "state.json", json.dumps(asdict(state)))


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

    @property
    def room(self) -> int:
        """Records that may still be captured."""
        full = self.state.size >= self.limits.megabytes * 2**20
        return 0 if full else self.limits.rows - self.state.rows - len(self.waiting)

    def read(self) -> None:
        """Read what is left, part by part."""
        state = self.state
        self.consumer.assign(
            [
                TopicPartition(self.topic.name, int(name), state.following[name])
                for name in state.ends
                if state.following[name] < state.ends[name]
            ]
        )
        heard = time.monotonic()
        while state.left and self.room > 0:
            messages = self.consumer.consume(min(_POLL_ROWS, self.room), _POLL_S)
            kept = [message for message in messages if _counts(message, state)]
            state.size += sum(len(message.key() or b"") + len(message.value() or b"") for message in kept)
            self.waiting += kept
            if messages:
                heard = time.monotonic()
            elif time.monotonic() - heard > _SILENT_S:
                self.write()
                raise WorkbenchError(
                    f"The topic {self.topic.url} gave no record for {_SILENT_S:g} s although {state.left:,} are left. "
                    "Check the brokers, then run the same again; what was read is kept."
                )
            else:
                self._pass_gaps()
            if len(self.waiting) >= _PART_ROWS:
                self.write()
                most = min(self.limits.rows, state.rows + state.left)
                self.progress(f"{state.rows:,} of about {most:,} records captured")
        self.write()

    def write(self) -> None:
        """Write a part, then the place that was reached."""
        if self.waiting:
            _columns(self.waiting, self.parts / f"{self.state.parts}.parquet")
            self.state.parts += 1
            self.state.rows += len(self.waiting)
            self.waiting = []
        _keep(self.parts, self.state)

    def _pass_gaps(self) -> None:
        """Note where the consumer stands: the last offsets of a partition may hold no records."""
        asked = [TopicPartition(self.topic.name, int(name)) for name in self.state.ends]
        for place in self.consumer.position(asked):
            name = str(place.partition)
            if place.offset >= 0:
                reached = min(place.offset, self.state.ends[name])
                self.state.following[name] = max(self.state.following[name], reached)


def _counts(message: Message, state: _State) -> bool:
    """Note a message's place; whether it is a record that was there when the capture began."""
    error = message.error()
    if error is not None:
        raise KafkaException(error)
    name, offset = str(message.partition()), int(message.offset() or 0)
    if offset >= state.ends[name]:
        return False
    state.following[name] = offset + 1
    return True


def _columns(messages: Sequence[Message], path: Path) -> None:
    columns = [
        pa.array([message.key() for message in messages], pa.binary()),
        pa.array([message.value() for message in messages], pa.binary()),
        pa.array([max(0, message.timestamp()[1]) for message in messages], pa.int64()).cast(pa.timestamp("ms", "UTC")),
        pa.array([message.partition() for message in messages], pa.int32()),
        pa.array([message.offset() for message in messages], pa.int64()),
        pa.array([_headers(message.headers()) for message in messages], pa.string()),
    ]
    pq.write_table(pa.Table.from_arrays(columns, schema=_STORED), path, compression="zstd")


def _headers(headers: Mapping[str, Any] | Iterable[tuple[str, Any]] | None) -> str | None:
    if not headers:
        return None
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    told = {name: value.decode("utf-8", "replace") if isinstance(value, bytes) else value for name, value in pairs}
    return json.dumps(told, ensure_ascii=False)


def _joined(parts: Sequence[Path]) -> tuple[pa.Table, int]:
    """Put the parts into one table in the order of their timestamps, values decoded; count those that are no JSON."""
    table = pa.concat_tables([pq.read_table(part) for part in parts])
    table = table.take(
        pc.sort_indices(table, [(TIMESTAMP, "ascending"), (PARTITION, "ascending"), (OFFSET, "ascending")])
    )
    decoded, not_json = _decoded(table[VALUE])
    kept = [name for name in table.column_names if name != VALUE]
    columns = {name: _text(table[name]) if name == KEY else table[name] for name in kept}
    return pa.table({**decoded, **columns}), not_json


def _decoded(values: pa.ChunkedArray) -> tuple[dict[str, pa.ChunkedArray], int]:
    """Give the columns of JSON objects, or the values as they are where these are not nearly all objects."""
    lines, objects = [], 0
    for value in values.to_pylist():
        line = _line(value)
        objects += line is not None
        lines.append(line or b"{}")
    if objects < _JSON_SHARE * len(lines):
        return {VALUE: _text(values)}, len(lines) - objects
    try:
        table = pj.read_json(pa.BufferReader(b"\n".join(lines) + b"\n"))
    except pa.ArrowInvalid:  # a column of two kinds
        return {VALUE: _text(values)}, len(lines) - objects
    taken = {KEY, TIMESTAMP, PARTITION, OFFSET, HEADERS}
    return {f"{name}_" if name in taken else name: table[name] for name in table.column_names}, len(lines) - objects


def _line(value: bytes | None) -> bytes | None:
    """Give a JSON object on one line; None if it is none."""
    if value is None or not value.lstrip().startswith(b"{"):
        return None
    try:
        return json.dumps(json.loads(value), ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None


def _text(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Give bytes as text where all of them are."""
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        return values
