"""A small query and its rows, importable in Spark's processes."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from workbench.workload import Query

TIME = pa.timestamp("us", "UTC")
KEYS = 97


@dataclass(frozen=True)
class Numbers:
    """Row n has id n and one of 97 keys."""

    def schema(self):
        return pa.schema([("id", pa.int64()), ("key", pa.int64()), ("time", TIME)])

    def batches(self, first, last, clock):
        for start in range(first, last, 20_000):
            ids = np.arange(start, min(start + 20_000, last))
            columns = [pa.array(ids), pa.array(ids % KEYS), pa.array(clock.times_us(ids)).cast(TIME)]
            yield pa.record_batch(columns, names=["id", "key", "time"])


def count(rows):
    from pyspark.sql import functions as f

    return rows.withWatermark("time", "2 seconds").groupBy(f.window("time", "4 seconds"), "key").count()


def dear(rows):
    """A query whose rows cost much more than the source's: each is hashed as a text of some hundred letters."""
    from pyspark.sql import functions as f

    text = f.repeat(f.col("id").cast("string"), 200)
    return rows.withColumn("hash", f.sha2(text, 512)).groupBy("key").agg(f.max("hash"))


def keeps_everything(rows):
    """A query whose state is every row as a text of 100 kB: its memory is soon full."""
    from pyspark.sql import functions as f

    return rows.groupBy("key").agg(f.collect_list(f.repeat(f.col("id").cast("string"), 20_000)))


def mostly_late(rows):
    """Nine of ten rows come one to nine hours later than the watermark allows, so partial sums keep them apart."""
    from pyspark.sql import functions as f

    return count(rows.withColumn("time", f.expr("time - make_interval(0, 0, 0, 0, cast(id % 10 AS int), 0, 0)")))


def no_watermark(rows):
    return rows.groupBy(rows.columns[0]).count()


def not_streaming(rows):
    return rows.sparkSession.range(3)


def wrong_column(rows):
    return rows.select("nmae")


def stops_reading(stream):
    """Spark has as many rows as the limit from the beginning."""
    return stream.limit(0)


def fails_at_run_time(rows):
    return rows.mapInArrow(_divide, "id long")


def _divide(batches):
    for batch in batches:
        yield pa.record_batch([pa.array([1 // int(not batch.num_rows)])], names=["id"])


def query(build=count, output_mode="append"):
    return Query(f"toy_query:{build.__name__}", build, Numbers(), "time", output_mode)
