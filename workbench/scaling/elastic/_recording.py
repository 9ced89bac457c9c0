"""Input and output of a simulated operator: the source, latencies, totals, and a series by the second."""

import math

import numpy as np

from workbench.arrays import Floats
from workbench.scaling.elastic._queues import QueueStep
from workbench.simulation import RateTrace

_PER_DECADE = 200  # a bin is 1.2 % wide
_LEAST, _DECADES = 1e-6, 12
_BINS = _PER_DECADE * _DECADES


class LatencyRecord:
    """Weighted latencies on a logarithmic scale; the mean is exact, a quantile is right within 1.2 %."""

    def __init__(self) -> None:
        self._weights = np.zeros(_BINS)
        self._sum = 0.0

    def add(self, latency_s: Floats, weight: Floats) -> None:
        """Add records, `weight` of each latency."""
        place = np.log10(np.maximum(latency_s, _LEAST) / _LEAST) * _PER_DECADE
        self._weights += np.bincount(np.minimum(place.astype(np.int64), _BINS - 1), weight, _BINS)
        self._sum += float(latency_s @ weight)

    @property
    def mean(self) -> float:
        """Mean seconds; nan without records."""
        total = float(self._weights.sum())
        return self._sum / total if total else math.nan

    def quantile(self, share: float) -> float:
        """Return the seconds that `share` of the records do not exceed; nan without records."""
        total = float(self._weights.sum())
        if not total:
            return math.nan
        place = int(np.searchsorted(np.cumsum(self._weights), share * total * (1 - 1e-12)))
        return float(_LEAST * 10 ** ((min(place, _BINS - 1) + 1) / _PER_DECADE))


class Source:
    """Records by the clock, first in, first out; without a rate, as many as back-pressure admits."""

    def __init__(self, rate: RateTrace | None, step_s: float) -> None:
        self.sent = 0.0
        self.wait_s = 0.0  # of the oldest record that is due
        self._step_s = step_s
        self._due = None if rate is None else np.concatenate([[0.0], np.cumsum(rate.per_step(step_s))])

    def offered(self, step: int) -> float:
        """Return the records due by the end of a step and not yet sent; inf without a rate."""
        if self._due is None:
            return math.inf
        oldest = int(np.searchsorted(self._due, self.sent + 1e-6, side="right")) - 1
        self.wait_s = max(0.0, (step - oldest) * self._step_s)
        return max(0.0, self._due_by(step + 1) - self.sent)

    def demand(self, step: int, window_s: float, counted: float) -> float | None:
        """Return the records due in the last window over those `counted`, at least 1; None for a source held back."""
        if self._due is None or self.wait_s > window_s:
            return None
        due = self._due_by(step + 1) - self._due_by(max(0, step + 1 - round(window_s / self._step_s)))
        return max(1.0, due / counted) if counted else 1.0

    def waiting(self, steps: int) -> float:
        """Return the records due and not sent after `steps`; 0 without a rate."""
        return 0.0 if self._due is None else max(0.0, self._due_by(steps) - self.sent)

    def _due_by(self, step: int) -> float:
        return 0.0 if self._due is None else float(self._due[min(step, len(self._due) - 1)])


class Totals:
    """Sums over steps."""

    def __init__(self) -> None:
        self.latency = LatencyRecord()
        self.served = self.remote_bytes = self.cores = 0.0

    def add(self, step: QueueStep, latency_s: Floats, cores: int) -> None:
        """Add a step in which `cores` were in use."""
        self.latency.add(latency_s, step.weight)
        self.served += step.served
        self.remote_bytes += step.remote_bytes
        self.cores += cores


class Series:
    """Throughput and mean latency of every second."""

    def __init__(self, step_s: float) -> None:
        self._step_s, self._steps = step_s, max(1, round(1 / step_s))
        self._taken, self._served, self._waited, self._sent = 0, 0.0, 0.0, 0.0
        self._rows: list[tuple[float, float, float]] = []

    def add(self, step: QueueStep, latency_s: Floats) -> None:
        """Add a step; the last second counts only if it is complete."""
        self._taken += 1
        self._served += step.served
        self._waited += float(latency_s @ step.weight)
        self._sent += step.admitted
        if self._taken % self._steps == 0:
            mean = self._waited / self._sent if self._sent else math.nan
            self._rows.append((self._taken * self._step_s, self._served / (self._steps * self._step_s), mean))
            self._served = self._waited = self._sent = 0.0

    def columns(self) -> tuple[Floats, Floats, Floats]:
        """Return the ends of the seconds, records/s, seconds of latency."""
        ends, throughput, latency = np.array(self._rows).reshape(-1, 3).T
        return ends, throughput, latency
