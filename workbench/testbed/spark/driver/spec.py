"""The specification of a deployment, which crosses the pipe to its driver process once, and where it writes."""

import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.dataflow import Budget
from workbench.records import FUNCTION, NOOP, JobSettings
from workbench.testbed.spark.cluster import Cluster
from workbench.testbed.spark.driver.feed import TopicRows
from workbench.testbed.spark.machine.quota import CpuQuota
from workbench.workload import Generator

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

_CATALOG, _ICEBERG = "workbench", "org.apache.iceberg.spark.SparkCatalog"


@dataclass(frozen=True)
class Writes:
    """Where the queries of a deployment write."""

    kind: str = NOOP  # a key of `workbench.records.MODES`
    place: str = ""  # a folder of the deployment, as Hadoop names it, or the address of a topic
    call: Callable[..., Any] | None = None  # called by ``foreachBatch``, with `place` if there is one
    options: Mapping[str, str] = field(default_factory=dict)  # options of Spark's sink

    @property
    def folder(self) -> str:
        """The folder that is removed with the deployment; "" if there is none."""
        return "" if self.kind == "kafka" else self.place

    def folder_of(self, name: str) -> str:
        """Name the folder of the query `name`; "" if it has none."""
        return self.folder and f"{self.folder}/{name}"

    def begin(self, writer: "DataStreamWriter", spark: "SparkSession", name: str) -> "StreamingQuery":
        """Start the query `name` of `writer`, which writes to a place of its own."""
        own = self.folder_of(name)
        if self.kind == FUNCTION and self.call is not None:
            return writer.foreachBatch(partial(self.call, place=own) if own else self.call).start()
        writer = writer.format(self.kind).options(**self.options)
        if self.kind == "iceberg":
            for key, value in {"": _ICEBERG, ".type": "hadoop", ".warehouse": self.folder}.items():
                spark.conf.set(f"spark.sql.catalog.{_CATALOG}{key}", value)
            return writer.toTable(f"{_CATALOG}.measured.{name}")
        return (writer.option("path", own) if own else writer).start()


@dataclass(frozen=True)
class Turn:
    """A smaller or equal budget with a turn in a warm deployment, and its numbers of partitions."""

    budget: Budget
    source_partitions: int
    state_partitions: int


@dataclass(frozen=True, kw_only=True)
class DeploymentSpec(Turn):
    """What to deploy, its folders, and the turn that it begins with.

    `folder` holds checkpoint, logs and control files, in memory if the machine permits it, so that batches do not
    include the latency of this machine's disk. `disk` holds shuffle files and state beyond RocksDB's memory. On a
    cluster, and where the job says so, checkpoints are in `checkpoints`, a folder of the deployment's own, instead.
    `writes` is where its queries write. `asked_rate` is as `SparkTestbed` takes it. `settings` are what the job brings
    along, `jars` its jars with those of its packages, on this machine, and `connector` those of Kafka's, if used.
    `inputs` names the inputs where `generator` is several.
    """

    name: str
    build: "Callable[..., DataFrame]"
    generator: Generator | TopicRows | tuple[Generator, ...]
    output_mode: str
    cluster: Cluster | None
    folder: Path
    disk: Path
    quota: CpuQuota | None
    warmup_cap_s: float
    asked_rate: float = 0.0
    checkpoints: str = ""
    settings: JobSettings = field(default_factory=JobSettings)
    jars: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    connector: tuple[str, ...] = ()
    writes: Writes = field(default_factory=Writes)

    @property
    def places(self) -> dict[str, str]:
        """Folders of the deployment that are removed with it, by the key of a study that they are in."""
        return {key: place for key, place in (("sink", self.writes.folder), ("checkpoint", self.checkpoints)) if place}

    @property
    def slot_cores(self) -> frozenset[int]:
        """Cores that the slots run on, of those that this process may use."""
        return slot_cores(self.budget, os.sched_getaffinity(0))


def slot_cores(budget: Budget, allowed: Iterable[int]) -> frozenset[int]:
    """Cores that the slots of `budget` run on: the fewest of `allowed` that hold them, lowest numbers first.

    On more cores, tasks that share one core's quota would run at once or in turns by chance. At once, they slow each
    other down if the cores are threads of one physical core or share its caches.
    """
    return frozenset(sorted(allowed)[: max(1, math.ceil(round(budget.cpus, 6)))])
