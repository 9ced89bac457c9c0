"""What a log shows of a running streaming query: its slots, batches, runs and state, and its operators' work.

Nothing is measured here: the load is what it was. The latest batches are kept as a few numbers each; the work of
operators is summed over blocks of consecutive batches, of which a selection over all loads is kept. So memory does not
grow with the log. Progress events alone show batches and state, and nothing of slots or operators.
"""

import json
import math
import re
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from sys import intern
from typing import Any

from workbench import bounds, units
from workbench.checks import whole
from workbench.errors import WorkbenchError
from workbench.observing.deployment import LATE_S, slot_memory_mb, trigger_interval
from workbench.observing.events import PROGRESS, SCRAPED, follow_events, latest_in_time, read_events
from workbench.observing.running_query import (
    KEPT_BLOCKS,
    Block,
    RunningQuery,
    SeenBatch,
    SeenRun,
    block_of,
    selected,
    usual_slots,
)
from workbench.observing.state import StateSeries
from workbench.redaction import redacted
from workbench.testbed.spark import BatchLog, Events, is_topic, rows_of, seconds_of

_IN_BLOCK = 10  # batches
_FEWEST_IN_BLOCK = 4
LEFT_OUT = 5
"""First batches of a start that do not count, because their code is not compiled yet."""

KEPT = 5000
"""Latest batches of a query that are kept while a log is followed."""

READ = 100_000
"""The same when a log is read: more than a day of a trigger of 1 s."""

_MOST_ROWS, _MOST_S, _MOST_TEXT = 10**15, 10**7, 200  # of a batch; of a name
_LEFT = {
    "avgOffsetsBehindLatest": 0.0,
    "numFilesOutstanding": 0.0,
    "numBytesOutstanding": 0.0,
    "avgMsBehindLatest": 60_000.0,
}
"""Metrics of sources (Kafka, files, Delta, Kinesis) above which a batch left rows."""
_BROKEN = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError)


def shown(text: object) -> str:
    """Make a text of the log fit to be shown: one line, not long, without control characters or secrets."""
    lines = str(text).strip().splitlines()
    line = "".join(letter if letter.isprintable() else "?" for letter in (lines[0] if lines else ""))
    return redacted(line)[:_MOST_TEXT]


def read_log(
    path: str | Path, query: str | None = None, progress: str | Path | None = None, slots: int | None = None
) -> RunningQuery:
    """Read a query, by its name or id (None: the log has one), from an event log or progress events.

    `read_events` has their forms. `progress` is for an event log that has none, `slots` (tasks that could run at once)
    where the log does not show its executors.
    """
    reading = _Reading(READ).take_all(read_events(path))
    if reading.out_of_order:
        reading = _Reading(READ).take_all(latest_in_time(read_events(path), READ))
    if progress is not None:
        if any(one.triggers for one in reading.queries.values()):
            raise WorkbenchError(
                f"The log {path} has progress events of its own, so those of {progress} are not used. Leave one of the "
                "two out.",
                settings=("progress",),
            )
        told, order = read_events(progress), _Reading(READ).take_all(read_events(progress))
        reading.take_all(latest_in_time(told, READ) if order.out_of_order else told)
    if slots is not None:
        whole("The slots", slots, 1, bounds.TASKS)
        if reading.cores:
            raise WorkbenchError(
                f"The log {path} shows its executors, so their slots are not given: leave them out.",
                settings=("slots",),
            )
    return reading.query(query, str(path), slots)


def follow_log(path: str | Path, at_end: Callable[[Sequence[RunningQuery]], None], query: str | None = None) -> None:
    """Read a log as it is written; pass its queries, or those of a name or id, to `at_end` whenever all of it is read.

    What is read is not read again, and of each query the latest `KEPT` batches are kept. The log need not exist yet,
    and may be replaced or cut, as by a rotation. `at_end` takes the queries, the same object while nothing is new, and
    waits; what it raises ends the reading.
    """
    reading = _Reading(KEPT)
    latest: list[RunningQuery] = []
    known = -1

    def wait() -> None:
        nonlocal latest, known
        if (seen := sum(one.triggers for one in reading.queries.values())) != known:
            latest, known = reading.latest(query, str(path)), seen
        at_end(latest)

    reading.take_all(follow_events(path, wait))


def _text(name: object) -> str:
    """Make a name fit to be shown; empty if there is none."""
    if not isinstance(name, str | None):
        raise TypeError(f"a name is a {type(name).__name__}")
    return shown(name or "")


@dataclass
class _Seen:
    """What is known so far of one query."""

    query_id: str
    batches: deque[SeenBatch]  # the latest
    name: str = ""
    since_start: int = 0
    open_block: list[tuple[BatchLog, int]] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    last: tuple[float, float] | None = None  # start and end of the last recorded batch of this run
    number: int = -1  # of the last recorded batch
    run_id: str | None = None
    fired: str | None = None  # the run with the latest trigger
    idle: deque[float] = field(default_factory=lambda: deque(maxlen=KEPT))  # times of triggers that found nothing
    asked_s: float | None = None  # latest start of the query, or of its application
    early: deque[SeenBatch] = field(default_factory=lambda: deque(maxlen=KEPT))  # the first batches of each start
    known: set[tuple[str, int]] = field(default_factory=set)
    triggers: int = 0
    runs: list[SeenRun] = field(default_factory=list)
    states: StateSeries = field(default_factory=StateSeries)
    ran_s: float = 0.0
    cpu_s: float = 0.0
    described: tuple[str, ...] = ()  # its sources and its sink, as Spark reports them
    sources: tuple[str, ...] = ()
    sink: str = ""

    def describe(self, progress: Mapping[str, Any]) -> None:
        """Note the sources and the sink; only where they changed, as making a text fit to be shown takes time."""
        parts = (*progress["sources"], progress.get("sink") or {})
        described = tuple(str(part.get("description", "")) for part in parts)
        if described != self.described:
            self.described, (*sources, sink) = described, map(shown, described)
            self.sources, self.sink = tuple(sources), _named(sink)


@dataclass
class _Reading:
    """The log so far, and how many batches are kept of a query."""

    most: int
    events: Events = field(default_factory=Events)
    queries: dict[str, _Seen] = field(default_factory=dict)
    executors: dict[str, int] = field(default_factory=dict)  # cores
    cores: list[tuple[float, Counter[int]]] = field(default_factory=list)  # executors by cores, each from a time on
    sizes: dict[int, int] = field(default_factory=dict)  # number of executors by their cores
    broken: int = 0
    out_of_order: bool = False  # whether progress events go back to a batch that was before, and no others are there
    properties: dict[str, str] = field(default_factory=dict)
    application: str = ""
    began_s: float | None = None  # of an application without queries so far
    spark: str = ""

    def take_all(self, events: Iterable[dict[str, Any]]) -> "_Reading":
        """Take events in; leave out and count unexpected ones, because another program writes the log."""
        for event in events:
            try:
                self.take(event)
            except _BROKEN:
                self.broken += 1
        return self

    def take(self, event: dict[str, Any]) -> None:
        kind = event["Event"].rsplit(".", 1)[-1].rsplit("$", 1)[-1]
        if kind == "SparkListenerLogStart":
            self.spark = _text(event.get("Spark Version"))
        elif kind == "SparkListenerApplicationStart":
            self.application = _text(event.get("App Name"))
            self.began_s = float(event["Timestamp"]) / 1000 if event.get("Timestamp") else None
        elif kind == "SparkListenerEnvironmentUpdate":
            self.properties = {str(key): str(value) for key, value in (event.get("Spark Properties") or {}).items()}
        elif kind == "SparkListenerExecutorAdded":
            cores = int(event["Executor Info"]["Total Cores"])
            self.executors[str(event["Executor ID"])] = cores
            self.sizes[cores] = self.sizes.get(cores, 0) + 1
            self._note_cores(event)
        elif kind == "SparkListenerExecutorRemoved":
            self.executors.pop(str(event["Executor ID"]), None)
            self._note_cores(event)
        elif kind in {"QueryStartedEvent", "QueryTerminatedEvent"}:
            self._begun_or_over(self._of(event["id"]), event)
            self.events.take(event)
        elif kind == "QueryIdleEvent":
            self._fired(self._of(str(event["id"])), str(event["runId"]), seconds_of(event["timestamp"]), found=False)
        elif kind == PROGRESS:
            told = event["progress"]
            whole_one = complete(json.loads(told) if isinstance(told, str) else told)
            whole_one.setdefault("batchId", self._of(str(whole_one["id"])).triggers)  # as of Spark 2.2
            committed = self.events.take(event | {"progress": whole_one})
            self._progressed(whole_one, committed)
        else:
            self.events.take(event)

    def _begun_or_over(self, seen: _Seen, event: Mapping[str, Any]) -> None:
        if event["Event"].endswith("QueryTerminatedEvent"):
            if seen.runs and str(event.get("runId")) == seen.run_id:
                stopped = event.get("exception") or self.events.has_begun(seen.query_id)
                seen.runs[-1] = replace(seen.runs[-1], finished=not stopped)
            return
        seen.name = _text(event.get("name"))
        asked = event.get("timestamp")
        seen.asked_s = self.began_s or (seconds_of(asked) if isinstance(asked, str) else None)
        self.began_s = None  # the start of the application counts for its first query

    @property
    def left_out(self) -> str:
        return f"{units.some(self.broken, 'event')} of another form than Spark writes"

    @property
    def task_cpus(self) -> int:
        try:
            return max(1, int(float(self.properties.get("spark.task.cpus", "1"))))
        except (ValueError, OverflowError):
            return 1

    def _note_cores(self, event: Mapping[str, Any]) -> None:
        at_s = float(event.get("Timestamp") or 0) / 1000 or (self.cores[-1][0] if self.cores else 0.0)
        self.cores.append((at_s, Counter(self.executors.values())))

    def _slots_at(self, time_s: float) -> int:
        """Slots that existed at a time: progress events may be read after the log.

        Before the first executor that is known there are 0, which is unknown: compaction takes out those that are gone.
        """
        place = bisect_right(self.cores, time_s, key=lambda one: one[0])
        if not place:
            return 0
        executors = self.cores[place - 1][1].items()
        return sum(count * (cores // self.task_cpus) for cores, count in executors)  # no task runs on two executors

    def _of(self, query_id: str) -> _Seen:
        if query_id not in self.queries:
            self.queries[query_id] = _Seen(query_id, deque(maxlen=self.most))
        return self.queries[query_id]

    @staticmethod
    def _fired(seen: _Seen, run: str, at_s: float, *, found: bool) -> None:
        """Note when a trigger that found nothing fired, unless at once: as the first of a run, or late."""
        if run == seen.fired and not found and (seen.last is None or at_s > seen.last[1] + LATE_S):
            seen.idle.append(at_s)
        seen.fired = run

    def _progressed(self, progress: dict[str, Any], committed: tuple[str, BatchLog] | None) -> None:
        seen = self._of(str(progress["id"]))
        seen.name = seen.name or shown(progress.get("name") or "")
        run, number = intern(str(progress.get("runId"))), int(progress["batchId"])
        duration_s = float(progress["durationMs"].get("triggerExecution") or 0) / 1000
        rows, start_s = rows_of(progress), seconds_of(progress["timestamp"])
        self._fired(seen, run, start_s, found=bool(rows))
        last = seen.last if run == seen.run_id and seen.last is not None and seen.last[0] <= start_s else None
        ended_s = start_s + max(0.0, min(duration_s, _MOST_S))
        goes_back = seen.last is not None and start_s < seen.last[0] and number <= seen.number
        self.out_of_order |= goes_back and not self.properties
        seen.last, seen.number = (start_s, ended_s), number
        if rows and (run, number) in seen.known:  # given twice
            return
        if rows and not (0 < duration_s < _MOST_S and rows < _MOST_ROWS):
            raise ValueError(duration_s, rows)
        seen.triggers += 1
        seen.states.take(progress, start_s, duration_s)
        if run != seen.run_id:
            self._close(seen)
            seen.run_id, seen.since_start = run, 0
            seen.runs.append(SeenRun(start_s, ended_s, asked_s=seen.asked_s))
            seen.asked_s = None
        so_far = seen.runs[-1]
        seen.runs[-1] = replace(
            so_far,
            ended_s=max(so_far.ended_s, ended_s),
            rows=so_far.rows + rows,
            batches=so_far.batches + (rows > 0),
            largest=max(so_far.largest, rows),
            waited=so_far.waited + (last is not None and start_s - last[1] > LATE_S),
        )
        if not rows:
            return
        if len(seen.known) >= self.most:
            seen.known.clear()
        seen.known.add((run, number))
        seen.since_start += 1
        seen.describe(progress)
        slots = self._slots_at(start_s + duration_s)
        left = [*map(_left_rows, progress["sources"])]
        by_source = tuple(int(source.get("numInputRows") or 0) for source in progress["sources"])
        made = SeenBatch(
            start_s,
            duration_s,
            rows,
            slots,
            *_passed(progress, start_s, last),
            left_rows=True if True in left else None if None in left else False,
            number=number,
            start=len(seen.runs),
            scraped=SCRAPED in progress,
            by_source=by_source if len(by_source) > 1 else (),
        )
        is_early = seen.since_start <= LEFT_OUT
        (seen.early if is_early else seen.batches).append(made)
        for stage in () if committed is None else committed[1].all_stages:
            seen.ran_s += sum(task.run_s for task in stage.tasks)
            seen.cpu_s += sum(task.cpu_s for task in stage.tasks)
        if committed is not None and not is_early:
            self._worked(seen, committed[1], slots)

    def _worked(self, seen: _Seen, log: BatchLog, slots: int) -> None:
        """Add the work of a batch to the open block."""
        if seen.open_block and seen.open_block[-1][1] != slots:
            self._close(seen)
        seen.open_block.append((log, slots))
        if len(seen.open_block) > _IN_BLOCK:
            self._close(seen)
            seen.open_block.append((log, slots))  # this batch marks the start of the next block

    def _close(self, seen: _Seen) -> None:
        """Sum the open block up; drop it if it is short or unexpected."""
        block, seen.open_block = seen.open_block, []
        if len(block) <= _FEWEST_IN_BLOCK:
            return
        try:
            seen.blocks.append(block_of([log for log, _ in block], block[0][1]))
        except _BROKEN:  # an event that is read only now
            self.broken += 1
        if len(seen.blocks) >= 2 * KEPT_BLOCKS:
            seen.blocks = list(selected(seen.blocks))

    def latest(self, wanted: str | None, path: str) -> list[RunningQuery]:
        """Return the queries with batches that count, the latest of each name."""
        there = [one for one in self.queries.values() if one.batches and wanted in (None, one.name, one.query_id)]
        by_name = {one.name or one.query_id: one for one in sorted(there, key=lambda one: one.last or (0.0, 0.0))}
        return [self.query(one.query_id, path) for one in by_name.values()]

    def query(self, wanted: str | None, path: str, slots: int | None = None) -> RunningQuery:
        """Return the requested query."""
        told = [one for one in self.queries.values() if one.triggers]
        there = [one for one in told if one.batches] or told
        found = [one for one in there if wanted is None or wanted in (one.name, one.query_id)]
        names = ", ".join(f"{one.name} ({one.query_id})" if one.name else one.query_id for one in there) or "none"
        if not found:
            broken = f", but {self.left_out}" if self.broken else ""
            raise WorkbenchError(
                f"The log {path} has no batches of {'a streaming query' if wanted is None else repr(wanted)}{broken}; "
                f"queries with some are: {names}. Give the log of the driver that runs the query."
            )
        if len(found) > 1:
            raise WorkbenchError(
                f"The log {path} has {len(found)} streaming queries: {names}. Name one of them, or its id.",
                settings=("query",),
            )
        (seen,) = found
        self._close(seen)
        batches = tuple(seen.batches if slots is None else (replace(one, slots=slots) for one in seen.batches))
        local = self.properties.get("spark.master", "").startswith("local") and "driver" in self.executors
        cores = max(self.sizes, key=lambda one: (self.sizes[one], one), default=1)  # of most executors
        running = RunningQuery(
            seen.name or seen.query_id,
            self.application,
            self.spark,
            batches,
            tuple(selected(seen.blocks)),
            trigger_interval([(batch.start_s, batch.batch_s) for batch in batches], sorted({*seen.idle})),
            slot_memory_mb(self.properties, cores // self.task_cpus, local=local),
            float(self.task_cpus),
            seen.cpu_s / seen.ran_s if seen.ran_s else None,
            seen.sources,
            seen.sink,
            tuple(seen.runs),
            seen.triggers,
            seen.states.summary(),
            None if (failure := self.events.failure(seen.query_id)) is None else shown(failure),
            self._facts(seen, len(there), usual_slots(batches)),
        )
        if running.ends and not batches and seen.early:  # its runs end while code warms up: that is part of them
            return replace(running, batches=tuple(replace(one, slots=slots or one.slots) for one in seen.early))
        return running

    def _facts(self, seen: _Seen, queries: int, slots: int) -> dict[str, str]:
        settings = {"master": "spark.master", "shuffle partitions": "spark.sql.shuffle.partitions"}
        told = {name: shown(self.properties[key]) for name, key in settings.items() if key in self.properties}
        if self.broken:
            told["left out"] = self.left_out
        if queries > 1:
            told["others"] = f"{queries} queries share the slots, which are all taken for this one's"
        blocks = [block for block in seen.blocks if block.slots == slots]
        reading = max((block.source_partitions for block in blocks), default=0)
        if reading and (reading < slots or any(block.partitions != block.source_partitions for block in blocks)):
            told["source partitions"] = f"{reading:,}"
        if 0 < reading < slots:
            remedy = "set the source's option minPartitions" if any(map(is_topic, seen.sources)) else "give it more"
            told["source partitions"] += f": more slots than {reading:,} do not speed up reading; {remedy}"
        older = sum(run.batches for run in seen.runs) - len(seen.batches)
        if older > LEFT_OUT * len(seen.runs):
            told["older batches"] = f"{older:,} left out: the latest {len(seen.batches):,} count"
        return told


def _passed(progress: Mapping[str, Any], start_s: float, last: tuple[float, float] | None) -> tuple[float, float]:
    """Seconds since the previous batch began, and ended; inf where that is unknown.

    For a scraped batch, the previous one may not have been seen, but the rate of its rows was.
    """
    if SCRAPED in progress:
        rate = float(progress.get("inputRowsPerSecond") or 0)
        passed_s = rows_of(progress) / rate if rate > 0 else math.inf
        return passed_s, passed_s
    began_s, ended_s = last or (-math.inf, -math.inf)
    return start_s - began_s, start_s - ended_s


def complete(progress: Any) -> dict[str, Any]:  # noqa: ANN401 - of a log
    """Complete a progress event with all fields that are read, where its writer left some out."""
    told: dict[str, Any] = {**progress}
    lasted = told.get("durationMs") or {}
    rows = told.get("numInputRows")
    if "triggerExecution" not in lasted:  # Spark's rate is of that time
        rate = float(told.get("processedRowsPerSecond") or math.inf)
        lasted = {**lasted, "triggerExecution": told.get("batchDuration") or 1000 * float(rows or 0) / rate}
    told["durationMs"] = lasted
    if rows is not None and not any("numInputRows" in source for source in told.get("sources") or ()):
        told["sources"] = [{**next(iter(told.get("sources") or ()), {"description": ""}), "numInputRows": rows}]
    told.setdefault("id", told.get("name") or "query")
    return told


def _left_rows(source: Mapping[str, Any]) -> bool | None:
    """Whether a batch left rows behind; None where its source does not report it."""
    metrics, latest = source.get("metrics") or {}, source.get("latestOffset")
    all_taken = latest is not None and latest == source.get("endOffset")
    said = False if all_taken or str(source.get("description")).lower().startswith("rate") else None  # has no cap
    for name, least in _LEFT.items():
        with suppress(TypeError, ValueError):
            if name in metrics and (said := float(metrics[name]) > least):
                return True
    return said


def _named(sink: str) -> str:
    """Return the class of a sink that is described only as ``package.Class$@1f``."""
    described = re.fullmatch(r"(?:\w+\.)*(\w+)\$?@[0-9a-f]+", sink)
    return described[1] if described else sink
