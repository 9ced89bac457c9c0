"""A streaming query as its log shows it: its batches, and the work of its operators in blocks of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median

from workbench.observing.blocks import Block
from workbench.observing.state import StateSeen

_WAITED = 0.05  # share of the triggers that waited, up to which none waits for a clock
_PAUSE_S = 30.0  # between two runs: a restart takes less


@dataclass(frozen=True, slots=True)
class SeenBatch:
    """A micro-batch of a running query.

    Parameters
    ----------
    start_s
        When its trigger fired, seconds since 1970.
    batch_s
        From the trigger to the commit.
    rows
        Source rows.
    slots
        Tasks that could run at once; 0 if the log does not say.
    since_s, idle_s
        Seconds since the batch before it began, with rows or without; those of them in which none ran. Both are inf
        where the one recorded before it began later, as in progress events that were put together from several files.
    left_rows
        Whether rows were there that it did not take; None where a source does not say.
    number
        Spark's, which goes on over restarts.
    start
        Number of the start of the query that it belongs to.
    scraped
        Whether other batches may have run since the one before it that was seen: `since_s` is that of its own rows.
    by_source
        Rows of each source, where there are several.
    """

    start_s: float
    batch_s: float
    rows: int
    slots: int
    since_s: float
    idle_s: float
    left_rows: bool | None = False
    number: int = 0
    start: int = 1
    scraped: bool = False
    by_source: tuple[int, ...] = ()


@dataclass(frozen=True)
class SeenRun:
    """From one start of a query to its end, its first batches included.

    Parameters
    ----------
    begun_s, ended_s
        When its first batch began and its last one ended, seconds since 1970.
    rows
        That it took.
    batches, largest
        With rows; rows of the largest one.
    waited
        How many triggers did not follow the one before at once.
    asked_s
        When it was started, or its application where it was the first of it; None where the log does not say.
    finished
        Whether it ended by itself, or was stopped between two batches, without an error.
    """

    begun_s: float
    ended_s: float
    rows: int = 0
    batches: int = 0
    largest: int = 0
    waited: int = 0
    asked_s: float | None = None
    finished: bool = False

    def after(self, ended_s: float, rows: int, *, waited: bool) -> "SeenRun":
        """Give the run after one more trigger."""
        return replace(
            self,
            ended_s=max(self.ended_s, ended_s),
            rows=self.rows + rows,
            batches=self.batches + (rows > 0),
            largest=max(self.largest, rows),
            waited=self.waited + waited,
        )


@dataclass(frozen=True)
class RunningQuery:
    """A streaming query as its log shows it.

    Parameters
    ----------
    name
        Its name, or its id if it has none.
    application, spark
        Name of the application; version of Spark.
    batches
        With rows, in order; the first few of each start are left out.
    blocks
        Of them, over all loads seen.
    interval_s
        Trigger interval, seconds; None where the log does not show one.
    memory_mb, cpus
        Of one slot: MiB, cores as the cluster counts them.
    cpu_share
        CPU seconds of the tasks' threads for each second that they ran: what a counted core really was.
    sources, sink
        In Spark's words.
    runs
        Its starts in order.
    triggers
        Progress events, of batches with rows and without.
    states
        Its operators that keep state, in Spark's order.
    stopped
        The error that ended it; None if it runs or was stopped.
    facts
        Further facts in words, by name.
    """

    name: str
    application: str
    spark: str
    batches: tuple[SeenBatch, ...]
    blocks: tuple[Block, ...]
    interval_s: float | None
    memory_mb: int
    cpus: float
    cpu_share: float | None
    sources: tuple[str, ...] = ()
    sink: str = ""
    runs: tuple[SeenRun, ...] = ()
    triggers: int = 0
    states: tuple[StateSeen, ...] = ()
    stopped: str | None = None
    facts: Mapping[str, str] = field(default_factory=dict)

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
        """Whether its triggers followed each other at once, so that no trigger interval is longer than its batches."""
        return self.interval_s is None and sum(run.waited for run in self.runs) <= _WAITED * self.triggers

    @property
    def ends(self) -> bool:
        """Whether its runs take what there is and end (``availableNow``, ``once``), to be started again later."""
        pauses = [after.begun_s - before.ended_s for before, after in pairwise(self.runs)]
        if not self.at_once or not self.runs:
            return False
        if not pauses:
            return self.runs[0].finished
        return median(pauses) > _PAUSE_S or all(run.finished for run in self.runs)

    @property
    def slots(self) -> int:
        """Slots of most batches, see `usual_slots`."""
        return usual_slots(self.batches)

    @property
    def usual_blocks(self) -> tuple[Block, ...]:
        """Those on the slots of most batches: after a restart there may be other partitions, too."""
        return tuple(block for block in self.blocks if block.slots == self.slots)


def usual_slots(batches: Sequence[SeenBatch]) -> int:
    """Give the slots that most of `batches` ran on; ties go to the count met last, and where none is known it is 0."""
    counts: dict[int, int] = {}
    for batch in batches:
        if batch.slots:
            counts[batch.slots] = counts.get(batch.slots, 0) + 1
    return max(reversed(counts), key=lambda slots: counts[slots], default=0)
