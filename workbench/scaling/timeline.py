"""The result of a replay, and its summary: one row of a comparison.

Records wait at the sources for the horizontal distance between cumulative arrivals and consumption. Both curves are
piecewise linear over the steps, and records are consumed first in, first out. Between two break points of either curve
the wait is linear in the record's number, so means and quantiles over records are exact.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from workbench.arrays import Floats, Ints
from workbench.records import DRIVER_CORES, DRIVER_MEMORY_MB
from workbench.scaling._justin import JustinDecision
from workbench.scaling.policies import Managed, Tasks

_HALVINGS = 60
_EVEN = 1e-6  # share of the trigger interval below which a cohort's own waits are one
_ROUNDING = 1e-13  # share of all records
_ROUNDING_S = 1e-6
_AT_TARGET = 0.99
_SPAN_S = 5.0


@dataclass(frozen=True, eq=False)
class Waits:
    """Waits of records in cohorts, shape (cohorts,)."""

    records: Floats  # their number
    first_s: Floats  # waits of the first record
    last_s: Floats  # and of the last
    steps: Ints  # the step in which they are consumed
    trigger_s: float = 0.0  # each record also waits for the next trigger, evenly up to these seconds

    @classmethod
    def of(cls, arrivals: Floats, consumed: Floats, step_s: float) -> "Waits":
        """Calculate the waits of all records; a record not consumed by the end has waited until then, at least.

        `arrivals` and `consumed` are the records of each step, shape (steps,), spread evenly over the step.
        """
        times: Floats = np.arange(len(arrivals) + 1, dtype=np.float64) * step_s
        came = np.concatenate([[0.0], np.cumsum(arrivals)])
        went = np.minimum(np.concatenate([[0.0], np.cumsum(consumed)]), came)
        went, ends = np.append(went, came[-1]), np.append(times, times[-1])  # the rest, at the end
        breaks = np.unique(np.concatenate([came, went]))
        apart = np.diff(breaks) > _ROUNDING * came[-1]
        begin, end = breaks[:-1][apart], breaks[1:][apart]
        middle = (begin + end) / 2
        first_s, last_s = (
            np.maximum(0.0, _time_of(at, middle, went, ends) - _time_of(at, middle, came, times)) for at in (begin, end)
        )
        steps = np.minimum(np.searchsorted(went, middle, side="right") - 1, len(arrivals) - 1)
        return cls(end - begin, first_s, last_s, steps)

    def in_batches(self, batch_s: float, busy: Floats) -> "Waits":
        """Add the wait for the next trigger, evenly up to `batch_s`, and for the end of a batch: `busy` of it."""
        ends_s = batch_s * busy[self.steps]
        return Waits(self.records, self.first_s + ends_s, self.last_s + ends_s, self.steps, batch_s)

    @property
    def mean_s(self) -> float:
        """Mean over records, seconds; 0 without records."""
        total = float(self.records.sum())
        if total <= 0:
            return 0.0
        return float(self.records @ (self.first_s + self.last_s) / 2 / total) + self.trigger_s / 2

    def quantile_s(self, share: float) -> float:
        """Return the least wait that this share of the records does not exceed; 0 without records."""
        if not self.records.size:
            return 0.0
        shortest, longest = np.minimum(self.first_s, self.last_s), np.maximum(self.first_s, self.last_s)
        wanted = share * float(self.records.sum()) * (1 - 1e-12)
        records = self.records
        low, high = 0.0, float(longest.max()) + self.trigger_s
        if not self.trigger_s and float(records @ (longest <= low)) >= wanted:
            return 0.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            within = _within(middle, shortest, longest, self.trigger_s)
            low, high = (low, middle) if float(records @ within) >= wanted else (middle, high)
            ended = longest + self.trigger_s
            below, between = ended <= low, (ended > low) & (shortest <= high)
            wanted -= float(records[below].sum())  # within it at any later middle, and those above at none
            records, shortest, longest = (one[between] for one in (records, shortest, longest))
        return high


def _within(wait_s: float, shortest: Floats, longest: Floats, trigger_s: float) -> Floats:
    """Share of each cohort that waits at most `wait_s`: evenly from shortest to longest, and for the trigger."""
    wide, narrow = np.maximum(longest - shortest, trigger_s), np.minimum(longest - shortest, trigger_s)
    steep = narrow <= _EVEN * wide  # evenly over the wider of the two, from the middle of the other
    late: Floats = np.minimum(wait_s - shortest, wide + narrow)  # beyond, the share is 1, and rounding spoils squares
    whole = np.where(wide > 0, wide, 1.0)
    flat = np.where(wide > 0, np.clip((late - narrow / 2) / whole, 0.0, 1.0), late >= 0)
    narrow = np.where(steep, 1.0, narrow)
    squares = [np.maximum(0.0, late - shift) ** 2 for shift in (0.0, narrow, wide, narrow + wide)]
    both = (squares[0] - squares[1] - squares[2] + squares[3]) / (2 * narrow * whole)
    return np.where(steep, flat, np.clip(both, 0.0, 1.0))


def waited(arrivals: Floats, consumed: Floats, step_s: float) -> Floats:
    """Return the seconds since the arrival of the last record consumed in each step: first in, first out."""
    ends = np.arange(len(arrivals) + 1) * step_s
    arrived = np.concatenate([[0.0], np.cumsum(arrivals)])
    # the curve is flat while nothing arrives: take the earliest time with as many arrivals.
    rising = np.concatenate([[True], np.diff(arrived) > 0])
    since = np.interp(np.cumsum(consumed), arrived[rising], ends[rising])
    seconds: Floats = np.maximum(0.0, ends[1:] - since)
    return seconds


def _time_of(records: Floats, inside: Floats, curve: Floats, times: Floats) -> Floats:
    """Return when a cumulative curve reaches these record numbers, on the piece that contains `inside`."""
    piece = np.searchsorted(curve, inside, side="right") - 1
    height = curve[piece + 1] - curve[piece]
    share = np.clip((records - curve[piece]) / height, 0.0, 1.0)
    seconds: Floats = times[piece] + share * (times[piece + 1] - times[piece])
    return seconds


@dataclass(frozen=True)
class Reconfiguration:
    """A change of the deployment."""

    at_s: float  # when it began
    downtime_s: float  # how long nothing ran
    moved_bytes: float  # state that moved
    tasks: Tasks  # by operator after it
    managed_mb: Managed | None = None  # managed memory of one task after it; None if memory is not split
    # why, by operator, from policies that give reasons
    reasons: Mapping[str, JustinDecision] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, eq=False)
class Timeline:
    """What happened over time; arrays have one entry per step."""

    step_s: float
    offered: Floats  # records/s
    consumed: Floats  # records/s
    backlog: Floats  # records that wait at the end of a step
    # that the last records consumed had waited: at the sources, in micro-batches also for an interval and their batch
    latency_s: Floats
    tasks: Ints  # of all operators together
    reconfigurations: tuple[Reconfiguration, ...]
    memory_mb: float  # of one slot at the beginning; 0 if it is unlimited
    # what was paid: complete workers, or the cores and the memory of the slots only
    paid_cpus: Floats
    paid_memory_mb: Floats
    workers: Ints
    price_per_hour: float | None = None  # of one worker
    window_s: float | None = None  # of the query; None without one
    batch_s: float = 0.0  # trigger interval in micro-batches; 0 without them
    busy: Floats | None = None  # share of a step in which records flowed at full pace: of an interval, its batch

    @property
    def times_s(self) -> Floats:
        """Beginning of every step, seconds."""
        return np.arange(len(self.offered), dtype=np.float64) * self.step_s

    def summary(self) -> dict[str, float]:
        """Return one row of a comparison: hours, bytes, seconds, and the cost if the price is known.

        ``at_target`` is the share of time in which the sources' queue was short, or was long for at most a span. A span
        is a window of the query, because sources stop while windows emit, and at least 5 s. A queue is short up to a
        hundredth of what arrives in a span.

        Latencies are waits at the sources over all records that arrived; in micro-batches also for the next trigger,
        evenly up to one interval, and for the end of the batch. A record that is not consumed by the end counts with
        its wait until then, a lower bound. Downtime counts until the end of the replay.
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
