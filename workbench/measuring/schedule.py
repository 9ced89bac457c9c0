"""The seam between an estimate and the schedule that chooses its rates.

A *step* says what to do next; a *probe* is a finished step. A schedule decides from the finished probes alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from workbench.records import MstEstimate, Phase, Probe


@dataclass(frozen=True)
class Step:
    """What to do next."""

    phase: Phase
    rate: float  # records/s to command; inf for the warm-up
    attempt: int = 1  # the first probe at this rate; 2 is its first repeat, and so on
    accept_disturbed: bool = False  # judge this attempt even if the machine is disturbed


@dataclass(frozen=True)
class Times:
    """How long each part of a probe takes, in seconds."""

    settle_s: float  # discarded after a change of rate
    window_s: float  # observed
    cooldown_s: float = 0.0  # before each probe, at the rate that follows, records/s
    cooldown_rate: float = 0.0
    warmup_s: float | None = None  # fixed length of the warm-up; None: until the run is steady


@runtime_checkable
class Schedule(Protocol):
    """Chooses rates and brackets the MST; `interval_s` is the trigger interval of the run, in seconds."""

    @property
    def most_probes(self) -> int:
        """Most probes of one estimate, repeats included and the warm-up not."""

    @property
    def strict(self) -> bool:
        """Whether a growing backlog alone fails a probe, and a late batch extends its window."""

    def times(self, interval_s: float) -> Times:
        """Length of each part of a probe."""

    def near(self, rate: float) -> float:
        """Rate that the schedule may probe, nearest to `rate`, records/s."""

    def next_step(self, history: Sequence[Probe], interval_s: float) -> Step | None:
        """Step after `history`; None when the estimate is finished."""

    def conclude(self, history: Sequence[Probe], interval_s: float) -> MstEstimate:
        """Bracket the MST by the probes of `history`, whether it is finished or not."""
