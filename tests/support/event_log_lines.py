"""Lines of an event log as Spark writes them, in small."""

import json

from workbench.testbed.spark.log.operators import SourceCost, operator_metrics

QUERY = "q-1"


def task(stage, partition, *, read=0, scanned=0, wrote=0, run_ms=100, cpu_ms=50):
    return {
        "Event": "SparkListenerTaskEnd",
        "Stage ID": stage,
        "Stage Attempt ID": 0,
        "Task End Reason": {"Reason": "Success"},
        "Task Info": {
            "Index": partition,
            "Partition ID": partition,
            "Accumulables": [{"ID": 7, "Update": str(scanned), "Metadata": "sql"}] if scanned else [],
        },
        "Task Metrics": {
            "Executor Run Time": run_ms,
            "Executor CPU Time": cpu_ms * 1_000_000,
            "Shuffle Read Metrics": {"Total Records Read": read, "Fetch Wait Time": 0},
            "Shuffle Write Metrics": {"Shuffle Records Written": wrote, "Shuffle Bytes Written": 10 * wrote},
            "Input Metrics": {"Records Read": 0},
        },
    }


def stage(number, parents=(), failure=None):
    info = {"Stage ID": number, "Stage Attempt ID": 0, "Parent IDs": list(parents)}
    info |= {"Submission Time": 1000, "Completion Time": 1400}
    return {
        "Event": "SparkListenerStageCompleted",
        "Stage Info": info | ({"Failure Reason": failure} if failure else {}),
    }


def progress(batch=0, first=0, last=300):
    return {
        "Event": "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent",
        "progress": {
            "id": QUERY,
            "batchId": batch,
            "durationMs": {"triggerExecution": 800},
            "sources": [
                {
                    "startOffset": json.dumps({"n": first, "us": 0}),
                    "endOffset": json.dumps({"n": last, "us": 5}),
                    "numInputRows": last - first,
                }
            ],
            "stateOperators": [
                {
                    "numRowsUpdated": 9,
                    "customMetrics": {
                        "rocksdbReadBlockCacheHitCount": 30,
                        "rocksdbReadBlockCacheMissCount": 10,
                        "rocksdbGetCount": 100,
                        "rocksdbGetLatency": 20,
                        "rocksdbTotalBytesRead": 1000,
                        "rocksdbTotalBytesWritten": 500,
                        "rocksdbSstFileSize": 4096,
                    },
                }
            ],
        },
    }


def node(name, *children, ids=None):
    metrics = [{"accumulatorId": key, "name": metric} for key, metric in (ids or {}).items()]
    return {"nodeName": name, "simpleString": name, "metrics": metrics, "children": list(children)}


PLAN = node(
    "StateStoreSave", node("MicroBatchScan x", ids={7: "number of output rows"}), ids={8: "number of output rows"}
)
BEGIN = [
    {
        "Event": "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart",
        "executionId": 3,
        "sparkPlanInfo": PLAN,
    },
    {
        "Event": "SparkListenerJobStart",
        "Stage IDs": [1, 2],
        "Properties": {"streaming.sql.batchId": "0", "sql.streaming.queryId": QUERY, "spark.sql.execution.id": "3"},
    },
]


def state_task(partition, read):
    event = task(2, partition, read=read)
    event["Task Info"]["Accumulables"] = [{"ID": 8, "Update": "1", "Metadata": "sql"}]
    return event


BATCH = [
    *BEGIN,
    task(1, 0, scanned=100, wrote=40),
    task(1, 1, scanned=200, wrote=60),
    stage(1),
    state_task(0, 75),
    state_task(1, 25),
    stage(2, parents=[1]),
    progress(),
]


def write(path, events):
    with path.open("a") as log:
        for event in events:
            log.write(json.dumps(event) + "\n")


def plan_of(execution, plan):
    event = {"Event": "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart", "executionId": execution}
    return event | {"sparkPlanInfo": plan}


def job(*stages, execution=3, **properties):
    known = {"streaming.sql.batchId": "0", "sql.streaming.queryId": QUERY, "spark.sql.execution.id": str(execution)}
    return {"Event": "SparkListenerJobStart", "Stage IDs": list(stages), "Properties": known | properties}


def counting(number, partition, *accumulators, read=0, wrote=0):
    event = task(number, partition, read=read, wrote=wrote)
    event["Task Info"]["Accumulables"] = [{"ID": one, "Update": "5", "Metadata": "sql"} for one in accumulators]
    return event


def state(updated, size):
    return {"numRowsUpdated": updated, "customMetrics": {"rocksdbTotalBytesRead": size, "rocksdbSstFileSize": size}}


def committed(log, events, *states):
    """The batch of `events`, whose progress event lists `states`."""
    told = progress()
    told["progress"]["stateOperators"] = list(states)
    write(log.path, [*events, told])
    ((_, batch),) = log.poll()
    return batch


def operators_of(batch):
    return operator_metrics([batch], 2.0, 1.0, SourceCost())[0][1:]


SCANNED = {7: "number of output rows"}
