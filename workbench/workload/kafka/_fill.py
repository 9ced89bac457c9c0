"""A topic filled from a data set or a generator at full speed, as JSON."""

import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from workbench.checks import positive, whole
from workbench.errors import WorkbenchError
from workbench.workload.kafka.topic import Topic
from workbench.workload.query import EventClock, Generator

_BATCH_ROWS = 20_000
_ASK_S, _FLUSH_S = 10.0, 60.0
_AT_ONCE = 200_000  # messages that wait in the client
_FAST: Mapping[str, Any] = MappingProxyType(
    {
        "linger.ms": 50,
        "batch.size": 1 << 20,
        "compression.type": "lz4",
        "queue.buffering.max.messages": 2 * _AT_ONCE,
    }
)


@dataclass(frozen=True)
class Filled:
    """What was sent: `rows` in `seconds`, to so many `partitions`."""

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
    partitions: int = 4,
    event_rate: float = 100_000.0,
    progress: Callable[[str], None] = lambda _: None,
) -> Filled:
    """Send the first `rows` rows of `generator` to `topic`, which is created where it is missing.

    Parameters
    ----------
    key
        Column whose value is the record's key, so that rows of one key meet in one partition; None: no key.
    partitions
        Of a topic that is created.
    event_rate
        Rows per second of event time; the last row's is now.

    Raises
    ------
    WorkbenchError
        When the cluster does not answer, the key is no column, or a record is not delivered.
    """
    whole("rows", rows, 1)
    whole("partitions", partitions, 1)
    positive("event_rate", event_rate)
    names = generator.schema().names
    spacing_us = 1e6 / event_rate
    clock = EventClock(int(1e6 * time.time() - rows * spacing_us), 0, spacing_us)
    if key is not None and key not in names:
        raise WorkbenchError(f"The key {key!r} is no column; the columns are {', '.join(names)}. Name one of them.")
    try:
        there = _created(topic, {**(settings or {}), **_ours(topic)}, partitions)
        sending = _Sending(topic, Producer({**_FAST, **(settings or {}), **_ours(topic)}))
        begun = time.monotonic()
        for batch in generator.batches(0, rows, clock):
            for row in batch.to_pylist():
                sending.send(row, key)
            progress(f"{sending.sent:,} of {rows:,} rows sent")
        sending.finish()
    except (KafkaException, BufferError, ValueError, TypeError) as error:
        raise _told(topic, error.args[0] if error.args else error) from error
    return Filled(sending.sent, time.monotonic() - begun, there)


@dataclass
class _Sending:
    """What was sent, and what was not delivered."""

    topic: Topic
    producer: Producer
    sent: int = 0
    failed: list[KafkaError] = field(default_factory=list)

    def send(self, row: Mapping[str, Any], key: str | None) -> None:
        own = None if key is None or row[key] is None else str(row[key]).encode()
        self.producer.produce(self.topic.name, _json(row), own, on_delivery=self._delivered)
        self.sent += 1
        if self.sent % _BATCH_ROWS == 0:
            self.producer.poll(0)
            while len(self.producer) > _AT_ONCE and not self.failed:
                self.producer.poll(0.05)
            self._check()

    def finish(self) -> None:
        left = self.producer.flush(_FLUSH_S)
        self._check()
        if left:
            raise _told(self.topic, f"{left:,} records were not taken within {_FLUSH_S:g} s")

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self.failed.append(error)

    def _check(self) -> None:
        if self.failed:
            raise _told(self.topic, self.failed[0])


def _ours(topic: Topic) -> dict[str, Any]:
    return {"bootstrap.servers": topic.servers, "log_level": 0}


def _created(topic: Topic, settings: Mapping[str, Any], partitions: int) -> int:
    """Create the topic if it is missing; give the number of its partitions."""
    admin = AdminClient(dict(settings))
    known = admin.list_topics(timeout=_ASK_S).topics.get(topic.name)
    if known is not None and known.error is None:
        return len(known.partitions)
    admin.create_topics([NewTopic(topic.name, partitions)])[topic.name].result(_ASK_S)
    return partitions


def _told(topic: Topic, error: object) -> WorkbenchError:
    said = error.str() if isinstance(error, KafkaError) else str(error)
    return WorkbenchError(
        f"Kafka does not take records for {topic.url}: {said.rstrip('.')}. Check the servers and the client settings."
    )


def _json(row: Mapping[str, Any]) -> bytes:
    return json.dumps(row, default=_plain, ensure_ascii=False, separators=(",", ":")).encode()


def _plain(value: object) -> object:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, pa.Scalar):
        return value.as_py()
    return str(value)
