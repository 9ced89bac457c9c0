"""The result of a replay, and its summary: one row of a comparison."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from workbench.arrays import Floats, Ints
from workbench.records import DRIVER_CORES, DRIVER_MEMORY_MB
from workbench.scaling._justin import JustinDecision
from workbench.scaling.policies import Managed, Tasks
from workbench.scaling.waiting import Waits

_AT_TARGET = 0.99
_SPAN_S = 5.0
_ROUNDING_S = 1e-6


@dataclass(frozen=True)
class Reconfiguration:
    """A change of the deployment.

    Parameters
    ----------
    at_s, downtime_s
        When it began, and how long nothing ran, seconds.
    moved_bytes
        State that moved.
    tasks, managed_mb
        Tasks by operator after it, and the managed memory of one task, MB; None if memory is not split.
    reasons
        Why, by operator, from policies that give reasons.
    """

    at_s: float
    downtime_s: float
    moved_bytes: float
    tasks: Tasks
    managed_mb: Managed | None = None
    reasons: Mapping[str, JustinDecision] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, eq=False)
class Timeline:
    """What happened over time; arrays have one entry per step.

    Parameters
    ----------
    step_s
        Length of a step, seconds.
    offered, consumed
        Records/s.
    backlog
        Records that wait at the end of a step.
    latency_s
        Seconds that the last records consumed in a step had waited: at the sources, and in micro-batches for a whole
        trigger interval and the end of their batch.
    tasks
        Tasks of all operators together.
    reconfigurations
        All changes, in order.
    memory_mb
        Memory of one slot at the beginning, MB; 0 if it is unlimited.
    paid_cpus, paid_memory_mb
        Cores and memory (MB) that were paid: those of complete workers, or of the slots only.
    workers
        Workers that were paid.
    price_per_hour
        Price of one worker; None if unknown.
    window_s
        Window of the query, seconds; None without windows.
    batch_s
        Trigger interval of a query in micro-batches, seconds; 0 without batches.
    busy
        Share of each step in which records flowed at full pace: of a trigger interval, its batch.
    """

    step_s: float
    offered: Floats
    consumed: Floats
    backlog: Floats
    latency_s: Floats
    tasks: Ints
    reconfigurations: tuple[Reconfiguration, ...]
    memory_mb: float
    paid_cpus: Floats
    paid_memory_mb: Floats
    workers: Ints
    price_per_hour: float | None = None
    window_s: float | None = None
    batch_s: float = 0.0
    busy: Floats | None = None

    @property
    def times_s(self) -> Floats:
        """Beginning of every step, seconds."""
        return np.arange(len(self.offered), dtype=np.float64) * self.step_s

    def summary(self) -> dict[str, float]:
        """Return one row of a comparison.

        ``at_target`` is the share of time in which the sources' queue was short, or was long for at most a span. A span
        is a window of the query, because sources stop while windows emit, and at least 5 s. A queue is short up to a
        hundredth of what arrives in a span.

        Latencies are waits at the sources over all records that arrived (mean, p50, p99, seconds); in micro-batches a
        record also waits for the next trigger, evenly up to one interval, and for its batch to end. A record that is
        not consumed by the end counts with its wait until then, a lower bound.

        Then follow hours of tasks, cores and GB; reconfigurations, bytes of state moved and seconds of downtime until
        the end of the replay; and the cost if the price is known.
        """
        waits = Waits.of(self.offered * self.step_s, self.consumed * self.step_s, self.step_s)
        if self.batch_s > 0:
            waits = waits.in_batches(self.batch_s, np.ones(len(self.offered)) if self.busy is None else self.busy)
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

    def with_driver(self) -> dict[str, float]:
        """Return the row of `summary` with the driver in its hours and cost: it runs all the time.

        Where workers have a price, the driver costs as much per core.
        """
        row = self.summary()
        hours = len(self.offered) * self.step_s / 3600
        driver = DRIVER_CORES * hours
        if "cost" in row and row["core_hours"]:
            row["cost"] += driver * row["cost"] / row["core_hours"]
        row["core_hours"] += driver
        row["gb_hours"] += DRIVER_MEMORY_MB / 1024 * hours
        return row

    def _at_target(self) -> float:
        """Return the share of time without the stretches of long backlog that exceed a span."""
        span_s = max(_SPAN_S, self.window_s or 0.0)
        long = self.backlog > (1 - _AT_TARGET) * self.offered * span_s + 1e-6
        edges = np.flatnonzero(np.diff(np.concatenate([[False], long, [False]]).astype(int)))
        lengths = edges[1::2] - edges[::2]
        missed = lengths[lengths * self.step_s > span_s * (1 + 1e-9)].sum()
        return float(1 - missed / len(long)) if len(long) else 1.0


def _above_rounding(wait_s: float) -> float:
    """Return 0 for a wait that is only the rounding error of a day's sums."""
    return wait_s if wait_s > _ROUNDING_S else 0.0
