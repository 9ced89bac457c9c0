"""Reads a range of a topic with Spark, decodes its values and writes Parquet, in a separate process.

`main` takes what `workbench.testbed.spark.kafka.topics` asks for, and gives what was seen, both as JSON. Values of JSON
get the types that Spark infers, of Avro those of ``from_avro``.
"""

import json
import sys
from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.types import StructType

from workbench.testbed.spark.cluster import cause_of
from workbench.testbed.spark.driver.feed import behind_id
from workbench.testbed.spark.driver.process import answering
from workbench.testbed.spark.driver.session import batch_session
from workbench.testbed.spark.kafka.topics import LEAST_SHARE
from workbench.testbed.spark.machine.broker import reason
from workbench.workload.kafka import COLUMNS, HEADERS, VALUE, named

_WRONG, _FRAMED, _BARE, _ID, _FIELDS = "__wrong", "__framed", "__bare", "__id", "__fields"
_PREFIX, _LONGEST = 5, 2**31 - 1  # bytes of a registry's wire format (0, and the schema's id), and of a value
_MOST = str(1 << 26)  # bytes of a text or of bytes in Avro
_END = bytes.fromhex("9d1f5ce30b7746a28ec4d07f3961ab52")  # follows a value while it is decoded
_END_TYPE = {"type": "fixed", "name": "workbench__end", "size": len(_END)}
_PERMISSIVE = {"mode": "PERMISSIVE"}
_SETTINGS = {
    "spark.sql.caseSensitive": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.compression.codec": "zstd",
}


def main() -> None:
    """Read the request from standard input, and print what was seen."""
    asked = json.load(sys.stdin)
    with answering() as result:
        with batch_session(asked["jars"]) as spark:
            jvm: Any = spark._jvm  # noqa: SLF001
            for name in ("string", "bytes"):  # text that is not Avro may request GiB
                jvm.java.lang.System.setProperty(f"org.apache.avro.limits.{name}.maxLength", _MOST)
            try:
                seen = _read(spark, asked)
            except Py4JJavaError as error:
                seen = {"error": reason(error, {})}
            except PySparkException as error:
                seen = {"error": cause_of(str(error), _LONGEST)}
        json.dump(seen, result)


def _read(spark: SparkSession, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Decode records, write them in the order of their timestamps, and return what was seen."""
    for name, setting in _SETTINGS.items():
        spark.conf.set(name, setting)
    records = spark.read.format("kafka").options(**asked["options"]).load()
    records = records.persist(StorageLevel.DISK_ONLY)  # Kafka may drop some between two readings
    parsed = _avro(records, asked["avro"], asked["number"]) if asked["avro"] else _json(spark, records)
    at_ms, texts = f.unix_millis("timestamp"), {one: f.col(one).cast("string") for one in ("key", "value")}
    at_ms = f.when(at_ms > 0, at_ms)
    seen = parsed.agg(
        f.count("*").alias("rows"),
        f.count("value").alias("values"),
        f.count_if(_WRONG).alias("wrong"),
        f.min(f.when(f.col(_WRONG), f.struct("partition", "offset"))).alias("first"),
        f.coalesce((f.max(at_ms) - f.min(at_ms)) / 1000, f.lit(0.0)).alias("seconds"),
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
        columns = {ours: f.col(_FIELDS).getField(name) for ours, name in named(names).items()}
    rows = parsed.select(*(column.alias(name) for name, column in {**columns, **own}.items()))
    ordered = rows.orderBy(f.col("_timestamp").asc_nulls_last(), f.col("_partition"), f.col("_offset"))
    ordered.write.parquet(asked["folder"])
    return seen.asDict(recursive=True) | {"decoded": decoded}


def _headers() -> Column:
    """Return headers as JSON, a list of pairs: a name may occur twice."""

    def pair(one: Column) -> Column:
        value = one.getField("value")
        text = value.cast("string")
        return f.array(one.getField("key"), f.when(f.is_valid_utf8(text), text).otherwise(f.base64(value)))

    return f.when(f.size("headers") > 0, f.to_json(f.transform("headers", pair)))


def _number() -> Column:
    """Return the id of the schema before a value; null if it has none."""
    begins = (f.substring("value", 1, 1) == f.lit(b"\0")) & (f.length("value") >= _PREFIX)
    return f.when(begins, f.conv(f.hex(f.substring("value", 2, 4)), 16, 10).cast("long"))


def _json(spark: SparkSession, records: DataFrame) -> DataFrame:
    """Add the fields of values that are JSON objects, with the types that they have."""
    text = behind_id(f.col("value")).cast("string")
    jvm: Any = spark._jvm  # noqa: SLF001 - until `DataFrameReader.json` takes a DataFrame in every release
    texts = getattr(records.select(text)._jdf, "as")(jvm.org.apache.spark.sql.Encoders.STRING())  # noqa: SLF001
    reader: Any = spark.read.option("mode", "DROPMALFORMED")._jreader  # noqa: SLF001
    found = StructType.fromJson(json.loads(reader.json(texts).schema().json()))
    options = {**_PERMISSIVE, "columnNameOfCorruptRecord": _WRONG}
    parsed = records.withColumn(_FIELDS, f.from_json(text, StructType([*found]).add(_WRONG, "string"), options))
    wrong = f.col("value").isNotNull() & (f.col(_FIELDS).isNull() | f.col(f"{_FIELDS}.{_WRONG}").isNotNull())
    fields = f.col(_FIELDS).dropFields(_WRONG) if len(found) else f.struct()
    return parsed.withColumns({_WRONG: wrong, _FIELDS: fields, _ID: f.when(~wrong, _number())})


def _avro(records: DataFrame, schema: str, number: int | None) -> DataFrame:
    """Add the fields of Avro values, with or without the wire format; leave out those with another schema's id."""
    fields = [{"name": "record", "type": json.loads(schema)}, {"name": "end", "type": _END_TYPE}]
    followed = json.dumps({"type": "record", "name": "workbench__followed", "fields": fields})

    def whole_record(body: Column) -> Column:
        """Return a record that takes all its bytes: what follows it is the end mark put there."""
        read = from_avro(f.concat(body, f.lit(_END)), followed, _PERMISSIVE)
        return f.when(read.getField("end") == f.lit(_END), read.getField("record"))

    value = f.col("value")
    ours = _number().isNotNull() if number is None else _number() == number
    body = f.when(ours, f.substring(value, _PREFIX + 1, _LONGEST))
    known = {_FRAMED: whole_record(body), _BARE: whole_record(value)}
    decoded = f.coalesce(_FRAMED, _BARE)
    bare = f.col(_FRAMED).isNull() & f.col(_BARE).isNotNull()
    found = {_FIELDS: decoded, _WRONG: value.isNotNull() & decoded.isNull(), _ID: f.when(~bare, _number())}
    return records.withColumns(known).withColumns(found)
