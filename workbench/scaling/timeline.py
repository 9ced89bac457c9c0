"""What happened in a replay, and its summary: one row of a comparison."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.scaling.policies import Managed, Tasks

Floats = NDArray[np.float64]

_AT_TARGET = 0.99
COLUMNS = (
    "at_target",
    "latency_mean_s",
    "latency_p50_s",
    "latency_p99_s",
    "task_hours",
    "core_hours",
    "gb_hours",
    "reconfigurations",
    "moved_bytes",
    "downtime_s",
    "cost",
)
"""Of a comparison, in order; the cost only where a price is known."""


@dataclass(frozen=True)
class Reconfiguration:
    """A change of the deployment: when it began, how long nothing ran, bytes of state that moved, and what runs after.

    `managed_mb` is the managed memory of one task by operator; None where memory is not split.
    """

    at_s: float
    downtime_s: float
    moved_bytes: float
    tasks: Tasks
    managed_mb: Managed | None = None


@dataclass(frozen=True, eq=False)
class Timeline:
    """What happened; arrays have one entry per step.

    Parameters
    ----------
    step_s
        Length of a step, seconds.
    offered, consumed
        Records/s.
    backlog
        Records that wait at the end of a step.
    latency_s
        Seconds that the records consumed last in a step had waited at the sources.
    tasks
        Tasks of all operators together.
    reconfigurations
        In order.
    memory_mb
        Memory of one slot at the beginning, MB; 0 if that is not limited.
    paid_cpus, paid_memory_mb
        Cores and memory (MB) that were paid for: those of whole workers, or of the slots alone.
    workers
        Workers paid for.
    price_per_hour
        Of one worker; None if it is not known.
    """

    step_s: float
    offered: Floats
    consumed: Floats
    backlog: Floats
    latency_s: Floats
    tasks: NDArray[np.int64]
    reconfigurations: tuple[Reconfiguration, ...]
    memory_mb: float
    paid_cpus: Floats
    paid_memory_mb: Floats
    workers: NDArray[np.int64]
    price_per_hour: float | None = None

    @property
    def times_s(self) -> Floats:
        """Begin of every step."""
        return np.arange(len(self.offered), dtype=np.float64) * self.step_s

    def summary(self) -> dict[str, float]:
        """One row of a comparison, by `COLUMNS`.

        Share of time in which the backlog was no more than a hundredth of a step's records; latencies weighted by
        records (mean, p50, p99, seconds); hours of tasks, cores and GB; reconfigurations, bytes of state moved and
        seconds of downtime; with a price, the cost.
        """
        within = self.backlog <= (1 - _AT_TARGET) * self.offered * self.step_s + 1e-6
        hours = self.step_s / 3600
        row = {
            "at_target": float(np.mean(within)),
            "latency_mean_s": _weighted_mean(self.latency_s, self.consumed),
            "latency_p50_s": _weighted_quantile(self.latency_s, self.consumed, 0.5),
            "latency_p99_s": _weighted_quantile(self.latency_s, self.consumed, 0.99),
            "task_hours": float(self.tasks.sum() * hours),
            "core_hours": float(self.paid_cpus.sum() * hours),
            "gb_hours": float(self.paid_memory_mb.sum() * hours / 1024),
            "reconfigurations": len(self.reconfigurations),
            "moved_bytes": float(sum(change.moved_bytes for change in self.reconfigurations)),
            "downtime_s": float(sum(change.downtime_s for change in self.reconfigurations)),
        }
        if self.price_per_hour is not None:
            row["cost"] = float(self.workers.sum() * hours * self.price_per_hour)
        return row


def waited(arrivals: Floats, consumed: Floats, step_s: float) -> Floats:
    """Seconds since the record consumed last in each step arrived: first in, first out."""
    ends = np.arange(len(arrivals) + 1) * step_s
    arrived = np.concatenate([[0.0], np.cumsum(arrivals)])
    # Where nothing arrives the curve is flat: the earliest time at which so many had arrived.
    rising = np.concatenate([[True], np.diff(arrived) > 0])
    since = np.interp(np.cumsum(consumed), arrived[rising], ends[rising])
    seconds: Floats = np.maximum(0.0, ends[1:] - since)
    return seconds


def _weighted_mean(values: Floats, weights: Floats) -> float:
    total = float(weights.sum())
    return float(values @ weights / total) if total > 0 else 0.0


def _weighted_quantile(values: Floats, weights: Floats, share: float) -> float:
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    if reached[-1] <= 0:
        return 0.0
    return float(values[order][int(np.searchsorted(reached, share * reached[-1]))])
