"""The work of operators, summed over blocks of consecutive batches; of these a selection over all loads is kept."""

from collections import Counter
from collections.abc import Sequence

from workbench.metrics import Batch, Observation
from workbench.observing.running_query import Block
from workbench.observing.trigger import fired_s
from workbench.testbed.spark import (
    BatchLog,
    BatchWork,
    SourceCost,
    executor_paces,
    operator_edges,
    operator_metrics,
)

BROKEN = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError)
"""Errors of reading an event that is not as Spark writes it."""

_IN_BLOCK = 10  # batches
_FEWEST_IN_BLOCK = 4
_KEPT = 60


class Blocks:
    """The blocks of a query, as its batches come in; `broken` of them were not as Spark writes them."""

    def __init__(self) -> None:
        self.broken = 0
        self._open: list[tuple[BatchLog, int]] = []
        self._ended: list[Block] = []

    def add(self, log: BatchLog, slots: int) -> None:
        """Take the next batch, and the slots that it ran on: a block has the same throughout."""
        if self._open and self._open[-1][1] != slots:
            self.end()
        self._open.append((log, slots))
        if len(self._open) > _IN_BLOCK:
            self.end()
            self._open.append((log, slots))  # it marks the start of the next

    def end(self) -> None:
        """Sum the block that is open; one that is short, or not as expected, is dropped."""
        block, self._open = self._open, []
        if len(block) <= _FEWEST_IN_BLOCK:
            return
        try:
            self._ended.append(_block([log for log, _ in block], block[0][1]))
        except BROKEN:  # an event that is read only now
            self.broken += 1
        if len(self._ended) >= 2 * _KEPT:
            self._ended = list(_selected(self._ended))

    @property
    def selected(self) -> tuple[Block, ...]:
        """Blocks spread evenly over all loads seen, in the order of these."""
        return tuple(_selected(self._ended))


def _block(logs: Sequence[BatchLog], slots: int) -> Block:
    """Sum the work of consecutive batches; the first only marks their start."""
    whole = logs[1:]
    starts = [fired_s(log.progress["timestamp"]) for log in logs]
    elapsed_s = max(1e-9, starts[-1] - starts[0] + logs[-1].duration_s - logs[0].duration_s)
    due, batches = -logs[0].records, []
    for log, start in zip(logs, starts, strict=True):
        due += log.records
        batches.append(Batch(start, log.duration_s, log.records, float(due), 0.0))
    alike = _alike(whole)
    works, share = [BatchWork(log) for log in alike], len(alike) / len(whole)
    operators, samples = operator_metrics(works, share * elapsed_s, 1.0, SourceCost())
    operators = tuple(operator for operator in operators if not operator.is_source)
    edges = operator_edges(alike, [operator.operator for operator in operators])
    seen = Observation(elapsed_s=elapsed_s, commanded_rate=due / elapsed_s, batches=tuple(batches),
                       operators=operators, samples=samples, edges=edges, executors=executor_paces(whole))  # fmt: skip
    partitions = max(len(stage.tasks) for log in alike for stage in log.stages)
    return Block(slots, partitions, seen)


def _alike(logs: Sequence[BatchLog]) -> list[BatchLog]:
    """Give the batches with as many stages as most: a sink that merges or compacts now and then adds some."""
    counts = Counter(len(log.stages) for log in logs)
    most = max(counts, key=lambda stages: (counts[stages], -stages))
    return [log for log in logs if len(log.stages) == most]


def _selected(blocks: Sequence[Block]) -> Sequence[Block]:
    """Give at most `_KEPT` of `blocks`, spread evenly over their loads, in the order of these."""
    ordered = sorted(blocks, key=lambda block: block.rows)
    if len(ordered) <= _KEPT:
        return ordered
    return [ordered[round(place * (len(ordered) - 1) / (_KEPT - 1))] for place in range(_KEPT)]
