"""Judges one observation, and places the MST by the votes of all: a bracket, and the estimate.

StreamBed (section IV) calls a rate sustained when the mean processed rate is at least 99 % of the target. Here an
observation must first be *valid* (the source could have done more, the rate was really offered), and the backlog at
the releases must not grow (Theodolite's lag trend): a run at 99.5 % of its due rows falls behind for good.

Disturbances only lower what a run consumes. So a rate sustained in spite of other load, or of code that is still being
compiled, is sustained; one that is not sustained then shows nothing yet.

A *step* says what to do next; a *probe* is a finished step. A schedule decides from the finished probes alone.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from workbench import units
from workbench.errors import WorkbenchError
from workbench.metrics import MAX_DISTURBANCE, SOURCE_MARGIN, Observation
from workbench.records import Judgement, Limit, MstEstimate, Phase, Probe, Verdict

MIN_WHOLE_BATCHES = 3
_OFFERED_TOLERANCE = 0.01
_SLOPE_ERRORS = 2.0
_SLOPE_SLACK = 1e-3
# A backlog that only rounds to whole rows varies by one row; the steepest line through it rises 1.5 rows.
_ROUNDING_ROWS, _ROUNDING_RISE = 1.0, 1.5
COMPILING = 0.15
"""Cores that compilers may use during a verdict; while they use more, rows get cheaper from batch to batch.

Seen on q5: while they use .16 of a core, the rows of the stage that keeps state take a fifth more than at .06; at .11
they take no more.
"""
_FAR_BELOW, _SEVERAL = 0.75, 4  # of the due rows, consumed although the disturbance took this often what is seen of it
_ROOM, _FILLED = 0.95, 0.98  # of the interval: the batches' mean time; of its rows: their mean rows
_IDLE = 0.1  # share of the quota's periods in which it was used up: below, slots did not limit the rate
_CROWDED = 0.5  # share of a machine that others take: above, slots did not get what their quota allows
_BUSY, _FULL = 0.7, 0.9  # of the slots' time, and of the interval: below both, the slots were not at capacity


def backlog_trend(observation: Observation) -> tuple[float, float]:
    """Least-squares slope of the backlog at the releases (records/s) and its standard error."""
    points = [(batch.start_s, batch.backlog) for batch in observation.batches]
    count = len(points)
    mean_time, mean_backlog = (sum(part) / count for part in zip(*points, strict=True))
    apart = [(time - mean_time, backlog - mean_backlog) for time, backlog in points]
    spread = sum(time**2 for time, _ in apart)
    if spread == 0:
        return 0.0, 0.0
    slope = sum(time * backlog for time, backlog in apart) / spread
    residuals = sum((backlog - slope * time) ** 2 for time, backlog in apart)
    return slope, math.sqrt(residuals / max(1, count - 2) / spread)


def _kept_up(observation: Observation) -> float:
    """Seconds in which the rows of the batches became due, over the seconds the batches took; 1 without batches."""
    took = sum(batch.duration_s for batch in observation.batches)
    if not (took > 0 and observation.commanded_rate > 0):
        return 1.0
    return sum(batch.records for batch in observation.batches) / observation.commanded_rate / took


def judge(  # noqa: C901, PLR0911 - each way to an answer
    observation: Observation,
    success: float = 0.99,
    *,
    max_disturbance: float = MAX_DISTURBANCE,
    accept_disturbed: bool = False,
    check_trend: bool = True,
    slots: int | None = None,
    interval_s: float = math.inf,
) -> Judgement:
    """Judge `observation`, at a finite rate; its validity is decided before the verdict.

    Parameters
    ----------
    success
        Least share of the due rows that must have been consumed.
    max_disturbance
        Largest share of the machine that others may have taken, and by which its cores may have been slower.
    accept_disturbed
        Still judge a rate that was not sustained, and flag it, if other load, the compiler or idle slots may be the
        reason.
    check_trend
        Whether a growing backlog alone fails the rate; False is StreamBed's published rule.
    slots, interval_s
        Slots that the stages share in time, and the trigger interval; None where operators run side by side.
    """
    whole = len(observation.batches) - 1
    few = whole < MIN_WHOLE_BATCHES
    kept_up = _kept_up(observation)
    if few and kept_up >= 1:
        raise WorkbenchError(
            f"An observation at {observation.commanded_rate:,.0f} records/s has {max(0, whole)} whole batches; "
            f"a verdict needs at least {MIN_WHOLE_BATCHES}. Use a shorter trigger interval, or in Python observe "
            "longer: CapacityEstimator(window_s=...).",
            settings=("interval_s",),
        )
    due = observation.due_records
    share = kept_up if few else observation.consumed_records / due if due > 0 else 1.0
    slope, error = (0.0, 0.0) if few else backlog_trend(observation)
    in_doubt = _in_doubt(observation, max_disturbance, slots, interval_s)

    def answer(verdict: Verdict, reason: str) -> Judgement:
        return Judgement(verdict, share, slope, error, reason)

    def overloaded(reason: str) -> Judgement:
        if in_doubt is None:
            return answer("overloaded", reason)
        doubt, why = in_doubt
        warm = doubt == "disturbed" and observation.compiling <= COMPILING
        if warm and not few and share < _FAR_BELOW * (1 - observation.disturbance.worst) ** _SEVERAL:
            return answer("overloaded", reason)  # nor would it have been sustained on a quiet machine
        if not accept_disturbed or doubt == "not-at-capacity":  # the slots certainly carry more
            return answer(doubt, f"{reason[:-1]}, which may not be the query's: {why[0].lower()}{why[1:]}.")
        why = f"{reason[:-1]} (judged although {why[0].lower()}{why[1:]})."
        return Judgement("overloaded", share, slope, error, why, disturbed=True)

    invalid = _invalid(observation, few=few)
    if invalid is not None:
        return answer(*invalid)
    if few:
        longest = max(batch.duration_s for batch in observation.batches)
        return overloaded(
            f"No more than {len(observation.batches)} batches were completed, of up to {longest:,.1f} s each, though "
            f"their rows became due in {units.percent(share, 1)} of that time."
        )
    taken_s, later_s = _mean_s(observation), _mean_s(observation) + observation.lacking_s
    later = f", {later_s:.2f} s with the state that it will have" if observation.lacking_s else ""
    if keeps_up(observation, interval_s):
        return answer(
            "sustained",
            f"Batches of one interval's rows took {taken_s:.2f} s of {interval_s:g} s on average{later}, and "
            f"{units.share(share)} of the {units.scaled(due, '')} due rows were consumed.",
        )
    if observation.consumed_records + _ROUNDING_ROWS < success * due:
        return overloaded(
            f"Only {units.share(share)} of the {units.scaled(due, '')} due rows were consumed; "
            f"{units.share(success)} are needed."
        )
    if observation.lacking_s and later_s > interval_s:
        return overloaded(f"Batches took {taken_s:.2f} s of {interval_s:g} s on average{later}, which still grows.")
    slack = _SLOPE_SLACK * observation.commanded_rate + _ROUNDING_RISE * _rounding(observation)
    if check_trend and slope > _SLOPE_ERRORS * error + slack:
        return overloaded(
            f"{units.share(share)} of the due rows were consumed, but the backlog grew by {units.rate(slope)} "
            f"(standard error {units.rate(error)})."
        )
    trend = "the backlog did not grow" if check_trend else "the backlog's trend was not checked"
    return answer(
        "sustained", f"{units.share(share)} of the {units.scaled(due, '')} due rows were consumed and {trend}."
    )


def _mean_s(observation: Observation) -> float:
    whole = observation.batches[1:] or observation.batches
    return sum(batch.duration_s for batch in whole) / max(1, len(whole))


def keeps_up(observation: Observation, interval_s: float) -> bool:
    """Whether batches of an interval's rows took clearly less than the interval on average; False for one of inf.

    Where the state still grew, they count as long as they will be with all of it.
    A batch takes no more rows than that. So after one that is late, rows stay behind, though all others end in time.
    """
    whole = observation.batches[1:]
    if not whole or not _mean_s(observation) + observation.lacking_s <= _ROOM * interval_s < math.inf:
        return False
    return observation.consumed_records >= _FILLED * observation.commanded_rate * interval_s * len(whole)


def crowded_out(observation: Observation, slots: int | None = None) -> bool:
    """Whether others took most of the machine and slots hardly used their quota, so rows did not cause the time."""
    throttled = observation.quota_throttled
    if throttled is None or throttled >= _IDLE or _taken(observation) <= _CROWDED:
        return False
    return busy_share(observation, slots) < _BUSY  # an even share of the machine can be what the quota allows, too


def busy_share(observation: Observation, slots: int | None = None) -> float:
    """Share of their time that `slots` worked, by default as many as an operator has tasks; 0 where unknown."""
    slots = slots or max((operator.tasks for operator in observation.operators), default=1)
    return observation.busy_s / (slots * max(observation.elapsed_s, 1e-9)) if observation.operators else 0.0


def _taken(observation: Observation) -> float:
    """Share of the machine that others took."""
    return max(observation.disturbance.steal, observation.disturbance.other_load)


def _in_doubt(
    observation: Observation, max_disturbance: float, slots: int | None, interval_s: float
) -> tuple[Verdict, str] | None:
    """Return why a rate that was not sustained may still be sustainable; None if only the query can be the reason."""
    if crowded_out(observation, slots):
        taken = units.percent(_taken(observation))
        return "not-at-capacity", f"Others took {taken} of the machine, and the slots did not use up their quota"
    if observation.disturbance.worst > max_disturbance:
        return "disturbed", observation.disturbance.sentence
    if observation.compiling > COMPILING:
        return "warming", f"Compilers used {observation.compiling:.2g} cores, so the code still gets faster"
    if slots is None or not observation.operators or not observation.batches:
        return None
    busy = busy_share(observation, slots)
    batches_s = _mean_s(observation) + observation.lacking_s
    if busy < _BUSY and batches_s < _FULL * interval_s:
        return (
            "not-at-capacity",
            f"Slots were busy {units.percent(busy)} of the time; batches took {batches_s:.1f} s of {interval_s:g} s",
        )
    return None


def _invalid(observation: Observation, *, few: bool) -> tuple[Verdict, str] | None:
    """Return why the observation does not count; None if it does."""
    commanded, offered = observation.commanded_rate, observation.offered_rate
    if observation.source_rate_limit < SOURCE_MARGIN * commanded:
        least = f"{SOURCE_MARGIN} x the commanded {commanded:,.0f}"
        return (
            "source-bound",
            f"The source alone releases {observation.source_rate_limit:,.0f} records/s, less than {least}.",
        )
    # Each partition of a topic is offered whole records.
    rounding = _rounding(observation, (observation.source_partitions or 0) * (len(observation.batches) - 1))
    if not few and abs(offered - commanded) > _OFFERED_TOLERANCE * commanded + rounding:
        return (
            "not-offered",
            f"{offered:,.0f} records/s became due although {commanded:,.0f} records/s were commanded.",
        )
    return None


def _rounding(observation: Observation, rows: float = 0.0) -> float:
    """Records/s by which whole rows may be off: one row, or `rows` if that is more."""
    return max(_ROUNDING_ROWS, rows) / observation.elapsed_s if observation.elapsed_s > 0 else 0.0


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
    batches = probe.observation.lasting[1:]
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
