"""A streaming query as its log shows it: its batches, the work of its operators in blocks of them, and its runs."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from statistics import median

from workbench.metrics import Batch, Observation, OperatorMetrics
from workbench.observing.state import StateSeen
from workbench.testbed.spark import BatchLog, SourceCost, executor_paces, operator_edges, operator_metrics

_WAITED = 0.05  # share of the triggers that waited; up to it, none waits for a clock
_PAUSE_S = 30.0  # between two runs: a restart takes less
_FULL = 0.9  # of the rows of the largest batch; a batch of more is full
KEPT_BLOCKS = 60


@dataclass(frozen=True, slots=True)
class SeenBatch:
    """A micro-batch of a running query."""

    start_s: float  # when its trigger fired, seconds since 1970
    batch_s: float  # seconds from the trigger to the commit
    rows: int  # of all sources
    slots: int  # tasks that could run at once; 0 if the log does not say
    # since_s, idle_s: seconds since the batch before it began, with rows or without; those of them in which none ran.
    # Both are inf where the one recorded before it began later, as in progress events put together from several files.
    since_s: float
    idle_s: float
    left_rows: bool | None = False  # whether it left rows behind; None where a source does not report it
    number: int = 0  # Spark's number, which continues over restarts
    start: int = 1  # number of the query's start that it belongs to
    # whether batches may be missing just before it: `since_s` is then that of its own rows
    scraped: bool = False
    by_source: tuple[int, ...] = ()  # rows of each source, where there are several


@dataclass(frozen=True)
class Block:
    """Consecutive batches: what their operators did, on how many slots and partitions."""

    slots: int  # tasks that could run at once
    partitions: int  # of the state, or else of the shuffles, or else of the source
    observation: Observation  # with the source's own partitions where they differ or it is a topic

    @property
    def rows(self) -> float:
        """Mean source rows of a batch."""
        return self.observation.consumed_records / max(1, len(self.observation.batches) - 1)

    @property
    def source_partitions(self) -> int:
        """Tasks that read the source, in the scan with the most; 0 if none was seen."""
        return _reading(self.observation.operators)


def block_of(logs: Sequence[BatchLog], slots: int) -> Block:
    """Sum the work of consecutive batches on equally many slots, in order; the first only marks their start."""
    first, *whole = logs
    last = logs[-1]
    elapsed_s = max(1e-9, last.start_s - first.start_s + last.duration_s - first.duration_s)
    due = [*accumulate((log.records for log in whole), initial=0)]
    batches = [
        Batch(log.start_s, log.duration_s, log.records, float(until), 0.0) for log, until in zip(logs, due, strict=True)
    ]
    # a sink that merges or compacts now and then adds stages
    counts = Counter(len(log.stages) for log in whole)
    most = max(counts, key=lambda stages: (counts[stages], -stages))
    alike = [log for log in whole if len(log.stages) == most]
    operators, samples = operator_metrics(alike, len(alike) / len(whole) * elapsed_s, 1.0, SourceCost())
    operators = tuple(operator for operator in operators if not operator.is_source)
    kept = [one.tasks for one in operators if one.keeps_state]
    shuffled = [one.tasks for one in operators if not one.scans]
    partitions = max(kept or shuffled or [one.tasks for one in operators])
    reading = _reading(operators)
    of_topic = any(is_topic(str(source.get("description"))) for source in alike[-1].progress["sources"])
    seen = Observation(
        elapsed_s=elapsed_s,
        commanded_rate=due[-1] / elapsed_s,
        batches=tuple(batches),
        operators=operators,
        samples=samples,
        edges=operator_edges(alike, [operator.operator for operator in operators]),
        executors=executor_paces(whole),
        source_partitions=reading if reading and (reading != partitions or of_topic) else None,
    )
    return Block(slots, partitions, seen)


def _reading(operators: Sequence[OperatorMetrics]) -> int:
    return max((one.tasks for one in operators if one.scans), default=0)


def is_topic(source: str) -> bool:
    """Whether a source reads topics, by Spark's description of it."""
    return source.startswith("KafkaV2")


def selected(blocks: Iterable[Block]) -> Iterable[Block]:
    """Return at most `KEPT_BLOCKS` of `blocks`, spread evenly over their loads, in their order."""
    ordered = sorted(blocks, key=lambda block: block.rows)
    if len(ordered) <= KEPT_BLOCKS:
        return ordered
    return [ordered[round(place * (len(ordered) - 1) / (KEPT_BLOCKS - 1))] for place in range(KEPT_BLOCKS)]


@dataclass(frozen=True)
class SeenRun:
    """From one start of a query to its end, its first batches included."""

    # begun_s, ended_s: when its first batch began and its last one ended, seconds since 1970
    begun_s: float
    ended_s: float
    rows: int = 0  # rows that it took
    batches: int = 0  # batches with rows
    largest: int = 0  # rows of the largest batch
    waited: int = 0  # triggers that did not follow the last one at once
    # start of the query, or of the application for its first query; None where the log has none
    asked_s: float | None = None
    finished: bool = False  # whether it ended regularly, or was stopped between two batches, without an error


@dataclass(frozen=True)
class RunningQuery:
    """A streaming query as its log shows it."""

    name: str  # its id if it has no name
    application: str
    spark: str  # version of Spark
    batches: tuple[SeenBatch, ...]  # those with rows, in order, without the first few of each start
    blocks: tuple[Block, ...]  # blocks of its batches, over all loads seen
    interval_s: float | None  # trigger interval, seconds; None where the log shows none
    memory_mb: int  # of one slot, MiB
    cpus: float  # cores of one slot, as the cluster counts them
    cpu_share: float | None  # CPU seconds of tasks per second that they ran: the real size of a counted core
    # sources, sink: in Spark's words
    sources: tuple[str, ...] = ()
    sink: str = ""
    runs: tuple[SeenRun, ...] = ()  # its starts, in order
    triggers: int = 0  # progress events, of batches with rows and without
    states: tuple[StateSeen, ...] = ()  # its operators with state, in Spark's order
    stopped: str | None = None  # the error that ended it; None if it runs or was stopped
    facts: Mapping[str, str] = field(default_factory=dict)  # further facts in words, by name

    @property
    def starts(self) -> int:
        """How often it was started."""
        return len(self.runs)

    @property
    def ended_s(self) -> float:
        """When its last batch ended, seconds since 1970."""
        return self.runs[-1].ended_s if self.runs else 0.0

    @property
    def with_rows(self) -> int:
        """Batches with rows, the first of each start included."""
        return sum(run.batches for run in self.runs)

    @property
    def at_once(self) -> bool:
        """Whether triggers followed each other at once, so that no trigger interval is longer than the batches."""
        return self.interval_s is None and sum(run.waited for run in self.runs) <= _WAITED * self.triggers

    @property
    def ends(self) -> bool:
        """Whether runs take the available rows and end (``availableNow``, ``once``), to be started again later."""
        pauses = [after.begun_s - before.ended_s for before, after in pairwise(self.runs)]
        paused = all(run.finished for run in self.runs) or median(pauses or [0.0]) > _PAUSE_S
        return bool(self.runs) and self.at_once and paused

    @property
    def slots(self) -> int:
        """Slots of most batches, see `usual_slots`."""
        return usual_slots(self.batches)

    @property
    def usual_blocks(self) -> tuple[Block, ...]:
        """Blocks on the slots of most batches: after a restart the partitions may differ, too."""
        return tuple(block for block in self.blocks if block.slots == self.slots)


def usual_slots(batches: Sequence[SeenBatch]) -> int:
    """Return the slots that most of `batches` ran on; of equal counts the last; 0 if none is known."""
    counts = Counter(batch.slots for batch in batches if batch.slots)
    return max(reversed(counts), key=lambda slots: counts[slots], default=0)


@dataclass(frozen=True)
class EndingRuns:
    """What the runs of a query took."""

    runs: int
    # rows, most_rows: of the median run, and of the largest
    rows: int
    most_rows: int
    # lasts_s, most_s: seconds from the first trigger to the last commit, of the same two
    lasts_s: float
    most_s: float
    largest: int  # rows of the largest batch
    # rate, full_s: records/s of its full batches, and the seconds that they last, their median
    rate: float
    full_s: float
    start_s: float | None  # from the start of application or query to the first trigger, median; None if not logged


def ending_runs(runs: Sequence[SeenRun], batches: Sequence[SeenBatch]) -> EndingRuns | None:
    """Summarise all runs that take the available rows and end (``availableNow``, ``once``, pipelines); None: no rows.

    A run lasts what it takes to start, and the seconds of its batches. Where something caps the rows of a batch, all
    but the last are full, so their rows over their seconds is what it works off, whatever a row costs. `batches` are
    those that count; without any, the runs as a whole show the rate.
    """
    taken = sorted((run for run in runs if run.rows), key=lambda run: run.rows)
    if not taken:
        return None
    usual, most = taken[len(taken) // 2], taken[-1]
    full = [one for one in batches if one.rows >= _FULL * max(one.rows for one in batches)]
    passed_s = sum(one.batch_s for one in full) or sum(run.ended_s - run.begun_s for run in taken)
    rows = sum(one.rows for one in full) or sum(run.rows for run in taken)
    starts = [run.begun_s - run.asked_s for run in taken if run.asked_s is not None]
    most_s = most.ended_s - most.begun_s
    return EndingRuns(
        runs=len(taken),
        rows=usual.rows,
        most_rows=most.rows,
        lasts_s=usual.ended_s - usual.begun_s,
        most_s=most_s,
        largest=max(run.largest for run in taken),
        rate=rows / max(1e-3, passed_s),
        full_s=max(1e-3, median(one.batch_s for one in full) if full else most_s),
        start_s=median(starts) if starts else None,
    )
