"""The parts of a capacity plan: tasks, partitions, executors, prices, and doubts."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from workbench import bounds
from workbench.advice import Advice
from workbench.checks import not_negative, positive, require, shown, whole, within
from workbench.dataflow import SlotProfile
from workbench.defaults import LEAST_HEAP_MB, ROCKSDB_SHARE
from workbench.errors import WorkbenchError
from workbench.speed import CoreSpeed

MEASURED: Mapping[str, str] = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.adaptive.streaming.stateless.enabled": "false",
    "spark.sql.streaming.minBatchesToRetain": "3",
}
"""Settings of every query: partitions stay as planned, and each batch cleans up after the third before it."""

_STATE = "spark.sql.streaming.stateStore."


def state_settings(rocksdb_mb: int) -> dict[str, str]:
    """Return the settings of the state store of an executor whose RocksDB may use `rocksdb_mb` MiB."""
    return {
        _STATE + "providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        _STATE + "rocksdb.boundedMemoryUsage": "true",
        _STATE + "rocksdb.maxMemoryUsageMB": str(rocksdb_mb),
        _STATE + "rocksdb.trackTotalNumberOfRows": "false",
        _STATE + "rocksdb.changelogCheckpointing.enabled": "false",  # changelogs make the cost swing over 40 batches
    }


ENVIRONMENT_PYTHON = "./environment/bin/python"
"""Path of the Python in an archive of installed packages, where Spark has unpacked it."""


def as_environment(archive: str) -> str:
    """Name an archive as Spark's settings do, so that it is unpacked where `ENVIRONMENT_PYTHON` is."""
    return f"{archive}#environment"


Status = Literal["optimal", "feasible"]
Unbounded = Literal["no input seen", "true rate undefined"]
HOURS_PER_MONTH = 730.0
Concern = Literal[
    "few runs",
    "extrapolation",
    "forms disagree",
    "wide interval",
    "memory not measured",
    "memory at the edge",
    "levels off",
    "hot key",
    "trigger interval",
    "fixed time",
    "late batches",
    "unbounded operators",
    "source share",
    "source partitions",
    "state not known",
    "python workers",
    "keys",
    "batch not explained",
    "runs left out",
    "doubtful runs",
    "cores not dedicated",
    "slow executor",
    "young state",
    "other cores",
]

OVERHEAD_SHARE, LEAST_OVERHEAD_MB = 0.1, 384
"""Memory that Spark adds to an executor for the JVM itself (the defaults of its configuration)."""

DRIVER_CORES, DRIVER_HEAP_MB = 1.0, 1024  # of a driver: as on the testbed
DRIVER_MEMORY_MB = DRIVER_HEAP_MB + LEAST_OVERHEAD_MB  # memory of a driver's container, MiB
_SLACK = 1e-6


@dataclass(frozen=True)
class Allocation:
    """The tasks of each operator, and the rate that they carry."""

    tasks: Mapping[str, int]  # by operator, at least one each
    source_rate: float  # source records/s that they carry: the least of the capacities, inf if nothing bounds it
    # source records/s that each operator's tasks carry, inf for an unbounded one
    capacities: Mapping[str, float] = field(default_factory=dict)
    # operators that bound nothing, with the reason; they have one task. Measure longer where a true rate is undefined
    # although there is input
    unbounded: Mapping[str, Unbounded] = field(default_factory=dict)
    idle_slots: int = 0  # slots left over, because every operator is unbounded
    status: Status = "optimal"  # ``"feasible"``: CBC's time limit ended the search before the optimum was proven

    @property
    def bottleneck(self) -> str | None:
        """The operator of least capacity, the first of several; None if nothing bounds the rate."""
        if math.isinf(self.source_rate):
            return None
        return min(self.capacities, key=self.capacities.__getitem__)

    @property
    def shares(self) -> dict[str, float]:
        """Share of all tasks by operator: in a micro-batch, whose stages take turns, its share of the slots' time."""
        total = sum(self.tasks.values())
        return {name: tasks / total for name, tasks in self.tasks.items()}


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
        for cost in ("fixed_s", "per_record_s", "ratio"):
            not_negative(f"{cost} of stage {self.name!r}", getattr(self, cost))
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
    limit: str = ""  # the largest part of a batch: a stage, the driver or jobs on the table's log; "" if unknown

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


@dataclass(frozen=True)
class Executor:
    """One executor: `slots` slots of `profile` in one container.

    Python workers of a query's own functions are not in it: they take about 150 MiB more per slot.
    """

    slots: int
    profile: SlotProfile

    @property
    def millicores(self) -> int:
        """CPU of the container, thousandths of a core."""
        return math.ceil(1000 * self.slots * self.profile.cpus - _SLACK)

    @property
    def rocksdb_mb(self) -> int:
        """Memory that RocksDB may use, MiB: the same share of the slots' memory as on the testbed."""
        return int(self._slots_mb * ROCKSDB_SHARE)

    @property
    def heap_mb(self) -> int:
        """Heap, MiB."""
        return max(LEAST_HEAP_MB, self._slots_mb - self.rocksdb_mb)

    @property
    def overhead_mb(self) -> int:
        """Memory outside the heap, MiB: RocksDB's, and what Spark adds."""
        return self.rocksdb_mb + max(LEAST_OVERHEAD_MB, math.ceil(OVERHEAD_SHARE * self._slots_mb))

    @property
    def memory_mb(self) -> int:
        """Memory of the container, MiB."""
        return self.heap_mb + self.overhead_mb

    @property
    def _slots_mb(self) -> int:
        return self.slots * self.profile.memory_mb

    def fits(self, cpus: float, memory_mb: float) -> bool:
        """Whether the container fits into these cores and MiB."""
        return self.millicores <= 1000 * cpus + _SLACK and self.memory_mb <= memory_mb + _SLACK


@dataclass(frozen=True)
class InstanceType:
    """One machine type with its price."""

    name: str
    provider: str
    region: str
    vcpus: float
    memory_mb: float
    price_per_hour: float
    currency: str
    source: str
    date: str
    # how many times as fast its cores are as those of the reference machine, as ``workbench speed`` prints it on one
    # like it; None: not known
    core_speed: float | None = None
    # unit, units_per_hour: what the platform charges for (``DBU``, ``vCPU hour``), and how many of them a worker takes
    # in an hour; empty and None where it charges for the hour
    unit: str = ""
    units_per_hour: float | None = None

    def __post_init__(self) -> None:
        for name, low, high in (
            ("vcpus", bounds.LEAST_CPUS, bounds.WORKER_CPUS),
            ("memory_mb", 1, bounds.WORKER_MEMORY_MB),
            ("price_per_hour", bounds.LEAST_PRICE, bounds.PRICE),
            ("core_speed", bounds.LEAST_CORE_SPEED, bounds.CORE_SPEED),
            ("units_per_hour", bounds.LEAST_PRICE, bounds.PRICE),
        ):
            value = getattr(self, name)
            if value is not None or name in {"vcpus", "memory_mb", "price_per_hour"}:
                within(f"{name} of the instance type {shown(self.name)}", value, low, high, ends="[]")
        require(
            (self.units_per_hour is None) == (not self.unit),
            f"The instance type {shown(self.name)} has a unit of its price without how many of them it takes in an "
            "hour, or the other way round; give unit and units_per_hour, or neither.",
        )


@dataclass(frozen=True)
class CountedCores:
    """The cores that a plan uses."""

    measured: CoreSpeed
    # times, low, high: how many times as fast as these the cores counted are, and the ends of the 90 % interval; 1: the
    # same
    times: float = 1.0
    low: float = 1.0
    high: float = 1.0

    @property
    def other(self) -> bool:
        """Whether they differ from those measured."""
        return (self.low, self.times, self.high) != (1.0, 1.0, 1.0)


@dataclass(frozen=True)
class Price:
    """Workers of one type for a number of slots, and their cost."""

    instance: InstanceType
    workers: int
    slots_per_worker: int  # slots that one holds
    per_hour: float
    idle_slots: int  # slots that are paid for and not requested

    @property
    def units(self) -> str:
        """Units of the platform that all workers take in an hour; empty where it charges for the hour."""
        each = self.instance.units_per_hour
        return "" if each is None else f"{self.workers * each:,.4g} {self.instance.unit}/h"

    @property
    def per_month(self) -> float:
        """Price of 730 hours."""
        return self.per_hour * HOURS_PER_MONTH


@dataclass(frozen=True)
class ModelFinding:
    """One thing to know about a model's prediction."""

    concern: Concern
    value: float  # its size: a count, a factor, or a share
    finding: str
    advice: str
    command: str = ""
    settled: bool = False  # whether nothing needs to be done, so that it is not a reason for caution

    @property
    def advised(self) -> Advice:
        """What to do."""
        return Advice(self.advice, self.command)


Level = Literal["safe", "verify first", "risky", "don't rely on it yet"]
"""Risky is a plan whose risk of falling short is too high; to verify is one whose risk is in doubt, for the reason."""


@dataclass(frozen=True)
class PlanVerdict:
    """Whether to deploy a plan unchanged."""

    level: Level
    risk: float | None  # probability that the deployment's capacity is below the rate; None if unknown
    reason: str
    remedy: str  # what to do, in words; empty if nothing needs to be done
    command: str = ""

    @property
    def advised(self) -> Advice:
        """What to do."""
        return Advice(self.remedy, self.command)


@dataclass(frozen=True)
class Outage:
    """An outage to recover from."""

    outage_s: float  # seconds in which nothing is consumed
    catch_up_s: float  # seconds after it within which the backlog must be gone, while the load continues

    def __post_init__(self) -> None:
        for name in ("outage_s", "catch_up_s"):
            positive(name, getattr(self, name))

    @property
    def margin(self) -> float:
        """Capacity over the rate that it takes: the backlog is carried in addition to the load."""
        return 1 + self.outage_s / self.catch_up_s


@dataclass(frozen=True)
class EndingRun:
    """A run that takes a number of rows and ends (``availableNow``), and how long it may last."""

    rows: float
    deadline_s: float  # seconds from its start within which the rows must be done
    start_s: float = 60.0  # seconds of these before its first batch: for workers, application and code

    def __post_init__(self) -> None:
        for name in ("rows", "deadline_s"):
            positive(name, getattr(self, name))
        if not 0 <= self.start_s < self.deadline_s:
            raise WorkbenchError(
                f"start_s is {self.start_s:g}; it must be at least 0 and below the deadline of {self.deadline_s:g} s, "
                "so that time for the rows is left. Allow more time, or lower it."
            )

    @property
    def rate(self) -> float:
        """Records/s that the run takes, including the fixed costs of its batches."""
        return self.rows / (self.deadline_s - self.start_s)

    def lasts_s(self, capacity: float) -> float:
        """Seconds that the run lasts if batches process `capacity`, records/s."""
        return self.start_s + self.rows / capacity if capacity > 0 else math.inf


@dataclass(frozen=True)
class Day:
    """A day's load and the slots that follow it."""

    hours: tuple[float, ...]  # length of each step, in which the slots stay the same; the last may be shorter
    rates: tuple[float, ...]
    slots: tuple[int, ...]  # fewest slots that carry the load, with the plan's margin
    static_slots: int  # slots that carry the peak all day: the plan's
    # cost per hour of whole workers in each step; None without a price list, as `static_cost`, that of the plan's
    costs: tuple[float, ...] | None = None
    static_cost: float | None = None

    def over(self, each: Sequence[float]) -> float:
        """Sum what each step takes per hour over the day, if the deployment follows the load."""
        return sum(hours * amount for hours, amount in zip(self.hours, each, strict=True))
