"""A bounded sample of a topic as a Parquet file, read by Spark: ``python -m workbench.testbed.spark.kafka.sample``.

Only what is there when the capture begins is read: of every partition the records since one moment, up to its end, so
that keys and partitions have the shares of the traffic. That moment is chosen so that the limits are reached at the
end, for which a first poll shows how large records are. The file has the records in the order of their timestamps,
which is about the order of their arrival.

Spark decodes values in a process of its own: JSON by the types that it infers, Avro by ``from_avro``.
"""

import bisect
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from operator import and_
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JError

from workbench import units
from workbench.checks import whole
from workbench.errors import WorkbenchError
from workbench.redaction import redacted
from workbench.testbed.spark.machine.connector import avro_jars, connector_jars
from workbench.testbed.spark.kafka.broker import ANSWER_MS, PATIENCE, Broker, Ends, reached
from workbench.testbed.spark.driver.process import environment_of_modules
from workbench.testbed.spark.driver.session import batch_session, last_line
from workbench.testbed.spark.driver.topic_feed import behind_id
from workbench.workload import ENCODED
from workbench.workload.kafka import COLUMNS, HEADERS, VALUE, Schema, Topic, java_settings

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

LEAST_SHARE = 0.99
"""Share of the values that must be JSON objects, or decode with the schema."""

_MOST_MB, _MOST_S = 1024, 10 * 365 * 86400.0
_MOST_IDS = 5  # of schemas, in a message
_FILLED = 0.95  # of the bytes that are allowed, because sizes are estimated
_SIZED = 500  # records of a first poll
_LATEST_MS = 1 << 43  # in the year 2248
_LONGEST = 2**31 - 1  # bytes of a value
_PREFIX = 5  # bytes of a registry's wire format: 0, and the id of the schema
_LETTERS = 300  # of a reason
_WRONG, _FRAMED, _BARE, _ID, _FIELDS = "__wrong", "__framed", "__bare", "__id", "__fields"


@dataclass(frozen=True)
class Limits:
    """How much is captured: at most N rows, about N MiB of keys and values, and the last seconds of traffic."""

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
    """Write a sample of `topic` to the Parquet file `target`, all of it or nothing; only you can read it.

    Parameters
    ----------
    limits
        Whichever is reached first ends the capture.
    settings
        Of the client; see `workbench.workload.kafka.client_settings`.
    schema
        Of the values; None: they are JSON objects or become no columns.
    progress
        Called with one line of text after each part.

    Raises
    ------
    WorkbenchError
        When the topic cannot be read or has no records, its values do not decode, or the file cannot be written.
    """
    target, given = _checked(target), settings or {}
    avro = schema is not None and schema.kind == "AVRO"
    jars = (*connector_jars(progress), *(avro_jars(progress) if avro else ()))
    with reached(topic, given) as broker:
        ends = broker.ends()
        begin = _begin(broker, limits or Limits(), ends)
    if not behind(begin, ends):
        raise _empty(topic)
    progress(f"reading {behind(begin, ends):,} records of {topic.name} with Spark")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as folder:
            asked = {
                "topic": topic.name,
                "options": {"kafka.bootstrap.servers": topic.servers}
                | {f"kafka.{name}": value for name, value in {**PATIENCE, **java_settings(given)}.items()},
                "begin": begin,
                "end": {number: high for number, (_, high) in ends.items()},
                "folder": f"{folder}/parts",
                "avro": json.dumps(schema.definition) if schema is not None and avro else None,
                "number": schema.number if schema is not None and avro else None,
                "jars": jars,
                "strict": schema is not None,
            }
            seen = _asked_of_spark(topic, asked, schema)
            if not seen["rows"]:
                raise _empty(topic)
            if schema is not None and seen["wrong"] > (1 - LEAST_SHARE) * seen["values"]:
                raise _not_decoded(topic, schema, seen)
            encoding = b"avro" if avro else b"framed" if seen["ids"] and seen["decoded"] else b""
            columns = _put_together(Path(folder), target, encoding)
    except (OSError, pa.ArrowException) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise WorkbenchError(
            f"The sample of {topic.url} cannot be written to {target}: {reason}. Make room, or name another file, and "
            "run the same again."
        ) from error
    return Captured(
        target,
        seen["rows"],
        len(ends),
        columns,
        seen["seconds"],
        not_json=0 if schema else seen["wrong"],
        not_decoded=seen["wrong"] if schema else 0,
        schema_ids=tuple(seen["ids"]),
    )


def _checked(target: Path) -> Path:
    """Give the place that a name means; only a Parquet file may be there."""
    place = Path(os.path.realpath(target))
    if place.suffix != ".parquet" or (place.exists() and not place.is_file()):
        raise WorkbenchError(f"{str(target)!r} is no place for a sample; name a file that ends in .parquet.")
    return place


def _begin(broker: Broker, limits: Limits, ends: Ends) -> Mapping[int, int]:
    """Choose where to begin in every partition so that the newest records are read."""
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

    Records of that very moment are shared in proportion.

    Parameters
    ----------
    at
        Gives the first offset of every partition with a record of a time, in ms since 1970, or later.
    begin
        Where to begin at the earliest.
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


def _asked_of_spark(topic: Topic, asked: Mapping[str, Any], schema: Schema | None) -> dict[str, Any]:
    """Read a sample in a process of its own; give what was seen."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "workbench.testbed.spark.kafka.sample"],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        env=environment_of_modules(),
        check=False,
    )
    found: dict[str, Any] = {"error": last_line(done.stderr) or "the process ended"}
    with suppress(ValueError):
        found = json.loads(done.stdout)
    if "error" in found:
        read = "" if schema is None else f" with {schema.said}"
        check = "" if schema is None else ", correct the schema or leave it out (values are captured as bytes then)"
        raise WorkbenchError(
            f"Spark does not read the topic {topic.url}{read}: {redacted(found['error'])[:_LETTERS].rstrip('.')}. "
            f"Check the brokers{check}, and run the same again."
        )
    return found


def _put_together(folder: Path, target: Path, encoding: bytes) -> tuple[str, ...]:
    """Make one file of Spark's; give its columns."""
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


def _empty(topic: Topic) -> WorkbenchError:
    return WorkbenchError(f"The topic {topic.url} has no records in what was asked for. Fill it, or ask for more.")


def _not_decoded(topic: Topic, schema: Schema, seen: Mapping[str, Any]) -> WorkbenchError:
    """Say which values are not what the schema says; none is quoted."""
    partition, offset = seen["first"]
    if schema.kind == "AVRO":
        expected = f"the fields {', '.join(field['name'] for field in schema.definition['fields'])}, and nothing after"
    else:
        expected = "a JSON object"
    if seen["ids"]:
        numbers = " and ".join(map(str, seen["ids"][:_MOST_IDS]))
        found = f"The values are in a registry's wire format, with the schema id {numbers}"
        found += ", ..." * (len(seen["ids"]) > _MOST_IDS)
    else:
        found = "No value is in a registry's wire format, which would name its schema"
    return WorkbenchError(
        f"{seen['wrong']:,} of {seen['values']:,} values of {topic.url} do not decode with {schema.said}; at most "
        f"{units.percent(1 - LEAST_SHARE)} may. The first is in partition {partition}, at offset {offset}; expected "
        f"were {expected}. {found}. Name the schema that they were written with, and run the same again."
    )


# What follows runs in Spark's process.


def main() -> None:
    """Read the sample that standard input asks for, and print what was seen of it."""
    asked = json.load(sys.stdin)
    ours = os.dup(1)
    os.dup2(2, 1)
    with batch_session(asked["jars"]) as spark:
        from pyspark.errors import PySparkException  # noqa: PLC0415 - with Spark

        try:
            seen = read(spark, _records(spark, asked), asked)
        except (PySparkException, Py4JError) as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
            seen = {"error": (causes or lines or ["it gave no reason"])[-1 if causes else 0]}
    with os.fdopen(ours, "w") as result:
        json.dump(seen, result)


def _records(spark: "SparkSession", asked: Mapping[str, Any]) -> "DataFrame":
    """Give the records of a topic between two offsets of each partition."""
    name, numbers = asked["topic"], [int(number) for number in asked["begin"]]
    reader = spark.read.format("kafka").options(**asked["options"])
    for option, value in (
        ("assign", {name: numbers}),
        ("startingOffsets", {name: asked["begin"]}),
        ("endingOffsets", {name: asked["end"]}),
        ("includeHeaders", True),
        ("failOnDataLoss", False),
        ("kafkaConsumer.pollTimeoutMs", ANSWER_MS),
    ):
        reader = reader.option(option, json.dumps(value))
    return reader.load()


def read(spark: "SparkSession", records: "DataFrame", asked: Mapping[str, Any]) -> dict[str, Any]:
    """Decode records, write them as Parquet in the order of their timestamps, and return what was seen.

    Parameters
    ----------
    records
        As Spark's Kafka source gives them, with headers.
    asked
        The `folder`; the `avro` schema, or None; its `number`, or None; whether values must be decoded (`strict`).
    """
    from pyspark import StorageLevel  # noqa: PLC0415
    from pyspark.sql import functions as f  # noqa: PLC0415

    for name, value in (
        ("spark.sql.caseSensitive", "true"),
        ("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS"),
        ("spark.sql.parquet.compression.codec", "zstd"),
    ):
        spark.conf.set(name, value)
    records = records.persist(StorageLevel.DISK_ONLY)  # Kafka may drop some between two readings
    parsed = _avro(records, asked["avro"], asked["number"]) if asked["avro"] else _json(spark, records)
    at_ms, texts = f.unix_millis("timestamp"), {one: f.col(one).cast("string") for one in ("key", "value")}
    at_ms = f.when(at_ms > 0, at_ms)
    seen = parsed.agg(
        f.count("*").alias("rows"),
        f.count("value").alias("values"),
        f.count_if(_WRONG).alias("wrong"),
        f.min(f.when(f.col(_WRONG), f.struct("partition", "offset"))).alias("first"),
        ((f.max(at_ms) - f.min(at_ms)) / 1000).alias("seconds"),
        f.sort_array(f.collect_set(_ID)).alias("ids"),
        *(f.min(f.is_valid_utf8(text)).alias(one) for one, text in texts.items()),
    ).first()
    assert seen is not None  # noqa: S101 - an aggregate has a row
    good = seen["values"] - seen["wrong"]
    decoded = bool(asked["strict"] or (good and good >= LEAST_SHARE * seen["values"]))
    readable = {one: f.col(one) if seen[one] is False else text for one, text in texts.items()}
    own = {new: f.col(old) for new, old in COLUMNS.items()}
    own |= {"_key": readable["key"], "_timestamp": f.when(at_ms > 0, f.col("timestamp")), HEADERS: _headers()}
    columns = {VALUE: readable["value"]}
    if decoded:
        names = parsed.select(f"{_FIELDS}.*").columns
        columns = {ours: f.col(_FIELDS).getField(name) for name, ours in _named(names, {*own, VALUE}).items()}
    rows = parsed.select(*(column.alias(name) for name, column in {**columns, **own}.items()))
    ordered = rows.orderBy(f.col("_timestamp").asc_nulls_last(), f.col("_partition"), f.col("_offset"))
    ordered.write.parquet(asked["folder"])
    return {
        "rows": seen["rows"],
        "values": seen["values"],
        "wrong": seen["wrong"],
        "first": None if seen["first"] is None else list(seen["first"]),
        "seconds": seen["seconds"] or 0.0,
        "ids": seen["ids"],
        "decoded": decoded,
    }


def _named(names: Sequence[str], taken: set[str]) -> dict[str, str]:
    """Give each field a column's name: one that is ours gets a "_"."""
    named = {}
    for name in names:
        free = name
        while free in taken:
            free += "_"
        taken.add(free)
        named[name] = free
    return named


def _headers() -> "Column":
    """Write headers as JSON, a list of pairs: a name may stand twice."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    def pair(one: "Column") -> "Column":
        value = one.getField("value")
        text = value.cast("string")
        return f.array(one.getField("key"), f.when(f.is_valid_utf8(text), text).otherwise(f.base64(value)))

    return f.when(f.size("headers") > 0, f.to_json(f.transform("headers", pair)))


def _begins_with_0(value: "Column") -> "Column":
    from pyspark.sql import functions as f  # noqa: PLC0415

    return f.substring(value, 1, 1) == f.lit(b"\0")


def _number() -> "Column":
    """Give the id before a value."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    return f.conv(f.hex(f.substring("value", 2, 4)), 16, 10).cast("long")


def _json(spark: "SparkSession", records: "DataFrame") -> "DataFrame":
    """Add the fields of values that are JSON objects, by the types that they have."""
    from pyspark.sql import functions as f  # noqa: PLC0415
    from pyspark.sql.types import StructType  # noqa: PLC0415

    text = behind_id(f.col("value")).cast("string")
    jvm: Any = spark._jvm  # noqa: SLF001 - until `DataFrameReader.json` takes a DataFrame in every release
    texts = getattr(records.select(text)._jdf, "as")(jvm.org.apache.spark.sql.Encoders.STRING())  # noqa: SLF001
    reader: Any = spark.read.option("mode", "DROPMALFORMED")._jreader  # noqa: SLF001
    found = StructType.fromJson(json.loads(reader.json(texts).schema().json()))
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _WRONG}
    parsed = records.withColumn(_FIELDS, f.from_json(text, StructType([*found]).add(_WRONG, "string"), options))
    wrong = f.col("value").isNotNull() & (f.col(_FIELDS).isNull() | f.col(f"{_FIELDS}.{_WRONG}").isNotNull())
    fields = f.col(_FIELDS).dropFields(_WRONG) if len(found) else f.struct()
    parsed = parsed.withColumn(_WRONG, wrong).withColumn(_FIELDS, fields)
    framed = _begins_with_0(f.col("value")) & ~f.col(_WRONG)
    return parsed.withColumn(_ID, f.when(framed, _number()))


def _avro(records: "DataFrame", schema: str, number: int | None) -> "DataFrame":
    """Add the fields of Avro values, with or without the wire format; of another schema's id none is tried."""
    from pyspark.sql import functions as f  # noqa: PLC0415
    from pyspark.sql.avro.functions import from_avro, to_avro  # noqa: PLC0415

    needed = [one["name"] for one in json.loads(schema)["fields"] if not _may_be_null(one["type"])]

    def whole_record(name: str, body: "Column") -> "Column":
        """Give a record that was read from its first to its last byte."""
        there = reduce(and_, (f.col(name).getField(one).isNotNull() for one in needed), f.col(name).isNotNull())
        again = f.when(there, to_avro(f.col(name), schema))  # what does not decode is a record of nulls
        return f.when(f.length(again) == f.length(body), f.col(name))

    value = f.col("value")
    there = _begins_with_0(value) & (f.length(value) >= _PREFIX)
    ours = there if number is None else there & (_number() == number)
    body = f.when(ours, f.substring(value, _PREFIX + 1, _LONGEST))
    tried = records.withColumn(_FRAMED, from_avro(body, schema, {"mode": "PERMISSIVE"}))
    tried = tried.withColumn(_BARE, from_avro(value, schema, {"mode": "PERMISSIVE"}))
    tried = tried.withColumn(_FRAMED, whole_record(_FRAMED, body)).withColumn(_BARE, whole_record(_BARE, value))
    bare = f.col(_BARE).isNotNull() & f.col(_FRAMED).isNull()
    tried = tried.withColumn(_FIELDS, f.coalesce(_FRAMED, _BARE))
    return tried.withColumn(_WRONG, value.isNotNull() & f.col(_FIELDS).isNull()).withColumn(
        _ID, f.when(there & ~bare, _number())
    )


def _may_be_null(kind: object) -> bool:
    return kind == "null" or (isinstance(kind, list) and "null" in kind)


if __name__ == "__main__":
    main()
