"""The verdict on a plan: safe, risky, or don't rely on it yet, with the one reason that decides and what to do.

It goes by what a reader would have to weigh otherwise: the probability of falling short, how far the slots lie beyond
those measured, how wide the interval is, whether forms that fit alike disagree, and how many runs are doubtful. The
first doubt that applies, the gravest first, is the reason.
"""

import math
from collections.abc import Callable, Mapping, Sequence

from workbench import units
from workbench.capacity.model import Asked, remedies
from workbench.records import CapacityPlan, Concern, PlanVerdict

GRAVE_RISK, SOME_RISK, LITTLE_RISK = 0.25, 0.05, 0.01
GRAVE_WIDTH = 2.5  # upper end of the interval over the lower
FAR, VERY_FAR = 2.0, 4.0  # times the most slots measured
GRAVE_SPREAD = 0.5  # between forms that fit alike, of the prediction

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
    attainable: bool = True,
) -> PlanVerdict:
    """Give the verdict on a plan, whose capacity is below the rate with the probability `risk`.

    The capacity by `alike`, by each form that fits the runs about equally well, records/s, must carry `load`: the
    plan's rate, which may be of another interval. How the plan was `asked` for decides how more runs are made. It is
    `attainable` if some number of slots carries the rate with as little risk as advice asks for.
    """
    found = {one.concern: one for one in plan.cards}
    far_off = plan.extrapolation > FAR
    doubtful = found["doubtful runs"].value / plan.runs if "doubtful runs" in found else 0.0
    spread = found["forms disagree"].value if "forms disagree" in found and far_off else 0.0
    form = min(alike, key=lambda name: alike[name], default="")
    below = plan.extrapolation > 1 and alike.get(form, math.inf) < load
    width = plan.high / plan.low if plan.low > 0 else math.inf
    larger, safer, quieter = remedies(asked or Asked(), plan.rate)
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
            f"Models that fit the runs alike differ by {units.chance(spread)} here.",
            larger,
        ),
    )
    late, other = found.get("late batches"), units.rate(alike.get(form))
    some = (
        # what costs a late batch and what the model says of its capacity exclude each other
        *([(True, late.finding, late.advised)] if late else []),
        (far_off, far, larger),
        (falls_short(risk), short, safer),
        (below, f"By the {form} form, which fits the runs about as well, its capacity is only {other}.", larger),
        (doubtful > 0.5, f"{units.chance(doubtful)} of the runs are doubtful.", quieter),
    )
    for doubted, reason, remedy in grave:
        if doubted:
            return PlanVerdict("don't rely on it yet", risk, reason, remedy.words, remedy.command)
    for doubted, reason, remedy in some:
        if doubted:
            return PlanVerdict("risky", risk, reason, remedy.words, remedy.command)
    for concern in _NOTABLE:
        if concern in found:
            one = found[concern]
            return PlanVerdict("risky", risk, one.finding, one.advice, one.command)
    return PlanVerdict("safe", risk, short, "")


def fill(
    least: int,
    paid: int,
    most_measured: int,
    risks_of: Callable[[Sequence[int]], Sequence[float]],
    executor_slots: int | None = None,
) -> int:
    """Give as many of the `paid` slots, from `least` on, as bring the risk down to 1 %, else those of the least risk.

    `risks_of` gives the risk of falling short at each of some slot counts. What nobody has seen is no reason to go
    beyond twice as many slots as were measured. Executors of `executor_slots` stay whole; None: they have any size.
    """
    counts = range(least, min(paid, max(least, int(FAR * most_measured))) + 1, executor_slots or 1)
    risks = dict(zip(counts, risks_of(counts), strict=True))
    enough = next((slots for slots, risk in risks.items() if risk <= LITTLE_RISK), None)
    return min(risks, key=lambda slots: risks[slots]) if enough is None else enough
