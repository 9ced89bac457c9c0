"""Every metric with its name, unit, range and meaning; and the values of one observation.

``OperatorMetrics`` describes one operator during an observation, ``Batch`` one micro-batch, and ``Observation``
everything a testbed recorded at a commanded rate. Rates are in records/s, times in seconds, sizes in bytes,
shares are fractions of 1.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from workbench import units
from workbench.speed import CoreSpeed


@dataclass(frozen=True)
class Metric:
    """One entry of the vocabulary; `low` and `high` bound its values."""

    name: str
    unit: str
    low: float
    high: float
    meaning: str


_NONNEGATIVE = (0.0, math.inf)
_SHARE = (0.0, 1.0)

_VOCABULARY = (
    Metric("tasks", "tasks", 1, math.inf, "most tasks of the operator that ran at once"),
    Metric("records_in", "records", *_NONNEGATIVE, "records the operator's tasks read"),
    Metric("records_out", "records", *_NONNEGATIVE, "records the operator's tasks wrote"),
    Metric(
        "useful_s", "s", *_NONNEGATIVE, "task seconds spent on records, without source cost, throttling and scheduling"
    ),
    Metric("busyness", "share", *_SHARE, "useful seconds / (tasks x elapsed seconds)"),
    Metric("true_processing_rate", "records/s per task", *_NONNEGATIVE, "records in / useful seconds"),
    Metric(
        "cpu_s", "s", *_NONNEGATIVE, "CPU seconds of the operator's tasks, with Python workers and garbage collection"
    ),
    Metric("shuffle_bytes", "bytes", *_NONNEGATIVE, "bytes written to the shuffle, compressed"),
    Metric(
        "state_bytes",
        "bytes",
        *_NONNEGATIVE,
        "bytes read from and written to state, before compression; undefined if the store does not count them",
    ),
    Metric("state_rows_updated", "rows", *_NONNEGATIVE, "state rows written"),
    Metric("state_kept_bytes", "bytes", *_NONNEGATIVE, "state in files at the end, which a new deployment loads"),
    Metric("cache_hit_rate", "share", *_SHARE, "block cache hits / look-ups; undefined if the state fits the memtable"),
    Metric("state_latency_s", "s", *_NONNEGATIVE, "mean seconds of one state read"),
    Metric("key_skew", "ratio", 1, math.inf, "records of the fullest task / mean records per task"),
    Metric("fixed_s", "s per task", *_NONNEGATIVE, "a of seconds = a + b x records, one task of one micro-batch"),
    Metric("per_record_s", "s per record", *_NONNEGATIVE, "b of seconds = a + b x records"),
)

SOURCE = "source"
"""The kind of an operator that is a source."""

METRICS: Mapping[str, Metric] = MappingProxyType({metric.name: metric for metric in _VOCABULARY})


@dataclass(frozen=True)
class OperatorMetrics:
    """One operator during an observation; see ``METRICS`` for the unit of each field.

    ``None`` means undefined (a stateless operator has no cache hit rate), never zero. DS2's identity
    ``records_in / elapsed_s = busyness x true_processing_rate x tasks`` holds by construction.
    `scans` says that the operator reads the source, `runs_python` that it runs the query's Python functions.
    """

    operator: str
    kind: str
    tasks: int
    records_in: int
    records_out: int
    useful_s: float
    busyness: float
    true_processing_rate: float | None
    cpu_s: float
    shuffle_bytes: int
    state_bytes: int | None = None
    state_rows_updated: int | None = None
    cache_hit_rate: float | None = None
    state_latency_s: float | None = None
    key_skew: float | None = None
    scans: bool = False
    runs_python: bool = False
    state_kept_bytes: int | None = None

    @property
    def is_source(self) -> bool:
        """Whether it is the source itself."""
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
    """One completed micro-batch.

    Parameters
    ----------
    start_s
        When the source released its rows, seconds on the testbed's clock.
    duration_s
        From the trigger to the commit.
    records
        Rows it consumed.
    due
        Total rows that had become due when it was released.
    backlog
        Rows due but not yet released right after its release.
    """

    start_s: float
    duration_s: float
    records: int
    due: float
    backlog: float


SOURCE_MARGIN = 1.2
"""A source limits a run unless it alone can release this many times the commanded rate."""


@dataclass(frozen=True)
class InputRows:
    """What one of several inputs gave during an observation.

    Parameters
    ----------
    name
        The argument of the query's function that it feeds.
    records
        Rows of it that the complete batches read, each once.
    backlog
        Rows of it that were due but not released at the end: its part of the backlog, as of the records.
    operators
        Those that read it.
    selectivity
        Records that these give for each that they read; None where they read other inputs too.
    """

    name: str
    records: int
    backlog: float
    operators: tuple[str, ...] = ()
    selectivity: float | None = None


MAX_DISTURBANCE = 0.05
"""Share of all cores above which interference counts."""


@dataclass(frozen=True)
class Disturbance:
    """Interference during an observation, as shares of all cores.

    `steal` is taken by other virtual machines and `other_load` by other processes. `throttled` is the share of the
    quota periods in which an outer quota throttled the measurement. `slowdown` is the share by which the slots' cores
    were slower than in the deployment's fastest observation so far. `open` is the share of the slots' own quota periods
    in which they had some quota left: where they used all of it, others cannot have taken any.
    """

    steal: float = 0.0
    other_load: float = 0.0
    throttled: float = 0.0
    slowdown: float = 0.0
    open: float = 1.0

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
        left = f", and the slots had quota left in {units.percent(self.open, 1)} of the time" if self.open < 1 else ""
        return f"Others took {units.percent(taken, 1)} of the machine{left}"


SLOW_EXECUTOR = 1.3
"""Times as long as the others for the same records from which an executor is slow."""


@dataclass(frozen=True)
class ExecutorPace:
    """How long an executor's tasks took.

    Parameters
    ----------
    executor, host
        Spark's number of the executor, and where it ran.
    times
        Their seconds / the seconds that the other executors took for as many records of the same stages.
    """

    executor: str
    host: str
    times: float

    @property
    def sentence(self) -> str:
        """How slow it was."""
        return f"Executor {self.executor} on {self.host} took {self.times:.1f} times as long as the others per record"


def slow_executors(paces: Sequence[ExecutorPace]) -> list[ExecutorPace]:
    """Give the executors that were slow, the slowest first."""
    return sorted((one for one in paces if one.times >= SLOW_EXECUTOR), key=lambda one: (-one.times, one.executor))


@dataclass(frozen=True)
class WriteCost:
    """What writing a batch takes: to the sink, and to the checkpoint; seconds.

    What the sink adds is the difference to batches of the same query that go to Spark's noop sink, without a quota.
    With the noop sink nothing is added.

    Parameters
    ----------
    outside_s
        Of a batch, for the driver alone between its offsets and its commit: it starts tasks, and commits to the sink.
    log_s
        Of a batch: the driver writes its offsets and its commit to the checkpoint.
    state_s
        In which one partition commits its state, as part of its task; None without state.
    batch_s
        What the sink adds to the driver's seconds of a batch.
    task_s
        What it adds to each task that writes, whatever its rows.
    record_s
        What it adds to the tasks for each record that the query reads.
    written
        Rows written for each of these records; None where Spark does not count them.
    growth_s
        By which each batch took longer than the one before, apart from its rows; 0 where that is less than its doubt.
    batches
        Batches that the growth rests on, from an empty sink.
    jobs_s
        Of all tasks together, in the jobs that the sink runs of its own in a batch, as Delta does to read its log.
    """

    outside_s: float
    log_s: float
    state_s: float | None = None
    batch_s: float | None = None
    task_s: float | None = None
    record_s: float | None = None
    written: float | None = None
    growth_s: float = 0.0
    batches: int = 0
    jobs_s: float | None = None


@dataclass(frozen=True)
class Observation:
    """Everything a testbed recorded at one commanded rate.

    The complete batches of the observation are ``batches[1:]``. The first batch only marks their start, so that
    the rows due between two releases are compared with the rows released between them, and no batch is cut.

    Parameters
    ----------
    commanded_rate
        Records/s requested from the source; inf if the testbed offers the maximum rate that fits the interval.
    elapsed_s
        From the first release to the last.
    batches
        In order; all completed.
    operators
        Sums over the complete batches.
    samples
        Mean work per task, one entry per operator and batch.
    source_rate_limit
        The highest rate (records/s) that the source alone can release under this budget; inf if unknown.
    quota_throttled
        Share of the quota periods in which the slots' own quota throttled them; None without a quota.
    disturbance
        Interference by other load on the machine.
    dropped_late
        Share of the rows reaching the state that were dropped as later than the watermark allows.
    cores
        How fast the slots' cores were, the median of many timings; None if that was not timed.
    edges
        Edges between operators by name, (upstream, downstream); empty if the testbed does not report them.
    executors
        How fast each executor was; empty if there was one, or if the testbed does not report it.
    source_partitions
        Partitions of the topic that were read, or in a log of any source that has others than what follows it; None
        where the source has as many as it is asked for.
    compiling
        Cores that the just-in-time compilers of driver and executors used: code that is being compiled gets faster.
    writes
        What writing took; None where the testbed does not report it.
    inputs
        What each input gave, where the query has several.
    """

    commanded_rate: float
    elapsed_s: float
    batches: tuple[Batch, ...]
    operators: tuple[OperatorMetrics, ...] = ()
    samples: tuple[TaskSample, ...] = ()
    source_rate_limit: float = math.inf
    quota_throttled: float | None = None
    disturbance: Disturbance = Disturbance()
    dropped_late: float = 0.0
    cores: CoreSpeed | None = None
    edges: tuple[tuple[str, str], ...] = ()
    executors: tuple[ExecutorPace, ...] = ()
    source_partitions: int | None = None
    compiling: float = 0.0
    writes: WriteCost | None = None
    inputs: tuple[InputRows, ...] = ()

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
    """Cost of the rate-limited source alone, which the operators' costs exclude.

    Parameters
    ----------
    fixed_s
        CPU seconds of one task of one batch, for any number of rows.
    per_record_s
        CPU seconds per record.
    rate_limit
        Records/s it can release under the budget if the query does nothing else; inf if unknown.
    """

    fixed_s: float
    per_record_s: float
    rate_limit: float
