"""Measures the maximum sustainable throughput (MST) of one deployment (StreamBed section IV, the Capacity Estimator).

The loop is: ask the schedule for a step, command its rate, let it settle, observe, judge, record. The next step is a
pure function of the finished probes (``adaptive`` or ``streambed``), so a killed estimate continues where it was. Only
the warm-up is redone, because a new deployment is cold; the recorded one keeps deciding the first rate.

A run whose code is warm already, as Spark's is, needs no warm-up but a state of its working size. It is filled at a
rate somewhat below the first guess, which is the first probe at once: an optimizer's objective, or what the warm code
lets expect.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Literal, get_args

from workbench.checks import within
from workbench.defaults import MAX_REPEATS, PATIENCE_S, WARMUP_CAP_S, WARMUP_MIN_S
from workbench.errors import WorkbenchError
from workbench.measuring.schedules import SIMPLE_QUERIES, AdaptiveSchedule, StreamBedSchedule
from workbench.measuring.verdict import COMPILING, MIN_WHOLE_BATCHES, Schedule, Step, judge, keeps_up
from workbench.metrics import MAX_DISTURBANCE, Batch, Observation
from workbench.records import MstEstimate, Probe, Setting, overrun_s
from workbench.testbed import Run, SharedRun

ScheduleName = Literal["adaptive", "streambed"]

_FEWEST_CHUNKS = 2
# A chunk has few batches: going up and down by a little more than the allowed change is noise, not drift.
_SWING = 3.0
_LATE_START = 0.002
_LATE_WINDOWS = 3
_UNUSUAL, _WINDOWS = 1.5, 3  # factor over the least disturbance that is not usual; windows that a burst of load lasts
_NOT_OFFERED_REPEATS = 2
_FAR = 1.5  # factor of the highest rate since the state was empty over the next rate; from it on, the state is emptied
_FILL_S, _FILL_INTERVALS = 45.0, 6  # longest time for a state to fill; q5's begins to lose rows after 12 s
# Of the guess, while the state fills: q5 with an empty state is up to 1.4 times as fast as later.
_FILL_SHARE, _FILL_AFTER_LOOK = 0.95, 0.75
_LOOK_INTERVALS = 4, 3  # at the maximum rate: until batches fill the interval, and what is looked at


@dataclass(frozen=True)
class CapacityEstimator:
    """Brackets the MST of a deployment by short, rate-controlled runs.

    Parameters
    ----------
    min_rate, max_rate
        Lowest and highest rate probed, records/s; ``"streambed"`` knows neither. Defaults: the larger of 1 and 1/1024
        of the warm-up's rate, if that is not above the highest; what the source can serve without being the limit.
    max_repeats
        How often a rate that failed is repeated where other load, the compiler or idle slots may be the reason; in an
        estimate three times as often in all. The next attempt is still judged, and a rate that fails then is tried
        again when the machine is quiet. A rate that was not offered is repeated twice at most.
    patience_s
        Total seconds that an estimate waits, before such repeats, for other load to end; slightly more, as it
        checks every few seconds. ``"streambed"`` repeats nothing and does not wait.
    most_s
        Seconds after which no further probe begins if there is an answer, and twice as many if there is none; what is
        not known by then is in the bracket. None: no bound.
    warmup_min_s, warmup_cap_s, warmup_change
        The warm-up lasts at least and at most these seconds; it is over when the consumed rate and the seconds
        per record change by at most this share from one chunk to the next, or go up and down by up to three times it.
    """

    tolerance: float = 0.01  # relative width of the final bracket
    success: float = 0.99  # least share of the due rows that a sustained rate consumes
    schedule: ScheduleName | Schedule = "adaptive"  # or the published "streambed"
    min_rate: float | None = None
    max_rate: float | None = None
    max_probes: int = 20  # repetitions included and the warm-up not
    max_repeats: int = MAX_REPEATS
    patience_s: float = PATIENCE_S
    max_disturbance: float = MAX_DISTURBANCE  # largest share others may take of the machine, or cores may be slower by
    most_s: float | None = None
    settle_s: float | None = None  # discarded after a change of rate; default: an interval, at least 2 s
    window_s: float | None = None  # observed; default: 6 intervals, at least 12 s
    warmup_min_s: float = WARMUP_MIN_S
    warmup_cap_s: float = WARMUP_CAP_S
    warmup_change: float = 0.05
    chunk_s: float | None = None  # of the warm-up; default: 5 intervals, at least 10 s
    published: StreamBedSchedule = SIMPLE_QUERIES  # times of "streambed", which replace the others and `max_probes`
    clock: Callable[[], float] = time.monotonic  # seconds, for the times in the result

    def __post_init__(self) -> None:
        within("tolerance", self.tolerance, 0.0, 1.0)
        within("success", self.success, 0.0, 1.0, ends="(]")
        within("patience_s", self.patience_s, 0.0, math.inf, ends="[)")
        within("max_disturbance", self.max_disturbance, 0.0, 1.0, ends="[]")
        within("warmup_change", self.warmup_change, 0.0, 1.0)
        lasts = ("most_s", "settle_s", "window_s", "chunk_s", "warmup_min_s", "warmup_cap_s")
        for name in ("min_rate", "max_rate", *lasts):
            value = getattr(self, name)
            if value is not None:
                within(name, value, 0.0, math.inf)
        if not isinstance(self.schedule, Schedule) and self.schedule not in get_args(ScheduleName):
            raise WorkbenchError(
                f"schedule is {self.schedule!r}; allowed are {', '.join(get_args(ScheduleName))}, and in Python a "
                "Schedule of your own. Choose one of them."
            )
        for name, least in (("max_probes", 1), ("max_repeats", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or value < least:
                raise WorkbenchError(f"{name} is {value!r}; it must be a whole number of at least {least}. Raise it.")
        if self.warmup_min_s > self.warmup_cap_s:
            raise WorkbenchError(
                f"warmup_min_s is {self.warmup_min_s!r}, above warmup_cap_s = {self.warmup_cap_s!r}; "
                "raise the cap or lower the minimum."
            )
        if self.schedule == "streambed" and (self.min_rate, self.max_rate) != (None, None):
            raise WorkbenchError(
                "The schedule 'streambed' follows the published rule, which knows no lowest and no highest rate; "
                f"min_rate is {self.min_rate!r} and max_rate {self.max_rate!r}. Leave them out, or choose the adaptive "
                "schedule.",
                settings=("max_rate", "schedule"),
            )
        if self.min_rate is not None and self.max_rate is not None and self.min_rate > self.max_rate:
            raise WorkbenchError(
                f"min_rate is {self.min_rate!r}, above max_rate = {self.max_rate!r}; raise max_rate or lower min_rate."
            )

    @property
    def steps(self) -> Schedule:
        """The schedule that chooses the rates."""
        match self.schedule:
            case "adaptive":
                return AdaptiveSchedule(**{one.name: getattr(self, one.name) for one in fields(AdaptiveSchedule)})
            case "streambed":
                return replace(self.published, tolerance=self.tolerance)
            case injected:
                return injected

    def chunk_time(self, interval_s: float) -> float:
        """Seconds of a chunk of the warm-up at a trigger interval of `interval_s`."""
        return self.chunk_s or max(5 * interval_s, 10.0)

    def probe_s(self, interval_s: float) -> float:
        """Seconds of an undisturbed probe at a trigger interval of `interval_s`."""
        times = self.steps.times(interval_s)
        return times.settle_s + times.window_s

    def settings(self) -> dict[str, Setting]:
        """Return, as plain values, the settings that an estimate depends on in addition to the run."""
        settings = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in {"clock", "published"}}
        settings["schedule"] = self.schedule if isinstance(self.schedule, str) else repr(self.schedule)
        if self.schedule == "streambed":  # whose tolerance is the estimator's
            published = asdict(self.published).items()
            settings |= {f"streambed {name}": value for name, value in published if name != "tolerance"}
        return settings

    def estimate(
        self, run: Run, history: Sequence[Probe] = (), on_probe: Callable[[Probe], None] | None = None
    ) -> MstEstimate:
        """Estimate the MST of `run`, continuing after the probes of `history` if an earlier estimate was interrupted.

        `on_probe` is called with each new finished probe before it is used; what it raises ends the estimate. A
        `WorkbenchError` says that the query failed, the source cannot serve the lowest rate or a rate was not offered.
        """
        probes = list(history)
        for probe in self.probes(run, history):
            if on_probe is not None:
                on_probe(probe)
            probes.append(probe)
        return self.steps.conclude(probes, run.budget.interval_s)

    def probes(self, run: Run, history: Sequence[Probe] = (), guess: float | None = None) -> Iterator[Probe]:
        """Make the probes that bracket the MST, after those of `history`; `guess`, records/s, is an optimizer's."""
        steps, interval_s = self.steps, run.budget.interval_s
        made = list(history)
        if made and made[0].phase != "warm-up":
            raise WorkbenchError(
                "The recorded history of an estimate does not begin with its warm-up; give all of its probes in order, "
                "or none to start again."
            )
        step = steps.next_step(made, interval_s)
        if step is None or _no_room(made, run, steps):
            return
        session = _Session(self, steps, run, self.clock(), sum(probe.seconds for probe in made), guess)
        if step.phase == "probe":
            # At least as warm as the interrupted run: probes late in a deployment with a short warm-up were warm.
            session.guess = step.rate
            session.warm_up(min(session.before_s, WARMUP_MIN_S))
        while step is not None:
            probe = session.make(step, len(made))
            yield probe
            made.append(probe)
            _require_offered(made)
            step = None if session.is_over(made) else steps.next_step(made, interval_s)

    def probes_at(self, run: Run, rates: Sequence[float]) -> Iterator[Probe]:
        """Warm up, then probe each of `rates` (records/s); a disturbed probe is repeated, and the last counts."""
        session = _Session(self, self.steps, run, self.clock(), 0.0, fill_at=min(rates, default=None))
        session.warm_up()
        for number, rate in enumerate(rates, 1):
            for attempt in range(1, self.max_repeats + 2):
                probe = session.make(Step("probe", rate, attempt, attempt > self.max_repeats), number)
                yield probe
                if probe.judgement is None or not probe.judgement.repeatable:
                    break


@dataclass
class _Session:
    """One estimate in progress on one run; `before_s` seconds were spent before it was resumed."""

    estimator: CapacityEstimator
    steps: Schedule
    run: Run
    started: float
    before_s: float
    guess: float | None = None
    fill_at: float | None = None  # records/s, instead of somewhat below the guess
    disturbed: bool = False
    waited_s: float = 0.0
    windows: list[float] = field(default_factory=list)  # disturbance of each
    filling: Observation | None = None
    stateful: bool = False  # whether an operator was seen that keeps state
    highest: float = 0.0  # highest rate since the state was empty, records/s
    filled_s: float = 0.0  # seconds spent on filling the state again
    short: bool = False  # whether the first filling left a state that still grows, at a known cost of its rows
    long: bool = False  # whether rows stay in the state far longer than a probe takes

    def is_over(self, made: Sequence[Probe]) -> bool:
        """Whether the time is up after the probes `made`, or no rate can fit; it is doubled until there is an answer.

        What it takes to fill a state again, after a rate far above, is not counted, up to as much time again.
        """
        if _no_room(made, self.run, self.steps):
            return True
        most_s = self.estimator.most_s
        if most_s is None:
            return False
        passed = self.estimator.clock() - self.started - min(self.filled_s, most_s)
        if made[-1].phase != "probe" or passed < most_s:
            return False
        found = self.steps.conclude(made, self.run.budget.interval_s)
        return passed >= 2 * most_s or (found.rate is not None and found.limit == "query")

    def make(self, step: Step, number: int) -> Probe:
        """Carry out `step`."""
        begun = self.estimator.clock()
        steady, filled, rate = None, None, step.rate
        judgement = None
        if step.phase == "warm-up":
            observation, steady = self.warm_up()
            if self.filling is not None:
                filled, steady, rate = steady, True, observation.commanded_rate
        else:
            if self.disturbed:  # the load that disturbed the last probe would disturb the next one, too
                waits_since = self.estimator.clock()
                self.run.await_quiet(max(0.0, self.estimator.patience_s - self.waited_s))
                self.waited_s += self.estimator.clock() - waits_since
            filled = self._begin_again(step.rate)
            observation = self._observe(step.rate)
            judgement = judge(
                observation,
                self.estimator.success,
                max_disturbance=self.estimator.max_disturbance,
                accept_disturbed=step.accept_disturbed or self._as_usual(observation),
                check_trend=self.steps.strict,
                slots=self.run.budget.slots if isinstance(self.run, SharedRun) else None,
                interval_s=self._shared_interval_s,
            )
            self.disturbed = judgement.repeatable
        self.stateful |= any(operator.keeps_state for operator in observation.operators)
        if step.phase == "warm-up":
            self.highest = max(self.highest, observation.consumed_rate)
        at_s, took_s = begun - self.started + self.before_s, self.estimator.clock() - begun
        return Probe(
            number, step.phase, rate, step.attempt, observation, judgement, at_s, took_s, steady, filled=filled
        )

    @property
    def _shared_interval_s(self) -> float:
        """Trigger interval where stages share the slots in time; inf where operators run in parallel."""
        return self.run.budget.interval_s if isinstance(self.run, SharedRun) else math.inf

    def _as_usual(self, observation: Observation) -> bool:
        """Whether the machine is disturbed as usual, so that repeating the probe would not help."""
        self.windows.append(observation.disturbance.worst)
        known = len(self.windows) > _WINDOWS and observation.compiling <= COMPILING
        return known and observation.disturbance.worst <= _UNUSUAL * min(self.windows)

    def _observe(self, rate: float) -> Observation:
        interval = self.run.budget.interval_s
        times = self.steps.times(interval)
        if self.filling is not None and rate == self.filling.commanded_rate:  # observed while the state was filled
            seen, self.filling = self.filling, None
            return seen
        self.filling = None
        if times.cooldown_s:
            self.run.set_rate(times.cooldown_rate)
            self.run.settle(times.cooldown_s)
        self.run.set_rate(rate)
        self.run.settle(times.settle_s)
        observation = self.run.observe(times.window_s)
        if len(observation.batches) <= MIN_WHOLE_BATCHES:  # the testbed's own cap was too short: once more, longer
            return self.run.observe(2 * times.window_s)
        if self.steps.strict:
            for _ in range(_LATE_WINDOWS):
                if keeps_up(observation, self._shared_interval_s) or not _catching_up(observation, interval):
                    break
                observation = self.run.observe(times.window_s)
        return observation

    def warm_up(self, least_s: float = 0.0) -> tuple[Observation, bool]:
        """Offer as many records as fit until the run is steady; return the last observation, and whether it is steady.

        It lasts at least `least_s` seconds, even if that is more than the cap. A run whose code is warm has its state
        filled instead, unless the schedule has a warm-up of its own.
        """
        fixed_s = self.steps.times(self.run.budget.interval_s).warmup_s
        if fixed_s is None and isinstance(self.run, SharedRun):
            return self._fill(self.run)
        self.run.set_rate(math.inf)
        if fixed_s is not None:
            return self.run.observe(fixed_s), True
        chunk = self.estimator.chunk_time(self.run.budget.interval_s)
        begun = self.estimator.clock()
        seen: list[Observation] = []
        while True:
            observation = self.run.observe(chunk)
            spent = self.estimator.clock() - begun
            seen.append(observation)
            steady = _settled(seen[-3:], self.estimator.warmup_change)
            done = (steady and spent >= self.estimator.warmup_min_s) or spent >= self.estimator.warmup_cap_s
            if done and spent >= least_s:
                return observation, steady

    def _fill(self, run: SharedRun) -> tuple[Observation, bool]:
        """Fill the state near the rate that lasts, by the guess or a look; return what was seen, and if it is full."""
        interval_s, rate = run.budget.interval_s, self.fill_at
        if rate is None and self.guess is not None:
            rate = self.steps.near(_FILL_SHARE * self.guess)
        if rate is None:
            run.set_rate(math.inf)
            run.settle(_LOOK_INTERVALS[0] * interval_s)
            look = filling_rate(run.observe(_LOOK_INTERVALS[1] * interval_s).batches[1:])
            rate = self.steps.near(max(_FILL_AFTER_LOOK * look, 1.0))
        seen, filled = self._fill_at(run, rate)
        self.short = not filled and seen.lacking_s > 0
        return seen, filled

    def _fill_at(self, run: SharedRun, rate: float) -> tuple[Observation, bool]:
        times, self.highest = self.steps.times(run.budget.interval_s), rate
        run.set_rate(rate)
        begun, most_s = self.estimator.clock(), fill_s(run.budget.interval_s)
        filled = run.fill(times.settle_s, most_s)
        self.filled_s += max(0.0, self.estimator.clock() - begun - most_s)  # to find out how long rows stay
        self.filling = run.observe(times.window_s)
        self.long = bool(self.filling.held)
        return self.filling, filled

    def _begin_again(self, rate: float) -> bool | None:
        """Fill the state again: empty one that a far higher rate filled, or this rate would pay for its leftovers.

        A join goes through all of its state in each batch. A state that is too small is filled further: where the
        first filling left it so, or where rows stay long and came at a far lower rate. Returns whether the state is
        full; None where the query went on.
        """
        self.short |= self.long and rate >= _FAR * self.highest
        self.highest = max(self.highest, rate)
        if self.filling is not None and rate == self.filling.commanded_rate:
            return None  # it was observed while the state was filled
        far = self.highest >= _FAR * rate and self.stateful
        if not (far or self.short) or self.steps.times(self.run.budget.interval_s).cooldown_s:
            return None
        if not isinstance(self.run, SharedRun) or (far and not self.run.empty()):
            return None
        self.short = False
        begun, filled_s = self.estimator.clock(), self.filled_s
        highest = rate if far else self.highest
        filled = self._fill_at(self.run, rate)[1]
        self.highest = highest
        self.filled_s = filled_s + self.estimator.clock() - begun
        return filled


def _no_room(made: Sequence[Probe], run: Run, steps: Schedule) -> bool:
    """Whether no rate fits the interval of `run`, in which its stages take turns at the slots."""
    return steps.strict and isinstance(run, SharedRun) and overrun_s(made, run.budget.interval_s) is not None


def fill_s(interval_s: float) -> float:
    """Longest time for the state of a warm run to fill, seconds."""
    return max(_FILL_S, _FILL_INTERVALS * interval_s)


def filling_rate(batches: Sequence[Batch]) -> float:
    """Rate at which `batches` last one interval on average, records/s; 0 without a batch with rows.

    Sums are taken and no median: a batch that is slow because a store compacts comes again and again. The fixed seconds
    of a batch matter little, because batches fill the interval; those that do not fill it seem slower than they
    will be.
    """
    counted = [batch for batch in batches if batch.records]
    seconds = sum(batch.duration_s for batch in counted)
    return sum(batch.records for batch in counted) / seconds if seconds > 0 else 0.0


def _catching_up(observation: Observation, interval_s: float) -> bool:
    """Whether batches followed each other faster than the interval, to catch up after a late start.

    Such batches are smaller than an interval's worth and grow slowly near the MST, so the window may end before it
    shows that the rate is too high; also when it begins with such a batch and ends with one longer than the interval.
    """
    gaps = len(observation.batches) - 1
    if gaps < MIN_WHOLE_BATCHES:
        return False
    first, second, *_, last = observation.batches
    began_late = second.start_s - first.start_s < (1 - _LATE_START) * interval_s
    early_s = gaps * interval_s - observation.elapsed_s
    return early_s > _LATE_START * gaps * interval_s or (began_late and last.duration_s > interval_s)


def _settled(chunks: Sequence[Observation], change: float) -> bool:
    """Whether rate and seconds per record are steady: equal in the last two chunks, or up and down in three."""
    if len(chunks) < _FEWEST_CHUNKS or min(chunk.consumed_records for chunk in chunks) <= 0:
        return False
    record_s = [sum(batch.duration_s for batch in chunk.batches[1:]) / chunk.consumed_records for chunk in chunks]
    return _flat([chunk.consumed_rate for chunk in chunks], change) and _flat(record_s, change)


def _flat(values: Sequence[float], change: float) -> bool:
    last = values[-1] / values[-2] - 1
    if abs(last) <= change:
        return True
    before = values[-2] / values[-3] - 1 if len(values) > _FEWEST_CHUNKS else 0.0
    return last * before < 0 and max(abs(last), abs(before)) <= _SWING * change


def _require_offered(probes: Sequence[Probe]) -> None:
    last = probes[-1]
    refused = [probe.answered("not-offered") for probe in probes if probe.rate == last.rate]
    if len(refused) > _NOT_OFFERED_REPEATS and all(refused[-_NOT_OFFERED_REPEATS - 1 :]) and last.judgement is not None:
        raise WorkbenchError(
            f"The rate {last.rate:,.0f} records/s was not offered in {sum(refused)} attempts: "
            f"{last.judgement.reason} Within 1 % is allowed. Check the source's rate limiter, or lower max_rate."
        )
