"""What Spark's real-time mode accepts, what it reports, and the rate of q1 in it: the facts of docs/real-time-mode.md.

    python benchmarks/real_time.py [--rows N] [--patience S]

It needs a broker and Spark's Kafka connector, both from Maven Central (see tests/support/kafka_broker.py).
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from workbench.testbed.spark import EventLog
from workbench.testbed.spark.kafka import fill
from workbench.workload import nexmark
from workbench.workload.kafka import Topic

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from kafka_broker import running
from topic_session import topic_session

SLOTS, PARTITIONS, SHUFFLES = 6, 2, 2
TRIGGER = "5 seconds"
PRICE = "event_type int, bid struct<auction:bigint,bidder:bigint,price:bigint,extra:string>, dateTime timestamp"


class Trials:
    """Starts queries in one session, and prints what became of each."""

    def __init__(self, spark, servers, folder, patience_s):
        self.spark, self.servers, self.folder, self.patience_s = spark, servers, folder, patience_s

    def events(self, **options):
        from pyspark.sql import functions as f

        reader = self.spark.readStream.format("kafka").option("kafka.bootstrap.servers", self.servers)
        reader = reader.option("subscribe", "bids").option("startingOffsets", "earliest").options(**options)
        return reader.load().select(f.from_json(f.col("value").cast("string"), PRICE).alias("row")).select("row.*")

    def start(self, frame, sink="kafka", mode="update", trigger=TRIGGER):
        writer = frame.writeStream.format(sink).outputMode(mode).trigger(realTime=trigger)
        if sink == "kafka":
            writer = writer.option("kafka.bootstrap.servers", self.servers).option("topic", "results")
        return writer.option("checkpointLocation", tempfile.mkdtemp(dir=self.folder)).start()

    def show(self, name, frame, batches=1, conf=None, **how):
        """Start the query that `frame` builds; print its first batches, or the message that refuses it."""
        before = {key: self.spark.conf.get(key, None) for key in conf or {}}
        for key, value in (conf or {}).items():
            self.spark.conf.set(key, value)
        seen, query = [], None
        try:
            query = self.start(frame(), **how)
            end = time.monotonic() + self.patience_s
            while query.isActive and len(query.recentProgress) < batches and time.monotonic() < end:
                time.sleep(0.5)
            seen = [json.loads(one.json) for one in query.recentProgress[:batches]]
            rows = [one["sources"][0]["numInputRows"] for one in seen]
            failed = query.exception()
            said = f"fails: {cause(failed)}" if failed else f"accepted; rows of its batches {rows}"
            print(f"{name}: {said}", flush=True)
        except Exception as error:  # noqa: BLE001 - Spark refuses with many kinds
            print(f"{name}: refused: {cause(error)}", flush=True)
        finally:
            if query is not None:
                query.stop()
            for key, value in before.items():
                self.spark.conf.unset(key) if value is None else self.spark.conf.set(key, value)
        return seen


def cause(error):
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return next(
        (line for line in lines if line.startswith("[STREAMING_REAL_TIME") or "INSUFFICIENT_SLOT" in line), lines[0]
    )[:400]


def as_value(frame):
    return frame.selectExpr("to_json(struct(*)) AS value")


def accepted(trials):
    """Print what real-time mode takes, query by query."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import LongType

    spark, events = trials.spark, trials.events
    per_bidder = (
        events().withWatermark("dateTime", "4 seconds").groupBy(f.window("dateTime", "10 seconds"), "bid.bidder")
    )
    twice = f.udf(lambda price: 2 * (price or 0), LongType())
    left, right = events().select("bid.bidder"), events().select(f.col("bid.bidder").alias("other"))

    def q1():
        return as_value(nexmark.query("q1").build(events()))

    trials.show("q1, Kafka to Kafka", q1)
    trials.show("q1, to the console sink", q1, sink="console")
    trials.show("q1, to the noop sink", q1, sink="noop")
    off = {"spark.sql.streaming.realTimeMode.allowlistCheck": "false"}
    trials.show("q1, to the noop sink, without the allowlist check", q1, sink="noop", conf=off)
    trials.show("q1, append mode", q1, mode="append")
    trials.show("q1, a trigger of 1 second", q1, trigger="1 second")
    trials.show("q1, maxOffsetsPerTrigger=100", lambda: as_value(events(maxOffsetsPerTrigger="100")))
    trials.show("windowed aggregation", lambda: as_value(per_bidder.count()))
    trials.show("deduplication", lambda: as_value(events().dropDuplicates(["bid"])))
    trials.show("stream-stream join", lambda: as_value(left.join(right, f.col("bidder") == f.col("other"))))
    trials.show("Python UDF", lambda: as_value(events().select(twice("bid.price").alias("price"))))
    trials.show("the rate source", lambda: as_value(spark.readStream.format("rate").load()))
    trials.show(
        "8 shuffle partitions on 6 slots",
        lambda: as_value(per_bidder.count()),
        conf={"spark.sql.shuffle.partitions": "8"},
    )


def replayed(trials, folder):
    """Print whether the workbench's own source is taken."""
    from workbench.workload import Command, write_command
    from workbench.workload.source import rate_source

    write_command(folder, Command(1, 100.0, 100))
    trials.spark.dataSource.register(rate_source(nexmark.query("q1").dataset, folder, 2, "replayed"))
    trials.show("the workbench's replaying source", lambda: as_value(trials.spark.readStream.format("replayed").load()))


def rate_of_q1(trials, log):
    """Print the rate at which q1 reads the filled topic, and which metrics say so."""
    seen = trials.show("q1, all of the topic", lambda: as_value(nexmark.query("q1").build(trials.events())), batches=6)
    for one in seen:
        source = one["sources"][0]
        seconds = one["durationMs"]["addBatch"] / 1000
        rows = source["numInputRows"]
        print(
            f"  batch {one['batchId']}: {rows} rows, addBatch {seconds:.1f} s, {rows / seconds:,.0f} rows/s, behind: "
            f"{source['metrics'].get('maxOffsetsBehindLatest')}, durations {one['durationMs']}"
        )
    events = EventLog(log)
    tasks = [task for _, batch in events.poll() for stage in batch.stages for task in stage.tasks]
    if tasks:
        last = tasks[-1]
        print(
            f"  a task in the event log: {last.records_in} records in, ran {last.run_s:.1f} s, CPU {last.cpu_s:.2f} s"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000, help="that fill the topic")
    parser.add_argument("--patience", type=float, default=60.0, help="seconds to wait for a query's batches")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with running(folder) as broker:
            for topic in ("bids", "results"):
                rows = options.rows if topic == "bids" else 1
                fill(Topic.parse(broker.url(topic)), nexmark.query("q1").dataset, rows, partitions=PARTITIONS)
            with topic_session(folder, slots=SLOTS, shuffles=SHUFFLES) as (spark, log):
                print(
                    f"Spark {spark.version}, {options.rows:,} rows in {PARTITIONS} partitions, {SLOTS} slots",
                    flush=True,
                )
                trials = Trials(spark, broker.servers, folder, options.patience)
                accepted(trials)
                replayed(trials, folder)
                rate_of_q1(trials, log)


if __name__ == "__main__":
    main()
