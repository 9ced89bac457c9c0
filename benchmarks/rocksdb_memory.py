"""Memory of RocksDB on real Spark: Justin's Figure 4 at a small scale, and Justin's decision on measured numbers.

    python benchmarks/rocksdb_memory.py              # both, about 7 minutes
    python benchmarks/rocksdb_memory.py figure4
    python benchmarks/rocksdb_memory.py justin
    python benchmarks/rocksdb_memory.py smoke        # one small bound, a minute

Figure 4: one stateful operator on 200,000 keys of about 200 B, drawn uniformly, under four bounds of RocksDB's memory
(the memory of all tasks together; a fresh JVM each, because the first store of a JVM fixes the bound) and with one or
two tasks. *Read* drops duplicates of keys that are all known: a get each, nothing written. *Write* drops duplicates of
keys that are all new: a put each, after a get that finds nothing (RocksDB's Bloom filter answers it). *Update* keeps
the maxima of columns by known keys: a get and a put each. The paper's write
workload is a blind overwrite, which Spark does not have. So writes gain from memory here, unlike in the paper: blocks
with the filters and indexes are also kept within the bound, and a get that misses them reads them again (see the hit
rate of writes).

Justin: Nexmark q11 in tumbling windows (bids of each bidder; sessions are merged by scans, whose accesses RocksDB does
not count as gets, so they have no latency) under a bound and its double. Its hit rate, latency and true rate feed DS2
and then Justin, whose decisions are printed with their reasons.

Rates are rates of the operator's own work: rows / (seconds of its updates, removals and commits, all tasks), times
tasks. Prints figures, asserts nothing. Needs an idle machine with two cores.
"""

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BOUNDS_MB = (8, 16, 64, 256)
TASKS = (1, 2)
KEYS, ROWS = 200_000, 100_000
LONGS = 24  # columns of 8 bytes in a key or value
WORKLOADS = ("read", "write", "update")
MEASURED = 2  # batches
JUSTIN_MB = (8, 16)
Q11_ROWS, Q11_BATCHES, Q11_BIDDERS = 120_000, 8, 400_000


def session(bound_mb, folder):
    """Spark in this process with RocksDB bound to `bound_mb`."""
    from pyspark.sql import SparkSession

    from workbench.testbed.spark import find_java

    os.environ.update(JAVA_HOME=find_java(folder).home, PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
    state = "spark.sql.streaming.stateStore."
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1500m",
        "spark.sql.session.timeZone": "UTC",
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.streaming.metricsEnabled": "false",
        state + "providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        state + "rocksdb.boundedMemoryUsage": "true",
        state + "rocksdb.maxMemoryUsageMB": str(bound_mb),
        state + "rocksdb.trackTotalNumberOfRows": "false",
        state + "rocksdb.changelogCheckpointing.enabled": "true",
    }
    builder = SparkSession.builder.master("local[2]").appName("rocksdb memory")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def batches(frame, mode, folder, last, tasks):
    """Run a query to the end of batch `last` and return the progress of its batches."""
    frame.sparkSession.conf.set("spark.sql.shuffle.partitions", str(tasks))
    query = (
        frame.writeStream.format("noop")
        .outputMode(mode)
        .option("checkpointLocation", tempfile.mkdtemp(dir=folder))
        .start()
    )
    try:
        while query.isActive and (query.lastProgress is None or query.lastProgress["batchId"] < last):
            time.sleep(0.1)
        if query.exception():
            raise RuntimeError(str(query.exception()))
        return [p for p in query.recentProgress if p["numInputRows"]]
    finally:
        query.stop()


def seen(progress, tasks):
    """State metrics and true rate over some batches."""
    sums = {}
    for batch in progress:
        state = batch["stateOperators"][-1]
        for name in ("allUpdatesTimeMs", "allRemovalsTimeMs", "commitTimeMs"):
            sums[name] = sums.get(name, 0) + state[name]
        for name, value in state["customMetrics"].items():
            sums[name] = sums.get(name, 0) + value
    rows = sum(batch["numInputRows"] for batch in progress)
    busy_s = (sums["allUpdatesTimeMs"] + sums["allRemovalsTimeMs"] + sums["commitTimeMs"]) / 1000
    hits, misses = sums.get("rocksdbReadBlockCacheHitCount", 0), sums.get("rocksdbReadBlockCacheMissCount", 0)
    gets = sums.get("rocksdbGetCount", 0)
    return {
        "rate": rows / busy_s * tasks if busy_s else math.nan,
        "query_rate": 1000 * rows / sum(batch["batchDuration"] for batch in progress),
        "hit_rate": hits / (hits + misses) if hits + misses else None,
        "latency_s": sums.get("rocksdbGetLatency", 0) / gets / 1000 if gets else None,
        "gets": gets / rows,
        "puts": sums.get("rocksdbPutCount", 0) / rows,
    }


def workload(spark, name, folder, tasks):
    """One workload at one bound and one number of tasks."""
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).option("numPartitions", 2).load()
    known = f"CASE WHEN value < {KEYS} THEN value ELSE pmod(xxhash64(value), {KEYS}) END"
    rows = source.selectExpr(f"{'value' if name == 'write' else known} AS key")
    wide = [f"xxhash64(key, {place}) AS c{place}" for place in range(LONGS)]
    filling = 1 if name == "write" else KEYS // ROWS
    if name == "update":
        from pyspark.sql import functions as f

        frame = rows.selectExpr("key", *wide).groupBy("key").agg(*(f.max(f"c{place}") for place in range(LONGS)))
        mode = "update"
    else:
        frame, mode = rows.selectExpr("key", *wide).dropDuplicates(), "append"
    first = filling + 1  # one more batch until the caches are steady
    progress = batches(frame, mode, folder, first + MEASURED - 1, tasks)
    return seen([p for p in progress if p["batchId"] >= first][:MEASURED], tasks)


def q11(spark, folder, tasks):
    """Nexmark q11 from files, one a batch."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from workbench.workload import EventClock
    from workbench.workload.nexmark import BASE_TIME_US, NexmarkGenerator, NexmarkSettings, query

    generator = NexmarkGenerator(NexmarkSettings(active_people=Q11_BIDDERS))
    clock = EventClock(BASE_TIME_US, 0, 10.0)  # 100,000 events a second: sessions stay open
    events = folder / "events"
    events.mkdir()
    for place in range(Q11_BATCHES):
        # late enough for the maximum number of active people
        first = 50 * Q11_BIDDERS + place * Q11_ROWS
        rows = pa.Table.from_batches(generator.batches(first, first + Q11_ROWS, clock), generator.schema())
        pq.write_table(rows, events / f"{place:03}.parquet")
    schema = spark.read.parquet(str(events)).schema
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(events))
    chosen = query("q11:tumbling")
    progress = batches(chosen.build(stream), chosen.output_mode, folder, Q11_BATCHES - 1, tasks)
    return seen([p for p in progress if p["batchId"] >= Q11_BATCHES // 2], tasks)


def measure(what, bound_mb):
    """Print the results of one JVM as JSON."""
    with tempfile.TemporaryDirectory(prefix="rocksdb-memory-") as name:
        folder = Path(name)
        spark = session(bound_mb, folder)
        try:
            if what == "q11":
                found = {"q11": q11(spark, folder, 1)}
            else:
                wanted = [(w, tasks) for tasks in TASKS for w in WORKLOADS] if what == "figure4" else [("read", 1)]
                found = {f"{w} {tasks}": workload(spark, w, folder, tasks) for w, tasks in wanted}
        finally:
            spark.stop()
    print(json.dumps(found))


def fresh(what, bound_mb):
    """Run `measure` in a separate process."""
    command = [sys.executable, __file__, "measure", what, str(bound_mb)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def figure4(bounds=BOUNDS_MB, what="figure4"):
    print("Justin's Figure 4 at a small scale: the operator's own rate (k rows/s), and relative to the smallest bound")
    print("  paper: reads gain most from memory, writes do not, updates level off")
    print("workload tasks    MB  k rows/s   gain  hit rate  get us query k/s")
    found = {bound: fresh(what, bound) for bound in bounds}
    for key in found[bounds[0]]:
        name, tasks = key.split()
        least = found[bounds[0]][key]["rate"]
        for bound in bounds:
            one = found[bound][key]
            hit = "-" if one["hit_rate"] is None else f"{one['hit_rate']:.3f}"
            get = "-" if one["latency_s"] is None else f"{1e6 * one['latency_s']:.1f}"
            print(
                f"{name:8} {tasks:>5} {bound:5} {one['rate'] / 1e3:9.1f} {one['rate'] / least:6.2f} {hit:>9} {get:>7} "
                f"{one['query_rate'] / 1e3:9.1f}"
            )


def decide():
    from workbench.dataflow import Dataflow, Edge, Operator
    from workbench.scaling import MemoryState, StateMetrics, ds2, justin_decisions
    from workbench.views.findings import decided

    low, high = (fresh("q11", bound)["q11"] for bound in JUSTIN_MB)
    target = 1.5 * low["rate"]
    flow = Dataflow(
        "q11", (Operator("source", "source"), Operator("q11", "aggregate", stateful=True)), (Edge("source", "q11"),)
    )
    states = [StateMetrics(one["hit_rate"], one["latency_s"]) for one in (low, high)]
    proposals = [
        ds2(flow, {"q11": [(one["rate"], 0.0, 1.0)]}, {"source": target}).parallelism["q11"] for one in (low, high)
    ]
    begin = justin_decisions({"q11": MemoryState(1, 0)}, {"q11": proposals[0]}, {"q11": states[0]}, {})["q11"]
    after = MemoryState(1, 1, scaled_up=begin.state.scaled_up)
    then = justin_decisions({"q11": after}, {"q11": proposals[1]}, {"q11": states[1]}, {"q11": states[0]})["q11"]
    print(f"\nJustin's decisions: q11 (tumbling) at {target:,.0f} records/s")
    for bound, one, decision in zip(JUSTIN_MB, (low, high), (begin, then), strict=True):
        print(f"{bound} MB, {one['rate']:,.0f} records/s per task: {decided(decision)}")
        print(f"    {'; '.join((*decision.tests, decision.reason))}")


def main(arguments):
    if arguments[:1] == ["measure"]:
        measure(arguments[1], int(arguments[2]))
        return
    began = time.monotonic()
    if arguments == ["smoke"]:
        figure4((8,), "smoke")
    if not arguments or "figure4" in arguments:
        figure4()
    if not arguments or "justin" in arguments:
        decide()
    print(f"({time.monotonic() - began:.0f} s)")


if __name__ == "__main__":
    main(sys.argv[1:])
