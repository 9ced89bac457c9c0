"""Speed of the Nexmark generator, beside Spark making rows of the same shape and Spark running q1 on such rows.

Run ``python benchmarks/generator.py``. Prints millions of rows a second and core; asserts nothing.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from workbench.workload.nexmark import NexmarkGenerator, NexmarkSettings, average_row_bytes, query
from workbench.workload.nexmark.events import DEFAULT_CLOCK, SCHEMA

ROWS = 1_000_000
REPEATS = 3


def rate(run):
    """Best rows a second of a few runs, the first to warm up."""
    run()
    best = 0.0
    for _ in range(REPEATS):
        start = time.perf_counter()
        run()
        best = max(best, ROWS / (time.perf_counter() - start))
    return best


def generate():
    for _ in NexmarkGenerator().batches(0, ROWS, DEFAULT_CLOCK):
        pass


def spark_columns(spark):
    """Rows of the same columns and sizes from ``spark.range``: kinds, ids, prices and texts by length, hashed."""
    from pyspark.sql import functions as f

    def text(length):
        return f.substring(f.repeat(f.sha2(f.col("id").cast("string"), 256), (length + 63) // 64), 1, length)

    def number(bound):
        return f.abs(f.xxhash64("id", f.lit(bound))) % bound

    place = f.col("id") % 50
    person = f.struct(
        *(number(b).alias(f"n{b}") for b in (10**6,)), *(text(n).alias(f"t{n}") for n in (11, 14, 19, 8, 2, 140))
    )
    auction = f.struct(
        *(number(b).alias(f"n{b}") for b in (10**6, 10**7, 10**8, 999, 5)),
        f.timestamp_micros("id").alias("expires"),
        *(text(n).alias(f"t{n}") for n in (11, 51, 390)),
    )
    bid = f.struct(
        *(number(b).alias(f"n{b}") for b in (10**6, 999, 10**8)), *(text(n).alias(f"t{n}") for n in (11, 65, 68))
    )
    return spark.range(ROWS, numPartitions=1).select(
        f.when(place == 0, 0).when(place < 4, 1).otherwise(2).alias("event_type"),
        f.when(place == 0, person).alias("person"),
        f.when((place > 0) & (place < 4), auction).alias("auction"),
        f.when(place > 3, bid).alias("bid"),
        f.timestamp_micros(f.col("id") * 100).alias("dateTime"),
    )


def noop(frame):
    frame.write.format("noop").mode("overwrite").save()


def main():
    own = rate(generate)
    print(
        f"average row: {average_row_bytes():.0f} bytes; with 1,100-byte bids: "
        f"{average_row_bytes(NexmarkSettings(bid_bytes=1100)):.0f} bytes"
    )
    print(f"generator, whole rows                  {own / 1e6:6.2f} M rows/s per core")

    os.environ.update(SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=sys.executable)
    from pyspark.sql import SparkSession

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        pq.write_table(pa.Table.from_batches(NexmarkGenerator().batches(0, ROWS, DEFAULT_CLOCK), SCHEMA), path)
        spark = (
            SparkSession.builder.master("local[1]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.files.maxPartitionBytes", "4g")
            .getOrCreate()
        )
        spark.sparkContext.setLogLevel("OFF")
        made = rate(lambda: noop(spark_columns(spark)))
        read = spark.read.parquet(str(path))
        q1 = rate(lambda: noop(query("q1").build(read)))
        spark.stop()
    print(
        f"spark.range, same columns, noop        {made / 1e6:6.2f} M rows/s per core   generator / this {own / made:.1f}"
    )
    print(f"q1 from Parquet (its columns), noop    {q1 / 1e6:6.2f} M rows/s per core   generator / this {own / q1:.1f}")


if __name__ == "__main__":
    main()
