"""Speed of the Nexmark generator, of Spark making rows of the same shape, of Spark running q1 on them, and q1's MST.

    python benchmarks/generator.py             with the MST that measurement.py left in .workbench/benchmark
    python benchmarks/generator.py --measure   with the MST measured in the same run, six minutes more

Prints millions of rows per CPU-second, with the JVM and the Python workers if there are any; other load on the machine
disturbs CPU time less than the clock. For the MST, prints millions of rows per second and core of its slots. Asserts
nothing.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from workbench.records import Measurement
from workbench.testbed.spark import find_java
from workbench.workload.nexmark import (
    BATCH_ROWS,
    DEFAULT_CLOCK,
    SCHEMA,
    NexmarkGenerator,
    NexmarkSettings,
    events,
    query,
)

KEPT = Path(".workbench/benchmark")
ROWS = 1_000_000
REPEATS = 5


def average_row_bytes(settings=None):
    """Average size of a row: 8 bytes a number or time, 4 for the kind, texts by their length; over 10,000 events.

    Unlike the averages in the settings, it counts a bid's channel and url.
    """
    rows = 10_000
    table = events(0, rows, settings or NexmarkSettings())
    total = 12.0 * rows  # event_type and dateTime
    for column in ("person", "auction", "bid"):
        for field in table[column].combine_chunks().drop_null().flatten():
            total += len(b"".join(field.cast(pa.binary()).to_pylist())) if field.type == pa.string() else 8 * len(field)
    return total / rows


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


def measured_q1(*, now):
    """A measurement of q1 and its origin; None if there is none."""
    if now:
        with tempfile.TemporaryDirectory() as folder:
            output = Path(folder) / "q1.json"
            command = [sys.executable, "-m", "workbench.cli", "measure", "nexmark:q1", "--no-costs"]
            kept = ["--journal", f"{folder}/journal.jsonl", "--output", str(output)]
            subprocess.run([*command, *kept], stdout=subprocess.DEVNULL, check=False)
            return (Measurement.from_json(output), "in this run") if output.exists() else None
    files = sorted(KEPT.glob("nexmark-q1-run-*.json"), key=lambda file: file.stat().st_mtime)
    if not files:
        return None
    found = Measurement.from_json(files[-1])
    return found, f"{files[-1].name} of {found.started_at[:10]}"


def said_of_maximum(found, own):
    """Line with q1's MST per core of its slots, and the generator's `own` rows per CPU-second."""
    if found is None or not found[0].estimate.rate:
        return "no MST of q1 was found: measure it with --measure, or benchmarks/measurement.py repeats nexmark:q1 1"
    measurement, where = found
    core = measurement.estimate.rate / measurement.budget.cpus
    return line(f"q1's MST per core ({where})", core, own, "second and core")


def line(what, found, own, per="CPU-second"):
    return f"{what:52s}{found / 1e6:6.2f} M rows per {per}   generator / this {own / found:.1f}"


def main():
    own = rate(generate)
    print(
        f"average row: {average_row_bytes():.0f} bytes; with 1,100-byte bids: "
        f"{average_row_bytes(NexmarkSettings(bid_bytes=1100)):.0f} bytes"
    )
    print(f"{'generator, whole rows':52s}{own / 1e6:6.2f} M rows per CPU-second")

    with tempfile.TemporaryDirectory() as folder:
        java = find_java(Path(folder)).home
        os.environ.update(JAVA_HOME=java, SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=sys.executable)
        from pyspark.sql import SparkSession

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
        print(line(what, found, own))
    found = measured_q1(now="--measure" in sys.argv[1:])
    print(said_of_maximum(found, max(own, rate(generate))))  # before and after: other load slows it for minutes


if __name__ == "__main__":
    main()
