"""Tasks of unequal memory in workers of one shape: how many complete workers a configuration needs (Justin, 4.3).

Multidimensional bin packing by best fit decreasing: the largest task first, into the worker that it fills most; a new
worker if none has room. With two resources "largest" has several meanings. Four are tried, and the packing with the
fewest workers is returned.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from workbench.checks import SLACK, not_negative, positive, require, whole

_Size = tuple[float, float]  # cpus, memory as shares of a worker


@dataclass(frozen=True)
class WorkerShape:
    """Cores and memory (MB) of one worker for its tasks."""

    cpus: float
    memory_mb: float

    def __post_init__(self) -> None:
        positive("A worker's cpus", self.cpus)
        positive("A worker's memory_mb", self.memory_mb)


@dataclass(frozen=True)
class TaskDemand:
    """Needs of `tasks` equal tasks: the complete memory (MB) and the cores of each."""

    tasks: int
    memory_mb: float
    cpus: float = 1.0

    def __post_init__(self) -> None:
        whole("tasks of a TaskDemand", self.tasks, 0)
        not_negative("memory_mb of a TaskDemand", self.memory_mb)
        not_negative("cpus of a TaskDemand", self.cpus)


@dataclass(frozen=True)
class Packing:
    """Tasks packed into complete workers.

    Parameters
    ----------
    counts
        Per operator, its tasks on each worker.
    workers
        Workers in use.
    started
        Workers in use that were not running before.
    bound
        Lower bound of the workers of any packing.
    shape
        Shape of every worker.
    """

    counts: Mapping[str, tuple[int, ...]]
    workers: int
    started: int
    bound: int
    shape: WorkerShape

    @property
    def cpus(self) -> float:
        """Cores of the workers, including unused ones."""
        return self.workers * self.shape.cpus

    @property
    def memory_mb(self) -> float:
        """Memory of the workers, including unused memory, MB."""
        return self.workers * self.shape.memory_mb


def pack_tasks(demands: Mapping[str, TaskDemand], shape: WorkerShape, running: int = 0) -> Packing:
    """Pack all tasks into few workers of one shape.

    Ties: operators in their order, workers by lowest index. The same input gives the same packing.
    """
    whole("running", running, 0)
    sizes = {name: (demand.cpus / shape.cpus, demand.memory_mb / shape.memory_mb) for name, demand in demands.items()}
    for name, demand in demands.items():
        require(
            demand.tasks == 0 or max(sizes[name]) <= 1 + SLACK,
            f"One task of operator {name!r} needs {demand.cpus:g} cores and {demand.memory_mb:,g} MB; a worker has "
            f"{shape.cpus:g} and {shape.memory_mb:,g}. Choose larger workers or a lower memory level.",
        )
    packings = [_best_fit(demands, sizes, order) for order in _ORDERS]
    best = min(packings, key=len)
    totals = [sum(demands[name].tasks * sizes[name][d] for name in demands) for d in range(2)]
    return Packing(
        {name: tuple(worker.get(name, 0) for worker in best) for name in demands},
        len(best),
        max(0, len(best) - running),
        math.ceil(max(totals) - SLACK * max(1.0, *totals)),
        shape,
    )


_ORDERS: tuple[Callable[[_Size], float], ...] = (
    max,
    sum,
    lambda size: size[1],
    lambda size: size[0],
)


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
