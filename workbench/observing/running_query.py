"""A streaming query as its log shows it: its batches, the work of its operators in blocks of them, its runs and load.

The load is what the query's sources demanded, and what its cap admitted. The rows of a batch arrived since the trigger
before it. Spark logs few of the triggers that found nothing: a query that has waited for longer than its interval had
one just before. A source that releases rows in grains (files, versions of a table, Spark's rate source, whose rows come
once a second) makes batches of one grain or two, whatever its load is. So rates are counted over windows of many
grains: of several sources, of the one that takes longest to bring a grain.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from statistics import median

import numpy as np
from numpy.typing import NDArray

from workbench.arrays import Floats
from workbench.metrics import Batch, Observation, OperatorMetrics
from workbench.observing.state import StateSeen
from workbench.testbed.spark import (
    BatchLog,
    SourceCost,
    alike,
    executor_paces,
    is_topic,
    operator_edges,
    operator_metrics,
    write_cost,
)

_WAITED = 0.05  # share of the triggers that waited; up to it, none waits for a clock
_PAUSE_S, _PAUSED = 30.0, 0.05  # between two runs: a restart takes less, or little of the time
_FULL = 0.9  # of the rows of the largest batch; a batch of more is full
KEPT_BLOCKS = 60
_PEAK = 0.99  # quantile of the rates
_WHOLE = 0.97  # of an interval, over which rows are counted at least
_ALIKE, _RUN = 0.005, 4  # of full batches: share by which they differ, number that follow each other
_GRAINS = 20  # of a window
_SMALLEST, _WHOLES, _FEWEST = 0.02, 0.95, 20  # quantile of the rows that is one grain; share of whole ones; batches
_ADMITTED = 0.9  # quantile of the rates of full batches


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
    common = alike(whole)
    operators, samples = operator_metrics(common, len(common) / len(whole) * elapsed_s, 1.0, SourceCost())
    operators = tuple(operator for operator in operators if not operator.is_source)
    kept = [one.tasks for one in operators if one.keeps_state]
    shuffled = [one.tasks for one in operators if not one.scans]
    partitions = max(kept or shuffled or [one.tasks for one in operators])
    reading = _reading(operators)
    of_topic = any(is_topic(source.get("description")) for source in common[-1].progress["sources"])
    seen = Observation(
        elapsed_s=elapsed_s,
        commanded_rate=due[-1] / elapsed_s,
        batches=tuple(batches),
        operators=operators,
        samples=samples,
        edges=operator_edges(common, [operator.operator for operator in operators]),
        executors=executor_paces(whole),
        source_partitions=reading if reading and (reading != partitions or of_topic) else None,
        writes=write_cost(whole, 1.0) if any(log.jobs for log in whole) else None,
    )
    return Block(slots, partitions, seen)


def _reading(operators: Sequence[OperatorMetrics]) -> int:
    return max((one.tasks for one in operators if one.scans), default=0)


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
        paused = median(pauses or [0.0]) > _PAUSE_S and sum(pauses) > _PAUSED * (self.ended_s - self.runs[0].begun_s)
        return bool(self.runs) and self.at_once and (all(run.finished for run in self.runs) or paused)

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


@dataclass(frozen=True)
class Load:
    """The load of a query, records/s."""

    peak_rate: float  # the 99 % quantile over at least an interval; of batches under their cap, if others are full
    admitted_rate: float | None  # rate of batches as full as they may be; None if no cap shows
    mean_rate: float  # over all of the log


def load_of(batches: Sequence[SeenBatch], interval_s: float) -> Load:
    """Read the load from all batches of a query, whatever number of slots they ran on."""
    rows = np.array([batch.rows for batch in batches], dtype=float)
    left = np.array([batch.left_rows for batch in batches], dtype=bool)
    since = np.array([interval_s if batch.idle_s >= interval_s else batch.since_s for batch in batches])
    begun = np.array([batch.start_s for batch in batches])
    same = np.diff([batch.start for batch in batches], prepend=0) == 0
    same &= np.diff(begun, prepend=begun[0]) >= 0  # unless the clock was set back
    scraped = np.array([batch.scraped for batch in batches])
    whole = np.where(same & ~scraped, np.diff(begun, prepend=begun[0]), since)  # with triggers that found nothing
    passed_s = float(whole[same].sum())
    mean = float(rows[same].sum()) / passed_s if passed_s > 0 else 0.0
    sources = np.array([*zip(*(batch.by_source or (batch.rows,) for batch in batches), strict=False)], dtype=float)
    window_s = max(interval_s, _GRAINS * max(_grain_s(source, same, passed_s) for source in sources))
    rates, full = _arriving(whole if window_s > interval_s else since, rows, window_s), _at_a_cap(rows, left)
    admitted = float(np.quantile(rates[full], _ADMITTED)) if full.any() else None
    return Load(float(np.quantile(rates[~full], _PEAK)), admitted, mean)


def _grain_s(rows: Floats, same: NDArray[np.bool_], passed_s: float) -> float:
    """Seconds in which a source brings a grain, rows that it releases together; 0 if it has no grains.

    Almost all batches hold a multiple of a grain. Batches that are the `same` start's took `passed_s`.
    """
    positive = rows[rows > 0]
    if len(positive) < _FEWEST or not rows[same].any():
        return 0.0
    grain = float(np.quantile(positive, _SMALLEST))
    multiples = np.round(positive / grain)
    whole = np.abs(positive / grain - multiples) <= _ALIKE
    return grain * passed_s / float(rows[same].sum()) if whole.mean() >= _WHOLES else 0.0


def _arriving(since: Floats, rows: Floats, window_s: float) -> Floats:
    """Rate of the load up to each batch, records/s, over as many batches as took a window."""
    until, brought = np.cumsum(since), np.cumsum(rows)
    first = np.searchsorted(until, until - _WHOLE * window_s, side="right")  # the first within
    before = np.maximum(0, np.minimum(first, np.arange(len(rows))))
    passed = until - until[before] + since[before]
    return np.asarray((brought - brought[before] + rows[before]) / passed)


def _at_a_cap(rows: Floats, left: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether each batch is at a cap: several in a row, equally full, none larger, which leave rows behind.

    A load that does not move gives such batches, too, but they leave nothing.
    """
    full = (rows >= rows.max() * (1 - _ALIKE)) & left
    runs = np.split(np.arange(len(rows)), np.flatnonzero(np.diff(full.astype(int))) + 1)
    longest = max((len(run) for run in runs if full[run[0]]), default=0)
    return full if longest >= _RUN and not full.all() else np.zeros_like(full)
