"""The stages of a micro-batch and the partitions that a plan gives them."""

from collections.abc import Mapping
from dataclasses import dataclass

from workbench.checks import not_negative, require, whole


@dataclass(frozen=True)
class Stage:
    """A stage of a query, the chain between two exchanges, and what its tasks cost."""

    name: str  # unique within its query
    # seconds of one task = fixed_s + per_record_s x its records. A state store's commit is part of the fixed seconds
    fixed_s: float
    per_record_s: float
    ratio: float = 1.0  # records into it per source record, after partial aggregation, which depends on the batch size
    # whether it keeps state: all such stages share one partition count, as does one that reads a shuffle Spark itself
    # puts in (a batch-side join, say) without a ``repartition``; mark it alike
    stateful: bool = False
    source: bool = False
    max_partitions: int | None = None  # the most it can have, such as the partitions of a topic; None: no limit

    def __post_init__(self) -> None:
        require(bool(self.name), "A stage's name is empty; give it a name.")
        for field in ("fixed_s", "per_record_s", "ratio"):
            not_negative(f"{field} of stage {self.name!r}", getattr(self, field))
        require(
            not (self.stateful and self.source),
            f"Stage {self.name!r} is both source and stateful; Spark reads state behind a shuffle, so these are two "
            "stages.",
        )
        if self.max_partitions is not None:
            whole(f"max_partitions of stage {self.name!r}", self.max_partitions)

    def seconds(self, partitions: int, slots: int, source_records: float) -> float:
        """Seconds of the stage in a batch of `source_records`: waves of equal tasks."""
        waves = -(-partitions // slots)
        return waves * (self.fixed_s + self.ratio * source_records / partitions * self.per_record_s)


@dataclass(frozen=True)
class BatchLayout:
    """Partitions for every stage, and the batch times they give over the slot counts asked for."""

    stages: tuple[Stage, ...]
    partitions: Mapping[str, int]  # by stage name; the same number for all stateful ones
    batch_s: Mapping[int, float]  # seconds of a batch by slot count
    best_s: Mapping[int, float]  # the same if the layout were made for this slot count alone
    interval_s: float
    rate: float = 0.0  # records/s at which a batch fills the interval, by the costs of its parts; 0: unknown
    limit: str = ""  # the largest part of a batch: a stage, or the driver; "" if unknown

    @property
    def late(self) -> tuple[int, ...]:
        """Slot counts at which a batch takes longer than the trigger interval."""
        return tuple(slots for slots, seconds in self.batch_s.items() if seconds > self.interval_s)

    @property
    def stateful_partitions(self) -> int | None:
        """The common partition count of all stateful stages; None if there are none."""
        return next((self.partitions[stage.name] for stage in self.stages if stage.stateful), None)

    @property
    def source_partitions(self) -> dict[str, int]:
        """Partitions of the sources by stage name: an option of each source."""
        return {stage.name: self.partitions[stage.name] for stage in self.stages if stage.source}

    @property
    def repartitions(self) -> dict[str, int]:
        """Counts for ``repartition(count)`` before each stateless stage that is not a source, by stage name."""
        return {
            stage.name: self.partitions[stage.name] for stage in self.stages if not (stage.source or stage.stateful)
        }

    def spark_conf(self) -> dict[str, str]:
        """Return the part of the layout that is Spark configuration.

        With state: ``spark.sql.shuffle.partitions``, read at the first start and frozen in the checkpoint. Without:
        the adaptive execution of stateless queries, which may change partition counts, is switched off. Source
        partitions and ``repartition`` counts are set in the source's options and the query.
        """
        if self.stateful_partitions is not None:
            return {"spark.sql.shuffle.partitions": str(self.stateful_partitions)}
        return {"spark.sql.adaptive.streaming.stateless.enabled": "false"}
