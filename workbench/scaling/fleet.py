"""The cost of a configuration: its tasks packed into complete workers of one shape (Justin, section 4.3)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from workbench.checks import not_negative
from workbench.scaling.packing import TaskDemand, WorkerShape, pack_tasks
from workbench.scaling.policies import Managed, Tasks
from workbench.simulation import Cluster


class Paid(NamedTuple):
    """Paid resources at one time: workers, their cores and their memory (MB)."""

    workers: int
    cpus: float
    memory_mb: float


@dataclass(frozen=True)
class Fleet:
    """Workers of one shape, started and stopped as tasks need them, each paid as a whole.

    Parameters
    ----------
    shape
        Cores and memory of a worker.
    task_memory_mb
        Memory of a task without its managed memory (heap, network, its share of the framework's), MB.
    task_cpus
        Cores of a task.
    price_per_hour
        Price of one worker; None if unknown.
    currency
        Of the price; empty if unknown.
    """

    shape: WorkerShape
    task_memory_mb: float = 0.0
    task_cpus: float = 1.0
    price_per_hour: float | None = None
    currency: str = ""

    def __post_init__(self) -> None:
        not_negative("task_memory_mb", self.task_memory_mb)
        not_negative("task_cpus", self.task_cpus)
        if self.price_per_hour is not None:
            not_negative("price_per_hour", self.price_per_hour)

    def paid(self, tasks: Tasks, managed_mb: Managed | None = None, cluster: Cluster | None = None) -> Paid:
        """Return the workers that run these tasks: those of the cluster that have tasks, or else as few as possible."""
        if cluster is not None:
            totals = [sum(counts) for counts in zip(*cluster.counts.values(), strict=True)]
            workers = sum(total > 0 for total in totals)
        else:
            workers = pack_tasks(self.demands(tasks, managed_mb), self.shape).workers
        return Paid(workers, workers * self.shape.cpus, workers * self.shape.memory_mb)

    def demands(self, tasks: Tasks, managed_mb: Managed | None = None) -> dict[str, TaskDemand]:
        """Return the needs of the tasks of each operator, including managed memory."""
        given: Mapping[str, float | None] = managed_mb or {}
        return {
            name: TaskDemand(count, self.task_memory_mb + (given.get(name) or 0.0), self.task_cpus)
            for name, count in tasks.items()
        }
