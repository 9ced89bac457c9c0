"""What crosses the pipe to a driver process, once."""

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.dataflow import Budget
from workbench.testbed.spark.quota import CpuQuota
from workbench.workload import Generator

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Order:
    """What to deploy, and where it lives.

    `folder` holds checkpoint, logs and control files, in memory where the machine permits, so that the latency of
    this machine's disk is no part of a batch; `disk` holds state beyond RocksDB's memory and shuffle files.
    """

    name: str
    build: "Callable[[DataFrame], DataFrame]"
    generator: Generator
    output_mode: str
    budget: Budget
    master: str
    folder: Path
    disk: Path
    quota: CpuQuota | None
    warmup_cap_s: float
    source_partitions: int
    state_partitions: int

    @property
    def slot_cores(self) -> frozenset[int]:
        """Cores that the slots run on: as few as hold them, lowest numbers first.

        On more, tasks that share one core's worth of quota run at once or in turns, as chance has it, and at once they
        slow each other down where the cores are threads of one real core or share its caches.
        """
        allowed = sorted(os.sched_getaffinity(0))
        return frozenset(allowed[: max(1, math.ceil(round(self.budget.cpus, 6)))])
