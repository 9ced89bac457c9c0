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
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from workbench.workload import columns_of

KEEPS_STATE: Mapping[str, str] = MappingProxyType(
    {
        "StateStoreSave": "aggregate",
        "SessionWindowStateStoreSave": "session",
        "StreamingSymmetricHashJoin": "join",
        "FlatMapGroupsWithState": "state",
        "FlatMapGroupsInPandasWithState": "state",
        "TransformWithStateInPySpark": "state",
        "TransformWithStateInPandas": "state",
        "TransformWithState": "state",
        "StreamingDeduplicate": "deduplicate",
        "StreamingDeduplicateWithinWatermark": "deduplicate",
        "StreamingGlobalLimit": "limit",
    }
)
"""What a plan's node with state does, by its name."""

SCAN = "MicroBatchScan"  # prefix of the name of a node that reads a source


@dataclass(frozen=True)
class Node:
    """A node of the physical plan that ran in a stage, with its accumulated metrics by name."""

    name: str
    text: str
    metrics: Mapping[str, int]
    state: int | None = None  # its place among the nodes that keep state, in the order of progress events
    scan: int | None = None  # its place among the nodes that read a source


@dataclass(frozen=True)
class Task:
    """One task: its partition, the records it read, its cost, and the executor that ran it."""

    partition: int
    records_in: int
    records_out: int
    run_s: float
    cpu_s: float
    shuffle_bytes: int
    shuffle_wait_s: float
    executor: str = ""
    host: str = ""
    written: int = 0  # rows, to the sink


@dataclass(frozen=True)
class Stage:
    """One completed stage of one batch, each partition once however many attempts it took."""

    stage_id: int
    parents: tuple[int, ...]
    tasks: tuple[Task, ...]
    nodes: tuple[Node, ...]
    begun_s: float = 0.0  # seconds since 1970; 0 where the log does not say
    ended_s: float = 0.0
    keys: tuple[str, ...] = ()  # columns of the shuffle that it reads, each under all its names
    partial_sums: bool = False  # whether rows are aggregated before that shuffle

    @property
    def scan(self) -> int | None:
        """Index of the first source that it reads among the plan's; None if it reads none."""
        return min((node.scan for node in self.nodes if node.scan is not None), default=None)


@dataclass(frozen=True)
class BatchLog:
    """One committed micro-batch: its progress event, its stages in order, and what it used."""

    batch_id: int
    progress: Mapping[str, Any]
    stages: tuple[Stage, ...]
    executor_cpu_s: float | None = None  # CPU seconds of the executor; None if unknown
    python_cpu_s: float = 0.0  # of its Python workers
    quota: bool = False  # whether it ran under a CPU quota; its run seconds then include throttling
    jobs: tuple[Stage, ...] = ()  # stages of jobs on a table's log, as Delta's; not among `stages`

    @property
    def all_stages(self) -> tuple[Stage, ...]:
        """The query's stages and those of jobs on a table's log."""
        return self.stages + self.jobs

    @property
    def threads_cpu_s(self) -> float:
        """CPU seconds of the tasks' threads in the JVM."""
        return sum(task.cpu_s for stage in self.all_stages for task in stage.tasks)

    @property
    def records(self) -> int:
        """Rows from the sources; those of a topic or of the workbench's source count once, however often read."""
        return rows_of(self.progress)

    @property
    def of_inputs(self) -> Mapping[int, int]:
        """Rows of each of several inputs by its number, each once, however often it is read; empty for one input."""
        found: dict[int, int] = {}
        for number, source in zip(self.inputs, self.progress["sources"], strict=True):
            if number is not None:
                found[number] = max(found.get(number, 0), int(source.get("numInputRows") or 0))
        times = round(sum(found.values()) / max(1, self.records))  # as where ``foreachBatch`` reads a batch twice
        return {number: rows // max(1, times) for number, rows in found.items()}

    @property
    def inputs(self) -> Sequence[int | None]:
        """Number of the input that each source reads, in the plan's order; None for a single one, or another source."""
        return [(_own_offset(source.get("endOffset")) or {}).get("input") for source in self.progress["sources"]]

    @property
    def last_row(self) -> int:
        """The row number after the batch's last row."""
        return _row_number(self.progress["sources"][0]["endOffset"])

    @property
    def start_s(self) -> float:
        """When its trigger fired, seconds since 1970."""
        return seconds_of(self.progress["timestamp"])

    @property
    def duration_s(self) -> float:
        """From the trigger to the commit."""
        return self.took_s("triggerExecution")

    def took_s(self, *parts: str) -> float:
        """Return the seconds of parts of the batch, by Spark's names; 0 for those that it does not report."""
        return sum(float(self.progress["durationMs"].get(part, 0)) for part in parts) / 1000


def seconds_of(timestamp: str) -> float:
    """Read a time; without a zone it is UTC, as everything that Spark writes."""
    read = datetime.fromisoformat(timestamp)
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()


def rows_of(progress: Mapping[str, Any]) -> int:
    """Rows that the sources of a batch gave; see `BatchLog.records`."""
    sources = progress["sources"]
    own = [source for source in sources if _own_offset(source.get("endOffset"))]
    if own:
        return _row_number(own[0]["endOffset"]) - _row_number(own[0]["startOffset"])
    # Two scans of a topic in one query take the same records.
    once = {
        json.dumps([source.get(name) for name in ("description", "startOffset", "endOffset", "numInputRows")])
        if is_topic(source.get("description"))
        else number: source
        for number, source in enumerate(sources)
    }
    return sum(map(_read_once, once.values()))


_MOST_READS = 20


def _read_once(source: Mapping[str, Any]) -> int:
    """Rows that a source read; of a topic, which ``foreachBatch`` may read twice, as far as its offsets advanced.

    Offsets by which the rows would have been read more than `_MOST_READS` times are not those of the rows.
    """
    read = int(source.get("numInputRows") or 0)
    begun, ended = (by_partition(source.get(name)) for name in ("startOffset", "endOffset"))
    if not is_topic(source.get("description")) or not ended or ended.keys() != begun.keys():
        return read
    advanced = sum(ended[place] - begun[place] for place in ended)
    return advanced if read / _MOST_READS <= advanced < read else read


def by_partition(offset: object) -> dict[tuple[str, str], int]:
    """Return the offsets of a topic's partitions; empty unless they are written as by Spark's Kafka source."""
    try:
        topics: Any = json.loads(offset) if isinstance(offset, str) else offset
        return {(name, number): int(at) for name, own in topics.items() for number, at in own.items()}
    except (ValueError, TypeError, AttributeError):
        return {}


def is_topic(description: object) -> bool:
    """Whether a source reads topics, by Spark's description of it."""
    return str(description).startswith("KafkaV2")


def _own_offset(offset: object) -> Mapping[str, Any] | None:
    """Read an offset of the workbench's own source, which numbers its rows; None for another source's."""
    if isinstance(offset, str) and '"n":' in offset:
        try:
            offset = json.loads(offset)
        except ValueError:
            return None
    return offset if isinstance(offset, dict) and isinstance(offset.get("n"), int) else None


def _row_number(offset: object) -> int:
    return int((_own_offset(offset) or {"n": 0})["n"])


_KEPT_PLANS, _KEPT_BATCHES = 50, 50  # of batches that are not committed
_HASHED = re.compile(r"Exchange hashpartitioning\((.*), \d+\)")
_TABLE_LOG = re.compile("_delta_log|DeltaLogFileIndex")
_SILENT = ("WholeStageCodegen", "InputAdapter", "Exchange", "ColumnarToRow", "AQEShuffleRead")


# A stage's tasks that ended, in all its attempts, and what each counted, by partition. An attempt that follows a failed
# one, or a lost executor, runs only the partitions whose output is missing. So what a failed attempt finished counts,
# and of a partition that ran again the last run does.
_Ended = dict[int, tuple[Task, Counter[int]]]


# The query and batch that a stage belongs to, and the SQL executions whose plans have its nodes. What ``foreachBatch``
# runs has an execution of its own within the batch's, and nodes of both plans share its stages.
_Job = tuple[tuple[str, int], tuple[int, ...]]


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
    _log_stages: dict[tuple[str, int], dict[int, Stage]] = field(default_factory=lambda: defaultdict(dict))
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
            own = int(properties["spark.sql.execution.id"])
            root = int(properties.get("spark.sql.execution.root.id") or own)
            owner = properties["sql.streaming.queryId"], int(properties["streaming.sql.batchId"])
            self._jobs.update(dict.fromkeys(job["Stage IDs"], (owner, tuple(dict.fromkeys((own, root))))))
            # A stage that is skipped shares its last RDD with the one that made its output.
            known = (one for one in job.get("Stage Infos") or () if one.get("RDD Info"))
            self._rdds.update({one["Stage ID"]: int(one["RDD Info"][0]["RDD ID"]) for one in known})
            self._owned[owner] += job["Stage IDs"]
            while len(self._owned) > _KEPT_BATCHES:  # in a log without progress events, nothing is ever committed
                self._forget(next(iter(self._owned)))

    def _commit(self, progress: dict[str, Any]) -> tuple[str, BatchLog] | None:
        query, number = progress["id"], progress["batchId"]
        stages, jobs = (kept.pop((query, number), {}) for kept in (self._stages, self._log_stages))
        self._forget_batches(query, number)  # this batch, and abandoned ones
        if not any(source.get("numInputRows") for source in progress["sources"]):
            if released := rows_of(progress):
                self._unread[query].append(released)
            return None
        self._unread.pop(query, None)
        if not stages:  # nothing shows which work is the query's
            stages, jobs = jobs, {}
        return (query, BatchLog(number, progress, _in_order(stages), jobs=_in_order(jobs))) if stages else None

    def _forget_batches(self, query: str, last: float = math.inf) -> None:
        for owner in [one for one in self._owned if one[0] == query and one[1] <= last]:
            self._forget(owner)

    def _forget(self, owner: tuple[str, int]) -> None:
        self._stages.pop(owner, None)
        self._log_stages.pop(owner, None)
        for stage in self._owned.pop(owner):
            self._jobs.pop(stage, None)
            self._ended.pop(stage, None)
            self._made_by.pop(self._rdds.pop(stage, -1), None)

    def _end(self, event: dict[str, Any]) -> None:
        """Add a task to its stage, if that belongs to a query."""
        job = self._jobs.get(event["Stage ID"])
        if job is None or not event.get("Task Metrics") or event["Task End Reason"]["Reason"] != "Success":
            return
        scans = frozenset[int]().union(*(self._plans[one][1] for one in job[1] if one in self._plans))
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
        owner, executions = job
        plans = [self._plans[one][0] for one in executions if one in self._plans]
        found = [node for plan in plans for node in _nodes(plan, accumulated)]
        nodes = tuple(node for node in found if node.metrics and not node.name.startswith(_SILENT))
        if info["Stage ID"] in self._rdds:
            self._made_by[self._rdds[info["Stage ID"]]] = info["Stage ID"]
        # If a job skipped a stage, an earlier job made its output.
        parents = tuple(self._made_by.get(self._rdds.get(one, -1), one) for one in info["Parent IDs"])
        begun_s, ended_s = ((info.get(f"{end} Time") or 0) / 1000 for end in ("Submission", "Completion"))
        tasks = tuple(task for task, _ in ended)
        made = Stage(info["Stage ID"], parents, tasks, nodes, begun_s, ended_s, *_shuffled_by(found))
        of_log = made.scan is None and self._reads_a_log(executions[0])
        (self._log_stages if of_log else self._stages)[owner][info["Stage ID"]] = made

    def _reads_a_log(self, execution: int) -> bool:
        """Whether a job reads a table's log and nothing of its batch, as Delta's own jobs do."""
        plan, scans = self._plans.get(execution, ({}, frozenset()))
        return bool(plan) and not scans and any(_TABLE_LOG.search(name + text) for name, text, _ in _walk(plan))


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
    """Return the columns of the shuffle that a stage reads, and whether rows are aggregated before it."""
    read = [place for place, node in enumerate(nodes) if node.name == "Exchange" and "records read" in node.metrics]
    keys = [found[1] for place in read if (found := _HASHED.match(nodes[place].text))]
    plan = "\n".join(node.text for node in nodes)
    below = (next((node for node in nodes[place + 1 :] if not node.name.startswith(_SILENT)), None) for place in read)
    partial = any(node is not None and "Aggregate" in node.name and "partial_" in node.text for node in below)
    cut_off = re.search(r"\bProject .* more fields", plan)  # Spark's long lists
    return () if cut_off else columns_of(keys, plan), partial


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
    def counted(*path: str) -> int:
        value: Any = event["Task Metrics"]
        for key in path:
            value = (value or {}).get(key)
        return int(value or 0)

    info, read, wrote = event["Task Info"], "Shuffle Read Metrics", "Shuffle Write Metrics"
    scanned = sum(int(a.get("Update", 0)) for a in info["Accumulables"] if a["ID"] in scans)
    return Task(
        partition=info.get("Partition ID", info["Index"]),
        records_in=counted(read, "Total Records Read") + max(counted("Input Metrics", "Records Read"), scanned),
        records_out=counted(wrote, "Shuffle Records Written"),
        run_s=counted("Executor Run Time") / 1000,
        cpu_s=counted("Executor CPU Time") / 1e9,
        shuffle_bytes=counted(wrote, "Shuffle Bytes Written"),
        shuffle_wait_s=counted(read, "Fetch Wait Time") / 1000,
        executor=str(info.get("Executor ID", "")),
        host=str(info.get("Host", "")),
        written=counted("Output Metrics", "Records Written"),
    )
