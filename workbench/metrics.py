"""The values of one observation: every metric with its meaning, and with its range where that is not 0 and above.

Rates are in records/s, times in seconds, sizes in bytes, shares are fractions of 1.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from workbench import units
from workbench.speed import CoreSpeed

SOURCE = "source"  # the kind of an operator that is a source


@dataclass(frozen=True)
class OperatorMetrics:
    """One operator during an observation.

    ``None`` means undefined (a stateless operator has no cache hit rate), never zero. DS2's identity
    ``records_in / elapsed_s = busyness x true_processing_rate x tasks`` holds by construction.
    """

    operator: str
    kind: str
    tasks: int  # most that ran at once, at least 1
    records_in: int  # that its tasks read
    records_out: int  # that its tasks wrote
    useful_s: float  # task seconds spent on records, without source cost, throttling and scheduling
    busyness: float  # useful seconds / (tasks x elapsed seconds), at most 1
    true_processing_rate: float | None  # records in / useful seconds: records/s per task
    cpu_s: float  # CPU seconds of its tasks, with Python workers and garbage collection
    shuffle_bytes: int  # written to the shuffle, compressed
    state_bytes: int | None = None  # read from and written to state, before compression, where the store counts
    state_rows_updated: int | None = None  # state rows written
    cache_hit_rate: float | None = None  # block cache hits / look-ups, at most 1; undefined if state fits the memtable
    state_latency_s: float | None = None  # mean seconds of one state read
    key_skew: float | None = None  # records of the fullest task / mean records per task, at least 1
    scans: bool = False  # whether it reads the source
    runs_python: bool = False  # whether it runs the query's Python functions
    state_kept_bytes: int | None = None  # state in files at the end, which a new deployment loads
    keys: tuple[str, ...] = ()  # columns that its shuffle goes by, under each name from the source on, if reported
    partial_sums: bool = False  # whether rows are aggregated before it: a key is one row of a task, a group and a batch

    @property
    def is_source(self) -> bool:
        """Whether the operator is the source itself."""
        return self.kind == SOURCE

    @property
    def keeps_state(self) -> bool:
        """Whether its tasks keep state between records."""
        return self.state_bytes is not None or self.state_rows_updated is not None

    @property
    def selectivity(self) -> float | None:
        """Records out per record in; None without input."""
        return self.records_out / self.records_in if self.records_in else None


@dataclass(frozen=True)
class TaskSample:
    """Mean work of one task of one operator in one micro-batch; seconds = a + b x records is fitted to these points."""

    operator: str
    records: float
    seconds: float


@dataclass(frozen=True)
class Batch:
    """One completed micro-batch."""

    start_s: float  # when the source released its rows, on the testbed's clock
    duration_s: float  # from the trigger to the commit
    records: int  # rows it consumed
    due: float  # total rows that had become due when it was released
    backlog: float  # rows due but not yet released right after its release


SOURCE_MARGIN = 1.2  # a source limits a run unless it alone can release this many times the commanded rate


@dataclass(frozen=True)
class InputRows:
    """What one of several inputs contributed during an observation."""

    name: str  # the argument of the query's function that it feeds
    records: int  # rows of it that the complete batches read, each once
    backlog: float  # rows of it that were due but not released at the end
    operators: tuple[str, ...] = ()  # operators that read it
    selectivity: float | None = None  # their records out per record in; None where they read other inputs too


@dataclass(frozen=True)
class HeldRows:
    """What joins or deduplications hold whose rows stay far longer than a batch takes."""

    kind: str  # "join" or "deduplicate", as in the names of operators
    rows: float  # in their states, mean over the batches
    stays_s: float  # that a source row stays in them, seconds of event time; 0: none entered


MAX_DISTURBANCE = 0.05  # share of all cores above which interference counts


@dataclass(frozen=True)
class Disturbance:
    """Interference during an observation, as shares of all cores."""

    steal: float = 0.0  # taken by other virtual machines
    other_load: float = 0.0  # taken by other processes
    throttled: float = 0.0  # of the quota periods: in which an outer quota throttled the measurement
    slowdown: float = 0.0  # of the slots' cores against the deployment's fastest observation so far
    open: float = 1.0  # share of the slots' own quota periods with quota left; in the others, nobody took any from them

    @property
    def worst(self) -> float:
        """The largest of the shares, as far as it can have slowed the slots."""
        return max(self.open * max(self.steal, self.other_load), self.throttled, self.slowdown)

    @property
    def sentence(self) -> str:
        """The largest share, as the start of a sentence."""
        if self.slowdown == self.worst > 0:
            slower = units.percent(self.slowdown, 1)
            return f"The slots' cores were {slower} slower than in the deployment's fastest observation"
        taken = max(self.steal, self.other_load, self.throttled)
        left = f", and the slots had quota left {units.percent(self.open, 1)} of the time" if self.open < 1 else ""
        return f"Others took {units.percent(taken, 1)} of the machine{left}"


SLOW_EXECUTOR = 1.3  # an executor is slow if its tasks take this many times as long as the others' for the same records


@dataclass(frozen=True)
class ExecutorPace:
    """How long an executor's tasks took."""

    executor: str  # its number in Spark
    host: str
    times: float  # as long as the other executors, for as many records of the same stages

    @property
    def sentence(self) -> str:
        """A sentence on how slow the executor was."""
        return f"Executor {self.executor} on {self.host} took {self.times:.1f} times as long as the others per record"


def slow_executors(paces: Sequence[ExecutorPace]) -> list[ExecutorPace]:
    """Return the executors that were slow, the slowest first."""
    return sorted((one for one in paces if one.times >= SLOW_EXECUTOR), key=lambda one: (-one.times, one.executor))


@dataclass(frozen=True)
class WriteCost:
    """What writing a batch takes: to the sink, and to the checkpoint; seconds.

    What the sink adds is the difference to batches of the same query that go to Spark's noop sink, without a quota.
    With the noop sink nothing is added. Errors are standard errors; None where they are unknown.
    """

    outside_s: float  # of a batch: only the driver works, between its offsets and its commit: starts tasks, commits
    log_s: float  # of a batch: the driver writes its offsets and its commit to the checkpoint
    state_s: float | None = None  # one partition's commit of its state, as part of its task; None without state
    batch_s: float | None = None  # what the sink adds to the driver's seconds of a batch
    task_s: float | None = None  # what it adds to each task that writes, whatever its rows
    record_s: float | None = None  # what it adds to the tasks for each record that the query reads
    written: float | None = None  # rows written for each of these records; None where Spark does not count them
    growth_s: float = 0.0  # by which a batch outlasts the one before with as many rows; 0 if within the error
    batches: int = 0  # batches behind `growth_s`, from an empty sink on
    jobs_s: float | None = None  # slot seconds of a batch's jobs on the table's log, as Delta's
    batch_error_s: float | None = None
    task_error_s: float | None = None
    record_error_s: float | None = None
    jobs_error_s: float | None = None
    # tasks of these jobs that run at once, where there are slots for them; None: the jobs are among the operators
    jobs_at_once: float | None = None

    @property
    def own_jobs(self) -> tuple[float, float]:
        """Slot seconds of the jobs on a table's log in a batch, which no operator counts, and tasks of them at once."""
        return (0.0, 1.0) if self.jobs_at_once is None else (self.jobs_s or 0.0, self.jobs_at_once)


@dataclass(frozen=True)
class Observation:
    """Everything a testbed recorded at one commanded rate.

    The complete batches of the observation are ``batches[1:]``. The first batch only marks their start, so that
    the rows due between two releases are compared with the rows released between them, and no batch is cut.
    """

    commanded_rate: float  # requested from the source; inf: the testbed offers the maximum that fits the interval
    elapsed_s: float  # from the first release to the last
    batches: tuple[Batch, ...]  # in order; all completed
    operators: tuple[OperatorMetrics, ...] = ()  # sums over the complete batches
    samples: tuple[TaskSample, ...] = ()  # one per operator and batch
    source_rate_limit: float = math.inf  # highest rate that the source alone can release here; inf if unknown
    quota_throttled: float | None = None  # share of its periods in which the slots' own quota throttled; None without
    disturbance: Disturbance = Disturbance()
    dropped_late: float = 0.0  # share of the rows reaching the state that were later than the watermark allows
    cores: CoreSpeed | None = None  # of the slots, the median of many timings; None if not timed
    edges: tuple[tuple[str, str], ...] = ()  # (upstream, downstream) by name; empty if not reported
    executors: tuple[ExecutorPace, ...] = ()  # empty if there was one, or if not reported
    source_partitions: int | None = None  # of a topic, or of a log's source where known; None: as requested
    compiling: float = 0.0  # cores of the just-in-time compilers: code that is being compiled gets faster
    writes: WriteCost | None = None  # None where not reported
    inputs: tuple[InputRows, ...] = ()  # where the query has several
    lacking_s: float = 0.0  # by which batches would be longer if the state, which still grew, had its working size
    held: tuple[HeldRows, ...] = ()  # by kind; empty: unknown, or rows stay no longer than a warm-up

    @property
    def lasting(self) -> tuple[Batch, ...]:
        """The batches, as long as they will be once the state has its working size."""
        if not self.lacking_s:
            return self.batches
        return tuple(replace(batch, duration_s=batch.duration_s + self.lacking_s) for batch in self.batches)

    @property
    def busy_s(self) -> float:
        """Slot seconds of the operators, and of jobs that no operator counts."""
        own_s = 0.0 if self.writes is None else self.writes.own_jobs[0] * len(self.batches[1:])
        return own_s + sum(operator.useful_s for operator in self.operators)

    @property
    def due_records(self) -> float:
        """Rows that became due between the first and the last release."""
        return self.batches[-1].due - self.batches[0].due if self.batches else 0.0

    @property
    def consumed_records(self) -> int:
        """Rows of the complete batches."""
        return sum(batch.records for batch in self.batches[1:])

    @property
    def offered_rate(self) -> float:
        """Records/s that became due on the source's clock."""
        return self.due_records / self.elapsed_s if self.elapsed_s > 0 else 0.0

    @property
    def consumed_rate(self) -> float:
        """Records/s consumed over the complete batches."""
        return self.consumed_records / self.elapsed_s if self.elapsed_s > 0 else 0.0


@dataclass(frozen=True)
class SourceProfile:
    """Cost of the rate-limited source alone, in CPU seconds, which the operators' costs exclude."""

    fixed_s: float  # of one task of one batch, for any number of rows
    per_record_s: float
    rate_limit: float  # it can release under the budget if the query does nothing else; inf if unknown
