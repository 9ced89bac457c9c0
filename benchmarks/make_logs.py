"""Make small logs of real Spark, one of each kind that production writes, and what is true of each.

    python benchmarks/make_logs.py [--into data/logs] [KIND ...]

Each takes two minutes at most, on ``local[2]``. Sinks take a set time (`sink`), so what a query sustains is known
whatever the machine does. The logs hold the events that `observe` reads, without paths, names of a machine or most
settings; ``truth.json`` next to them has what is true. Declarative pipelines need ``pyspark[pipelines]``.
"""

import argparse
import gzip
import json
import math
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from workbench.observing import PROGRESS, USEFUL

FIXED_S, ROW_S = 0.2, 2e-4  # of a batch in the sink whose time is set
INTERVAL_S = 1.0
KEPT = ("spark.master", "spark.sql.shuffle.partitions", "spark.task.cpus", "spark.driver.memory")
DROPPED = {
    *("RDD Info", "Details", "details", "physicalPlanDescription", "modifiedConfigs", "Task Executor Metrics"),
    *("Resource Requests", "Resource Profile Id", "Executor Resource Profile Id", "jobTags", "errorMessage"),
    *("Hadoop Properties", "JVM Information", "System Properties", "Classpath Entries", "Metrics Properties"),
}
"""Keys of events that say nothing of a query, or something of a machine."""


def session(work, **settings):
    from pyspark.sql import SparkSession

    (work / "eventlog").mkdir(exist_ok=True)
    made = SparkSession.builder.master("local[2]").appName(work.name)
    for name, value in (conf(work) | settings).items():
        made = made.config(name, value)
    return made.getOrCreate()


def conf(work):
    return {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.local.dir": str(work),
        "spark.sql.warehouse.dir": str(work / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (work / "eventlog").as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }


def sink(batch, _):
    """Write a batch to a system that takes `FIXED_S` for each, and `ROW_S` for each row."""
    until_s = time.monotonic() + FIXED_S
    time.sleep(max(0.0, until_s + batch.count() * ROW_S - time.monotonic()))


def sustained(log):
    """Records/s that the sink's time leaves room for, next to what Spark itself took of a batch."""
    own = [
        one["durationMs"]["triggerExecution"] - one["durationMs"]["addBatch"] for one in progress_of(log) if rows(one)
    ]
    return (INTERVAL_S - FIXED_S - statistics.mean(own[5:]) / 1000) / ROW_S / INTERVAL_S


def progress_of(log):
    return [event["progress"] for event in log if event["Event"].endswith(PROGRESS)]


def rows(progress):
    return sum(source["numInputRows"] for source in progress["sources"])


def written(stream, work, name, into=sink, *, interval_s=INTERVAL_S):
    """Start a query that hands its batches to `into`."""
    return (
        stream.writeStream.queryName(name)
        .foreachBatch(into)
        .option("checkpointLocation", str(work / "checkpoint"))
        .trigger(processingTime=f"{interval_s:g} seconds")
        .start()
    )


class Files(threading.Thread):
    """Text files that come into a folder by the clock, of as many rows as their time says."""

    def __init__(self, folder, rate, every_s=0.25):
        super().__init__(daemon=True)
        self.folder, self.rate, self.every_s, self.rows, self.over = folder, rate, every_s, 0, threading.Event()
        folder.mkdir()

    def run(self):
        begun_s = time.monotonic()
        number = 0
        while not self.over.wait(max(0.0, begun_s + number * self.every_s - time.monotonic())):
            put(self.folder, number, count := round(self.rate(number * self.every_s) * self.every_s))
            self.rows += count
            number += 1


def put(folder, number, count):
    """Put a file of `count` rows into a folder at once."""
    hidden = folder / f".{number:05}.txt"
    hidden.write_text("".join(f"{one}\n" for one in range(count)))
    hidden.rename(folder / hidden.name[1:])


def constant(work):
    """A load that does not move."""
    spark = session(work)
    stream = spark.readStream.format("rate").option("rowsPerSecond", 500).load()
    running = written(stream, work, "constant")
    time.sleep(40)
    running.stop()
    return lambda log: {"load": 500, "sustained": sustained(log)}


def growing_table(work):
    """A table that is appended to and read back, whose files are never compacted; code is warm when it begins."""
    spark = session(work)

    def append(batch, table):
        batch.repartition(10).write.mode("append").parquet(table)
        spark.read.option("mergeSchema", "true").parquet(table).count()

    for number in range(30):
        append(spark.range(500), str(work / f"warm-{number}"))
    stream = spark.readStream.format("rate").option("rowsPerSecond", 500).load()
    running = written(stream, work, "growing-table", lambda batch, _: append(batch, str(work / "table")))
    time.sleep(90)
    running.stop()

    def truth(log):
        lasted = [one["durationMs"]["triggerExecution"] / 1000 for one in progress_of(log) if rows(one)][5:]
        third = len(lasted) // 3
        grew_s = statistics.median(lasted[-third:]) - statistics.median(lasted[:third])
        return {"load": 500, "per_batch_s": grew_s / (len(lasted) - third)}

    return truth


def capped(work):
    """Files of 150 rows, three of them a second, of which a batch may take two."""
    spark = session(work)
    files = Files(work / "in", lambda _: 450.0, 1 / 3)
    files.start()
    stream = spark.readStream.option("maxFilesPerTrigger", 2).text(str(work / "in"))
    running = written(stream, work, "capped")
    time.sleep(40)
    files.over.set()
    running.stop()
    return lambda log: {"load": 450, "admitted": 300, "sustained": sustained(log)}


def restart(work):
    """Two days of 24 s each, whose peak is three quarters of what is sustained; it is stopped for 8 s between them."""
    spark = session(work)
    files = Files(work / "in", lambda at_s: 1500 * (1 - math.cos(2 * math.pi * at_s / 24)) + 150)
    files.start()
    stream = spark.readStream.text(str(work / "in"))
    for pause_s in (8, 0):
        running = written(stream, work, "restart")
        time.sleep(24)
        running.stop()
        time.sleep(pause_s)
    files.over.set()
    return lambda log: {"starts": 2, "sustained": sustained(log)}


def available_now(work):
    """Four runs over the files that came since the one before; a batch may take four of them."""
    spark = session(work)
    (work / "in").mkdir()
    brought = [6, 8, 8, 9]  # files, of 500 rows
    for run, count in enumerate(brought):
        for number in range(count):
            put(work / "in", 100 * run + number, 500)
        stream = spark.readStream.option("maxFilesPerTrigger", 4).text(str(work / "in"))
        (
            stream.writeStream.queryName("available-now")
            .foreachBatch(sink)
            .option("checkpointLocation", str(work / "checkpoint"))
            .trigger(availableNow=True)
            .start()
            .awaitTermination()
        )
    total = [500 * count for count in brought]
    return lambda _: {"runs": 4, "rows": total, "largest": 2000}


def two_inputs(work):
    """Two streams of 200 and 300 rows a second, joined by their number and kept forever in RocksDB."""
    provider = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    spark = session(work, **{"spark.sql.streaming.stateStore.providerClass": provider})
    left, right = (
        spark.readStream.format("rate")
        .option("rowsPerSecond", rate)
        .load()
        .selectExpr("value", f"timestamp AS at_{rate}")
        for rate in (200, 300)
    )
    running = written(
        left.join(right, "value"), work, "two-inputs", lambda batch, _: batch.write.format("noop").mode("append").save()
    )
    time.sleep(45)
    running.stop()
    return lambda _: {"load": 500, "state_per_day": 500 * 86_400, "instances": 8}


def late_rows(work):
    """Rows without their like in 10 s of event time, of which every file has 5 that come an hour late."""
    spark = session(work)
    (work / "in").mkdir()
    begun_s, count = time.time(), 0
    over = threading.Event()

    def bring():
        nonlocal count
        while not over.wait(0.5):
            at_s = time.time()
            lines = [f"{at_s},{count}-{one}\n" for one in range(100)] + [
                f"{begun_s - 3600},{count}-late-{one}\n" for one in range(5)
            ]
            hidden = work / "in" / f".{count:05}.csv"
            hidden.write_text("".join(lines))
            hidden.rename(work / "in" / hidden.name[1:])
            count += 1

    threading.Thread(target=bring, daemon=True).start()
    stream = spark.readStream.schema("at double, name string").csv(str(work / "in"))
    once = (
        stream.selectExpr("timestamp_seconds(at) AS at", "name")
        .withWatermark("at", "10 seconds")
        .dropDuplicates(["name", "at"])
    )
    running = written(once, work, "late-rows", lambda batch, _: batch.write.format("noop").mode("append").save())
    time.sleep(40)
    over.set()
    running.stop()
    return lambda log: {"late": 5 * sum(rows(one) for one in progress_of(log)[2:]) // 105}


def pipeline(work):
    """A declarative pipeline of two flows, the second over what the first one made."""
    (work / "in").mkdir()
    for number in range(4):
        put(work / "in", number, 1500)
    (work / "flows.py").write_text(
        "from pyspark import pipelines as dp\n"
        "from pyspark.sql import SparkSession\n"
        "spark = SparkSession.active()\n"
        "@dp.table\n"
        "def orders():\n"
        "    files = spark.readStream.schema('value string').option('maxFilesPerTrigger', 1)\n"
        f"    return files.text({str(work / 'in')!r})\n"
        "@dp.table\n"
        "def large_orders():\n"
        "    return spark.readStream.table('orders').where('length(value) > 2')\n"
    )
    of_flows = {"spark.sql.session.timeZone", "spark.sql.shuffle.partitions"}  # the others are of the session
    settings = "".join(f"  {name}: {json.dumps(conf(work)[name])}\n" for name in sorted(of_flows))
    (work / "eventlog").mkdir()
    (work / "spark-pipeline.yml").write_text(
        f"name: pipeline\nlibraries:\n  - glob:\n      include: flows.py\nstorage: {(work / 'storage').as_uri()}\n"
        f"configuration:\n{settings}"
    )
    import pyspark

    given = [part for name, value in conf(work).items() for part in ("--conf", f"{name}={value}")]
    command = [Path(pyspark.__file__).parent / "bin" / "spark-pipelines", "run", "--spec", "spark-pipeline.yml"]
    subprocess.run([*command[:1], "--remote", "local[2]", *given, *command[1:]], cwd=work, check=True, timeout=300,
                   env=os.environ | {"PYSPARK_PYTHON": sys.executable})  # fmt: skip
    return lambda _: {"flows": ["orders", "large_orders"], "rows": 6000}


KINDS = {
    kind.__name__.replace("_", "-"): kind
    for kind in (constant, growing_table, capped, restart, available_now, two_inputs, late_rows, pipeline)
}


def bare(value, names):
    """Leave out what names a machine, a path or a person, and what is of no use."""
    if isinstance(value, dict):
        return {key: counts(one) if key == "Accumulables" else bare(one, names)
                for key, one in value.items() if key not in DROPPED}  # fmt: skip
    if isinstance(value, list):
        return [bare(one, names) for one in value]
    return names.sub("x", value) if isinstance(value, str) else value


def counts(accumulables):
    """What the operators of a task counted."""
    told = [one for one in accumulables if one.get("Metadata") == "sql" and "Update" in one]
    return [{"ID": one["ID"], "Update": one["Update"], "Metadata": "sql"} for one in told]


def kept(log, work):
    """Return the events of a log that are read, bare."""
    own = {
        str(work),
        str(work.parent),
        socket.gethostname(),
        str(Path.home()),
        Path.home().name,
        str(Path.cwd()),
        sys.prefix,
    }
    names = re.compile(
        "|".join(sorted(map(re.escape, own), key=len, reverse=True)) + r"|/tmp/logs-\w*|\b(?:\d{1,3}\.){3}\d{1,3}\b"
    )
    for line in log.open():
        event = json.loads(line)
        if re.split(r"[.$]", event["Event"])[-1] not in USEFUL:
            continue
        for key in {"Spark Properties", "Properties"} & event.keys():
            event[key] = {name: one for name, one in event[key].items() if name in KEPT or "sql." in name[:14]}
        if "User" in event:
            event["User"] = "x"
        yield bare(event, names)


def make(kind, into):
    with tempfile.TemporaryDirectory(prefix="logs-") as folder:
        work = Path(folder) / kind
        work.mkdir()
        truth_of = KINDS[kind](work)
        if kind != "pipeline":
            from pyspark.sql import SparkSession

            SparkSession.active().stop()
        (log,) = (work / "eventlog").iterdir()
        events = list(kept(log, work))
    with gzip.GzipFile(into / f"{kind}.jsonl.gz", "wb", mtime=0) as file:
        file.write("".join(json.dumps(event, separators=(",", ":")) + "\n" for event in events).encode())
    return truth_of(events)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", default=list(KINDS), metavar="KIND")
    parser.add_argument("--into", type=Path, default=Path(__file__).parents[1] / "data" / "logs")
    options = parser.parse_args()
    options.into.mkdir(exist_ok=True)
    truths = options.into / "truth.json"
    known = json.loads(truths.read_text()) if truths.exists() else {}
    for kind in options.kinds:
        known[kind] = make(kind, options.into)
        print(kind, known[kind], (options.into / f"{kind}.jsonl.gz").stat().st_size, flush=True)
        truths.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
