"""Turns of budgets in one warm deployment, and the size of the first batches of each."""

import math
from dataclasses import dataclass

from workbench.dataflow import Budget

LEAST_BATCH_ROWS = 10


@dataclass(frozen=True)
class Turn:
    """A smaller or equal budget that takes its turn in a deployment that is warm, and its numbers of partitions."""

    budget: Budget
    source_partitions: int
    state_partitions: int


class FirstRows:
    """How many rows the first batches of a turn have, so that it need not grow from nothing."""

    def __init__(self) -> None:
        self._fitted: dict[Turn, int] = {}

    def keep(self, turn: Turn, rows: int) -> None:
        """Remember the `rows` that fitted one interval when `turn` ended."""
        self._fitted[turn] = rows

    def of(self, turn: Turn) -> int:
        """Rows that fitted in its last turn; else those of the nearest one known, in proportion, and never more."""
        if turn in self._fitted:
            return self._fitted[turn]

        def share(other: Turn) -> float:
            budget, known = turn.budget, other.budget
            return budget.cpus * budget.interval_s / (known.cpus * known.interval_s)

        nearest = min(self._fitted, key=lambda other: abs(math.log(share(other))))
        return max(LEAST_BATCH_ROWS, int(self._fitted[nearest] * min(1.0, share(nearest))))
