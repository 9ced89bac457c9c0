"""A bounded sample of a topic as a Parquet file, and a topic filled from data: as JSON, or a sample unchanged.

Only records that exist when the capture begins are read, in every partition from the same moment to the end, so that
keys and partitions have the shares of the traffic. That moment is chosen so that the limits are reached at the
end, for which a first poll shows how large records are. The file has the records in the order of their timestamps,
which is about the order of their arrival.

A record that is sent has its row's event time as timestamp. (Spark's own Kafka sink would stamp it with the time of
sending.)
"""

import base64
import bisect
import json
import math
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from workbench import units
from workbench.checks import positive, whole, within
from workbench.errors import WorkbenchError
from workbench.redaction import redacted
from workbench.testbed.spark.driver.process import ask_apart
from workbench.testbed.spark.driver.session import last_line
from workbench.testbed.spark.machine.broker import ANSWER_MS, Broker, Ends, packed, reached
from workbench.testbed.spark.machine.java import connector_jars
from workbench.workload import ENCODED, EventClock, Generator
from workbench.workload.kafka import COLUMNS, HEADERS, VALUE, Schema, Topic, field_of

LEAST_SHARE = 0.99  # share of the values that must be JSON objects, or decode with the schema
_MOST_MB, _MOST_S = 1024, 10 * 365 * 86400.0  # of a data set, one GiB is replayed
_MOST_IDS = 5  # of schemas, in a message
_FILLED = 0.95  # of the allowed bytes, because sizes are estimated
_SIZED = 500  # records of a first poll
_LATEST_MS = 1 << 43  # in the year 2248
_LETTERS = 300  # of a reason


@dataclass(frozen=True)
class Limits:
    """How much is captured: at most N rows, about N MiB of keys and values, and the last seconds of traffic."""

    rows: int = 1_000_000
    megabytes: int = 512
    seconds: float | None = None

    def __post_init__(self) -> None:
        whole("rows", self.rows, 1)
        whole("megabytes", self.megabytes, 1, _MOST_MB)
        if self.seconds is not None:
            within("seconds", self.seconds, 0, _MOST_S, ends="(]")


@dataclass(frozen=True)
class Captured:
    """A finished capture: the Parquet file at `path`, with the records of a topic's `partitions`."""

    path: Path
    rows: int
    partitions: int
    columns: tuple[str, ...]
    seconds: float  # of traffic: from the first to the last timestamp
    not_json: int = 0  # values that are not JSON objects; their columns are empty
    not_decoded: int = 0  # values that do not decode with the schema; their columns are empty
    schema_ids: tuple[int, ...] = ()  # ids that precede the values, in a schema registry's wire format


def capture(
    topic: Topic,
    target: Path,
    limits: Limits | None = None,
    settings: Mapping[str, Any] | None = None,
    *,
    schema: Schema | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Captured:
    """Write a sample of `topic` to the Parquet file `target`, all of it or nothing; only you can read it.

    Of the `limits` whichever is reached first ends the capture; `settings` are the client's, as from
    `workbench.workload.kafka.client_settings`. Without a `schema`, values are JSON objects or become no columns. A
    `WorkbenchError` says that the topic cannot be read or is empty, that its values do not decode, or that the file
    cannot be written.
    """
    target, avro = _checked(target), schema is not None and schema.kind == "AVRO"
    jars = connector_jars(progress, avro=avro)
    with reached(topic, settings or {}) as broker:
        ends = broker.ends()
        begin = beginning(broker, limits or Limits(), ends)
    rows = behind(begin, ends)
    progress(f"reading {rows:,} records of {topic.name} with Spark")
    asked = {
        "jars": jars,
        "options": {
            **{f"kafka.{name}": value for name, value in broker.options.items()},
            "assign": json.dumps({topic.name: [*ends]}),
            "startingOffsets": json.dumps({topic.name: begin}),
            "endingOffsets": json.dumps({topic.name: {number: high for number, (_, high) in ends.items()}}),
            "includeHeaders": "true",
            "failOnDataLoss": "false",
            "kafkaConsumer.pollTimeoutMs": str(ANSWER_MS),
        },
        "avro": json.dumps(schema.definition) if schema is not None and avro else None,
        "number": None if schema is None else schema.number,
        "strict": schema is not None,
    }
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as folder:
            seen: dict[str, Any] = {"rows": 0}
            if rows:
                seen = _decoded(topic, schema, {**asked, "folder": f"{folder}/parts"})
            if not seen["rows"]:
                raise WorkbenchError(
                    f"The topic {topic.url} has no records in the requested range. Fill it, or request more."
                )
            if schema is not None and seen["wrong"] > (1 - LEAST_SHARE) * seen["values"]:
                raise _not_decoded(topic, schema, seen)
            encoding = b"avro" if avro else b"framed" if seen["ids"] and seen["decoded"] else b""
            columns = _merge_files(Path(folder), target, encoding)
    except (OSError, pa.ArrowException) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise WorkbenchError(
            f"The sample of {topic.url} cannot be written to {target}: {reason}. Make room, or name another file, and "
            "run the same again."
        ) from error
    wrong = {"not_decoded" if schema else "not_json": seen["wrong"]}
    return Captured(target, seen["rows"], len(ends), columns, seen["seconds"], schema_ids=tuple(seen["ids"]), **wrong)


def _checked(target: Path) -> Path:
    """Return the path that a name means; refuse to replace any file but Parquet."""
    place = Path(os.path.realpath(target))
    if place.suffix != ".parquet" or (place.exists() and not place.is_file()):
        raise WorkbenchError(f"{str(target)!r} is not a place for a sample; name a file that ends in .parquet.")
    return place


def beginning(broker: Broker, limits: Limits, ends: Ends) -> Mapping[int, int]:
    """Choose where to begin in every partition so that the newest records within `limits` are read."""
    begin = {number: low for number, (low, _) in ends.items()}
    if limits.seconds is not None:
        begin = broker.since(max(0, int(1000 * (time.time() - limits.seconds))), ends)
    rows, each = limits.rows, -(-_SIZED // len(ends))
    last = {number: max(begin[number], high - each) for number, (_, high) in ends.items()}
    if behind(last, ends) and (size := broker.row_bytes(last)):
        rows = max(1, min(rows, int(_FILLED * limits.megabytes * 2**20 / size)))
    return newest(lambda at_ms: broker.since(at_ms, ends), rows, begin, ends)


def newest(
    at: Callable[[int], Mapping[int, int]], rows: int, begin: Mapping[int, int], ends: Ends
) -> Mapping[int, int]:
    """Return where to begin so that the newest `rows` records are read, of all partitions those since one moment.

    Records of that very moment are shared in proportion. `at` gives the first offset of every partition with a record
    of a time, in ms since 1970, or later; `begin` is the earliest.
    """
    if behind(begin, ends) <= rows:
        return begin

    def since(at_ms: int) -> dict[int, int]:
        found = at(at_ms)
        return {number: max(offset, found[number]) for number, offset in begin.items()}

    moment = bisect.bisect_left(range(_LATEST_MS), x=True, key=lambda at_ms: behind(since(at_ms), ends) <= rows)
    late, early = since(moment), since(moment - 1) if moment else begin
    before, after = behind(early, ends), behind(late, ends)
    share = (rows - after) / max(1, before - after)
    return {number: late[number] - int(share * (late[number] - early[number])) for number in ends}


def behind(begin: Mapping[int, int], ends: Ends) -> int:
    """Count the offsets of all partitions from `begin` on."""
    return sum(high - begin[number] for number, (_, high) in ends.items())


def _decoded(topic: Topic, schema: Schema | None, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Read a sample in a separate process; return what was seen."""
    answer, said, _ = ask_apart("workbench.testbed.spark.kafka.decoding", asked)
    found: dict[str, Any] = {"error": last_line(said) or "the process ended"}
    with suppress(ValueError):
        found = json.loads(answer)
    if "error" in found:
        read = "" if schema is None else f" with {schema.said}"
        check = "" if schema is None else ", correct the schema or leave it out (values are captured as bytes then)"
        raise WorkbenchError(
            f"Spark does not read the topic {topic.url}{read}: {redacted(found['error'])[:_LETTERS].rstrip('.')}. "
            f"Check the brokers{check}, and run the same again."
        )
    return found


def _merge_files(folder: Path, target: Path, encoding: bytes) -> tuple[str, ...]:
    """Merge Spark's files into one; return its columns."""
    files = sorted(folder.glob("parts/*.parquet"))
    fields = [one.with_metadata({}) for one in pq.read_schema(files[0])]
    schema = pa.schema(fields, {ENCODED: encoding} if encoding else None)
    whole = folder / target.name
    whole.touch(mode=0o600)
    with pq.ParquetWriter(whole, schema, compression="zstd") as writer:
        for file in files:
            for batch in pq.ParquetFile(file).iter_batches():
                writer.write_batch(batch.cast(schema))
    whole.replace(target)
    return tuple(schema.names)


def _not_decoded(topic: Topic, schema: Schema, seen: Mapping[str, Any]) -> WorkbenchError:
    """Return the error for values that do not match the schema; it quotes none of them."""
    first, ids = seen["first"], [str(one) for one in seen["ids"]]
    expected = "a JSON object"
    if schema.kind == "AVRO":
        expected = f"the fields {', '.join(field['name'] for field in schema.definition['fields'])}, and nothing after"
    found = "No value is in a registry's wire format, which would name its schema"
    if ids:
        more = ", ..." * (len(ids) > _MOST_IDS)
        found = f"The values are in a registry's wire format, with the schema id {' and '.join(ids[:_MOST_IDS])}{more}"
    return WorkbenchError(
        f"{seen['wrong']:,} of {seen['values']:,} values of {topic.url} do not decode with {schema.said}; at most "
        f"{units.percent(1 - LEAST_SHARE)} may. The first is in partition {first['partition']}, at offset "
        f"{first['offset']}; expected were {expected}. {found}. Name the schema that they were written with, and run "
        "the same again."
    )


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
