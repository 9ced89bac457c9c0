"""Runs on a simulated clock: rates, backlog and batches of an engine that processes continuously, or of a table.

A pipelined engine has no batches. To give observations of the usual form, its time is divided into stretches of one
trigger interval (or of complete windows, if the query has windows). A stretch counts as a batch, and the batch's
duration is the time in which the sources were busy or stopped. As with micro-batches, a rate is at capacity when the
duration equals the interval.
"""

import hashlib
import math
import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from workbench import bounds, units
from workbench.checks import whole, within
from workbench.dataflow import Budget
from workbench.errors import WorkbenchError
from workbench.metrics import Batch, Observation, OperatorMetrics, SourceProfile, TaskSample
from workbench.reading import finite_cell, read_rows
from workbench.records import RECORDED, Machine
from workbench.simulation import short_name
from workbench.workload import Query

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
        """Offer `rate` records/s, with empty queues, after a window if there are any; inf offers the maximum rate."""
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


_NEAREST = 3


@dataclass(frozen=True)
class RecordedRate:
    """One measurement: what `slots` slots of `memory_mb` MB each sustained, records/s."""

    memory_mb: int
    slots: int
    rate: float
    query: str | None = None  # None where the table is about one query only

    def __post_init__(self) -> None:
        whole("slots of a recorded measurement", self.slots, 1, bounds.TASKS)
        whole("memory_mb of a recorded measurement", self.memory_mb, 1, bounds.MEMORY_MB)
        within("The rate of a recorded measurement", self.rate, 0, bounds.RATE, "records/s", ends="(]")


class RecordedTestbed:
    """A testbed whose deployments sustain exactly what a table says.

    Measurements of one configuration are replayed in the order of the table, then again from the first, which is
    nothing new: a study takes each once (see `count`). Operators were not recorded, so observations have none. A layout
    is accepted and has no effect. All runs share the simulated `clock`.
    """

    kind = "recorded"

    def __init__(self, table: Iterable[RecordedRate], clock: SimulatedClock | None = None) -> None:
        self._rates: dict[tuple[str | None, int, int], list[float]] = {}
        for row in table:
            self._rates.setdefault((row.query, row.memory_mb, row.slots), []).append(row.rate)
        if not self._rates:
            raise WorkbenchError("The table of recorded measurements is empty; give it at least one row.")
        self._repeats = Repeats()
        self.clock = clock or SimulatedClock()

    @classmethod
    def from_csv(
        cls,
        path: str | os.PathLike[str],
        *,
        memory: str = "memory_mb",
        slots: str = "slots",
        rate: str = "rate",
        query: str = "query",
        memory_unit_mb: float = 1.0,
    ) -> "RecordedTestbed":
        """Read a table from a CSV file with a header; an error names its line.

        Parameters
        ----------
        memory, slots, rate, query
            Names of the columns; the file need not have the last.
        memory_unit_mb
            MB per slot that one unit of the memory column means: 1/16 if it is of a worker of 16 slots.
        """
        table, columns = [], (memory, slots, rate)
        for line, row in read_rows(path, f"The table {path}", columns, "Name the columns of memory, slots and rate."):
            here = f"Line {line} of {path}"
            size, many, found = (finite_cell(row[column], here, column) for column in columns)
            try:
                one = RecordedRate(_exact(size * memory_unit_mb), _exact(many), found, row.get(query) or None)
            except WorkbenchError as error:
                raise WorkbenchError(f"{here}: {error}") from error
            table.append(one)
        return cls(table)

    @property
    def identity(self) -> str:
        """See `workbench.testbed.Testbed`."""
        text = repr(sorted(self._rates.items(), key=repr))
        digest = hashlib.sha256(text.encode()).hexdigest()[:8]
        return f"recorded, {sum(map(len, self._rates.values()))} measurements ({digest})"

    def operators(self, query: Query | str) -> tuple[str, ...]:  # noqa: ARG002 - the protocol's
        """None: the table has measurements of whole budgets, whatever their layout was."""
        return ()

    def count(self, query: Query | str, budget: Budget) -> int:
        """Count the table's measurements of `query` on `budget`; once these are replayed, nothing new is available."""
        return len(self._rates[self._find(query, budget)])

    @contextmanager
    def deploy(
        self,
        query: Query | str,
        budget: Budget,
        layout: Mapping[str, int] | None = None,  # noqa: ARG002 - the protocol's
        *,
        repeat: int | None = None,
    ) -> Iterator[PipelinedRun]:
        """Deploy `query` on `budget`; see `FluidTestbed.deploy` for `repeat`."""
        configuration = self._find(query, budget)
        rates = self._rates[configuration]
        with self._repeats.number(configuration, repeat) as number:
            engine = _RecordedEngine(rates[number % len(rates)], budget.interval_s)
            yield PipelinedRun(budget, self.clock, engine, Machine(slots=RECORDED))

    def _find(self, query: Query | str, budget: Budget) -> tuple[str | None, int, int]:
        name = query if isinstance(query, str) else query.name
        queries = {known for known, _, _ in self._rates}
        chosen = next((one for one in (name, short_name(name), None) if one in queries), None)
        if chosen not in queries:
            raise WorkbenchError(
                f"The recorded table has no query {name!r}; it has {', '.join(sorted(map(str, queries)))}. Use one of "
                "these."
            )
        memory, slots = budget.profile.memory_mb, budget.slots
        if (chosen, memory, slots) in self._rates:
            return chosen, memory, slots

        def distance(configuration: tuple[str | None, int, int]) -> tuple[float, int, int]:
            _, other_memory, other_slots = configuration
            factors = abs(math.log(other_slots / slots)) + abs(math.log(other_memory / memory))
            return factors, other_slots, other_memory

        nearest = sorted((key for key in self._rates if key[0] == chosen), key=distance)[:_NEAREST]
        shown = "; ".join(f"{units.some(slots, 'slot')} of {memory:,} MB" for _, memory, slots in nearest)
        raise WorkbenchError(
            f"The recorded table has no measurement of query {name!r} on {units.some(slots, 'slot')} of {memory:,} MB; "
            f"the nearest are {shown}. Ask for one of those, or measure this one."
        )


class _RecordedEngine(Engine):
    """Processes at one rate."""

    def __init__(self, rate: float, interval_s: float) -> None:
        self._rate = rate
        self.step_s = self.batch_s = interval_s

    def step(self, offered: float) -> tuple[float, float]:
        consumed = min(offered, self._rate * self.step_s)
        return consumed, consumed / self._rate


def _exact(value: float) -> Any:  # noqa: ANN401 - what is not whole is refused by the record
    return int(value) if value.is_integer() else value
