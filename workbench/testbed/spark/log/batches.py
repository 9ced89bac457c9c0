"""One micro-batch as Spark's event log has it: its stages, their tasks and plan nodes, and the rows of its sources."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

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

SCAN = "MicroBatchScan"
"""Prefix of the name of a node that reads a source."""


@dataclass(frozen=True)
class Node:
    """A node of the physical plan that ran in a stage, with its accumulated metrics by name.

    `state` is its place among the plan's nodes that keep state, in the order of progress events; None if it keeps none.
    `scan` is likewise its place among those that read a source.
    """

    name: str
    text: str
    metrics: Mapping[str, int]
    state: int | None = None
    scan: int | None = None


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
    """One completed stage of one batch, each partition once however many attempts it took.

    It ran from `begun_s` to `ended_s`, seconds since 1970; 0 where the log does not say.
    """

    stage_id: int
    parents: tuple[int, ...]
    tasks: tuple[Task, ...]
    nodes: tuple[Node, ...]
    begun_s: float = 0.0
    ended_s: float = 0.0
    keys: tuple[str, ...] = ()  # columns of the shuffle that it reads, each under all its names
    partial_sums: bool = False  # whether rows are aggregated before that shuffle

    @property
    def scan(self) -> int | None:
        """Index of the first source that it reads among the plan's; None if it reads none."""
        return min((node.scan for node in self.nodes if node.scan is not None), default=None)


@dataclass(frozen=True)
class BatchLog:
    """One committed micro-batch: its progress event, its stages in order, and what it used.

    CPU seconds are those of the executor, in total and in Python workers; None if unknown. `quota` is True if it ran
    under a CPU quota; its run seconds then include throttling.
    """

    batch_id: int
    progress: Mapping[str, Any]
    stages: tuple[Stage, ...]
    executor_cpu_s: float | None = None
    python_cpu_s: float = 0.0
    quota: bool = False

    @property
    def threads_cpu_s(self) -> float:
        """CPU seconds of the tasks' threads in the JVM."""
        return sum(task.cpu_s for stage in self.stages for task in stage.tasks)

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
        _place(source) if is_topic(source.get("description")) else number: source
        for number, source in enumerate(sources)
    }
    return sum(map(_read_once, once.values()))


def _read_once(source: Mapping[str, Any]) -> int:
    """Rows that a source read: for a topic, no more than its offsets advanced by.

    Spark counts a row each time that it is read, so twice where ``foreachBatch`` writes a batch to two places.
    """
    read = int(source.get("numInputRows") or 0)
    begun, ended = (_by_partition(source.get(name)) for name in ("startOffset", "endOffset"))
    if not is_topic(source.get("description")) or not ended or ended.keys() != begun.keys():
        return read
    return max(0, min(read, sum(ended[place] - begun[place] for place in ended)))


def _by_partition(offset: object) -> dict[tuple[str, str], int]:
    """Return the offsets of a topic's partitions; empty unless they are written as by Spark's Kafka source."""
    try:
        topics: Any = json.loads(offset) if isinstance(offset, str) else offset
        return {(name, number): int(at) for name, own in topics.items() for number, at in own.items()}
    except (ValueError, TypeError, AttributeError):
        return {}


def is_topic(description: object) -> bool:
    """Whether a source reads topics, by Spark's description of it."""
    return str(description).startswith("KafkaV2")


def _place(source: Mapping[str, Any]) -> str:
    return json.dumps([source.get(name) for name in ("description", "startOffset", "endOffset", "numInputRows")])


def _own_offset(offset: object) -> Mapping[str, Any] | None:
    """Read an offset of the workbench's own source, which numbers its rows; None for another source's."""
    if isinstance(offset, str) and '"n":' in offset:
        try:
            offset = json.loads(offset)
        except ValueError:
            return None
    return offset if isinstance(offset, dict) and isinstance(offset.get("n"), int) else None


def _row_number(offset: str | dict[str, int] | None) -> int:
    if offset is None:
        return 0
    value = json.loads(offset) if isinstance(offset, str) else offset
    return int(value["n"])
