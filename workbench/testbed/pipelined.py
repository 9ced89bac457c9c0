"""A run on a simulated clock: rates, backlog and batches of an engine that processes continuously.

A pipelined engine has no batches. To give observations of the usual form, its time is divided into stretches of one
trigger interval (or of complete windows, if the query has windows). A stretch counts as a batch, and the batch's
duration is the time in which the sources were busy or stopped. As with micro-batches, a rate is at capacity when the
duration equals the interval.
"""

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from workbench.dataflow import Budget
from workbench.errors import WorkbenchError
from workbench.metrics import Batch, Observation, OperatorMetrics, SourceProfile, TaskSample
from workbench.records import Machine

_FEWEST_BATCHES = 3
_ROUNDING = 1e-9


class SimulatedClock:
    """Seconds since its creation, advanced only by a run; call it to read it."""

    def __init__(self) -> None:
        self._now_s = 0.0

    def __call__(self) -> float:
        """Return the time, seconds."""
        return self._now_s

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass."""
        self._now_s += seconds


class Engine(ABC):
    """Processes records step by step, by default without operators; `batch_s` is a multiple of `step_s`, in seconds."""

    step_s: float
    batch_s: float

    def restart(self, rate: float) -> float:  # noqa: ARG002 - of an engine with queues
        """Empty the queues for a new `rate`; return the seconds until earlier records no longer matter."""
        return 0.0

    @abstractmethod
    def step(self, offered: float) -> tuple[float, float]:
        """Process up to `offered` records in one step; return how many it did, and the seconds sources were busy."""

    def begin(self) -> None:  # noqa: B027 - nothing is counted without operators
        """Reset the counters of work."""

    def sample(self) -> tuple[TaskSample, ...]:
        """Work per task since the last sample."""
        return ()

    def operators(self, elapsed_s: float) -> tuple[OperatorMetrics, ...]:  # noqa: ARG002
        """Work since `begin` was called, `elapsed_s` seconds ago."""
        return ()


class PipelinedRun:
    """One deployment under load, of an `engine`; see `workbench.testbed.base.Run`. The `clock` advances with it."""

    source: SourceProfile | None = None  # sources cost nothing here

    def __init__(self, budget: Budget, clock: SimulatedClock, engine: Engine, machine: Machine) -> None:
        self.budget, self.clock, self.machine = budget, clock, machine
        self._engine = engine
        self._rate = self._due = self._consumed = 0.0

    def set_rate(self, rate: float) -> None:
        """Offer `rate` records/s, with empty queues; inf offers the maximum rate.

        If the query has windows, one window passes, so that later observations contain the new rate only.
        """
        if not rate >= 0:
            raise WorkbenchError(f"The rate is {rate!r} records/s; it must be at least 0, or inf for the maximum rate.")
        self._rate = rate
        self._due = self._consumed = 0.0  # from 0 for every rate, so that rounding repeats
        self.settle(self._engine.restart(rate))

    def settle(self, seconds: float) -> None:
        """Let `seconds` pass unobserved, rounded up to full steps."""
        for _ in range(math.ceil(seconds / self._engine.step_s - _ROUNDING)):
            self._step()

    def await_quiet(self, most_s: float) -> None:
        """Do nothing: a simulated machine has no other load."""

    def observe(self, seconds: float) -> Observation:
        """Let `seconds` pass, and at least three complete batches."""
        batch_s = self._engine.batch_s
        count = max(_FEWEST_BATCHES, math.floor(seconds / batch_s + _ROUNDING))
        self._engine.begin()
        batches = [self._batch(0.0, 0)]
        samples: list[TaskSample] = []
        for _ in range(count):
            before = self._consumed
            active_s = sum(self._step() for _ in range(round(batch_s / self._engine.step_s)))
            batches.append(self._batch(active_s, round(self._consumed) - round(before)))
            samples.extend(self._engine.sample())
        operators = self._engine.operators(count * batch_s)
        self.settle(seconds - count * batch_s)
        return Observation(self._rate, count * batch_s, tuple(batches), operators, tuple(samples))

    def _batch(self, active_s: float, records: int) -> Batch:
        return Batch(self.clock(), active_s, records, self._due, max(0.0, self._due - self._consumed))

    def _step(self) -> float:
        """Let one step pass; return the seconds the sources were busy."""
        if math.isinf(self._rate):
            consumed, active_s = self._engine.step(math.inf)
            self._due += consumed
        else:
            self._due += self._rate * self._engine.step_s
            consumed, active_s = self._engine.step(max(0.0, self._due - self._consumed))
        self._consumed += consumed
        self.clock.advance(self._engine.step_s)
        return active_s


class Repeats:
    """Counts the completed deployments of each configuration."""

    def __init__(self) -> None:
        self._finished: Counter[Hashable] = Counter()

    @contextmanager
    def number(self, configuration: Hashable, repeat: int | None) -> Iterator[int]:
        """Yield the number of this deployment, from 0, or `repeat`; a deployment that fails is not counted."""
        if repeat is not None and repeat < 0:
            raise WorkbenchError(f"The repeat is {repeat!r}; the first measurement of a configuration has number 0.")
        number = self._finished[configuration] if repeat is None else repeat
        yield number
        self._finished[configuration] = max(self._finished[configuration], number + 1)
