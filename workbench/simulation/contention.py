"""Tasks on one worker share its CPU, disk and network.

Each resource of a worker is a server that every record of every task there must pass, in addition to the task's own
time. Below its capacity nothing changes; at its capacity all tasks of the worker together get no further, and each
takes longer for a record than it would alone. Loads are those of CAPSys (Equations 5 and 8) times the records: per
record the CPU seconds, the bytes of state, and the bytes of output that leave the worker. Where a task has two
consumers each gets a full copy, as real systems send; Equation 8 splits one copy over all links.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from workbench import units
from workbench.arrays import Floats, Ints
from workbench.checks import require


@dataclass(frozen=True)
class Worker:
    """Capacity of one worker: cores, and bytes/s of state access and of network output; inf never limits."""

    cpus: float = math.inf
    io_bytes_per_s: float = math.inf
    net_bytes_per_s: float = math.inf

    def __post_init__(self) -> None:
        for name in ("cpus", "io_bytes_per_s", "net_bytes_per_s"):
            value = getattr(self, name)
            require(value > 0, f"A worker's {name} is {value!r}; it must be above 0 (inf never limits).")


@dataclass(frozen=True)
class Cluster:
    """Workers, and how many tasks of each operator run on each: `counts[operator][worker]`.

    The tasks of an operator are numbered worker by worker.
    """

    workers: tuple[Worker, ...]
    counts: Mapping[str, Sequence[int]]

    def __post_init__(self) -> None:
        require(bool(self.workers), "A cluster has no workers; give it at least one.")
        for name, counts in self.counts.items():
            require(
                len(counts) == len(self.workers) and all(count >= 0 for count in counts),
                f"The counts of operator {name!r} are {list(counts)}; give one number from 0 on for each of the "
                f"{len(self.workers)} workers.",
            )

    def worker_of(self, operator: str, tasks: int) -> Ints:
        """Worker of each of the operator's tasks, shape (tasks,)."""
        require(operator in self.counts, f"Operator {operator!r} has no counts in the cluster; place its tasks.")
        placed = np.repeat(np.arange(len(self.workers)), self.counts[operator])
        require(
            len(placed) == tasks,
            f"The cluster places {units.some(len(placed), 'task')} of operator {operator!r}, which has {tasks}; "
            "place all of them.",
        )
        return placed


@dataclass(frozen=True)
class Contention:
    """The load that one record of each task puts on its worker."""

    worker: Ints  # worker of each task, shape (tasks,)
    # use per input record, and per result of a windowed task, shape (3, tasks): CPU seconds, bytes, bytes
    per_record: Floats
    per_result: Floats
    capacity: Floats  # per second, shape (3, workers)

    def seconds(self, records: Floats, results: Floats | None = None, cpu_factor: float = 1.0) -> Floats:
        """Seconds each worker needs for this work, each resource apart, shape (3, workers)."""
        use = self.per_record * records
        if results is not None:
            use += self.per_result * results
        use[0] *= cpu_factor
        workers = self.capacity.shape[1]
        summed = np.stack([np.bincount(self.worker, weights=row, minlength=workers) for row in use])
        return np.asarray(summed / self.capacity)
