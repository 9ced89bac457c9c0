"""An estimate of the maximum sustainable throughput (MST): its probes, its bracket, its interval, its costs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from workbench.metrics import Observation

Phase = Literal["warm-up", "probe", "reading"]
Limit = Literal["query", "source", "none"]
Verdict = Literal["sustained", "overloaded", "source-bound", "disturbed", "not-offered", "warming", "not-at-capacity"]
_LOW = 4  # factor between a low rate and the highest


@dataclass(frozen=True)
class Judgement:
    """What was decided about one observation, with the numbers behind it."""

    verdict: Verdict  # ``"sustained"`` or ``"overloaded"`` for a valid observation, otherwise why it does not count
    consumed_share: float  # rows consumed / rows due over the whole batches
    backlog_slope: float  # least-squares slope of the backlog at the releases, records/s
    slope_error: float
    reason: str
    # whether the observation was judged although the machine was disturbed, the code was still being compiled, or the
    # slots were not at capacity
    disturbed: bool = False

    @property
    def answered(self) -> bool:
        """Whether the verdict shows anything about the query."""
        return self.verdict in {"sustained", "overloaded"}

    @property
    def repeatable(self) -> bool:
        """Whether a repeat may sustain the rate: it failed, and the query may not be the reason."""
        return self.verdict in {"disturbed", "warming", "not-at-capacity"}


@dataclass(frozen=True)
class Probe:
    """A finished step."""

    number: int
    phase: Phase
    rate: float
    attempt: int
    observation: Observation  # what was seen: for a probe its window, for a warm-up its steady end
    # None for the warm-up, and for a reading, which is what a query's log shows of its largest batches
    judgement: Judgement | None = None
    started_s: float = 0.0  # when it began, seconds after the estimate began
    seconds: float = 0.0  # how long it took, including the time that was not observed
    steady: bool | None = None  # whether the warm-up became steady before its cap; None for a probe
    # of the state, and of the source unless it has its own; None: as many as there are slots
    partitions: int | None = None
    # whether a warm-up ended with the state at its working size, or without state; None for other probes
    filled: bool | None = None
    source_partitions: int | None = None  # of the source, where they differ from `partitions`

    def answered(self, verdict: str) -> bool:
        """Whether the verdict is `verdict`."""
        return self.judgement is not None and self.judgement.verdict == verdict


def overrun_s(probes: Sequence[Probe], interval_s: float) -> float | None:
    """Seconds of a batch at a low rate, if no batch of `probes` met the interval, so that no rate fits it.

    A low rate is at most a quarter of the highest; its shortest batch counts, if the machine was not disturbed and the
    state was its own: after a higher rate, it would pay for what that left. None where no such rate was probed, or a
    batch met the interval.
    """
    probed = [probe for probe in probes if probe.phase == "probe"]
    low = max((probe.rate for probe in probed), default=0.0) / _LOW
    if any(batch.duration_s <= interval_s for probe in probed for batch in probe.observation.batches):
        return None
    few = (
        batch.duration_s
        for probe in probed
        if probe.rate <= low and probe.answered("overloaded") and not (probe.judgement and probe.judgement.disturbed)
        if probe.filled is not None or not any(one.keeps_state for one in probe.observation.operators)
        for batch in probe.observation.batches
    )
    return min(few, default=None)


@dataclass(frozen=True)
class MstEstimate:
    """A maximum sustainable throughput (MST) as a bracket, from probes at chosen rates or from a query's log."""

    rate: float | None  # mean rate consumed at `low`, records/s; None if no rate was sustained
    low: float  # highest rate confirmed sustained; 0 if none was. From a log, the lower end of the 90 % interval
    # lowest rate confirmed not sustained, above which nothing was sustained; inf if there is none. Where repeated
    # answers contradict each other, `low` and `high` enclose all rates in doubt. From a log, the upper end
    high: float
    probes: tuple[Probe, ...]  # all, in order, the warm-up first; or the reading of a log
    observation: Observation | None  # the last one at `low`, or the reading; None if no rate was sustained
    # what bounds the rate from above: ``"query"`` (an overloaded rate close above), ``"source"`` (the next rate up
    # would be source-bound: this is not the query's MST) or ``"none"`` (the highest rate allowed was sustained, or the
    # probes ran out while the bracket was wide: `low` is a bound)
    limit: Limit
    seconds: float
    steady: bool = True
    exhausted: bool = False  # whether the probes ran out before the bracket was nearly as narrow as asked
    contradictions: tuple[float, ...] = ()  # rates with both answers, or sustained above one that was overloaded

    @property
    def from_readings(self) -> bool:
        """Whether the estimate was read from a query's log instead of probed at chosen rates."""
        return any(probe.phase == "reading" for probe in self.probes)

    @property
    def filled(self) -> bool | None:
        """Whether the state had its working size when the rate was sustained; None if unknown."""
        found = None
        for probe in self.probes:
            found = found if probe.filled is None else probe.filled
            if self.observation is not None and probe.observation == self.observation:
                break
        return found

    @property
    def disturbed(self) -> bool:
        """Whether a probe had to be judged on a disturbed machine."""
        return any(probe.judgement is not None and probe.judgement.disturbed for probe in self.probes)

    @property
    def middle(self) -> float:
        """The headline: the rate that commands, cards, plans and models give for this estimate, records/s.

        It is the middle of the bracket, of its logarithms, because the maximum is anywhere in it; `low` where that is
        a bound, and 0 if no rate was sustained.
        """
        closed = math.isfinite(self.high) and self.limit != "none"
        return math.sqrt(self.low * self.high) if closed else self.low


@dataclass(frozen=True)
class MstInterval:
    """The interval for the maximum sustainable throughput of a next deployment."""

    # low, high: records/s
    low: float
    high: float
    level: float  # share of next deployments that should be in it
    deviation: float  # relative standard deviation of repeats behind it
    repeats: int  # measurements of this configuration behind it, including this one


@dataclass(frozen=True)
class OperatorCost:
    """Cost of one task of one operator in one micro-batch."""

    operator: str
    # fixed_s, per_record_s: a and b of seconds = a + b x records; None if fewer than three levels were seen
    fixed_s: float | None
    per_record_s: float | None
    per_record_error: float | None  # standard error of b
    # records_low, records_high: range of records per task that was seen: outside it the line extrapolates
    records_low: float
    records_high: float
    # samples, levels: number of points, and of record levels that differ by more than 2 %
    samples: int
    levels: int
