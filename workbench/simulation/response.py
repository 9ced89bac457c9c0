"""A measured response: how often the cache answers, how long an access takes and how fast a task is, against memory.

The table comes from runs of the real operator at several memory bounds. Between two rows everything is linear, beyond
them constant. What counts is memory against state: a task with twice the share of the keys it had when it was measured
needs twice the memory for the same response.
"""

import math
import os
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Self

import numpy as np

from workbench.arrays import Floats
from workbench.checks import require
from workbench.reading import finite_cell, read_rows


@dataclass(frozen=True)
class StateResponse:
    """One operator's response to managed memory, as measured."""

    memory_mb: tuple[float, ...]  # managed memory of one task, MB, ascending
    hit_rate: tuple[float, ...]  # share of the look-ups that the cache answered, at each
    latency_s: tuple[float, ...]  # mean seconds of one state access
    true_rate: tuple[float, ...]  # records/s of one task that works all the time; state accesses included
    tasks: int = 1  # tasks the operator had then: each held 1 / tasks of the state

    def __post_init__(self) -> None:
        columns = (self.memory_mb, self.hit_rate, self.latency_s, self.true_rate)
        require(
            len({len(column) for column in columns}) == 1 and len(self.memory_mb) > 0,
            f"A state response has columns of {', '.join(str(len(column)) for column in columns)} rows; give as many "
            "of each, at least one.",
        )
        for before, memory in pairwise((0.0, *self.memory_mb)):
            require(
                memory > before,
                f"The memory of a state response is {memory:g} MB after {before:g} MB; it must ascend from above 0. "
                "Give each memory once.",
            )
        for rate in self.hit_rate:
            require(0 <= rate <= 1, f"A hit rate of a state response is {rate:g}; it must be a share from 0 to 1.")
        require(
            all(0 <= wait < math.inf for wait in self.latency_s)
            and all(0 < rate < math.inf for rate in self.true_rate),
            "A state response needs latencies of at least 0 s and true rates above 0 records/s, all finite.",
        )
        require(self.tasks >= 1, f"A state response was measured with {self.tasks!r} tasks; it needs at least 1.")

    @classmethod
    def from_csv(cls, path: str | os.PathLike[str], tasks: int = 1) -> Self:
        """Read the columns memory_mb, hit_rate, latency_s and true_rate from a CSV file with a header."""
        names = [field.name for field in fields(cls) if field.name != "tasks"]
        rows = [
            tuple(finite_cell(row[name], f"Line {line} of {path}", name) for name in names)
            for line, row in read_rows(path, f"The response {path}", names, f"It needs {', '.join(names)}.")
        ]
        require(bool(rows), f"{path} has no rows; give at least one below the header.")
        memory, hits, waits, rates = (tuple(column) for column in zip(*sorted(rows), strict=True))
        return cls(memory, hits, waits, rates, tasks)

    def hits(self, memory_mb: float, shares: Floats) -> Floats:
        """Hit rate of tasks with `memory_mb` of managed memory and these shares of the keys, shape (tasks,)."""
        return self._at(memory_mb, shares, self.hit_rate)

    def access_s(self, memory_mb: float, shares: Floats) -> Floats:
        """Mean seconds of one state access, likewise."""
        return self._at(memory_mb, shares, self.latency_s)

    def record_s(self, memory_mb: float, shares: Floats) -> Floats:
        """Seconds per record, likewise: of the interpolated true rates."""
        return 1.0 / self._at(memory_mb, shares, self.true_rate)

    def _at(self, memory_mb: float, shares: Floats, column: tuple[float, ...]) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            asked = np.where(shares > 0, memory_mb / (shares * self.tasks), math.inf)
        return np.asarray(np.interp(asked, self.memory_mb, column))
