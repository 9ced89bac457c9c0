"""Speed of the Nexmark generator, beside Spark making rows of the same shape and Spark running q1 on such rows.

Run ``python benchmarks/generator.py``. Prints millions of rows a CPU-second, which neighbours on the machine disturb
less than the clock, and which counts the JVM and the Python workers where there are any. Asserts nothing.
"""

import os
import sys
import tempfile
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from workbench.workload.nexmark import NexmarkGenerator, NexmarkSettings, average_row_bytes, query
from workbench.workload.nexmark.events import BATCH_ROWS, DEFAULT_CLOCK, SCHEMA

ROWS = 1_000_000
REPEATS = 3


def cpu_seconds():
    """CPU time of this process and its children: the JVM and the Python workers."""
    own = psutil.Process()
    times = [process.cpu_times() for process in (own, *own.children(recursive=True))]
    return sum(one.user + one.system for one in times)


def rate(run):
    """Best rows a CPU-second of a few runs, after one to warm up."""
    run()
    best = 0.0
    for _ in range(REPEATS):
        start = cpu_seconds()
        run()
        best = max(best, ROWS / (cpu_seconds() - start))
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


def spark_generated(spark):
    """Whole rows from the generator in a Python worker, passed to Spark by Arrow, as a source would."""
    from pyspark.sql.pandas.types import from_arrow_schema

    def make(batches):
        for batch in batches:
            for start in batch.column(0).to_pylist():
                yield from NexmarkGenerator().batches(start, start + BATCH_ROWS, DEFAULT_CLOCK)

    return spark.range(0, ROWS, BATCH_ROWS, numPartitions=1).mapInArrow(make, from_arrow_schema(SCHEMA))


def noop(frame):
    frame.write.format("noop").mode("overwrite").save()


def main():
    own = rate(generate)
    print(
        f"average row: {average_row_bytes():.0f} bytes; with 1,100-byte bids: "
        f"{average_row_bytes(NexmarkSettings(bid_bytes=1100)):.0f} bytes"
    )
    print(f"{'generator, whole rows':42s}{own / 1e6:6.2f} M rows per CPU-second")

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
        fed = rate(lambda: noop(query("q1").build(spark_generated(spark))))
        spark.stop()
    for what, found in (
        ("spark.range, same columns, noop", made),
        ("q1 on generated rows by Arrow, noop", fed),
        ("q1 from Parquet (its columns only), noop", q1),
    ):
        print(f"{what:42s}{found / 1e6:6.2f} M rows per CPU-second   generator / this {own / found:.1f}")


if __name__ == "__main__":
    main()
