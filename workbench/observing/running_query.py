"""A streaming query as its log shows it: its batches, and the work of its operators in blocks of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from workbench.observing.blocks import Block


@dataclass(frozen=True)
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
        Whether rows were there that it did not take, as far as its sources say (Spark's Kafka source does).
    """

    start_s: float
    batch_s: float
    rows: int
    slots: int
    since_s: float
    idle_s: float
    left_rows: bool = False


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
    starts
        How often it was started.
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
    starts: int = 1
    stopped: str | None = None
    facts: Mapping[str, str] = field(default_factory=dict)

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
