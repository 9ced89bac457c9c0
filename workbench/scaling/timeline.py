"""What happened in a replay, and its summary: one row of a comparison."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.scaling.policies import Managed, Tasks
from workbench.scaling.waiting import Waits

Floats = NDArray[np.float64]

_AT_TARGET = 0.99
_SPAN_S = 5.0
_ROUNDING_S = 1e-6
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
    window_s
        Of the query; None without windows.
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
    window_s: float | None = None

    @property
    def times_s(self) -> Floats:
        """Begin of every step."""
        return np.arange(len(self.offered), dtype=np.float64) * self.step_s

    def summary(self) -> dict[str, float]:
        """One row of a comparison, by `COLUMNS`.

        ``at_target`` is the share of time in which the sources' queue was short, or was long for no more than a span:
        a window of the query, as sources stand still while windows emit, at least 5 s. Short is up to a hundredth of
        what arrives in a span.

        Latencies are waits at the sources, over all records that arrived (mean, p50, p99, seconds); a record that is
        not consumed by the end counts with its wait until then, the least it can be.

        Then hours of tasks, cores and GB; reconfigurations, bytes of state moved and seconds of downtime until the end
        of the replay; with a price, the cost.
        """
        waits = Waits.of(self.offered * self.step_s, self.consumed * self.step_s, self.step_s)
        hours = self.step_s / 3600
        end_s = len(self.offered) * self.step_s
        row = {
            "at_target": self._at_target(),
            "latency_mean_s": _above_rounding(waits.mean_s),
            "latency_p50_s": _above_rounding(waits.quantile_s(0.5)),
            "latency_p99_s": _above_rounding(waits.quantile_s(0.99)),
            "task_hours": float(self.tasks.sum() * hours),
            "core_hours": float(self.paid_cpus.sum() * hours),
            "gb_hours": float(self.paid_memory_mb.sum() * hours / 1024),
            "reconfigurations": len(self.reconfigurations),
            "moved_bytes": float(sum(change.moved_bytes for change in self.reconfigurations)),
            "downtime_s": float(sum(min(change.downtime_s, end_s - change.at_s) for change in self.reconfigurations)),
        }
        if self.price_per_hour is not None:
            row["cost"] = float(self.workers.sum() * hours * self.price_per_hour)
        return row

    def _at_target(self) -> float:
        """Share of time without the stretches longer than a span in which the backlog was long."""
        span_s = max(_SPAN_S, self.window_s or 0.0)
        long = self.backlog > (1 - _AT_TARGET) * self.offered * span_s + 1e-6
        edges = np.flatnonzero(np.diff(np.concatenate([[False], long, [False]]).astype(int)))
        lengths = edges[1::2] - edges[::2]
        missed = lengths[lengths * self.step_s > span_s * (1 + 1e-9)].sum()
        return float(1 - missed / len(long)) if len(long) else 1.0


def _above_rounding(wait_s: float) -> float:
    """0 for what the sums of a day leave by rounding."""
    return wait_s if wait_s > _ROUNDING_S else 0.0
