"""A topic filled from a data set or a generator at full speed, as JSON; from a captured sample, as it was captured.

A record's timestamp is its row's event time.
"""

import base64
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from workbench.checks import positive, whole
from workbench.errors import WorkbenchError
from workbench.workload.kafka._client import refused
from workbench.workload.kafka._sample import HEADERS, KEY, OWN, VALUE, field_of
from workbench.workload.kafka.topic import Topic
from workbench.workload.query import ENCODED, EventClock, Generator

_POLL_ROWS = 10_000
_ASK_S, _FLUSH_S, _WAIT_S = 10.0, 60.0, 0.1
_AT_ONCE, _AT_ONCE_KB = 400_000, 256 * 1024  # that wait in the client
_FAST: Mapping[str, Any] = MappingProxyType(
    {
        "linger.ms": 50,
        "batch.size": 1 << 20,
        "compression.type": "lz4",
        "delivery.report.only.error": True,  # no call into Python for every row
        "enable.idempotence": True,  # a broker that starts again gets no record twice
        "queue.buffering.max.messages": _AT_ONCE,
        "queue.buffering.max.kbytes": _AT_ONCE_KB,
    }
)


@dataclass(frozen=True)
class Filled:
    """What was sent: `rows` in `seconds`, to a number of `partitions`."""

    rows: int
    seconds: float
    partitions: int

    @property
    def rate(self) -> float:
        """Rows/s."""
        return self.rows / self.seconds if self.seconds > 0 else math.inf


def fill(
    topic: Topic,
    generator: Generator,
    rows: int,
    settings: Mapping[str, Any] | None = None,
    *,
    key: str | None = None,
    event_time: str | None = None,
    partitions: int = 4,
    event_rate: float = 100_000.0,
    progress: Callable[[str], None] = lambda _: None,
) -> Filled:
    """Send the first `rows` rows of `generator` to `topic`, which is created where it is missing.

    Parameters
    ----------
    key
        Column whose value is the record's key, so that rows of one key meet in one partition; None: that of a captured
        sample, otherwise no key.
    event_time
        Column with the event time, which is the record's timestamp; None: the time at which the row is due.
    partitions
        Of a topic that is created.
    event_rate
        Rows per second of event time; the last row's is now.
    """
    whole("rows", rows, 1)
    whole("partitions", partitions, 1)
    positive("event_rate", event_rate)
    schema = generator.schema()
    names = schema.names
    if (schema.metadata or {}).get(ENCODED) == b"avro":
        raise WorkbenchError(
            "The data is a sample of a topic whose values are Avro, which is not written here: in the topic they would "
            "be JSON. Measure on the sample itself (source: replay), or write its columns without those that begin "
            "with _ to a Parquet file of their own, which is sent as JSON."
        )
    spacing_us = 1e6 / event_rate
    clock = EventClock(int(1e6 * time.time() - rows * spacing_us), 0, spacing_us)
    if key is not None and key not in names:
        raise WorkbenchError(f"The key {key!r} is no column; the columns are {', '.join(names)}. Name one of them.")
    if clock.origin_us < 0:
        raise WorkbenchError(
            f"{rows:,} rows at event_rate {event_rate:g} begin before 1970; event_rate must be higher. Raise it, or "
            "send fewer rows."
        )
    given = dict(settings or {})
    try:
        there = _created(topic, {**given, **_ours(topic)}, partitions)
        sending = _Sending(topic, Producer({**_FAST, **given, **_ours(topic)}))
    except KafkaException as error:
        first = error.args[0] if error.args else error
        wrong = isinstance(first, KafkaError) and first.code() == KafkaError._INVALID_ARG  # noqa: SLF001 - its name
        raise (refused(error, given) if wrong else _told(topic, first)) from error
    except (ValueError, TypeError) as error:
        raise refused(error, given) from error
    begun = time.monotonic()
    records = _Records(tuple(names), key)
    for batch in generator.batches(0, rows, clock):
        times_ms = _times_ms(batch, event_time, clock, sending.sent)
        for row, at_ms in zip(batch.to_pylist(), times_ms, strict=True):
            sending.send(at_ms, **records.of(row))
        progress(f"{sending.sent:,} of {rows:,} rows sent")
    sending.finish()
    return Filled(sending.sent, time.monotonic() - begun, there)


@dataclass(frozen=True)
class _Records:
    """Makes records of rows with these `columns`; those of a captured sample become what they were."""

    columns: tuple[str, ...]
    key: str | None

    def of(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Give the record's value, key and headers."""
        if not self.captured:
            return {"value": _json(row), "key": None if self.key is None else _bytes(row[self.key])}
        inside = {field_of(name): value for name, value in row.items() if name not in OWN}
        if self.raw:
            value = _bytes(row[VALUE])
        else:
            value = _json(inside) if any(one is not None for one in inside.values()) else None
        return {"value": value, "key": _bytes(row[self.key or KEY]), "headers": _headers(row[HEADERS])}

    @cached_property
    def captured(self) -> bool:
        """Whether the rows are those of a captured sample."""
        return OWN.issubset(self.columns)

    @cached_property
    def raw(self) -> bool:
        """Whether the values were no JSON."""
        return set(self.columns) - OWN == {VALUE}


def _times_ms(batch: pa.RecordBatch, event_time: str | None, clock: EventClock, first: int) -> list[int]:
    """Give the rows' timestamps, ms since 1970; the client takes 0 for now."""
    times_us = clock.times_us(np.arange(first, first + batch.num_rows))
    if event_time is not None and pa.types.is_timestamp(batch.schema.field(event_time).type):
        times_us = batch.column(event_time).cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy()
    found: list[int] = np.maximum(1, times_us // 1000).tolist()
    return found


@dataclass
class _Sending:
    """What was sent, and what was not delivered."""

    topic: Topic
    producer: Producer
    sent: int = 0
    failed: list[KafkaError] = field(default_factory=list)

    def send(self, at_ms: int, **record: Any) -> None:  # noqa: ANN401 - key, value and headers
        while True:
            try:
                self.producer.produce(self.topic.name, timestamp=at_ms, on_delivery=self._note, **record)
                break
            except BufferError:  # the client's queue is full: let it send
                self.producer.poll(_WAIT_S)
                self._check()
            except KafkaException as error:
                raise self._told(error.args[0] if error.args else error) from error
        self.sent += 1
        if self.sent % _POLL_ROWS == 0:
            self.producer.poll(0)
            self._check()

    def finish(self) -> None:
        """Wait until all is delivered, as long as something is."""
        left = len(self.producer)
        while left:
            still = self.producer.flush(_FLUSH_S)
            self._check()
            if still >= left:
                raise self._told(f"{still:,} records were not taken within {_FLUSH_S:g} s")
            left = still

    def _note(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self.failed.append(error)

    def _check(self) -> None:
        if self.failed:
            raise self._told(self.failed[0])

    def _told(self, error: object) -> WorkbenchError:
        there = max(0, self.sent - len(self.producer) - len(self.failed))
        return _told(self.topic, error, f" About {there:,} rows are in the topic; sending again adds to them.")


def _ours(topic: Topic) -> dict[str, Any]:
    return {"bootstrap.servers": topic.servers, "log_level": 0}


@contextmanager
def topic_beside(topic: Topic, name: str, settings: Mapping[str, Any]) -> Iterator[Topic]:
    """Make a topic next to `topic`, called as it is and `name`, with as many partitions; delete it in the end.

    Raises
    ------
    WorkbenchError
        When the broker does not let it be made.
    """
    own = Topic(topic.servers, f"{topic.name}-{name}")
    client = {**settings, **_ours(topic)}
    try:
        admin = AdminClient(client)
        known = admin.list_topics(timeout=_ASK_S).topics.get(topic.name)
        _created(own, client, len(known.partitions) if known is not None and known.error is None else 1)
    except KafkaException as error:
        raise _told(own, error.args[0] if error.args else error) from error
    try:
        yield own
    finally:
        with suppress(KafkaException, TimeoutError):  # a broker that has ended has no topic either
            admin.delete_topics([own.name])[own.name].result(_ASK_S)


def _created(topic: Topic, settings: Mapping[str, Any], partitions: int) -> int:
    """Create the topic if it is missing; give the number of its partitions."""
    admin = AdminClient(dict(settings))
    known = admin.list_topics(timeout=_ASK_S).topics.get(topic.name)
    if known is not None and known.error is None:
        return len(known.partitions)
    try:
        admin.create_topics([NewTopic(topic.name, partitions)])[topic.name].result(_ASK_S)
    except TimeoutError as error:
        raise _told(topic, f"the topic was not created within {_ASK_S:g} s") from error
    return partitions


def _told(topic: Topic, error: object, also: str = "") -> WorkbenchError:
    said = error.str() if isinstance(error, KafkaError) else str(error)
    return WorkbenchError(
        f"Kafka does not take records for {topic.url}: {said.rstrip('.')}.{also} Check the servers and the client "
        "settings."
    )


def _bytes(value: object) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return str(value).encode()


def _headers(text: str | None) -> list[tuple[str, bytes | None]]:
    """Read the headers of a captured record: a JSON list of pairs."""
    return [(name, _bytes(value)) for name, value in json.loads(text or "[]")]


def _json(row: Mapping[str, Any]) -> bytes:
    """Write a row as JSON, which has no NaN and no infinity: they are null."""
    finite = {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in row.items()
    }
    return json.dumps(finite, default=_plain, ensure_ascii=False, separators=(",", ":")).encode()


def _plain(value: object) -> object:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, pa.Scalar):
        return value.as_py()
    return str(value)
