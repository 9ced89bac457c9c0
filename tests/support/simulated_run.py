"""A micro-batch run with a known truth: batch time = fixed + per record x rows, one batch at a time, no sleeping.

A batch starts at the next multiple of the interval, or at once if the one before was late (Lindley's recursion);
it takes at most one interval's worth of rows. Time passes only in ``observe``. Estimates on it read its clock.
"""

import math
from collections.abc import Callable

from workbench.dataflow import Budget, SlotProfile
from workbench.measuring import CapacityEstimator
from workbench.metrics import Batch, Disturbance, Observation


class SimulatedRun:
    def __init__(
        self,
        *,
        fixed_s: float = 0.2,
        per_record_s: float = 1e-4,
        interval_s: float = 2.0,
        noise: Callable[["SimulatedRun"], float] = lambda _run: 1.0,
        source_limit: float = math.inf,
        disturbed: Callable[["SimulatedRun"], float] = lambda _run: 0.0,
        offered: Callable[[float], float] = lambda rate: rate,
        slowdown: Callable[[float], float] = lambda _rate: 1.0,
        warm_rows: Callable[[int], int] | None = None,
        start: float = 0.0,
        wait_s: float = 0.0,
    ) -> None:
        self.budget = Budget(1, SlotProfile(1.0, 1024), interval_s)
        self.fixed_s, self.per_record_s, self.interval_s = fixed_s, per_record_s, interval_s
        self.noise, self.disturbed, self.offered, self.slowdown = noise, disturbed, offered, slowdown
        self.source_limit = source_limit
        self.warm_rows = warm_rows
        self.now = start
        self.trigger = start
        self.rate = self.real_rate = 0.0
        self.due_base = self.since = self.released = 0.0
        self.commands: list[tuple[float, float]] = []
        self.attempts: dict[float, int] = {}
        self.waits: list[float] = []
        self.wait_s = wait_s
        self.batch_number = 0
        self.in_flight: Batch | None = None

    @property
    def truth(self) -> float:
        """Rate whose batches take exactly the interval."""
        return (self.interval_s - self.fixed_s) / self.per_record_s / self.interval_s

    def clock(self) -> float:
        return self.now

    def set_rate(self, rate: float) -> None:
        self.due_base = self.released = self._due(self.now)
        self.rate, self.since = rate, self.now
        self.real_rate = self.offered(rate)
        self.commands.append((self.now, rate))
        self.attempts[rate] = self.attempts.get(rate, 0) + 1
        self.batch_number = 0

    def settle(self, seconds: float) -> None:
        if seconds > 0:
            self.observe(seconds)

    def await_quiet(self, most_s: float) -> None:
        self.waits.append(most_s)
        self.settle(min(most_s, self.wait_s))

    def _due(self, at: float) -> float:
        return self.due_base + (0.0 if math.isinf(self.real_rate) else self.real_rate * (at - self.since))

    def _batch(self) -> Batch:
        start = self.trigger
        self.batch_number += 1
        if math.isinf(self.rate):
            rows = max(1000, round(self.truth * self.interval_s))
            if self.warm_rows is not None:
                rows = self.warm_rows(self.batch_number)
            self.due_base += rows
            due = self.due_base
        else:
            due = self._due(start)
            rows = min(math.floor(due - self.released + 1e-6), math.ceil(self.rate * self.interval_s - 1e-6))
        self.released += rows
        seconds = (self.fixed_s + self.per_record_s * rows) * self.slowdown(self.rate) * self.noise(self)
        boundary = (math.floor(start / self.interval_s + 1e-9) + 1) * self.interval_s
        self.trigger = max(boundary, start + seconds)
        return Batch(start, seconds, rows, due, max(0.0, due - self.released))

    def observe(self, seconds: float) -> Observation:
        until = self.now + seconds
        seen: list[Batch] = []
        while True:
            batch = self.in_flight or self._batch()
            self.in_flight = None
            end = batch.start_s + batch.duration_s
            if end > until and len(seen) >= 4:
                self.in_flight = batch
                break
            seen.append(batch)
            self.now = max(self.now, end)
        self.now = max(self.now, until)
        return Observation(
            self.rate,
            seen[-1].start_s - seen[0].start_s,
            tuple(seen),
            source_rate_limit=self.source_limit,
            disturbance=Disturbance(other_load=self.disturbed(self)),
        )


def estimate(run, history=(), on_probe=None, **fields):
    return CapacityEstimator(clock=run.clock, **fields).estimate(run, history, on_probe)


def bracket_of(run, **fields):
    result = estimate(run, **fields)
    return result.low, result.high
