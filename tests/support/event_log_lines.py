"""Lines of an event log as Spark writes them, in small."""

import json

from workbench.testbed.spark.log.operators import SourceCost, operator_metrics

QUERY = "q-1"


def task(stage, partition, *, read=0, scanned=0, wrote=0, counts=None, run_ms=100, cpu_ms=50):
    """The end of a task whose accumulators count up by `counts`, without them that of the plan by what it scanned."""
    counts = counts or ({7: scanned} if scanned else {})
    return {
        "Event": "SparkListenerTaskEnd",
        "Stage ID": stage,
        "Stage Attempt ID": 0,
        "Task End Reason": {"Reason": "Success"},
        "Task Info": {
            "Index": partition,
            "Partition ID": partition,
            "Accumulables": [{"ID": one, "Update": str(more), "Metadata": "sql"} for one, more in counts.items()],
        },
        "Task Metrics": {
            "Executor Run Time": run_ms,
            "Executor CPU Time": int(cpu_ms * 1_000_000),
            "Shuffle Read Metrics": {"Total Records Read": read, "Fetch Wait Time": 0},
            "Shuffle Write Metrics": {"Shuffle Records Written": wrote, "Shuffle Bytes Written": 10 * wrote},
            "Input Metrics": {"Records Read": 0},
        },
    }


def stage(number, parents=(), failure=None, begun_ms=1000, ended_ms=1400):
    info = {"Stage ID": number, "Stage Attempt ID": 0, "Parent IDs": list(parents)}
    info |= {"Submission Time": begun_ms, "Completion Time": ended_ms}
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


def plan_of(execution, plan):
    event = {"Event": "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart", "executionId": execution}
    return event | {"sparkPlanInfo": plan}


def job(*stages, execution=3, **properties):
    known = {"streaming.sql.batchId": "0", "sql.streaming.queryId": QUERY, "spark.sql.execution.id": str(execution)}
    return {"Event": "SparkListenerJobStart", "Stage IDs": list(stages), "Properties": known | properties}


SCANNED, SAVED = {7: "number of output rows"}, {8: "number of output rows"}
PLAN = node("StateStoreSave", node("MicroBatchScan x", ids=SCANNED), ids=SAVED)
BEGIN = [plan_of(3, PLAN), job(1, 2)]


def state_task(partition, read):
    return task(2, partition, read=read, counts={8: 1})


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


def counting(number, partition, *accumulators, read=0):
    return task(number, partition, read=read, counts=dict.fromkeys(accumulators, 5))


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
