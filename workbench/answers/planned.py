"""What a plan says: what to deploy for each rate, whether to rely on it, what to mind, and what it rests on."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from workbench import units
from workbench.advice import Advice
from workbench.answers import page, planned_evidence
from workbench.answers.answer import COUNT, NUMBER, RATE, SECONDS, Answer, Fact, Listing, Unit
from workbench.capacity.planning import cheapest
from workbench.records import CapacityPlan, EndingRun, Measurement, ModelFinding, Refusal
from workbench.study import Planned, intervals_left_out
from workbench.views import findings
from workbench.views.cards import Card
from workbench.views.findings import about, backlog, basis, containers, deployment, origin, testbed_name

_VERDICTS = {"safe": "safe", "verify first": "risky", "risky": "risky", "don't rely on it yet": "unsure"}
_WEIGHED = frozenset({"extrapolation", "wide interval", "few runs"})  # covered by every verdict
_NEAR = 2  # deployments before and after the planned one
_RISK = Unit(units.chance, "%", 100.0)
_TIMES = Unit(lambda value: units.number(value, 2), "x")
_MEMORY = Unit(units.count, "MB")


def answer(planned: Planned) -> Answer:
    """Answer what to deploy for every target of a study."""
    plans, runs = planned.plans, planned.exploration.measurements
    return Answer(
        "answer",
        f"What do I deploy for {planned.study.query}?",
        _headline(planned),
        origin(runs[0].testbed_kind if runs else ""),
        (planned.study.query, *_when_and_where(runs)),
        (
            *(text for plan in plans for text in asked_for(plan)),
            *filter(None, dict.fromkeys(map(findings.whose_cores, plans))),
        ),
        rows=rows(plans, planned.refused),
        caption="One row per target rate",
        listings=tuple(filter(None, (_alternatives(planned, plan) for plan in plans))),
        cautions=cautions(plans),
        also=tuple(partial(made, planned) for made in planned_evidence.AT_ONCE),
        evidence=tuple(partial(made, planned) for made in planned_evidence.ON_REQUEST),
        in_words=_in_words(planned),
    )


def cards(planned: Planned, *, source: bool = True) -> list[Card]:
    """Make the cards of a plan; without `source`, another card says where the figures come from."""
    return page.cards(answer(planned), source=source)


def rows(plans: Sequence[CapacityPlan], refused: Sequence[Refusal] = ()) -> tuple[tuple[Fact, ...], ...]:
    """Make a row for each target, in order of the rates."""
    paid = next((plan.price.instance.currency for plan in plans if plan.price is not None), None)
    made = [(plan.rate, _target(plan, paid)) for plan in plans]
    if not made:
        return ()
    lacking = [Fact(None, one.key, one.name, one.unit, one.shown) for one in made[0][1][2:]]
    none = Fact("no plan", name="Verdict", verdict="unsure")
    made += [(one.rate, (Fact(one.rate, name="Target", unit=RATE), none, *lacking)) for one in refused]
    return tuple(row for _, row in sorted(made, key=lambda one: one[0]))


def cautions(plans: Sequence[CapacityPlan]) -> dict[str, Advice]:
    """Return what to mind, with remedies: why a target is not safe, then each other concern at its worst target."""
    reasons: dict[str, Advice] = {}
    found: dict[str, list[tuple[CapacityPlan, ModelFinding]]] = {}
    for plan in plans:
        verdict = plan.verdict
        unsafe = verdict is not None and verdict.level != "safe"
        if verdict is not None and unsafe:
            reasons[f"{units.rate(plan.rate)}: {verdict.reason}"] = verdict.advised
        for one in plan.cards:
            if not (unsafe and one.concern in _WEIGHED) and (verdict is None or one.finding != verdict.reason):
                found.setdefault(one.concern, []).append((plan, one))
    for own in sorted(found.values(), key=lambda own: (all(one.settled for _, one in own), -len(own))):
        plan, worst = max(own, key=lambda one: one[1].value)
        of_all = len(own) == len(plans) and all(one.finding == worst.finding for _, one in own)
        reasons.setdefault(worst.finding if of_all else f"{units.rate(plan.rate)}: {worst.finding}", worst.advised)
    return reasons


def asked_for(plan: CapacityPlan) -> tuple[str, ...]:
    """Answer what was asked in addition to the rate: a run that ends, a time to catch up, and the lowest load."""
    said = [] if plan.run is None else [_ending_run(plan, plan.run)]
    if plan.outage is not None:
        said.append(f"{backlog(plan, plan.outage.outage_s)} You asked for {about(plan.outage.catch_up_s)}.")
    if plan.low_slots is not None:
        enough = f"{units.some(plan.low_slots, 'slot')} {'is' if plan.low_slots == 1 else 'are'} enough"
        said.append(f"At the lowest load {enough}, of the {plan.budget.slots:,} planned for {units.rate(plan.rate)}.")
    return tuple(said)


def _headline(planned: Planned) -> str:
    if not planned.plans:
        return "No target could be planned; the reasons are below."
    unsure = [one for one in planned.plans if one.verdict is not None and _VERDICTS[one.verdict.level] == "unsure"]
    relied_on = [one for one in planned.plans if one not in unsure] or planned.plans
    plan = max(relied_on, key=lambda one: one.rate)
    rates = [units.rate(one.rate) for one in unsure if one.rate > plan.rate]
    more = f" Don't rely on the plan for {' and '.join(rates)} yet." if rates else ""
    verdict = "" if plan.verdict is None else f": {plan.verdict.level}"
    without = len(planned.refused)
    none = f" No plan for {without} of {without + len(planned.plans)} targets." if without else ""
    return f"{plan.query} at {units.rate(plan.rate)} needs {deployment(plan)}{verdict}.{more}{none}"


def _when_and_where(runs: Sequence[Measurement]) -> tuple[str, ...]:
    if not runs:
        return ()
    dates = dict.fromkeys(run.started_at[:10] for run in (runs[0], runs[-1]))
    return " to ".join(dates), testbed_name(runs[-1].testbed_kind, runs[-1].testbed), runs[-1].machine.processor or ""


def _target(plan: CapacityPlan, currency: str | None) -> tuple[Fact, ...]:
    verdict, price, budget = plan.verdict, plan.price, plan.budget
    level = None if verdict is None else verdict.level
    expected = Unit(lambda _: findings.expected(plan, ""))
    return (
        Fact(plan.rate, name="Target", unit=RATE),
        Fact(level, name="Verdict", verdict=_VERDICTS.get(level or "", "")),
        Fact(deployment(plan), name="Deploy"),
        Fact(plan.expected_rate, "expected_rate", "Capacity, records/s (90 %)", expected),
        Fact(None if verdict is None else verdict.risk, name="Risk of falling short", unit=_RISK, shown="wide"),
        *([] if currency is None else [Fact(price and price.per_month, name=f"{currency} a month", unit=NUMBER)]),
        Fact(budget.slots, name="Slots", unit=COUNT, shown="data"),
        Fact(budget.profile.memory_mb, name="Memory per slot", unit=_MEMORY, shown="data"),
        Fact(budget.interval_s, name="Trigger interval", unit=SECONDS, shown="data"),
        Fact(plan.low, "low", "Interval low", RATE, "data"),
        Fact(plan.high, "high", "Interval high", RATE, "data"),
        Fact(price and price.workers, name="Workers", unit=COUNT, shown="data"),
        Fact(price and price.instance.name, name="Worker type", shown="data"),
        Fact(price and price.slots_per_worker, name="Slots per worker, at most", unit=COUNT, shown="data"),
        Fact(
            price and price.per_hour, name="Cost", unit=Unit(units.number, f"{currency or ''} per hour"), shown="data"
        ),
        Fact(plan.extrapolation, "extrapolation", "Extrapolation", _TIMES, "data"),
    )


def _ending_run(plan: CapacityPlan, run: EndingRun) -> str:
    """Describe how long a run that ends lasts, and what it costs."""
    lasts_s, at_worst = run.lasts_s(plan.expected_rate), about(run.lasts_s(plan.low))
    said = f"A run of {units.scaled(run.rows, 'rows', 2)} lasts about {about(lasts_s)}, {about(run.start_s)} of it to "
    said += f"start ({at_worst} at the interval's low end), of the {about(run.deadline_s)} that it may"
    if plan.price is None:
        return f"{said}."
    paid = units.number(plan.price.per_hour * lasts_s / 3600)
    return f"{said}; its workers cost {paid} {plan.price.instance.currency} a run."


def _in_words(planned: Planned) -> tuple[str, ...]:
    plans = planned.plans
    said = [text for plan in plans for text in _deployed(plan)]
    for interval, reason in intervals_left_out(planned.sweep).items():
        said.append(f"The {interval:g} s trigger interval was left out: {reason}")
    if plans:
        ended = f"The exploration ended: {planned.exploration.reason}."
        said += [findings.forms(planned.forms), f"{basis(plans[0])} {ended}"]
    said += filter(None, map(findings.written, planned.exploration.measurements[-1:]))
    return tuple(said)


def _deployed(plan: CapacityPlan) -> list[str]:
    said = [f"{units.rate(plan.rate)}: {containers(plan)}"]
    if plan.allocation is not None:
        said.append(f"  tasks: {_counts(plan.allocation.tasks)}")
    if plan.layout is not None:
        said.append(f"  partitions: {_counts(plan.layout.partitions)}")
    return [*said, *([f"  {findings.where_time_goes(plan)}"] if plan.batch_parts else [])]


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())


def _alternatives(planned: Planned, plan: CapacityPlan) -> Listing | None:
    """Compare risk and cost of the plan and its two neighbours on either side; None where they do not differ.

    Steps are whole workers of the planned type, filled; where nothing is priced, executors of the size measured, or
    slots. More slots than planned are priced on another listed type if that is cheaper. The plan's own risk is the
    verdict's. More slots are no riskier, because some of them may stay idle.
    """
    own, price, verdict = plan.budget.slots, plan.price, plan.verdict
    if verdict is None or verdict.risk is None or planned.elsewhere(plan):
        return None
    each = (plan.executor_slots or 1) if price is None else price.slots_per_worker
    at = own // each if price is None else price.workers
    steps = range(max(1, at - _NEAR), at + _NEAR + 1)
    slots = [own if step == at else step * each for step in steps]
    found = planned.exploration.model.risks(plan.rate, plan.budget.profile.memory_mb, slots)
    risks = [verdict.risk if step == at else risk for step, risk in zip(steps, found, strict=True)]
    chosen = steps.index(at)
    risks = [*risks[:chosen], *itertools.accumulate(risks[chosen:], min)]
    if len(steps) <= 1 or (chosen == 0 and len(set(map(units.chance, risks))) == 1):
        return None  # the planned deployment is the smallest, and larger ones do not lower the risk visibly
    rate = units.rate(plan.rate)
    caption, listed = f"Risk by slots, {rate}", []
    types = [one for one in planned.instances if price and one.core_speed == price.instance.core_speed]
    for step, count, risk in zip(steps, slots, risks, strict=True):
        row = [Fact(count, name="Slots", unit=COUNT), Fact(risk, name="Risk", unit=_RISK)]
        if price is not None:
            paid = replace(price, workers=step, per_hour=price.per_hour / price.workers * step)
            if step > at and types:
                other = cheapest(types, count, plan.budget.profile, plan.executor_slots)
                paid = min(paid, other, key=lambda one: one.per_hour)
            counted = Unit(partial("{1:,} x {0}".format, paid.instance.name))
            row.insert(0, Fact(paid.workers, name="Workers", unit=counted))
            row.insert(2, Fact(paid.per_month, name=f"{price.instance.currency} a month", unit=NUMBER))
        listed.append(tuple(row))
    if price is not None:
        lost = "the only worker is lost, the query stops" if at == 1 else "a worker is lost, the row above is left"
        caption = f"Risk against cost, {rate}. If {lost}."
    return Listing(caption, tuple(listed), chosen)
