"""``RecordedTestbed``: replays a table of measured maximum rates, for tests, demos and other people's data."""

import hashlib
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from workbench import bounds, units
from workbench.checks import whole, within
from workbench.dataflow import Budget
from workbench.errors import WorkbenchError
from workbench.reading import finite_cell, read_rows
from workbench.records import RECORDED, Machine
from workbench.simulation import short_name
from workbench.testbed.pipelined import Engine, PipelinedRun, Repeats, SimulatedClock
from workbench.workload import Query

_NEAREST = 3


@dataclass(frozen=True)
class RecordedRate:
    """One measurement: what `slots` slots of `memory_mb` MB each sustained, records/s.

    `query` is None where the table is about one query only.
    """

    memory_mb: int
    slots: int
    rate: float
    query: str | None = None

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
        return len(self._rates[self._find(query if isinstance(query, str) else query.name, budget)])

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
        configuration = self._find(query if isinstance(query, str) else query.name, budget)
        rates = self._rates[configuration]
        with self._repeats.number(configuration, repeat) as number:
            engine = _RecordedEngine(rates[number % len(rates)], budget.interval_s)
            yield PipelinedRun(budget, self.clock, engine, Machine(slots=RECORDED))

    def _find(self, name: str, budget: Budget) -> tuple[str | None, int, int]:
        short = short_name(name)
        queries = {query for query, _, _ in self._rates}
        chosen = next((query for query in (name, short, None) if query in queries), None)
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
