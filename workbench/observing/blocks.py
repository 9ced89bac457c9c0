"""Consecutive batches of a running query: what their operators did, on which slots and partitions."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from workbench.metrics import Batch, Observation, OperatorMetrics
from workbench.testbed.spark import (
    BatchLog,
    SourceCost,
    executor_paces,
    operator_edges,
    operator_metrics,
)

KEPT_BLOCKS = 60


@dataclass(frozen=True)
class Block:
    """Consecutive batches: what their operators did, on how many slots and partitions.

    Parameters
    ----------
    slots
        Tasks that could run at once.
    partitions
        Of the state, or of the shuffles; of the source where the query has neither.
    observation
        With the source's own partitions where it has others than these, or is a topic.
    """

    slots: int
    partitions: int
    observation: Observation

    @property
    def rows(self) -> float:
        """Source rows of a batch, their mean."""
        return self.observation.consumed_records / max(1, len(self.observation.batches) - 1)

    @property
    def source_partitions(self) -> int:
        """Tasks that read the source, of the scan that has the most; 0 if none was seen."""
        return _reading(self.observation.operators)


def block_of(logs: Sequence[BatchLog], slots: int) -> Block:
    """Sum the work of consecutive batches; the first only marks their start.

    Parameters
    ----------
    logs
        In order.
    slots
        That they ran on.
    """
    whole = logs[1:]
    starts = [log.start_s for log in logs]
    elapsed_s = max(1e-9, starts[-1] - starts[0] + logs[-1].duration_s - logs[0].duration_s)
    due, batches = -logs[0].records, []
    for log, start in zip(logs, starts, strict=True):
        due += log.records
        batches.append(Batch(start, log.duration_s, log.records, float(due), 0.0))
    alike = _alike(whole)
    share = len(alike) / len(whole)
    operators, samples = operator_metrics(alike, share * elapsed_s, 1.0, SourceCost())
    operators = tuple(operator for operator in operators if not operator.is_source)
    edges = operator_edges(alike, [operator.operator for operator in operators])
    partitions = _partitions(operators)
    reading = _reading(operators)
    own = reading if reading and (reading != partitions or _of_topic(alike)) else None
    seen = Observation(elapsed_s=elapsed_s, commanded_rate=due / elapsed_s, batches=tuple(batches),
                       operators=operators, samples=samples, edges=edges, executors=executor_paces(whole),
                       source_partitions=own)  # fmt: skip
    return Block(slots, partitions, seen)


def _partitions(operators: Sequence[OperatorMetrics]) -> int:
    """Give the partitions of the operators that keep state; without any, of those that read no source; or of all."""
    kept = [one.tasks for one in operators if one.keeps_state]
    shuffled = [one.tasks for one in operators if not one.scans]
    return max(kept or shuffled or [one.tasks for one in operators])


def _reading(operators: Sequence[OperatorMetrics]) -> int:
    return max((one.tasks for one in operators if one.scans), default=0)


def _of_topic(logs: Sequence[BatchLog]) -> bool:
    return any(is_topic(str(source.get("description"))) for source in logs[-1].progress["sources"])


def is_topic(source: str) -> bool:
    """Whether a source reads topics, by Spark's description of it."""
    return source.startswith("KafkaV2")


def _alike(logs: Sequence[BatchLog]) -> list[BatchLog]:
    """Give the batches with as many stages as most: a sink that merges or compacts now and then adds some."""
    counts = Counter(len(log.stages) for log in logs)
    most = max(counts, key=lambda stages: (counts[stages], -stages))
    return [log for log in logs if len(log.stages) == most]


def selected(blocks: Iterable[Block]) -> Iterable[Block]:
    """Give at most `KEPT_BLOCKS` of `blocks`, spread evenly over their loads, in the order of these."""
    ordered = sorted(blocks, key=lambda block: block.rows)
    if len(ordered) <= KEPT_BLOCKS:
        return ordered
    return [ordered[round(place * (len(ordered) - 1) / (KEPT_BLOCKS - 1))] for place in range(KEPT_BLOCKS)]
