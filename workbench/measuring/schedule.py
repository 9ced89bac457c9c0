"""The seam between an estimate and the way it chooses rates.

A *step* says what to do next; a *probe* is a finished step. A schedule decides from the finished probes alone, so an
estimate that was killed continues from its recorded probes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from workbench.records import MstEstimate, Phase, Probe


@dataclass(frozen=True)
class Step:
    """What to do next.

    Parameters
    ----------
    phase
        Warm-up or probe.
    rate
        Records/s to command; inf for the warm-up.
    attempt
        1 for the first probe at this rate, 2 for its first repeat, and so on.
    accept_disturbed
        Whether to judge this attempt even if the machine is disturbed.
    """

    phase: Phase
    rate: float
    attempt: int = 1
    accept_disturbed: bool = False


@dataclass(frozen=True)
class Times:
    """How long each part of a probe takes, in seconds.

    Parameters
    ----------
    settle_s, window_s
        Discarded after a change of rate; observed.
    cooldown_s, cooldown_rate
        Before each probe, this many seconds at this rate (records/s).
    warmup_s
        Fixed length of the warm-up; None: until the run is steady.
    """

    settle_s: float
    window_s: float
    cooldown_s: float = 0.0
    cooldown_rate: float = 0.0
    warmup_s: float | None = None


@runtime_checkable
class Schedule(Protocol):
    """Chooses rates and brackets the MST; `interval_s` is the trigger interval of the run, in seconds."""

    @property
    def most_probes(self) -> int:
        """Most probes of one estimate, repeats included and the warm-up not."""

    @property
    def strict(self) -> bool:
        """Whether a growing backlog alone fails a probe, and a batch that starts late extends its window."""

    def times(self, interval_s: float) -> Times:
        """Length of each part of a probe."""

    def near(self, rate: float) -> float:
        """Rate that the schedule may probe, nearest to `rate`, records/s."""

    def next_step(self, history: Sequence[Probe], interval_s: float) -> Step | None:
        """Step after `history`; None when the estimate is finished."""

    def conclude(self, history: Sequence[Probe], interval_s: float) -> MstEstimate:
        """Bracket the MST by the probes of `history`, finished or not."""
