"""One streaming query under load, inside the driver process, and how many rows its next batch gets.

Batches soon last one trigger interval. While the code is cold, or the query is light, rows hardly matter to the seconds
of a batch, and its size leaps. Where rows matter, the line through the last batches says how many fill the interval.
"""

import math
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from workbench.errors import QueryError, WorkbenchError
from workbench.metrics import Batch
from workbench.testbed.spark.cluster import cause_of, names_in, remove
from workbench.testbed.spark.driver.feed import ReplayFeed, TopicFeed, overtaken
from workbench.testbed.spark.driver.session import DeploymentSpec, Turn
from workbench.testbed.spark.log.event_log import BatchLog, EventLog
from workbench.testbed.spark.log.operators import line, not_read
from workbench.testbed.spark.machine.quota import CpuQuota, family, process_cpu_s
from workbench.workload import Command, Release

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LEAST_BATCH_ROWS = 10
MEMORY = 6  # batches behind the fitted line
LEAP, GROWTH, DAMPED = 8.0, 2.0, 1.25
"""Largest growth from one batch to the next: while rows hardly matter, where they matter, and after a full batch."""

_CLEARLY = 1.2  # batch sizes that differ by this factor show the cost of a row
_HARDLY = 0.25  # share of a batch's seconds for its rows, up to which they hardly matter
_NEARLY = 0.8  # of the interval; a batch that takes more is almost long enough
_SMALLER = 2 / 3  # of a first size that overran the interval: the next batch shows the cost of its rows


def fitting_rows(seen: Sequence[tuple[int, float]], interval_s: float) -> int:
    """Return the number of rows with which the next batch lasts one interval.

    The size leaps eightfold while the rows of the last batch took at most a quarter of it. Once a batch of about this
    size has filled the interval it grows in small steps, because what a leap adds to the state makes the query slow
    when it leaves again.
    """
    records, seconds = seen[-1]
    filled = any(took >= interval_s and records / GROWTH <= rows <= GROWTH * records for rows, took in seen)
    last = seen[-MEMORY:]
    smallest, largest = min(rows for rows, _ in last), max(rows for rows, _ in last)
    if largest <= _CLEARLY * smallest:  # one size: its rows may take all of its seconds, or none
        factor = interval_s / max(seconds, 1e-3)
        if filled:
            return _bounded(records * min(DAMPED, max(_SMALLER, factor) if len(seen) == 1 else factor))
        return _bounded(records * min(LEAP, 2 * factor if factor > DAMPED else factor))
    cost = line(last)
    rows_s = cost.per_record_s * records
    fewer = [took for rows, took in last if _CLEARLY * rows < records]
    more = [took for rows, took in last if rows > records]
    free = seconds < _NEARLY * interval_s and max(more, default=0.0) < interval_s
    if free and fewer and seconds <= median(fewer):  # rows cost less than the scatter of batches
        return _bounded(LEAP * records)
    if rows_s <= _HARDLY * seconds and (seconds < _NEARLY * interval_s or cost.fixed_s >= interval_s):
        # Rows for at most one further interval, by a line whose slope may be too small by the scatter of batches.
        most = records + interval_s / max(cost.per_record_s, 1e-12)
        return _bounded(min(LEAP * records, most))
    if cost.fixed_s < interval_s:
        wanted = (interval_s - cost.fixed_s) / cost.per_record_s
    else:
        wanted = records * interval_s / seconds
    growth = DAMPED if filled else max(GROWTH, interval_s / seconds)  # as if rows took all of the seconds
    return _bounded(min(growth * records, max(records / GROWTH, wanted)))


def _bounded(rows: float) -> int:
    return max(LEAST_BATCH_ROWS, int(rows))


def first_rows(turn: Turn, fitted: Mapping[Turn, int]) -> int:
    """Return the rows of a turn's first batches: those `fitted` at its last end, or of the nearest in proportion."""
    if turn in fitted:
        return fitted[turn]

    def share(other: Turn) -> float:
        budget, known = turn.budget, other.budget
        return budget.cpus * budget.interval_s / (known.cpus * known.interval_s)

    nearest = min(fitted, key=lambda other: abs(math.log(share(other))))
    return _bounded(fitted[nearest] * min(1.0, share(nearest)))


POLL_S = 0.05
FIRST_BATCH_ROWS = 2_000
# A batch takes at most this many times the rows expected to fit, so that an overloaded batch ends, too.
MOST_FITTING = 10
# Spark waits ten seconds, and no setting changes that, for the source's Python process: too short on a busy machine.
_SLOW_PYTHON = "Python worker failed to connect back"
_MOST_STARTS = 20
_DATA_LOST = ("failOnDataLoss", "KAFKA_DATA_LOSS", "OffsetOutOfRange", "data may have been lost")
# Signs that a query ended for lack of memory, disk or an answer: on another budget it may run.
_OF_THE_BUDGET = (
    "outofmemory", "memoryerror", "no space left", "executorlost", "fetchfailed", "exited unexpectedly", "it stopped",
    "timed out", "connection", "connect back",
)  # fmt: skip
MOST_UNREAD = 3  # consecutive batches that read none of the released rows: the next will not either


@dataclass
class Meter:
    """CPU seconds of the executor between batches: in total, and its Python workers alone."""

    quota: CpuQuota | None
    executor: int | None  # None on a cluster, whose processes are not seen
    _used: float = 0.0
    _python: float = 0.0

    def used_s(self) -> tuple[float, float]:
        """CPU seconds (total, Python) so far."""
        if self.executor is None:
            return 0.0, 0.0
        workers = self.quota.processes() if self.quota else family(self.executor)
        python = sum(process_cpu_s(pid) for pid in workers if pid != self.executor)
        return self.quota.used_s() if self.quota else python + process_cpu_s(self.executor), python

    def lap(self) -> tuple[float | None, float]:
        """CPU seconds (total, Python) since the last call; the total is None if it is not known."""
        if self.executor is None:
            return None, 0.0
        used, python = self.used_s()
        lap = max(0.0, used - self._used), max(0.0, python - self._python)
        self._used, self._python = used, python
        return lap


@dataclass(frozen=True, kw_only=True)
class CompletedBatch(BatchLog):
    """A committed batch of a live query, with the release that it took."""

    release: Release

    @property
    def batch(self) -> Batch:
        """The batch as an observation reports it."""
        return Batch(self.release.at_s, self.duration_s, self.release.records, self.release.due, self.release.queue)


@dataclass
class LiveQuery:
    """A running query and its feed; at an unlimited rate, batches grow or shrink until they last one interval."""

    spec: DeploymentSpec
    folder: Path
    interval_s: float
    events: EventLog
    feed: ReplayFeed | TopicFeed
    spark: Any
    query: Any = None
    done: list[CompletedBatch] = field(default_factory=list)
    commanded_rate: float = 0.0
    epoch: int = 0  # number of the current command
    rows_fitting: int = FIRST_BATCH_ROWS  # rows expected to fit an interval
    hurried: bool = False  # whether the quota is lifted meanwhile
    _most_rows: int = 0
    _offered: Command | None = None
    _begin: Callable[[], Any] = field(default=lambda: None)
    _starts: int = 1
    _runs: int = 0
    _emptied: int = 0

    def start(self) -> None:
        """Build the query on its feed and start it at rate 0."""
        self.folder.mkdir()
        self.command(0.0)
        frame = self._frame()
        if not self.feed.restarts:
            self._run(frame)

    def _frame(self) -> "DataFrame":
        from pyspark.sql import DataFrame  # noqa: PLC0415 - only the driver process loads Spark

        name = self.spec.name
        rows: Any = self.spec.generator  # what the feed takes
        try:
            streams = self.feed.streams(self.spark, rows, self.spec.source_partitions)
        except Exception as error:
            raise QueryError(
                f"The data of query {name!r} cannot be read by Spark: {_first_line(error)}. "
                "Use column types that Spark has, or convert the data to Parquet."
            ) from error
        try:
            frame = self.spec.build(*streams)
        except QueryError:  # a script reports what it lacks
            raise
        except Exception as error:
            raise QueryError(
                f"The function of query {name!r} failed while it built the query: {_first_line(error)}. "
                "It is called with the streaming input DataFrame and must return a DataFrame; "
                f"the input's columns are {'; '.join(', '.join(stream.columns) for stream in streams)}."
            ) from error
        if not isinstance(frame, DataFrame):
            raise QueryError(
                f"The function of query {name!r} returned {type(frame).__name__}; it must return a DataFrame."
            )
        if not frame.isStreaming:
            raise QueryError(
                f"Query {name!r} has no streaming plan: its result does not read from the DataFrame it was "
                "given. Build it from the function's argument."
            )
        return frame

    def _run(self, frame: "DataFrame") -> None:
        from pyspark.errors import PySparkException  # noqa: PLC0415

        mode = self.spec.output_mode
        writer = (
            frame.writeStream.queryName(self.folder.name)
            .outputMode(mode)
            .option("checkpointLocation", self._checkpoint)
            .trigger(processingTime=f"{self._interval_ms} milliseconds")
        )
        self._begin = lambda: self.spec.writes.begin(writer, self.spark, self._name)
        try:
            self.query = self._begin()
        except PySparkException as error:
            raise QueryError(
                f"Spark refuses query {self.spec.name!r} in output mode {mode!r}: {_first_line(error)}. "
                "Choose a mode the query allows (append needs a watermark for aggregations; try update or complete)."
            ) from error

    def _run_again(self) -> None:
        """Start the query again, from its checkpoint unless its feed begins again; at rate 0 it pauses."""
        self.pause()
        if self.paused:
            return
        if self.feed.starts(self._last_batch()):
            self._drop()
            self._runs += 1
            self._emptied = len(self.done)
        self._run(self._frame())

    def pause(self) -> None:
        """Stop the query until the next command."""
        if self.query is not None:
            self.query.stop()

    @property
    def paused(self) -> bool:
        """Whether the query does not run because nothing is offered to it."""
        return self.feed.restarts and self._offered is not None and not self._offered.max_records

    @property
    def _checkpoint(self) -> str:
        """Place of the checkpoint: another one for each start with an empty state."""
        shared = self.spec.checkpoints
        place = f"{shared}/{self.folder.name}" if shared else self.folder / "checkpoint"
        return f"{place}{self._runs or ''}"

    @property
    def _name(self) -> str:
        return f"{self.folder.name}{self._runs or ''}"

    def _last_batch(self) -> int:
        """Return the number of the last batch that began, according to the checkpoint; -1 if there is none."""
        place = f"{self._checkpoint}/offsets"
        names = names_in(self.spark, place) if self.spec.checkpoints else [one.name for one in Path(place).glob("*")]
        return max((int(name) for name in names if name.isdigit()), default=-1)

    def _drop(self) -> None:
        """Remove the checkpoint and what was written, as far as possible: the rest is removed in the end."""
        if not self.spec.checkpoints:
            shutil.rmtree(self._checkpoint, ignore_errors=True)
        for place in (self.spec.checkpoints and self._checkpoint, self.spec.writes.folder_of(self._name)):
            if place:
                remove(self.spark, place)

    def command(self, rate: float) -> None:
        """Offer `rate` records/s (inf: the maximum rate) from the next batch on, and flush the queue."""
        self.epoch += 1
        carried = self.commanded_rate * self.interval_s
        self.commanded_rate = rate
        fitting = math.isinf(rate)
        if fitting and self.rows_fitting <= GROWTH * carried < math.inf:  # near the rate carried: no leap
            self.rows_fitting = min(self.rows_fitting, max(LEAST_BATCH_ROWS, math.ceil(DAMPED * carried)))
        rows: float = self.rows_fitting if fitting else min(rate * self.interval_s, self._most_rows or math.inf)
        offered = None if fitting else rate
        self._offer(Command(self.epoch, offered, math.ceil(rows), interval_s=self._interval_ms / 1000))

    def fixed_batches(self, rows: int, event_rate: float | None = None) -> None:
        """Release `rows` rows at every trigger, of which `event_rate` have the same second of event time."""
        self.epoch += 1
        self._offer(Command(self.epoch, None, rows, event_rate))

    def _offer(self, command: Command) -> None:
        self._offered = command
        self.feed.offer(command)
        if self.feed.restarts:
            self._run_again()

    def expect(self, rows: int) -> None:
        """Assume that `rows` fit an interval until more is known; this also limits the size of a batch."""
        self.rows_fitting = rows
        self._most_rows = max(self._most_rows, MOST_FITTING * rows)

    @property
    def since_empty(self) -> list[CompletedBatch]:
        """Batches since the state was empty."""
        return self.done[self._emptied :]

    @property
    def _interval_ms(self) -> int:
        return round(self.interval_s * 1000)  # Spark's triggers are in milliseconds

    def take(self, log: BatchLog, executor_s: float | None, python_s: float) -> None:
        """Record a committed batch, and adapt the batch size if the rate is unlimited."""
        release = self.feed.release(log)
        if release is None:
            return
        found, limited = (log.batch_id, log.progress, log.stages), self.spec.quota is not None and not self.hurried
        self.done.append(CompletedBatch(*found, executor_s, python_s, limited, log.jobs, release=release))
        if math.isinf(self.commanded_rate) and release.epoch == self.epoch:
            known = self.done[1:] or self.done  # a query's first batch includes its start
            seen = [(one.batch.records, one.batch.duration_s) for one in known if one.release.epoch == self.epoch]
            self.expect(fitting_rows(seen, self.interval_s))
            if not self.feed.restarts:
                self._offer(Command(self.epoch, None, self.rows_fitting))

    def check(self) -> None:
        """Raise if the query ended on its own; begin its feed again if that is exhausted."""
        if self.paused:
            return
        unread = self.events.unread(self.query.id)
        if len(unread) >= MOST_UNREAD:
            raise not_read(self.spec.name, sum(unread), 0.0)
        failure, active = self.events.failure(self.query.id), self.query.isActive
        if failure is None and active:
            if self.feed.exhausted and self._offered is not None:
                self.epoch += 1
                self._offer(replace(self._offered, epoch=self.epoch))
            return
        if failure is None:
            exception = self.query.exception()
            failure = str(exception) if exception else "it stopped"
        if _SLOW_PYTHON in failure and not self.done and (active or self._starts < _MOST_STARTS):
            self.events.forget_failure(self.query.id)
            if not active:
                self._starts += 1
                self.query = self._begin()
            return
        if any(sign in failure for sign in _DATA_LOST):
            raise overtaken(f"the topic of query {self.spec.name!r}")
        raise failed_at_run_time(self.spec.name, failure)

    def stop(self) -> None:
        """End the query, and drop its checkpoint and what it wrote."""
        self.pause()
        self._drop()


def failed_at_run_time(name: str, failure: str) -> WorkbenchError:
    """Return the error for query `name`, which ended with `failure`; a `QueryError` unless the budget may be why."""
    said = "\n".join(line for line in failure.lower().splitlines() if not line.strip().startswith("at "))
    kind = WorkbenchError if any(sign in said for sign in _OF_THE_BUDGET) else QueryError
    return kind(
        f"Query {name!r} failed at run time: {_root_cause(failure)}. "
        "Fix the query or the data; everything measured so far is kept."
    )


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n", 1)[0].rstrip(".")


def _root_cause(text: str) -> str:
    """Return the line with the cause: the Python error of a worker, else the innermost Java cause."""
    named = [(line.split(":", 1)[0], line) for line in map(str.strip, text.splitlines())]
    python = [line for name, line in named if name.endswith(("Error", "Exception")) and " " not in name]
    chosen = next((line for line in reversed(python) if not line.startswith(("org.", "java."))), None)
    return chosen.rstrip(".")[:500] if chosen else cause_of(text, 500)


def now_s() -> float:
    """Return the time on the testbed's clock, which all processes of this machine share."""
    return time.monotonic()
