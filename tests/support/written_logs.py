"""Event logs of a query whose costs are known, written as Spark writes them."""

import json
import math
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
from event_log_lines import SAVED, SCANNED, job, node, plan_of, stage, task

LISTENER = "org.apache.spark.sql.streaming.StreamingQueryListener$"
BEGUN = 1_780_000_020.0  # a whole number of any interval used here

DRIVER_S, TASK_S, ROW_S = 0.2, 0.01, 4e-5  # of a batch, of a task of the stage, of a row on one slot
SELECTIVITY = 0.1


def capacity(slots, interval_s, driver_s=DRIVER_S):
    """Records/s at which a batch of this query takes the interval."""
    return (interval_s - driver_s - 2 * TASK_S) * slots / ((1 + SELECTIVITY) * ROW_S) / interval_s


TRUE = capacity(4, 2.0)  # on the slots and at the interval of `events`


def a_day(peak, batches=120, night=0.1):
    """Rates of a day: a sine from night to peak and back."""
    return [peak * (night + (1 - night) * (1 - math.cos(2 * math.pi * at / batches)) / 2) for at in range(batches)]


def events(rates, *, slots=4, interval_s=2.0, name="orders", query="q-1", run="r-1", driver_s=DRIVER_S, noise=0.03,
           master="spark://m:7077", seed=0, begun=BEGUN, first=0, whole=True,
           readers=None, partitions=None):  # fmt: skip
    """Yield the events of a query that is offered `rates`, one of each interval; late batches take all that waits.

    `readers` and `partitions` are the tasks of its two stages; without them, each has as many as there are slots.
    """
    rng = np.random.default_rng(seed)
    if whole:
        yield from application(slots, master)
    yield {"Event": f"{LISTENER}QueryStartedEvent", "id": query, "runId": run, "name": name, "timestamp": stamp(begun)}
    sums = np.concatenate([[0.0], np.cumsum(rates) * interval_s])
    fires, taken, number = begun + interval_s, 0, first
    while (passed := (fires - begun) / interval_s) <= len(rates):
        rows = int(np.interp(passed, np.arange(len(sums)), sums)) - taken
        taken += rows
        batch_s = driver_s
        for stage_rows in (rows, SELECTIVITY * rows):
            batch_s += (TASK_S + ROW_S * stage_rows / slots) * math.exp(rng.normal(0, noise))
        of = {"name": name, "query": query, "run": run, "tasks": (readers or slots, partitions or slots)}
        yield from batch(number, rows, fires, ran_s=batch_s - driver_s, batch_s=batch_s, slots=slots, **of)
        number += 1
        following = math.floor(fires / interval_s) * interval_s + interval_s
        fires = max(following, fires + batch_s + 0.003)  # a late query begins at once


def application(slots, master):
    yield {"Event": "SparkListenerLogStart", "Spark Version": "4.3.0"}
    yield {"Event": "SparkListenerApplicationStart", "App Name": "shop", "App ID": "app-1"}
    properties = {
        "spark.master": master,
        "spark.executor.memory": "4g",
        "spark.sql.shuffle.partitions": str(slots),
        "spark.hadoop.fs.s3a.secret.key": "not-to-be-told",
    }
    yield {"Event": "SparkListenerEnvironmentUpdate", "Spark Properties": properties}
    yield executor("0", slots)


def executor(name, cores):
    return {"Event": "SparkListenerExecutorAdded", "Executor ID": name, "Executor Info": {"Total Cores": cores}}


def batch(number, rows, fires, *, ran_s, batch_s, slots, name, query, run, tasks):
    execution = number + 1
    scan = node("MicroBatchScan orders", ids=SCANNED)
    yield plan_of(execution, node("StateStoreSave", node("Exchange", scan), ids=SAVED))
    stages = (2 * number, 2 * number + 1)
    of_query = {"streaming.sql.batchId": str(number), "sql.streaming.queryId": query}
    yield job(*stages, execution=execution, **of_query)
    whole = 1 + SELECTIVITY
    for place, share, many in zip(stages, (1 / whole, SELECTIVITY / whole), tasks, strict=True):
        yield {"Event": "SparkListenerTaskStart", "Stage ID": place}  # of no use
        each_s = share * ran_s / math.ceil(many / slots)
        took = {"run_ms": round(1000 * each_s), "cpu_ms": 900 * each_s}
        for partition in range(many):
            own = rows // many + (partition < rows % many)
            passed = int(SELECTIVITY * own)
            if place == stages[0]:
                yield task(place, partition, counts={7: own}, wrote=passed, **took)
            else:
                yield task(place, partition, counts={8: passed}, read=passed, **took)
        parents = stages[: stages.index(place)]
        yield stage(place, parents, None, int(1000 * fires), int(1000 * (fires + share * ran_s)))
    yield progress(number, rows, fires, batch_s=batch_s, name=name, query=query, run=run)


def progress(number, rows, fires, *, batch_s, name="orders", query="q-1", run="r-1"):
    return {
        "Event": f"{LISTENER}QueryProgressEvent",
        "progress": {
            "id": query,
            "runId": run,
            "name": name,
            "timestamp": stamp(fires),
            "batchId": number,
            "durationMs": {"triggerExecution": round(1000 * batch_s)},
            "stateOperators": [{"numRowsUpdated": rows // 10, "customMetrics": {"rocksdbGetCount": 1}}],
            "sources": [
                {
                    "description": "KafkaV2[Subscribe[orders]]",
                    "startOffset": {"orders": {"0": 0}},
                    "endOffset": {"orders": {"0": rows}},
                    "numInputRows": rows,
                }
            ],
            "sink": {"description": "DeltaSink"},
        },
    }


def progress_of(log):
    """Give what the progress events of a log contain."""
    return [event["progress"] for event in log if "progress" in event]


def stamp(seconds):
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def written(path, given):
    """Write events to a file, one a line."""
    path.write_text("".join(json.dumps(event) + "\n" for event in given), encoding="utf-8")
    return path


def zstd(text):
    """One frame, written in pieces, as Spark does."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        for start in range(0, len(text), 32768):
            stream.write(text[start : start + 32768])
    return sink.getvalue().to_pybytes()
