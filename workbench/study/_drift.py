"""Capacity drift: what changed since the previous run of the same study, and whether noise alone explains it.

A change is called one only if it is larger than chance makes it in 19 of 20 cases; of several things compared one by
one, none is called one by chance in 19 of 20 cases. Rates are compared as ratios, on the logarithmic scale. Of a study
the runs count that its model was fitted to, those of one budget by their mean. What chance explains follows from

- the width of both brackets: the maximum lies anywhere between their ends;
- the scatter of repeats: of both studies' runs about their models. With few of them a general expectation counts too:
  five percent, as repeats of StreamBed's simple queries scatter (median range of two or three: 4 to 7 %), with the
  weight of four observations. It is the conjugate prior of a normal variance, so the difference follows Student's
  distribution.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, geometric_mean
from typing import Literal

import numpy as np
from scipy.stats import t as student

from workbench import units
from workbench.capacity import Exploration
from workbench.capacity.model import why_no_capacity
from workbench.capacity.planning import IntervalSpeedup, capacity_at
from workbench.dataflow import Budget
from workbench.errors import WorkbenchError
from workbench.measuring import EXPECTED_DEVIATION, EXPECTED_WEIGHT, expected_deviation, with_prior
from workbench.records import Measurement, core_speed_of
from workbench.speed import RelativeSpeed, relative_speed
from workbench.study.planned import Planned, interval_gains

_LAW_PARAMETERS = 3  # of the scaling law: scale and two exponents
_SLACK = 1e-9
LEVEL = 0.95  # share of chance changes that must not be called changes

Judgement = Literal["lower", "higher", "within noise", "unknown"]


@dataclass(frozen=True)
class Scatter:
    """Relative standard deviation of one measurement, and its degrees of freedom."""

    deviation: float = EXPECTED_DEVIATION
    freedom: int = EXPECTED_WEIGHT

    def quantile(self, comparisons: int = 1) -> float:
        """Return the standard deviations within which chance keeps all `comparisons` in 19 of 20 cases (Bonferroni)."""
        return float(student.ppf(1 - (1 - LEVEL) / (2 * comparisons), self.freedom))


@dataclass(frozen=True)
class Change:
    """One quantity before and now, compared on the logarithmic scale.

    `least` and `most` are ends of ln(now / before): of the brackets' middles for a rate, and equal then; infinite where
    one is open. `before` and `now` are geometric means of several runs; None where there was none.
    """

    thing: str
    unit: str
    before: float | None
    now: float | None
    least: float
    most: float
    tolerated: float  # largest abs(ln(now / before)) that chance explains

    @property
    def ratio(self) -> float | None:
        """How many times as large it is now; None where that is only known to be in a range."""
        return math.exp(self.most) if self.least == self.most else None

    @property
    def bounds(self) -> tuple[float, float]:
        """At least and at most how many times as large it is now; 0 and inf where nothing is known."""
        return math.exp(self.least), math.exp(self.most)

    @property
    def fall_by_chance(self) -> float:
        """Largest relative fall that chance explains."""
        return -math.expm1(-self.tolerated)

    @property
    def rise_by_chance(self) -> float:
        """Largest relative rise that chance explains; a rise to twice undoes a fall to half."""
        return math.expm1(self.tolerated)

    @property
    def judgement(self) -> Judgement:
        """Whether it changed beyond the noise; ``"unknown"`` where a bracket is open on the side that decides."""
        if self.most < -self.tolerated:
            return "lower"
        if self.least > self.tolerated:
            return "higher"
        if -self.tolerated <= self.least and self.most <= self.tolerated:
            return "within noise"
        return "unknown"


@dataclass(frozen=True)
class Difference:
    """A circumstance that changed: a setting, the machine, the workbench's version."""

    thing: str
    before: str
    now: str


@dataclass(frozen=True)
class Promise:
    """An earlier plan today: its budget, and its capacity (records/s) by the present model."""

    rate: float
    margin: float
    budget: Budget
    expected: float
    low: float  # of the 90 % interval
    high: float
    slots_now: int | None  # slots planned for the rate now; None if there is no plan

    @property
    def verdict(self) -> Literal["holds", "eats its margin", "too small"]:
        """Whether the earlier plan still carries its rate."""
        if self.expected >= self.margin * self.rate * (1 - _SLACK):
            return "holds"
        return "eats its margin" if self.expected >= self.rate else "too small"


@dataclass(frozen=True)
class Drift:
    """What changed between two runs; `promises` are of studies only, `costs` of measurements."""

    query: str
    before_at: str  # when the run began, ISO 8601
    now_at: str
    overall: Change  # of all budgets known from both sides: their mean ratio
    changes: tuple[Change, ...]
    differences: tuple[Difference, ...]
    scatter: Scatter
    promises: tuple[Promise, ...] = ()  # earlier plans by the present model, at intervals and for cores measured now
    costs: tuple[Change, ...] = ()  # CPU time per record of every operator
    cores: RelativeSpeed | None = None  # speed of the cores now, over that before, not corrected for; None: unknown

    @property
    def losses(self) -> tuple[Change, ...]:
        """Capacities that fell beyond the noise, with that of all budgets together first."""
        return tuple(dict.fromkeys(each for each in (self.overall, *self.changes) if each.judgement == "lower"))

    def other_cores(self) -> str:
        """Describe the cores' speed now, after a blank; empty where it did not change, or was not timed."""
        if self.cores is None or not self.cores.differs:
            return ""
        return f" The cores were {self.cores.words('those of the earlier run')}."


def drift(before: Measurement, now: Measurement, scatter: Scatter | None = None) -> Drift:
    """Compare two measurements of the same query on the same budget; `scatter` is that of repeats, if known.

    Raises WorkbenchError when query, budget, tasks or testbed differ, so that nothing can be compared.
    """
    _require_same("query", before.query, now.query)
    _require_same("budget", _words(before.budget), _words(now.budget))
    _require_same("kind of testbed", before.testbed_kind, now.testbed_kind)
    _require_same("tasks", str(before.tasks), str(now.tasks))
    scatter = scatter or Scatter()
    sides = (_Capacity.of((before,), scatter), _Capacity.of((now,), scatter))
    capacity = _capacity_change(now.budget, *sides, scatter.quantile())
    return Drift(
        now.query,
        before.started_at,
        now.started_at,
        capacity,
        (capacity,),
        _differences(before, now),
        scatter,
        costs=tuple(_operator_changes(before, now, scatter)),
        cores=relative_speed(now.core_speed, before.core_speed),
    )


def study_drift(before: Planned, now: Planned) -> Drift:
    """Compare two runs of the same study: every budget measured in both, all together, and the earlier plans.

    Raises WorkbenchError when the studies ask about another query, slot or interval, or share no budget.
    """
    for name in ("query", "testbed", "slot_cpus", "interval_s", "output_mode"):
        _require_same(name, str(getattr(before.study, name)), str(getattr(now.study, name)))
    earlier, later = _by_budget(before.exploration), _by_budget(now.exploration)
    common = [budget for budget in later if budget in earlier]
    if not common:
        raise WorkbenchError(
            "The two runs of the study measured no budget in common, so there is nothing to compare; keep slots and "
            "memory_mb of the study as they were, or compare with another run."
        )
    scatter = scatter_of((before.exploration, now.exploration))
    pairs = [(_Capacity.of(earlier[budget], scatter), _Capacity.of(later[budget], scatter)) for budget in common]
    each = scatter.quantile(len(pairs))
    changes = tuple(_capacity_change(budget, *pair, each) for budget, pair in zip(common, pairs, strict=True))
    before_at, now_at = (min(run.started_at for run in one.exploration.runs) for one in (before, now))
    overall = _overall(pairs, changes, scatter.quantile())
    differ = _differences(earlier[common[-1]][-1], later[common[-1]][-1]) + _study_differences(before, now)
    promises = tuple(_promises(before, now))
    cores = relative_speed(*(core_speed_of(one.exploration.measurements) for one in (now, before)))
    return Drift(now.study.query, before_at, now_at, overall, changes, differ, scatter, promises, cores=cores)


def scatter_of(explorations: Iterable[Exploration]) -> Scatter:
    """Estimate how repeats scatter: by the runs of `explorations` around their models, and the general expectation."""
    squares, freedom, expected = 0.0, 0, EXPECTED_DEVIATION
    for exploration in explorations:
        expected = max([expected, *(expected_deviation(run.machine) for run in exploration.measurements)])
        rates = exploration.rates
        predicted = exploration.model.predict(exploration.points)
        if len(rates) > _LAW_PARAMETERS and (predicted > 0).all() and (rates > 0).all():
            squares += float(np.sum(np.log(rates / predicted) ** 2))
            freedom += len(rates) - _LAW_PARAMETERS
    return Scatter(*with_prior(squares, freedom, expected))


@dataclass(frozen=True)
class _Capacity:
    """The capacity of a budget: the mean of its runs' logarithms twice and its variance, or an open range."""

    rate: float | None
    low: float
    high: float
    variance: float

    @classmethod
    def of(cls, runs: Sequence[Measurement], scatter: Scatter) -> "_Capacity":
        estimates = [run.estimate for run in runs]
        rates = [estimate.middle for estimate in estimates if estimate.middle > 0]
        rate = geometric_mean(rates) if rates else None
        low = fmean(math.log(estimate.low) if estimate.low > 0 else -math.inf for estimate in estimates)
        # Where the source limits a reading, the query may sustain more.
        high = fmean(math.log(one.high) if one.limit == "query" and one.high > 0 else math.inf for one in estimates)
        squares = [scatter.deviation**2] * len(runs)
        if math.isfinite(low) and math.isfinite(high):
            squares += [math.log(one.high / one.low) ** 2 / 12 for one in estimates]  # uniform between the ends
            low = high = (low + high) / 2
        return cls(rate, low, high, math.fsum(squares) / len(runs) ** 2)


def _capacity_change(budget: Budget, before: _Capacity, now: _Capacity, quantile: float) -> Change:
    tolerated = quantile * math.sqrt(before.variance + now.variance)
    least, most = now.low - before.high, now.high - before.low
    return Change(f"Capacity of {_words(budget)}", "records/s", before.rate, now.rate, least, most, tolerated)


def _overall(pairs: Sequence[tuple[_Capacity, _Capacity]], changes: Sequence[Change], quantile: float) -> Change:
    """Mean of the logarithms of the ratios; budgets with an open ratio do not count."""
    known = [(pair, change.most) for pair, change in zip(pairs, changes, strict=True) if change.least == change.most]
    thing = f"Capacity over {units.some(len(known), 'budget')}"
    if not known:
        return Change(thing, "", None, None, -math.inf, math.inf, 0.0)
    mean = fmean(ratio for _, ratio in known)
    variance = math.fsum(before.variance + now.variance for (before, now), _ in known)
    return Change(thing, "", None, None, mean, mean, quantile * math.sqrt(variance) / len(known))


def _operator_changes(before: Measurement, now: Measurement, scatter: Scatter) -> list[Change]:
    """CPU time per record of every operator; assumed to scatter like rates, plus the errors of the two fits."""
    was = {cost.operator: cost for cost in before.costs}
    pairs = [(was[cost.operator], cost) for cost in now.costs if cost.operator in was]
    quantile = scatter.quantile(max(1, len(pairs)))
    changes = []
    for old, cost in pairs:
        was_s, now_s = old.per_record_s, cost.per_record_s
        if was_s and now_s:
            errors = ((old.per_record_error or 0.0) / was_s, (cost.per_record_error or 0.0) / now_s)
            tolerated = quantile * math.sqrt(2 * scatter.deviation**2 + sum(error**2 for error in errors))
            ratio, thing = math.log(now_s / was_s), f"Cost of {cost.operator}"
            changes.append(Change(thing, "s per record", was_s, now_s, ratio, ratio, tolerated))
    return changes


def _promises(before: Planned, now: Planned) -> Iterable[Promise]:
    """Yield the earlier plans whose trigger interval and cores the present model covers."""
    slots_now = {plan.rate: plan.budget.slots for plan in now.plans}
    gains = interval_gains(replace(now.study, latency_s=None), now.sweep) or {now.study.interval_s: IntervalSpeedup()}
    for plan in before.plans:
        gain = gains.get(plan.budget.interval_s)
        if gain is not None and not plan.on_other_cores:
            low, expected, high = capacity_at(now.exploration, plan.budget, gain)
            yield Promise(plan.rate, plan.margin, plan.budget, expected, low, high, slots_now.get(plan.rate))


def _differences(before: Measurement, now: Measurement) -> tuple[Difference, ...]:
    return (
        *_unequal("Workbench version", {"": before.workbench_version}, {"": now.workbench_version}),
        *_unequal("Testbed", {"": before.testbed}, {"": now.testbed}),
        *_unequal("Machine", before.machine.described(), now.machine.described()),
        *_unequal("Setting", before.settings, now.settings),
    )


def _study_differences(before: Planned, now: Planned) -> tuple[Difference, ...]:
    asked = ("targets", "slots", "memory_mb", "tolerance", "margin", "risk", "form", "prices")
    names = ("dataset", "inputs", "schema", *asked)
    return tuple(_unequal("Study", *({name: getattr(one.study, name) for name in names} for one in (before, now))))


def _unequal(what: str, before: Mapping[str, object], now: Mapping[str, object]) -> Iterable[Difference]:
    for name in dict.fromkeys((*before, *now)):
        was, became = before.get(name, "not recorded"), now.get(name, "not recorded")
        if was != became:
            yield Difference(f"{what}: {name}" if name else what, str(was), str(became))


def _by_budget(exploration: Exploration) -> dict[Budget, list[Measurement]]:
    """Group the fitted runs by budget; where a budget has none, those that bound its capacity from one side."""
    fitted, bounding = defaultdict[Budget, list[Measurement]](list), defaultdict[Budget, list[Measurement]](list)
    for row, run in enumerate(exploration.runs):
        if isinstance(run, Measurement) and row in exploration.fitted:
            fitted[run.budget].append(run)
        elif isinstance(run, Measurement) and why_no_capacity(run) is not None:
            bounding[run.budget].append(run)
    return {**bounding, **fitted}


def _words(budget: Budget) -> str:
    return f"{budget.words} at {budget.interval_s:g} s"


def _require_same(thing: str, before: str, now: str) -> None:
    if before != now:
        raise WorkbenchError(
            f"The two runs cannot be compared: the {thing} was {before} and is {now}. Compare runs of the same."
        )
