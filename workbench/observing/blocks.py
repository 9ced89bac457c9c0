"""Consecutive batches of a running query: what their operators did, on which slots and partitions."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from workbench.metrics import Batch, Observation, OperatorMetrics
from workbench.testbed.spark import BatchLog, SourceCost, executor_paces, operator_edges, operator_metrics

KEPT_BLOCKS = 60


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
