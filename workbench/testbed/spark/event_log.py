"""Read Spark's event log while Spark writes it: exact metrics of every stage of every micro-batch.

The log maps jobs to batches (``SparkListenerJobStart.Properties``), plan nodes to accumulators
(``SparkListenerSQLExecutionStart.sparkPlanInfo``) and has each task's metrics. Failed or cancelled stages and batches
without a progress event are left out.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_TASK_METRICS = {
    "run_ms": "Executor Run Time",
    "cpu_ns": "Executor CPU Time",
    "in_rows": "Input Metrics/Records Read",
    "shuffle_in_rows": "Shuffle Read Metrics/Total Records Read",
    "shuffle_wait_ms": "Shuffle Read Metrics/Fetch Wait Time",
    "shuffle_out_rows": "Shuffle Write Metrics/Shuffle Records Written",
    "shuffle_out_bytes": "Shuffle Write Metrics/Shuffle Bytes Written",
}
_KEPT_PLANS = 50
_SILENT = ("WholeStageCodegen", "InputAdapter", "Exchange", "ColumnarToRow", "AQEShuffleRead")


@dataclass(frozen=True)
class Node:
    """A node of the physical plan that ran in a stage, with its accumulated metrics by name."""

    name: str
    text: str
    metrics: Mapping[str, int]


@dataclass(frozen=True)
class Task:
    """One task: its partition, the records it read and its cost."""

    partition: int
    records_in: int
    records_out: int
    run_s: float
    cpu_s: float
    shuffle_bytes: int
    shuffle_wait_s: float


@dataclass(frozen=True)
class Stage:
    """One completed stage of one batch."""

    stage_id: int
    parents: tuple[int, ...]
    submitted_s: float
    completed_s: float
    tasks: tuple[Task, ...]
    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class BatchLog:
    """One committed micro-batch: its progress event and its stages in order of their ids."""

    batch_id: int
    progress: Mapping[str, Any]
    stages: tuple[Stage, ...]

    @property
    def records(self) -> int:
        """Rows between the start and the end offset of the first source."""
        return _released(self.progress["sources"][0])

    @property
    def last_row(self) -> int:
        """The row number after the batch's last row."""
        return _row_number(self.progress["sources"][0]["endOffset"])

    @property
    def duration_s(self) -> float:
        """From the trigger to the commit."""
        return float(self.progress["durationMs"]["triggerExecution"]) / 1000


def _released(source: Mapping[str, Any]) -> int:
    return _row_number(source["endOffset"]) - _row_number(source["startOffset"])


def _row_number(offset: str | dict[str, int] | None) -> int:
    if offset is None:
        return 0
    value = json.loads(offset) if isinstance(offset, str) else offset
    return int(value["n"])


@dataclass
class EventLog:
    """Follows one event log file; `poll` returns the batches that were committed since the last call."""

    path: Path
    _position: int = 0
    _plans: dict[int, dict[str, Any]] = field(default_factory=dict)
    _jobs: dict[int, tuple[str, int, int]] = field(default_factory=dict)
    _tasks: dict[tuple[int, int], list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    _stages: dict[tuple[str, int], list[Stage]] = field(default_factory=lambda: defaultdict(list))
    _failures: dict[str, str] = field(default_factory=dict)
    _unread: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    def poll(self) -> list[tuple[str, BatchLog]]:
        """Read new events; return pairs of query id and batch, in order of commit."""
        with self.path.open("rb") as log:
            log.seek(self._position)
            text = log.read()
        whole = text[: text.rfind(b"\n") + 1]  # an unfinished last line waits for the next call
        self._position += len(whole)
        return [batch for line in whole.splitlines() if (batch := self._take(json.loads(line)))]

    def failure(self, query_id: str) -> str | None:
        """Why the query ended on its own; None while it runs."""
        return self._failures.get(query_id)

    def unread(self, query_id: str) -> Sequence[int]:
        """Rows released to each of the query's latest consecutive batches that read none of them."""
        return self._unread.get(query_id, ())

    def _take(self, event: dict[str, Any]) -> tuple[str, BatchLog] | None:
        kind = event["Event"].rsplit(".", 1)[-1]
        if kind in ("SparkListenerSQLExecutionStart", "SparkListenerSQLAdaptiveExecutionUpdate"):
            self._plans[event["executionId"]] = event["sparkPlanInfo"]
            while len(self._plans) > _KEPT_PLANS:  # plans are large, and a batch needs only its own
                del self._plans[next(iter(self._plans))]
        elif kind == "SparkListenerJobStart":
            self._start(event)
        elif kind == "SparkListenerTaskEnd":
            if event.get("Task Metrics") and event["Task End Reason"]["Reason"] == "Success":
                self._tasks[event["Stage ID"], event["Stage Attempt ID"]].append(event)
        elif kind == "SparkListenerStageCompleted":
            self._complete(event["Stage Info"])
        elif kind.endswith("QueryTerminatedEvent") and event.get("exception"):
            self._failures[event["id"]] = str(event["exception"])
        elif kind.endswith("QueryProgressEvent"):
            return self._commit(event["progress"])
        return None

    def _start(self, job: dict[str, Any]) -> None:
        properties = job.get("Properties") or {}
        if "streaming.sql.batchId" in properties:
            batch = int(properties["streaming.sql.batchId"])
            owner = properties["sql.streaming.queryId"], batch, int(properties["spark.sql.execution.id"])
            self._jobs.update(dict.fromkeys(job["Stage IDs"], owner))

    def _commit(self, progress: dict[str, Any]) -> tuple[str, BatchLog] | None:
        stages = self._stages.pop((progress["id"], progress["batchId"]), [])
        if not any(source["numInputRows"] for source in progress["sources"]):
            released = sum(map(_released, progress["sources"]))
            if released:
                self._unread[progress["id"]].append(released)
            return None
        self._unread.pop(progress["id"], None)
        if not stages:
            return None
        ordered = tuple(sorted(stages, key=lambda stage: stage.stage_id))
        return progress["id"], BatchLog(progress["batchId"], progress, ordered)

    def _complete(self, info: dict[str, Any]) -> None:
        key = info["Stage ID"], info["Stage Attempt ID"]
        events = self._tasks.pop(key, [])
        job = self._jobs.get(info["Stage ID"])
        if job is None or info.get("Failure Reason"):
            return
        query, batch, execution = job
        accumulated: dict[int, int] = defaultdict(int)
        for event in events:
            for update in event["Task Info"]["Accumulables"]:
                if update.get("Metadata") == "sql":
                    accumulated[update["ID"]] += int(update.get("Update", 0))
        plan = self._plans.get(execution)
        found = [
            Node(name, text, {metric: accumulated[key] for key, metric in ids.items() if key in accumulated})
            for name, text, ids in (_walk(plan) if plan else ())
        ]
        nodes = tuple(node for node in found if node.metrics and not node.name.startswith(_SILENT))
        scans = _scan_accumulators(plan) if plan else frozenset()
        tasks = tuple(_task(event, scans) for event in events)
        self._stages[query, batch].append(
            Stage(
                info["Stage ID"],
                tuple(info["Parent IDs"]),
                info["Submission Time"] / 1000,
                info["Completion Time"] / 1000,
                tasks,
                nodes,
            )
        )


def _walk(plan: dict[str, Any]) -> Iterator[tuple[str, str, dict[int, str]]]:
    yield plan["nodeName"], plan["simpleString"], {m["accumulatorId"]: m["name"] for m in plan["metrics"]}
    for child in plan["children"]:
        yield from _walk(child)


def _scan_accumulators(plan: dict[str, Any]) -> frozenset[int]:
    return frozenset(
        key
        for name, _, ids in _walk(plan)
        if name.startswith("MicroBatchScan")
        for key, metric in ids.items()
        if metric == "number of output rows"
    )


def _task(event: dict[str, Any], scans: frozenset[int]) -> Task:
    values: dict[str, int] = {}
    for name, where in _TASK_METRICS.items():
        value: Any = event["Task Metrics"]
        for key in where.split("/"):
            value = (value or {}).get(key)
        values[name] = int(value or 0)
    info = event["Task Info"]
    scanned = sum(int(a.get("Update", 0)) for a in info["Accumulables"] if a["ID"] in scans)
    return Task(
        partition=info.get("Partition ID", info["Index"]),
        records_in=values["shuffle_in_rows"] + max(values["in_rows"], scanned),
        records_out=values["shuffle_out_rows"],
        run_s=values["run_ms"] / 1000,
        cpu_s=values["cpu_ns"] / 1e9,
        shuffle_bytes=values["shuffle_out_bytes"],
        shuffle_wait_s=values["shuffle_wait_ms"] / 1000,
    )
