"""A topic filled from a data set or a generator at full speed: as JSON, or a captured sample unchanged.

A record's timestamp is its row's event time. (Spark's own Kafka sink would stamp it with the time of sending.)
"""

import base64
import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from workbench.checks import positive, whole
from workbench.errors import WorkbenchError
from workbench.testbed.spark.machine.broker import packed, reached
from workbench.workload import ENCODED, EventClock, Generator
from workbench.workload.kafka import COLUMNS, HEADERS, VALUE, Topic, field_of

_OWN = frozenset({*COLUMNS, HEADERS})
_Record = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]


@dataclass(frozen=True)
class Filled:
    """The rows that were sent: `rows` in `seconds`, to a number of `partitions`."""

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
    """Send the first `rows` rows of `generator` to `topic`, which is created with `partitions` where it is missing.

    Parameters
    ----------
    key
        Column whose value is the record's key, so that rows of one key meet in one partition; None: that of a captured
        sample, otherwise no key.
    event_time
        Column with the event time, which is the record's timestamp; None: the time at which the row is due.
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
        raise WorkbenchError(f"The key {key!r} is not a column; the columns are {', '.join(names)}. Name one of them.")
    if clock.origin_us < 0:
        raise WorkbenchError(
            f"{rows:,} rows at event_rate {event_rate:g} begin before 1970; event_rate must be higher. Raise it, or "
            "send fewer rows."
        )
    record, sent = _records(names, key), 0
    with reached(topic, settings or {}) as broker:
        there = broker.made(partitions)
        begun = time.monotonic()
        with broker.sending() as send:
            for batch in generator.batches(0, rows, clock):
                times_ms = _times_ms(batch, event_time, clock, sent)
                pairs = zip(times_ms, batch.to_pylist(), strict=True)
                send(packed(at_ms, *record(row)) for at_ms, row in pairs)
                sent += batch.num_rows
                progress(f"{sent:,} of {rows:,} rows sent")
    return Filled(sent, time.monotonic() - begun, there)


def _records(names: list[str], key: str | None) -> Callable[[Mapping[str, Any]], _Record]:
    """Return a function that makes a record's value, key and headers of a row; a captured sample is restored."""
    raw = set(names) - _OWN == {VALUE}  # the values were not JSON

    def made(row: Mapping[str, Any]) -> _Record:
        return _json(row), None if key is None else _bytes(row[key]), []

    def captured(row: Mapping[str, Any]) -> _Record:
        inside = {field_of(name): value for name, value in row.items() if name not in _OWN}
        empty = all(one is None for one in inside.values())
        value = _bytes(row[VALUE]) if raw else None if empty else _json(inside)
        headers = [(name, _bytes(text)) for name, text in json.loads(row[HEADERS] or "[]")]
        return value, _bytes(row[key or "_key"]), headers

    return captured if _OWN.issubset(names) else made


def _times_ms(batch: pa.RecordBatch, event_time: str | None, clock: EventClock, first: int) -> list[int]:
    """Return the rows' timestamps, ms since 1970."""
    times_us = clock.times_us(np.arange(first, first + batch.num_rows))
    if event_time is not None and pa.types.is_timestamp(batch.schema.field(event_time).type):
        times_us = batch.column(event_time).cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy()
    found: list[int] = np.maximum(0, times_us // 1000).tolist()
    return found


def _bytes(value: object) -> bytes | None:
    return value if value is None or isinstance(value, bytes) else str(value).encode()


def _json(row: Mapping[str, Any]) -> bytes:
    """Write a row as JSON, which has no NaN and no infinity: they are null."""
    finite = {one: None if isinstance(of, float) and not math.isfinite(of) else of for one, of in row.items()}
    return json.dumps(finite, default=_plain, ensure_ascii=False, separators=(",", ":")).encode()


def _plain(value: object) -> object:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value)
