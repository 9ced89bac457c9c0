"""What a schedule of rates decides, and where the votes of its probes place the MST: a bracket, and the estimate.

A *step* says what to do next; a *probe* is a finished step. A schedule decides from the finished probes alone.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from workbench.errors import WorkbenchError
from workbench.metrics import SOURCE_MARGIN
from workbench.records import Limit, MstEstimate, Phase, Probe

_LATER = 6  # probes after a failed one that may refute it
_FEWEST, _ERRORS = 3, 2.0  # batches needed for an error, and how many errors their mean may be off by


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


@dataclass
class Votes:
    """Answers at one rate: from a quiet machine with warm code, or if there are none, the others (`disturbed`)."""

    sustained: int = 0
    overloaded: int = 0
    disturbed: bool = False

    @property
    def majority(self) -> bool | None:
        """True for sustained, False for overloaded, None for a tie."""
        return None if self.sustained == self.overloaded else self.sustained > self.overloaded

    @property
    def firm(self) -> bool:
        """Whether a third vote could not change the majority (or three were cast)."""
        return self.majority is not None and max(self.sustained, self.overloaded) >= 2

    @property
    def split(self) -> bool:
        """Whether both answers were given."""
        return self.sustained > 0 and self.overloaded > 0


def tally(history: Sequence[Probe], key: Callable[[float], int]) -> dict[int, Votes]:
    """Votes per grid index, rates mapped by `key`; invalid probes have no vote."""
    votes: dict[int, Votes] = {}
    for place, probe in enumerate(history):
        if probe.phase == "probe" and probe.judgement is not None and probe.judgement.answered:
            index, disturbed = key(probe.rate), probe.judgement.disturbed or refuted(history, place) > 0
            if disturbed and index in votes and not votes[index].disturbed:
                continue
            if index not in votes or votes[index].disturbed > disturbed:
                votes[index] = Votes(disturbed=disturbed)
            if probe.answered("sustained"):
                votes[index].sustained += 1
            else:
                votes[index].overloaded += 1
    return votes


def refuted(history: Sequence[Probe], place: int) -> float:
    """Share by which later batches exceed the rate that failed at `place`; 0 where scatter may explain all of it.

    What later batches of a lower rate carried in the seconds they took is a lower bound of the capacity. If it is above
    a rate that failed, and above what that carried, the code was still cold there, whatever its compilers did.
    """
    failed = history[place]
    if not failed.answered("overloaded"):
        return 0.0
    later = [one for one in history[place + 1 : place + 1 + _LATER] if one.answered("sustained")]
    most = max((_carried(one, -_ERRORS) for one in later if one.rate < failed.rate), default=0.0)
    return most / failed.rate - 1 if most > max(failed.rate, _carried(failed)) else 0.0


def _carried(probe: Probe, errors: float = 0.0) -> float:
    """Records/s that the batches of `probe` would carry back to back, `errors` off the mean; 0 for too few."""
    batches = probe.observation.batches[1:]
    count, seconds = len(batches), sum(batch.duration_s for batch in batches)
    if count < _FEWEST or seconds <= 0:
        return 0.0
    squares = sum((batch.duration_s - seconds / count) ** 2 for batch in batches)
    error = math.sqrt(squares * count / (count - 1)) / seconds
    return sum(batch.records for batch in batches) / seconds * (1 + errors * error)


@dataclass(frozen=True)
class Bracket:
    """Where the votes place the MST; the gaps to search are below `first_over` and above `last_sustained`."""

    low: int | None
    high: int | None
    last_sustained: int | None
    first_over: int | None
    doubtful: tuple[int, ...] = field(default=())


def bracket(votes: Mapping[int, Votes]) -> Bracket:
    """Enclose every rate in doubt: below `low` no majority is overloaded, above `high` none is sustained."""
    sustained = sorted(key for key, vote in votes.items() if vote.majority is True)
    over = sorted(key for key, vote in votes.items() if vote.majority is False)
    last = sustained[-1] if sustained else None
    first = over[0] if over else None
    lows = [key for key in sustained if first is None or key < first]
    highs = [key for key in over if last is None or key > last]
    doubtful = {key for key, vote in votes.items() if vote.split}
    if last is not None and first is not None:
        doubtful |= {key for key in votes if first <= key <= last}
    return Bracket(lows[-1] if lows else None, highs[0] if highs else None, last, first, tuple(sorted(doubtful)))


def closing(history: Sequence[Probe]) -> tuple[tuple[float, float], ...]:
    """Return the bracket after each probe of `history`, records/s: 0 and infinity for ends not found."""
    rates, found = sorted({probe.rate for probe in history}), []
    for count in range(1, len(history) + 1):
        ends = bracket(tally(history[:count], rates.index))
        low, high = 0.0 if ends.low is None else rates[ends.low], math.inf if ends.high is None else rates[ends.high]
        found.append((low, high))
    return tuple(found)


def source_limit(history: Sequence[Probe]) -> float:
    """Highest rate that would not be source-bound, by the last observation that reports it; inf if none does."""
    for probe in reversed(history):
        if math.isfinite(probe.observation.source_rate_limit):
            return probe.observation.source_rate_limit / SOURCE_MARGIN
    return math.inf


def first_rate(history: Sequence[Probe]) -> float:
    """Rate to probe first: that at which a warm run's state was filled, or else that of the warm-up's steady end."""
    if math.isfinite(history[0].rate):
        return history[0].rate
    rate = history[0].observation.consumed_rate
    if rate <= 0:
        raise WorkbenchError(
            "The warm-up consumed no rows; at least one whole batch with rows is needed. Check that the source has "
            "data, or warm up longer (in a study warmup_s; in Python CapacityEstimator(warmup_cap_s=...))."
        )
    return rate


def summarise(
    history: Sequence[Probe], low: float, high: float, limit: Limit, *, exhausted: bool, doubtful: Sequence[float]
) -> MstEstimate:
    """Build the estimate whose bracket is `low` to `high`."""
    at_low = [probe for probe in history if probe.rate == low and probe.answered("sustained")]
    return MstEstimate(
        rate=sum(probe.observation.consumed_rate for probe in at_low) / len(at_low) if at_low else None,
        low=low,
        high=high,
        probes=tuple(history),
        observation=at_low[-1].observation if at_low else None,
        limit=limit,
        seconds=sum(probe.seconds for probe in history),
        steady=all(probe.steady is not False for probe in history),
        exhausted=exhausted,
        contradictions=tuple(doubtful),
    )
