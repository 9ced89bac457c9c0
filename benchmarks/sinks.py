"""What sinks and a checkpoint on disk cost a batch, as a deployment finds it and as plain Spark writes the same rows.

    python benchmarks/sinks.py [--rate 20000] [--observed 30] [noop parquet delta ...]

Nexmark q1 runs on two slots at one rate, with each sink and a checkpoint in a folder. Prints what is found: the
driver's seconds of a batch for the sink and for the log of the checkpoint, the seconds of a task, those of a million
rows and those of the sink's own jobs, and by how much each batch takes longer than the one before. Before that, a batch
job of plain Spark appends as many rows as a batch has, as often, from two tasks: the median seconds. Tasks of the
deployment have a quota and those of plain Spark have none, so compare the driver's seconds.
"""

import argparse
import statistics
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.records import JobSettings
from workbench.study import find_query
from workbench.testbed import SparkTestbed
from workbench.testbed.spark import sink_packages

BUDGET = Budget(2, SlotProfile(0.4, 1024), 2.0)
DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
COLD = 5  # batches of plain Spark that do not count


def found(kind, place, rate, observed_s):
    """What a deployment finds of the sink `kind`."""
    with SparkTestbed(warmup_cap_s=30, settings=settings_of(kind, place)).deploy(
        find_query("nexmark:q1"), BUDGET
    ) as run:
        run.set_rate(rate)
        run.settle(6)
        return run.observe(observed_s).writes


@contextmanager
def plain_spark(kinds):
    """Spark as anybody starts it, with the packages of `kinds`."""
    from pyspark.sql import SparkSession

    packages = [name for kind in kinds for name in sink_packages(settings_of(kind, Path("unused")))]
    made = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    made = made.config("spark.ui.showConsoleProgress", "false").config("spark.log.level", "OFF")
    for name, value in DELTA.items() if "delta" in kinds else ():
        made = made.config(name, value)
    spark = made.config("spark.jars.packages", ",".join(packages)).getOrCreate()
    yield spark
    spark.stop()


def appended_s(spark, kind, place, rows, batches):
    """Median seconds in which plain Spark appends `rows` from two tasks."""
    data = spark.range(0, int(rows), 1, 2).selectExpr("id AS auction", "id * 7 AS bidder", "id * 0.908D AS price")
    took = []
    for _ in range(batches + COLD):
        begun = time.perf_counter()
        data.write.format(kind).mode("overwrite" if kind == "noop" else "append").save(str(place / "plain"))
        took.append(time.perf_counter() - begun)
    return statistics.median(took[COLD:])


def settings_of(kind, place):
    sink = kind if kind == "noop" else f"{kind} {place / 'table'}"
    return JobSettings(sink=sink, checkpoint=str(place / "checkpoint"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sinks", nargs="*", default=("noop", "parquet", "delta"))
    parser.add_argument("--rate", type=float, default=20_000.0)
    parser.add_argument("--observed", type=float, default=30.0)
    options = parser.parse_args()
    batches, rows = round(options.observed / BUDGET.interval_s), options.rate * BUDGET.interval_s
    with tempfile.TemporaryDirectory() as folder, plain_spark(options.sinks) as spark:
        plain_s = {kind: appended_s(spark, kind, Path(folder, kind), rows, batches) for kind in options.sinks}
    for kind in options.sinks:
        with tempfile.TemporaryDirectory() as folder:
            cost = found(kind, Path(folder), options.rate, options.observed)
        each = {
            "a batch": cost.batch_s,
            "its log": cost.log_s,
            "a task": cost.task_s,
            "a million rows": cost.record_s and 1e6 * cost.record_s,
            "jobs on its log": cost.jobs_s,
            "more each batch": cost.growth_s,
        }
        said = ", ".join(f"{name} {1000 * one:.1f} ms" for name, one in each.items() if one is not None)
        print(f"{kind}: {said}; plain Spark appends {rows:,.0f} rows in {1000 * plain_s[kind]:.0f} ms", flush=True)


if __name__ == "__main__":
    try:
        main()
    except WorkbenchError as error:
        sys.exit(str(error))
