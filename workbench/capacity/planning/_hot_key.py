"""What the most frequent of the counted keys does to a query: a key is never split, so a task at most works on it."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from workbench import units
from workbench.metrics import OperatorMetrics
from workbench.records import Measurement
from workbench.workload import KeyFrequencies

NOTABLE_WORK = 0.1
"""Share of the busy time below which an operator's keys do not matter."""

UNEVEN = 1.3
"""How many times the mean the fullest partition must have for a word."""

_REACHES = 0.5  # of the excess that the rows would give


@dataclass(frozen=True)
class HotKey:
    """The most frequent key at the operator behind a shuffle that works most."""

    key: str  # as text
    operator: str  # its name
    tasks: int  # its partitions in the run with the most
    limit: float  # records/s of the query at which the key alone fills a slot; inf where its rows cost nothing
    useful_tasks: float  # number of tasks at which the key alone fills one; more do not raise the rate
    expected: float  # rows of the fullest partition over the mean, by the key's rows
    found: float  # the same in the run

    @property
    def reaches(self) -> bool:
        """Whether the skew of the rows reaches the tasks: rows that are aggregated before the shuffle hide it."""
        return self.expected < UNEVEN or self.found - 1 >= _REACHES * (self.expected - 1)

    def sentence(self, rate: float) -> str:
        """Say what the key takes at `rate`, records/s, and from how many tasks on more are of no use."""
        if not self.reaches:
            return (
                f"The key {self.key!r} does not reach the tasks of {self.operator!r}: with {self.tasks:,} partitions "
                f"the fullest had {self.found:.2f} times the mean and not {self.expected:.2f}, because rows are "
                "aggregated before the shuffle, or because it goes by another column."
            )
        slots = rate / self.limit
        needs = f"{units.number(slots)} slots of {self.operator!r}, and one task has it"
        if slots <= 1:
            needs = f"{units.number(slots)} of a slot of {self.operator!r}"
        most = math.ceil(self.useful_tasks)
        do = "does" if most == 1 else "do"
        return (
            f"At {units.rate(rate)} the key {self.key!r} needs {needs}; more than {units.some(most, 'task')} {do} not "
            "raise the rate."
        )


def hot_key(runs: Iterable[Measurement], keys: KeyFrequencies, times: float = 1.0) -> HotKey | None:
    """Find what the most frequent of `keys` takes, on cores that are `times` times as fast as those of `runs`.

    None where no run has shown an operator behind a shuffle.
    """
    seen = [
        (one.useful_s / max(1, run.estimate.observation.consumed_records), one)
        for run in runs
        if run.estimate.observation is not None
        for one in behind_shuffles(run.estimate.observation.operators)
    ]
    if not seen:
        return None
    most = max(one.tasks for _, one in seen)
    cost_s, busiest = max(((cost, one) for cost, one in seen if one.tasks == most), key=lambda pair: pair[0])
    limit = times / (keys.hottest_share * cost_s) if cost_s > 0 else math.inf
    return HotKey(
        keys.keys[0],
        busiest.operator,
        most,
        limit,
        keys.useful_tasks,
        keys.likely_imbalance(most),
        busiest.key_skew or 1.0,
    )


def behind_shuffles(operators: Sequence[OperatorMetrics]) -> list[OperatorMetrics]:
    """Operators that read a shuffle and do much of the work."""
    whole = sum(one.useful_s for one in operators)
    return [
        one
        for one in operators
        if not (one.scans or one.is_source) and one.key_skew is not None and one.useful_s >= NOTABLE_WORK * whole
    ]
