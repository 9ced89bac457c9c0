"""What a plan is and what it costs: counts of tasks by operator and worker, and their cost vector (Equation 4)."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from workbench.arrays import Ints
from workbench.errors import WorkbenchError

SLACK = 1e-9
"""Costs within this are equal; a cost that exceeds its threshold by no more fits."""

DIMENSIONS = ("cpu", "io", "net")

Counts = Ints


@dataclass(frozen=True)
class CostVector:
    """Costs of a plan in the three dimensions (Equation 4), each 0 (ideal) to 1 (worst); also thresholds for them.

    As a threshold any value from 0 on is allowed; infinity, the default, switches a dimension off.
    """

    cpu: float = math.inf
    io: float = math.inf
    net: float = math.inf

    def __post_init__(self) -> None:
        for name, value in zip(DIMENSIONS, self, strict=True):
            if not value >= 0:
                raise WorkbenchError(
                    f"The {name} entry of a cost vector is {value!r}; give a number from 0 on, or inf to switch "
                    "the dimension off."
                )

    def __iter__(self) -> Iterator[float]:
        return iter((self.cpu, self.io, self.net))

    @property
    def worst(self) -> float:
        """The largest of the three."""
        return max(self)

    def within(self, thresholds: "CostVector") -> bool:
        """Whether no entry exceeds its threshold (Equation 9)."""
        return all(value <= limit + SLACK for value, limit in zip(self, thresholds, strict=True))


@dataclass(frozen=True, eq=False)
class Plan:
    """Where the tasks go: `counts`, shape (operators, workers), and what that costs."""

    counts: Counts
    cost: CostVector

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and np.array_equal(self.counts, other.counts) and self.cost == other.cost

    def __hash__(self) -> int:
        return hash(self.counts.tobytes())


class Subtask(NamedTuple):
    """One task and where it runs, the form schedulers import."""

    operator: str
    subtask: int
    worker: int
