"""Spark's own Kafka source next to the replayed sample: the MST of a query read in three ways, and the ratios.

    python benchmarks/kafka.py [--rows 10000000] [--slots 2] [--tolerance 0.1] [q1 q11:tumbling ...]

`kafka` reads a filled topic of a broker on this machine with Spark's Kafka source and decodes JSON. `decoded` replays
the topic's values as they are, and the query decodes them: the difference to `kafka` is what fetching costs. `replayed`
replays the sample's columns: the difference to `decoded` is what JSON costs. Prints each bracket, the cost and limit of
the source alone, and the ratios. The ways take turns, `--rounds` times.

`--costs` compares CPU seconds of the tasks per record instead, in batches of `--batch` records: CPU time changes little
where other processes share the machine and no rate can be measured.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from workbench import units
from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.measuring import CapacityEstimator
from workbench.records import state_settings
from workbench.study import find_query
from workbench.testbed import SparkTestbed
from workbench.testbed.spark import EventLog, Meter, Queries, TopicRows, quota_permitted
from workbench.testbed.spark.kafka import fill
from workbench.workload import Dataset, Query, nexmark, prepare, schema_of
from workbench.workload.kafka import HEADERS, Topic

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from kafka_broker import running
from one_slot import one_slot
from topic_session import topic_session

EVENT_TIME = "dateTime"
PARTITIONS = 2
RATIOS = (("kafka", "replayed"), ("kafka", "decoded"), ("decoded", "replayed"))


def decode(build, schema, rows):
    """Build the query on the columns inside a column of JSON."""
    from pyspark.sql import functions as f
    from pyspark.sql.pandas.types import from_arrow_schema

    value = f.from_json("value", from_arrow_schema(schema))
    columns = {name: value[name] for name in schema.names} | {EVENT_TIME: f.col(EVENT_TIME)}  # is due, as it replays
    return build(rows.select(*(column.alias(name) for name, column in columns.items())))


def ways(name, url, event_rate):
    """The query, read in each of the three ways."""
    kafka = find_query(f"nexmark:{name}", url, EVENT_TIME, source="kafka")
    replayed = find_query(f"nexmark:{name}", url, EVENT_TIME)
    sample = pq.read_table(replayed.dataset.path)
    columns = [one for one in schema_of(replayed.dataset, EVENT_TIME) if not one.name.startswith("_")]
    texts = Path(f"texts-{event_rate:g}.parquet")
    if not texts.exists():
        rows = sample.select([one.name for one in columns]).to_pylist()
        values = [json.dumps(row, default=str, separators=(",", ":")) for row in rows]
        pq.write_table(pa.table({"value": values, EVENT_TIME: sample[EVENT_TIME]}), texts)
    decoded = Query(
        f"nexmark:{name}", partial(decode, replayed.build, pa.schema(columns)), Dataset(str(texts), "parquet"),
        EVENT_TIME, unbounded_state=replayed.unbounded_state,
    )  # fmt: skip
    return {"kafka": kafka, "decoded": decoded, "replayed": replayed}


def measured(query, options):
    quota = quota_permitted()
    budget = Budget(options.slots, SlotProfile(options.cpus if quota else 1.0, 1024), options.interval)
    testbed = SparkTestbed(slot_cpus="auto" if quota else "cores", warmup_cap_s=options.warmup)
    estimator = CapacityEstimator(
        options.tolerance, max_probes=8, warmup_min_s=10.0, warmup_cap_s=options.warmup, patience_s=0.0, max_repeats=1
    )
    with testbed.deploy(query, budget) as run:
        return estimator.estimate(run), run.source


@contextmanager
def session(folder):
    """Queries on Spark in this process."""
    with topic_session(folder, slots=PARTITIONS, shuffles=PARTITIONS, settings=state_settings(512)) as (spark, log):
        queries = Queries(spark, EventLog(log), Meter(None, os.getpid()), lambda: time.sleep(0.1))
        try:
            yield queries
        finally:
            queries.stop()


def cost(queries, name, query, options, folder):
    """CPU seconds of the tasks per record: the median of the batches after the first half."""
    if query.topic is not None:
        schema = pa.schema([one for one in schema_of(query.dataset, query.event_time) if one.name != HEADERS])
        rows = TopicRows(query.topic, schema)
    else:
        rows = prepare(query.dataset, query.event_time, folder)
    asked = {"build": query.build, "generator": rows, "output_mode": "append", "source_partitions": PARTITIONS}
    spec = replace(one_slot(folder), name=name, **asked)
    live = queries.start(spec, name)
    live.fixed_batches(options.batch)
    done = [one for _ in range(options.batches) for one in queries.batches(live, 1)]
    queries.retire(live)
    spent = [sum(task.cpu_s for stage in one.stages for task in stage.tasks) / one.batch.records for one in done]
    return statistics.median(spent[len(spent) // 2 :])


def costs(name, asked, queries, options, folder):
    """Print what a record costs in each way, and the ratios."""
    found = {}
    for way, query in asked.items():
        place = folder / f"{name.replace(':', '-')}-{way}"
        place.mkdir()
        found[way] = cost(queries, place.name, query, options, place)
        print(f"{name} {way}: {1e6 * found[way]:.2f} us of CPU a record in the tasks", flush=True)
    for first, second in RATIOS:
        print(f"{name}: {first} / {second} {found[first] / found[second]:.2f} times the CPU", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("queries", nargs="*", default=["q1", "q11:tumbling"])
    parser.add_argument("--rows", type=int, default=10_000_000, help="that fill the topic")
    parser.add_argument("--event-rate", type=float, default=20_000.0, help="rows per second of event time")
    parser.add_argument("--slots", type=int, default=2)
    parser.add_argument("--cpus", type=float, default=0.4, help="of a slot")
    parser.add_argument("--interval", type=float, default=2.0)
    parser.add_argument("--warmup", type=float, default=60.0)
    parser.add_argument("--tolerance", type=float, default=0.1)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--costs", action="store_true", help="CPU per record instead of the MST")
    parser.add_argument("--batch", type=int, default=50_000, help="records, for --costs")
    parser.add_argument("--batches", type=int, default=20, help="for --costs")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        with running(Path(name)) as broker:
            url = broker.url("bids")
            sent = fill(
                Topic.parse(url), nexmark.query("q1").dataset, options.rows, partitions=PARTITIONS,
                event_rate=options.event_rate,
            )  # fmt: skip
            print(f"{sent.rows:,} rows in {PARTITIONS} partitions, {units.rate(sent.rate)}", flush=True)
            if options.costs:
                with session(Path(name)) as queries:
                    for query in options.queries:
                        costs(query, ways(query, url, options.event_rate), queries, options, Path(name))
                return
            for query in options.queries:
                compared(query, ways(query, url, options.event_rate), options)


def compared(name, asked, options):
    """Measure one query in each way, in turns, and print the ratios."""
    middles = {way: [] for way in asked}
    for _ in range(options.rounds):
        for way, query in asked.items():
            try:
                found, source = measured(query, options)
            except WorkbenchError as error:
                print(f"{name} {way}: {error}", flush=True)
                continue
            middles[way].append(found.middle)
            print(
                f"{name} {way}: {units.rate(found.low)} to {units.rate(found.high)}, limited by {found.limit}; the "
                f"source alone {1e6 * source.per_record_s:.1f} us of CPU a record, at most "
                f"{units.rate(source.rate_limit)}",
                flush=True,
            )
    mean = {way: sum(values) / len(values) for way, values in middles.items() if values}
    for first, second in RATIOS:
        if first in mean and second in mean:
            print(f"{name}: {first} / {second} {mean[first] / mean[second]:.2f}", flush=True)


if __name__ == "__main__":
    main()
