"""The cost of a configuration: its tasks packed into complete workers of one shape (Justin, section 4.3)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from workbench.checks import SLACK, not_negative, positive, require
from workbench.scaling.policies import Managed, Tasks
from workbench.simulation import Cluster

_Size = tuple[float, float]  # cpus, memory as shares of a worker

# With two resources "largest" has several meanings.
_ORDERS: tuple[Callable[[_Size], float], ...] = (max, sum, lambda size: size[1], lambda size: size[0])


class Paid(NamedTuple):
    """Paid resources at one time: workers, their cores and their memory (MB)."""

    workers: int
    cpus: float
    memory_mb: float


@dataclass(frozen=True)
class WorkerShape:
    """Cores and memory (MB) of one worker for its tasks."""

    cpus: float
    memory_mb: float

    def __post_init__(self) -> None:
        positive("A worker's cpus", self.cpus)
        positive("A worker's memory_mb", self.memory_mb)


class TaskDemand(NamedTuple):
    """Needs of `tasks` equal tasks: the complete memory (MB) and the cores of each."""

    tasks: int
    memory_mb: float
    cpus: float = 1.0


@dataclass(frozen=True)
class Fleet:
    """Workers of one shape, started and stopped as tasks need them, each paid as a whole."""

    shape: WorkerShape  # cores and memory of a worker
    # memory of a task without its managed memory (heap, network, its share of the framework's), MB
    task_memory_mb: float = 0.0
    task_cpus: float = 1.0  # cores of a task
    price_per_hour: float | None = None  # price of one worker; None if unknown
    currency: str = ""  # of the price; empty if unknown

    def __post_init__(self) -> None:
        not_negative("task_memory_mb", self.task_memory_mb)
        not_negative("task_cpus", self.task_cpus)
        if self.price_per_hour is not None:
            not_negative("price_per_hour", self.price_per_hour)

    def paid(self, tasks: Tasks, managed_mb: Managed | None = None, cluster: Cluster | None = None) -> Paid:
        """Return the workers that run these tasks: those of the cluster that have tasks, or else as few as possible."""
        if cluster is not None:
            workers = sum(sum(counts) > 0 for counts in zip(*cluster.counts.values(), strict=True))
        else:
            managed: Managed = managed_mb or {}
            demands = {
                name: TaskDemand(count, self.task_memory_mb + (managed.get(name) or 0.0), self.task_cpus)
                for name, count in tasks.items()
            }
            workers = len(pack_tasks(demands, self.shape))
        return Paid(workers, workers * self.shape.cpus, workers * self.shape.memory_mb)


def pack_tasks(demands: Mapping[str, TaskDemand], shape: WorkerShape) -> list[dict[str, int]]:
    """Pack all tasks into few workers of one shape, and return the tasks of every worker by operator.

    Multidimensional bin packing by best fit decreasing: the largest task first, into the worker that it fills most; a
    new worker if none has room. Of four meanings of "largest" the one with the fewest workers is taken. Ties: operators
    in their order, workers by lowest index.
    """
    sizes = {name: (demand.cpus / shape.cpus, demand.memory_mb / shape.memory_mb) for name, demand in demands.items()}
    for name, demand in demands.items():
        require(
            demand.tasks == 0 or max(sizes[name]) <= 1 + SLACK,
            f"One task of operator {name!r} needs {demand.cpus:g} cores and {demand.memory_mb:,g} MB; a worker has "
            f"{shape.cpus:g} and {shape.memory_mb:,g}. Choose larger workers or a lower memory level.",
        )
    return min((_best_fit(demands, sizes, order) for order in _ORDERS), key=len)


def _best_fit(
    demands: Mapping[str, TaskDemand], sizes: Mapping[str, _Size], order: Callable[[_Size], float]
) -> list[dict[str, int]]:
    workers: list[dict[str, int]] = []
    used: list[_Size] = []
    for name in sorted(demands, key=lambda name: -order(sizes[name])):
        left, size = demands[name].tasks, sizes[name]
        fitting = iter(sorted((-sum(held), index) for index, held in enumerate(used) if _fits(held, size)))
        while left:
            _, chosen = next(fitting, (0.0, len(workers)))
            if chosen == len(workers):
                workers.append({})
                used.append((0.0, 0.0))
            # The next equal task fits best here too, because this worker has become fuller.
            while left and _fits(used[chosen], size):
                workers[chosen][name] = workers[chosen].get(name, 0) + 1
                used[chosen] = (used[chosen][0] + size[0], used[chosen][1] + size[1])
                left -= 1
    return workers


def _fits(held: _Size, size: _Size) -> bool:
    return held[0] + size[0] <= 1 + SLACK and held[1] + size[1] <= 1 + SLACK
