"""A budget as a judged plan: its capacity with the interval, the doubts about it, and the verdict.

The verdict goes by the probability of falling short, how far the slots lie beyond those measured, how wide the interval
is, whether forms that fit alike disagree, and how many runs are doubtful: the first doubt, the gravest first, decides.
A plan is called risky only where that probability is too high; other doubts are about what it rests on.

On cores that are t times as fast everything in a batch takes 1/t of its time, so within an interval they do what those
measured do within t times the interval: where the parts of a batch are known, the capacity there is t times the model's
at that interval, with the state of t times the rate, else in proportion to the speed. The speeds of both cores come
from a stopwatch and not from the query, so the plan carries the doubt of that as well.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq
from scipy.stats import t as student

from workbench import units
from workbench.arrays import Floats
from workbench.capacity.explore import Exploration
from workbench.capacity.model import (
    FEWEST_RUNS,
    FEWEST_SLOT_COUNTS,
    MARGIN,
    Asked,
    Law,
    Model,
    Room,
    alike,
    check_model,
    remedies,
)
from workbench.capacity.planning.intervals import IntervalSpeedup
from workbench.checks import SLACK
from workbench.dataflow import Budget
from workbench.errors import WorkbenchError
from workbench.measuring import EXPECTED_WEIGHT, LEVEL
from workbench.records import (
    CapacityPlan,
    Concern,
    CountedCores,
    InstanceType,
    ModelFinding,
    Outage,
    PlanVerdict,
    core_speed_of,
)
from workbench.speed import REFERENCE, relative_speed

GRAVE_RISK, SOME_RISK, LITTLE_RISK = 0.25, 0.05, 0.01
GRAVE_WIDTH = 2.5  # upper end of the interval over the lower
FAR, VERY_FAR = 2.0, 4.0  # times the most slots measured
GRAVE_SPREAD = 0.5  # between forms that fit equally well, over the prediction

_NOTABLE: tuple[Concern, ...] = ("hot key", "memory not measured", "trigger interval", "other cores")


def falls_short(risk: float) -> bool:
    """Whether a deployment falls short too often: the lower end of its capacity's 90 % interval is below the rate."""
    return risk > SOME_RISK


def judge(
    plan: CapacityPlan,
    risk: float,
    *,
    load: float,
    alike: Mapping[str, float],
    asked: Asked | None = None,
    room: Room | None = None,
    attainable: bool = True,
) -> PlanVerdict:
    """Return the verdict on a plan whose capacity is below the rate with the probability `risk`.

    The capacity by `alike`, by each form that fits the runs about equally well, records/s, must carry `load`: the
    plan's rate, which may be of another interval. How the plan was `asked` for, and the `room` on the machine of the
    runs, decide how more runs are made. It is `attainable` if some number of slots carries the rate with as little risk
    as advice asks for.
    """
    found = {one.concern: one for one in plan.cards}
    far_off = plan.extrapolation > FAR
    runs = found.get("doubtful runs")
    share = runs.value / plan.runs if runs else 0.0
    spread = found["forms disagree"].value if "forms disagree" in found and far_off else 0.0
    form = min(alike, key=lambda name: alike[name], default="")
    below = plan.extrapolation > 1 and alike.get(form, math.inf) < load
    width = plan.high / plan.low if plan.low > 0 else math.inf
    larger, safer, _ = remedies(asked or Asked(), plan.rate, room, plan.budget.slots)
    safer = safer if attainable else larger
    short = f"The probability that its capacity is below the rate is {units.chance(risk)}."
    far = f"It has {units.number(plan.extrapolation, 2)} times as many slots as the largest deployment measured."
    wide = (
        f"Its capacity is known only to within a factor of {width:.1f}."
        if math.isfinite(width)
        else "Its capacity has no known lower bound."
    )
    grave = (
        (plan.extrapolation > VERY_FAR, far, larger),
        (risk > GRAVE_RISK, short, safer),
        (width > GRAVE_WIDTH, wide, larger),
        (
            below and spread > GRAVE_SPREAD,
            f"Models that fit the runs equally well differ by {units.chance(spread)} here.",
            larger,
        ),
    )
    late, other = found.get("late batches"), units.rate(alike.get(form))
    some = (
        # the costs behind a late batch contradict the model's capacity
        *([(True, late.finding, late.advised)] if late else []),
        (far_off, far, larger),
        (falls_short(risk), short, safer),
        (below, f"By the {form} form, which fits the runs about as well, its capacity is only {other}.", larger),
        *([(share > 0.5, f"{units.chance(share)} of the runs are doubtful.", runs.advised)] if runs else []),
        *((True, found[concern].finding, found[concern].advised) for concern in _NOTABLE if concern in found),
    )
    for place, (doubted, reason, remedy) in enumerate((*grave, *some)):
        if doubted:
            return PlanVerdict(
                "don't rely on it yet" if place < len(grave) else "risky" if falls_short(risk) else "verify first",
                risk,
                reason,
                remedy.words,
                remedy.command,
            )
    return PlanVerdict("safe", risk, short, "")


def fill(
    least: int,
    paid: int,
    most_measured: int,
    risks_of: Callable[[Sequence[int]], Sequence[float]],
    executor_slots: int | None = None,
) -> int:
    """Return the fewest slots, from `least` to `paid`, that lower the risk to 1 %, or else those of the least risk.

    `risks_of` gives the risk of falling short at each of some slot counts. Lack of evidence is not a reason to go
    beyond twice as many slots as were measured. Executors of `executor_slots` stay whole; None: they have any size.
    """
    counts = range(least, min(paid, max(least, int(FAR * most_measured))) + 1, executor_slots or 1)
    risks = dict(zip(counts, risks_of(counts), strict=True))
    enough = next((slots for slots, risk in risks.items() if risk <= LITTLE_RISK), None)
    return min(risks, key=lambda slots: risks[slots]) if enough is None else enough


_NODES, _SHARES = np.polynomial.legendre.leggauss(16)  # on (-1, 1); Gauss's rule reaches into both tails
_CHANCES = np.concatenate([_NODES + 1, _NODES + 3]) / 4  # probabilities of capacities, by Gauss's rule on each half
_WEIGHTS = np.tile(_SHARES / 4, 2)
_FAINT = 1e-4  # probability beyond either end of the search


@dataclass(frozen=True)
class Place:
    """Cores and trigger interval of a budget, and how its capacity there follows from the model."""

    exploration: Exploration  # runs, and the model of the explored interval on the cores measured
    model: Model  # the model on the cores of the plan
    gain: IntervalSpeedup  # capacity there, relative to that of `model`
    cores: CountedCores | None  # the plan's cores; None if those measured were not timed

    @property
    def most_measured(self) -> int:
        """Most slots measured."""
        return int(self.exploration.points[:, 1].max())

    def at_explored(self, rate: float, risk: float | None) -> float:
        """Return the rate that `model` must carry so that `rate` is carried, with a `risk` if one is accepted."""
        return rate / (self.gain.ratio if risk is None else self.gain.quantile(risk))

    def least(self, rate: float, memory_mb: int, margin: float, risk: float | None, executor_slots: int | None) -> int:
        """Return the fewest slots that carry `rate`, at least those measured; see `Model.slots_for`."""
        fewest = min(run.budget.slots for run in self.exploration.runs)
        load, step = self.at_explored(rate, risk), executor_slots or 1
        return self.model.slots_for(load, memory_mb, margin, min_slots=fewest, risk=risk, step=step)

    def risks(self, rate: float, memory_mb: float, counts: Sequence[int]) -> list[float]:
        """Probability that the capacity is below `rate`, for each number of slots."""
        law = self.model.law_
        if law is None or not self.gain.uncertain:
            return self.model.risks(rate / self.gain.ratio, memory_mb, counts)
        return [float(risk) for risk in _below(rate, _capacities(law, memory_mb, counts), self.gain)]


Offer = tuple[CountedCores | None, tuple[InstanceType, ...]]
"""Instance types whose cores count as equally fast, and how fast; None if those measured were not timed."""


def offers(exploration: Exploration, instances: Sequence[InstanceType]) -> list[Offer]:
    """Group the instance types by the speed of their cores; without types or speeds, return the cores measured."""
    found = dict[CountedCores | None, list[InstanceType]]()
    for one in instances:
        found.setdefault(counted(exploration, one.core_speed), []).append(one)
    return [(cores, tuple(own)) for cores, own in found.items()] or [(counted(exploration, None), ())]


def counted(exploration: Exploration, core_speed: float | None) -> CountedCores | None:
    """Return cores of `core_speed`, relative to the reference (None: as measured); None if not timed."""
    measured = core_speed_of(exploration.fitted_runs)
    relative = relative_speed(measured, REFERENCE)
    if measured is None or relative is None:
        return None
    if core_speed is None:
        return CountedCores(measured)
    times, doubt = core_speed / relative.times, math.sqrt(relative.high / relative.low)
    return CountedCores(measured, times, times / doubt, times * doubt)


def on_cores(
    exploration: Exploration, cores: CountedCores | None, interval_s: float | None = None, more_s: float = 0.0
) -> tuple[Model, IntervalSpeedup]:
    """Return a model, and the factor of its capacity on `cores`, with its uncertainty.

    `interval_s` is another trigger interval than the explored one, which needs the parts of a batch; so does `more_s`,
    for which each batch waits longer than those measured: the rows of a shorter interval then arrive in a whole one.
    Raises `WorkbenchError` when the fixed work of a batch may fill the interval there.
    """
    model, explored_s = exploration.model, exploration.fitted_runs[-1].budget.interval_s
    interval_s = explored_s if interval_s is None else interval_s
    if more_s >= interval_s:
        raise WorkbenchError(
            f"A batch that waits {more_s:g} s longer fills the trigger interval of {interval_s:g} s. Plan for a longer "
            "interval."
        )
    share, asked_s, interval_s = 1 - more_s / interval_s, interval_s, interval_s - more_s
    if cores is None or not cores.other:
        return model if interval_s == explored_s else model.at_interval(interval_s, share), IntervalSpeedup(share)

    def there(times: float) -> Model:
        in_proportion = model.batch is None and interval_s == explored_s
        return model if in_proportion else model.at_interval(times * interval_s, share * times)

    largest = exploration.points[exploration.points[:, 1].argmax()]
    low, high = (times * float(there(times).predict([largest])[0]) for times in (cores.low, cores.high))
    if not low > 0:
        raise WorkbenchError(
            f"Cores that are {cores.times:.2f} times as fast as those measured may be busy for the whole trigger "
            f"interval of {asked_s:g} s with what a batch costs whatever its rows. Plan for a longer interval, or "
            "for faster cores."
        )
    reach = float(student.ppf((1 + LEVEL) / 2, EXPECTED_WEIGHT))
    return there(cores.times), IntervalSpeedup(
        share * cores.times, deviation=math.log(high / low) / 2 / reach, freedom=EXPECTED_WEIGHT
    )


def check_other_cores(cores: CountedCores | None) -> ModelFinding | None:
    """Warn that the plan uses cores on which the query was not measured."""
    if cores is None or not cores.other or cores.low <= 1 <= cores.high:
        return None
    return ModelFinding(
        "other cores",
        cores.times,
        f"The plan counts cores {cores.times:.2f} times as fast as those measured ({cores.low:.2f} to "
        f"{cores.high:.2f}), as timed without the query, whose factor may differ.",
        "Verify the planned deployment on such cores before relying on it.",
    )


def margin_of(margin: float | None, risk: float | None, outage: Outage | None) -> float:
    """Return the margin to plan with: by default 1.1, or 1 where a risk replaces it; an outage may need more."""
    if margin is None:
        margin = MARGIN if risk is None else 1.0
    return margin if outage is None else max(margin, outage.margin)


def judged_plan(
    place: Place,
    budget: Budget,
    rate: float,
    *,
    margin: float,
    least_slots: int,
    executors: int,
    findings: Sequence[ModelFinding],
    attains: Callable[[], bool],
    worse: float = 1.0,
) -> CapacityPlan:
    """Make the plan of a budget, with the verdict on it.

    `findings` are what is doubtful in addition to the model and the runs. `attains` says whether some number of slots
    carries the rate with as little risk as advice asks for. A record counts `worse` times, because keys are more skewed
    than measured.
    """
    exploration, slots, memory = place.exploration, budget.slots, budget.profile.memory_mb
    sample, load = exploration.fitted_runs[-1], rate * worse
    low, expected, high = capacity_at(replace(exploration, model=place.model), budget, place.gain)
    at = (exploration.model, exploration.points, exploration.rates, slots, memory)
    answers, read = alike(*at), all(run.estimate.from_readings for run in exploration.fitted_runs)
    # fewer runs are enough where the parts of a batch explain them
    enough = FEWEST_SLOT_COUNTS if read or exploration.model.batch is not None else FEWEST_RUNS
    found = (
        *check_model(*at, answers=answers, fewest_runs=enough, asked=exploration.asked),
        *findings,
        *filter(None, [check_other_cores(place.cores)]),
        *exploration.findings,
    )
    (risk,) = place.risks(load, memory, [slots])
    (as_explored,) = exploration.model.predict([[memory, slots]])
    attainable = not falls_short(risk) or attains()
    plan = CapacityPlan(
        query=sample.query,
        rate=rate,
        margin=margin,
        budget=budget,
        expected_rate=expected / worse,
        low=low / worse,
        high=high / worse,
        form=exploration.model.form,
        testbed=sample.testbed,
        testbed_kind=sample.testbed_kind,
        runs=len(exploration.fitted),
        extrapolation=slots / place.most_measured,
        executors=executors,
        cards=found,
        least_slots=least_slots,
        cores=place.cores,
    )
    explored = load * float(as_explored) / expected  # the forms are of the explored interval and the cores measured
    room = Room.of(exploration.fitted_runs)
    verdict = judge(plan, risk, load=explored, alike=answers, asked=exploration.asked, room=room, attainable=attainable)
    return replace(plan, verdict=verdict)


def capacity_at(exploration: Exploration, budget: Budget, gain: IntervalSpeedup) -> tuple[float, float, float]:
    """Lower end, expected capacity and upper end (5 % lie beyond each) at the interval of `budget`, records/s."""
    model, slots, memory = exploration.model, budget.slots, budget.profile.memory_mb
    (middle,), (low,), (high,) = model.predict([[memory, slots]]), *model.interval([[memory, slots]], LEVEL)
    expected = gain.ratio * float(middle)
    if model.law_ is None or not gain.uncertain:
        return gain.ratio * float(low), expected, gain.ratio * float(high)
    capacities = _capacities(model.law_, memory, [slots])
    least = max(float(capacities.min()), SLACK * float(middle)) * gain.quantile(_FAINT)
    most = capacities.max() * gain.quantile(1 - _FAINT)

    def end(tail: float) -> float:
        if _below(least, capacities, gain)[0] >= tail:
            return 0.0  # some capacities are undefined
        found = brentq(lambda at: float(_below(math.exp(at), capacities, gain)[0]) - tail, *np.log([least, most]))
        return math.exp(found)

    return min(expected, end((1 - LEVEL) / 2)), expected, max(expected, end((1 + LEVEL) / 2))


def _capacities(law: Law, memory_mb: float, counts: Sequence[int]) -> Floats:
    """Return the capacities that are missed with each of `_CHANCES`, shape (chances, counts)."""
    points = np.array([[memory_mb, count] for count in counts], dtype=float)
    return np.array([law.quantile(points, float(chance)) for chance in _CHANCES])


def _below(rate: float, capacities: Floats, gain: IntervalSpeedup) -> Floats:
    """Return the probability that capacity x gain is below `rate`, shape (counts,)."""
    with np.errstate(divide="ignore"):  # an undefined capacity is certainly below
        return np.asarray(_WEIGHTS @ gain.below(rate / capacities))
