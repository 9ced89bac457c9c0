"""Read Spark's event log while Spark writes it: exact metrics of every stage of every micro-batch.

The log maps jobs to batches (``SparkListenerJobStart.Properties``), plan nodes to accumulators
(``SparkListenerSQLExecutionStart.sparkPlanInfo``) and has each task's metrics. Stages that never completed and
batches without a progress event are left out.
"""

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.testbed.spark.log.batches import KEEPS_STATE, SCAN, BatchLog, Node, Stage, Task, rows_of
from workbench.workload import columns_of

_TASK_METRICS = {
    "run_ms": "Executor Run Time",
    "cpu_ns": "Executor CPU Time",
    "in_rows": "Input Metrics/Records Read",
    "shuffle_in_rows": "Shuffle Read Metrics/Total Records Read",
    "shuffle_wait_ms": "Shuffle Read Metrics/Fetch Wait Time",
    "shuffle_out_rows": "Shuffle Write Metrics/Shuffle Records Written",
    "shuffle_out_bytes": "Shuffle Write Metrics/Shuffle Bytes Written",
    "written": "Output Metrics/Records Written",
}
_KEPT_PLANS, _KEPT_BATCHES = 50, 50  # of batches that are not committed
_HASHED = re.compile(r"Exchange hashpartitioning\((.*), \d+\)")
_SILENT = ("WholeStageCodegen", "InputAdapter", "Exchange", "ColumnarToRow", "AQEShuffleRead")


# A stage's tasks that ended, in all its attempts, and what each counted, by partition. An attempt that follows a failed
# one, or a lost executor, runs only the partitions whose output is missing. So what a failed attempt finished counts,
# and of a partition that ran again the last run does.
_Ended = dict[int, tuple[Task, Counter[int]]]


@dataclass(frozen=True)
class _Job:
    """The batch that a stage belongs to, and the SQL executions whose plans have its nodes.

    What ``foreachBatch`` runs has an execution of its own within the batch's, and nodes of both plans share its stages.
    """

    query: str
    batch: int
    executions: tuple[int, ...]

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> "_Job":
        own = int(properties["spark.sql.execution.id"])
        root = int(properties.get("spark.sql.execution.root.id") or own)
        return cls(
            properties["sql.streaming.queryId"],
            int(properties["streaming.sql.batchId"]),
            (own, root)[: 1 + (own != root)],
        )


@dataclass
class Events:
    """The state after the events of a log so far; it keeps only what belongs to uncommitted batches."""

    _plans: dict[int, tuple[dict[str, Any], frozenset[int]]] = field(default_factory=dict)
    _jobs: dict[int, _Job] = field(default_factory=dict)
    _rdds: dict[int, int] = field(default_factory=dict)
    _made_by: dict[int, int] = field(default_factory=dict)
    _owned: dict[tuple[str, int], list[int]] = field(default_factory=lambda: defaultdict(list))
    _ended: dict[int, _Ended] = field(default_factory=lambda: defaultdict(dict))
    _stages: dict[tuple[str, int], dict[int, Stage]] = field(default_factory=lambda: defaultdict(dict))
    _failures: dict[str, str] = field(default_factory=dict)
    _unread: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    lost: dict[str, str] = field(default_factory=dict)
    """Executors that were removed, with the reason."""
    expected: frozenset[str] | None = None
    """The executors whose removal counts: others were replaced before they were used. None: all."""

    def failure(self, query_id: str) -> str | None:
        """Why the query ended on its own; None while it runs."""
        return self._failures.get(query_id)

    def forget_failure(self, query_id: str) -> None:
        """Forget why the query ended: it was started again."""
        self._failures.pop(query_id, None)

    def has_begun(self, query_id: str) -> bool:
        """Whether an uncommitted batch of the query has started a job."""
        return any(query == query_id for query, _ in self._owned)

    def unread(self, query_id: str) -> Sequence[int]:
        """Rows released to each of the query's latest consecutive batches that read none of them."""
        return self._unread.get(query_id, ())

    def take(self, event: dict[str, Any]) -> tuple[str, BatchLog] | None:
        """Process the next event; return the query's id and the batch that it commits, if it does."""
        kind = event["Event"].rsplit(".", 1)[-1]
        if kind in ("SparkListenerSQLExecutionStart", "SparkListenerSQLAdaptiveExecutionUpdate"):
            plan = event["sparkPlanInfo"]
            self._plans[event["executionId"]] = plan, _scan_accumulators(plan)
            while len(self._plans) > _KEPT_PLANS:  # plans are large, and a batch needs only its own
                del self._plans[next(iter(self._plans))]
        elif kind == "SparkListenerJobStart":
            self._start(event)
        elif kind == "SparkListenerTaskEnd":
            self._end(event)
        elif kind == "SparkListenerStageCompleted":
            self._complete(event["Stage Info"])
        elif kind == "SparkListenerExecutorRemoved" and (
            self.expected is None or str(event["Executor ID"]) in self.expected
        ):
            self.lost[str(event["Executor ID"])] = str(event["Removed Reason"])
        elif kind.endswith("QueryStartedEvent"):
            self._failures.pop(event["id"], None)
            self._forget_batches(event["id"])  # the execution that it was ended in begins again
        elif kind.endswith("QueryTerminatedEvent") and event.get("exception"):
            self._failures[event["id"]] = str(event["exception"])
        elif kind.endswith("QueryProgressEvent"):
            progress = event["progress"]
            return self._commit(json.loads(progress) if isinstance(progress, str) else progress)
        return None

    def _start(self, job: dict[str, Any]) -> None:
        properties = job.get("Properties") or {}
        if "streaming.sql.batchId" in properties:
            owner = _Job.of(properties)
            self._jobs.update(dict.fromkeys(job["Stage IDs"], owner))
            # A stage that is skipped shares its last RDD with the one that made its output.
            known = (one for one in job.get("Stage Infos") or () if one.get("RDD Info"))
            self._rdds.update({one["Stage ID"]: int(one["RDD Info"][0]["RDD ID"]) for one in known})
            self._owned[owner.query, owner.batch] += job["Stage IDs"]
            while len(self._owned) > _KEPT_BATCHES:  # in a log without progress events, nothing is ever committed
                self._forget(next(iter(self._owned)))

    def _commit(self, progress: dict[str, Any]) -> tuple[str, BatchLog] | None:
        query, number = progress["id"], progress["batchId"]
        stages = self._stages.pop((query, number), {})
        self._forget_batches(query, number)  # this batch, and abandoned ones
        if not any(source.get("numInputRows") for source in progress["sources"]):
            if released := rows_of(progress):
                self._unread[query].append(released)
            return None
        self._unread.pop(query, None)
        return (query, BatchLog(number, progress, _in_order(stages))) if stages else None

    def _forget_batches(self, query: str, last: float = math.inf) -> None:
        for owner in [one for one in self._owned if one[0] == query and one[1] <= last]:
            self._forget(owner)

    def _forget(self, owner: tuple[str, int]) -> None:
        self._stages.pop(owner, None)
        for stage in self._owned.pop(owner):
            self._jobs.pop(stage, None)
            self._ended.pop(stage, None)
            self._made_by.pop(self._rdds.pop(stage, -1), None)

    def _end(self, event: dict[str, Any]) -> None:
        """Add a task to its stage, if that belongs to a query."""
        job = self._jobs.get(event["Stage ID"])
        if job is None or not event.get("Task Metrics") or event["Task End Reason"]["Reason"] != "Success":
            return
        scans = frozenset[int]().union(*(self._plans[one][1] for one in job.executions if one in self._plans))
        counted: Counter[int] = Counter()
        for update in event["Task Info"]["Accumulables"]:
            if update.get("Metadata") == "sql":
                counted[update["ID"]] += int(update.get("Update", 0))
        task = _task(event, scans)
        self._ended[event["Stage ID"]][task.partition] = task, counted

    def _complete(self, info: dict[str, Any]) -> None:
        job = self._jobs.get(info["Stage ID"])
        if job is None or info.get("Failure Reason"):
            return
        ended = self._ended[info["Stage ID"]].values()
        accumulated = Counter[int]()
        for _, counted in ended:
            accumulated.update(counted)
        plans = [self._plans[one][0] for one in job.executions if one in self._plans]
        found = [node for plan in plans for node in _nodes(plan, accumulated)]
        nodes = tuple(node for node in found if node.metrics and not node.name.startswith(_SILENT))
        if info["Stage ID"] in self._rdds:
            self._made_by[self._rdds[info["Stage ID"]]] = info["Stage ID"]
        # If a job skipped a stage, an earlier job made its output.
        parents = tuple(self._made_by.get(self._rdds.get(one, -1), one) for one in info["Parent IDs"])
        begun_s, ended_s = ((info.get(f"{end} Time") or 0) / 1000 for end in ("Submission", "Completion"))
        tasks = tuple(task for task, _ in ended)
        made = Stage(info["Stage ID"], parents, tasks, nodes, begun_s, ended_s, *_shuffled_by(found))
        self._stages[job.query, job.batch][info["Stage ID"]] = made


class EventLog(Events):
    """Follows one event log file; `poll` returns the batches that were committed since the last call."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path, self._position = path, 0

    def poll(self) -> list[tuple[str, BatchLog]]:
        """Read new events; return pairs of query id and batch, in order of commit."""
        with self.path.open("rb") as log:
            log.seek(self._position)
            text = log.read()
        whole = text[: text.rfind(b"\n") + 1]  # an unfinished last line waits for the next call
        self._position += len(whole)
        return [batch for line in whole.splitlines() if (batch := self.take(json.loads(line)))]


def _in_order(stages: Mapping[int, Stage]) -> tuple[Stage, ...]:
    """Put stages in the order of their ids, and first stages that read a source in the order of the plan.

    Spark numbers these by chance: a join's left side may come before its right in one batch, and after it in the next.
    """
    ordered = [stages[one] for one in sorted(stages)]
    first = [stage for stage in ordered if not stage.parents and stage.scan is not None]
    by_plan = iter(sorted(first, key=lambda stage: stage.scan or 0))
    return tuple(next(by_plan) if stage in first else stage for stage in ordered)


def _nodes(plan: dict[str, Any], counted: Mapping[int, int]) -> Iterator[Node]:
    states = scans = 0
    for name, text, ids in _walk(plan):
        state, scan = (states if name in KEEPS_STATE else None), (scans if name.startswith(SCAN) else None)
        states, scans = states + (state is not None), scans + (scan is not None)
        yield Node(name, text, {metric: counted[key] for key, metric in ids.items() if key in counted}, state, scan)


def _shuffled_by(nodes: Sequence[Node]) -> tuple[tuple[str, ...], bool]:
    """Return the columns of the shuffle that a stage reads, and whether rows are aggregated before it.

    Spark cuts long lists of a plan off: then the columns are not known.
    """
    read = [place for place, node in enumerate(nodes) if node.name == "Exchange" and "records read" in node.metrics]
    keys = [found[1] for place in read if (found := _HASHED.match(nodes[place].text))]
    plan = "\n".join(node.text for node in nodes)
    below = (next((node for node in nodes[place + 1 :] if not node.name.startswith(_SILENT)), None) for place in read)
    partial = any(node is not None and "Aggregate" in node.name and "partial_" in node.text for node in below)
    return () if re.search(r"\bProject .* more fields", plan) else columns_of(keys, plan), partial


def _walk(plan: dict[str, Any]) -> Iterator[tuple[str, str, dict[int, str]]]:
    yield plan["nodeName"], plan["simpleString"], {m["accumulatorId"]: m["name"] for m in plan["metrics"]}
    for child in plan["children"]:
        yield from _walk(child)


def _scan_accumulators(plan: dict[str, Any]) -> frozenset[int]:
    return frozenset(
        key
        for name, _, ids in _walk(plan)
        if name.startswith(SCAN)
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
        executor=str(info.get("Executor ID", "")),
        host=str(info.get("Host", "")),
        written=values["written"],
    )
