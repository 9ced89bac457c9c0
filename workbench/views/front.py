"""The first screen of a plan: where it comes from, one sentence, a row per target with its verdict, what to mind."""

import math
from collections.abc import Sequence

from workbench import units
from workbench.advice import Advice
from workbench.escaping import for_html as escape
from workbench.records import CapacityPlan, EndingRun, Measurement, ModelFinding, Price
from workbench.study import Planned
from workbench.views.choices import choices
from workbench.views.first_screen import (
    Chip,
    beside_html,
    cares_html,
    header_html,
    origin,
    table_html,
    tabs_html,
    testbed_name,
)

_CLASSES = {"safe": "safe", "risky": "risky", "don't rely on it yet": "unsure"}
CAPACITY = "capacity, records/s (90 %)"
"""Heading of the column in which `capacity` needs no unit."""
ALREADY_SAID = frozenset({"extrapolation", "wide interval", "few runs"})
"""Concerns that a verdict weighs."""


def sentence(planned: Planned) -> str:
    """Give the answer to the largest target in one sentence, or what could not be planned."""
    if not planned.plans:
        return "No target could be planned; the reasons are below."
    plan = max(planned.plans, key=lambda one: one.rate)
    verdict = "" if plan.verdict is None else f": {plan.verdict.level}"
    without = len(planned.refused)
    none = f" No plan for {without} of {without + len(planned.plans)} targets." if without else ""
    return f"{plan.query} at {units.rate(plan.rate)} needs {deployment(plan)}{verdict}.{none}"


def deployment(plan: CapacityPlan) -> str:
    """Say what to deploy, in a few words."""
    budget = plan.budget
    slots = f"{units.some(budget.slots, 'slot')} of {budget.profile.cpus:g} core and {budget.profile.memory_mb:,} MB"
    return slots if plan.price is None else f"{slots} on {plan.price.workers:,} x {plan.price.instance.name}"


def capacity(plan: CapacityPlan, unit: str = "records/s") -> str:
    """Give the capacity and its interval, with digits that differ; without `unit` where a heading has it."""
    low, high = units.ends(plan.low, plan.high)
    return f"{units.padded(plan.expected_rate, unit)} ({low} to {high})"


def risk(plan: CapacityPlan) -> str:
    """Give the probability of falling short; empty where it is not known."""
    if plan.verdict is None or plan.verdict.risk is None:
        return ""
    return units.chance(plan.verdict.risk)


def backlog(plan: CapacityPlan, outage_s: float) -> str:
    """Say how long the backlog of an outage lasts, in whole minutes: the capacity is not known more exactly."""
    expected, at_worst = plan.catch_up_s(outage_s), plan.catch_up_s(outage_s, plan.low)
    said = f"After {about(outage_s)} down, the backlog at {units.rate(plan.rate)}"
    if not math.isfinite(expected):
        return f"{said} never goes."
    surely = f"{about(at_worst)} at" if math.isfinite(at_worst) else "never at"
    return f"{said} is gone in about {about(expected)} ({surely} the interval's low end)."


def a_run(plan: CapacityPlan, run: EndingRun) -> str:
    """Say how long a run lasts that ends, and what it costs."""
    lasts, at_worst = about(run.lasts_s(plan.expected_rate)), about(run.lasts_s(plan.low))
    said = f"A run of {units.scaled(run.rows, 'rows', 2)} lasts about {lasts}, {about(run.start_s)} of it to start"
    said += f" ({at_worst} at the interval's low end), of the {about(run.deadline_s)} that it may"
    price, paid = plan.price_per_run(), plan.price
    if price is None or paid is None:
        return f"{said}."
    return f"{said}; its workers cost {units.number(price)} {paid.instance.currency} a run."


def about(seconds: float) -> str:
    """Write a time in minutes, or in two digits where it is shorter."""
    return f"{units.count(seconds / 60)} min" if seconds >= 120 else units.seconds(float(f"{seconds:.2g}"))


def asked_for(plan: CapacityPlan) -> tuple[str, ...]:
    """Answer what was asked in addition to the rate: to catch up in time, and to carry the lowest load."""
    said = [] if plan.run is None else [a_run(plan, plan.run)]
    if plan.outage is not None:
        asked = about(plan.outage.catch_up_s)
        said.append(f"{backlog(plan, plan.outage.outage_s)} You asked for {asked}.")
    if plan.low_slots is not None:
        enough = f"{units.some(plan.low_slots, 'slot')} {'is' if plan.low_slots == 1 else 'are'} enough"
        said.append(f"At the lowest load {enough}, of the {plan.budget.slots:,} planned for {units.rate(plan.rate)}.")
    return tuple(said)


def whose_cores(plans: Sequence[CapacityPlan]) -> list[str]:
    """Say whose cores the plans count, each sentence once."""
    return [text for text in dict.fromkeys(plan.whose_cores() for plan in plans) if text]


def front_html(planned: Planned) -> str:
    """Write the first screen; every text of the user's is escaped."""
    beside = beside_html(*(_choices_html(planned, plan) for plan in planned.plans))
    said = [text for plan in planned.plans for text in asked_for(plan)] + whose_cores(planned.plans)
    answers = "".join(f"<p>{escape(text)}</p>" for text in said)
    return "".join((header(planned), _targets(planned), answers, cares_html(cares(planned.plans)), beside))


def start_html(plans: Sequence[CapacityPlan]) -> str:
    """Write what starts each plan, to copy: the command and the skeleton of the job, one tab per target."""
    return tabs_html(
        "start",
        {
            f"{units.rate(plan.rate)}: {units.some(plan.budget.slots, 'slot')}": {
                "The command": plan.command(),
                "The job, job.py": plan.job(),
            }
            for plan in plans
        },
    )


def header(planned: Planned) -> str:
    """Write where the figures come from."""
    runs = planned.exploration.measurements
    return header_html(origin(runs[0].testbed_kind if runs else ""), (planned.study.query, *_when_and_where(runs)))


def _when_and_where(runs: Sequence[Measurement]) -> tuple[str, ...]:
    if not runs:
        return ()
    dates = dict.fromkeys(run.started_at[:10] for run in (runs[0], runs[-1]))
    return " to ".join(dates), testbed_name(runs[-1].testbed_kind, runs[-1].testbed), runs[-1].machine.processor or ""


def _targets(planned: Planned) -> str:
    plans = planned.plans
    if not plans:
        return ""
    priced = any(plan.price is not None for plan in plans)
    columns = ("Target", "Verdict", "Deploy", CAPACITY.capitalize(), "Risk of falling short")
    names = (*columns, *["Cost a month"] * priced)
    rows = [(plan.rate, _target(plan, priced=priced)) for plan in plans]
    none = Chip("no plan", "unsure")
    rows += [(rate, [units.rate(rate), none, *[""] * (len(names) - 2)]) for rate, _ in planned.refused]
    return table_html(names, [row for _, row in sorted(rows, key=lambda one: one[0])])


def _target(plan: CapacityPlan, *, priced: bool) -> list[str | Chip]:
    verdict = plan.verdict
    cells: list[str | Chip] = [
        units.rate(plan.rate),
        "" if verdict is None else Chip(verdict.level, _CLASSES[verdict.level]),
        deployment(plan),
        capacity(plan, ""),
        risk(plan),
    ]
    return [*cells, _money(plan.price)] if priced else cells


def _money(price: Price | None) -> str:
    return "" if price is None else f"{units.number(price.per_month)} {price.instance.currency}"


def _choices_html(planned: Planned, plan: CapacityPlan) -> str:
    """Set risk against cost, the planned deployment marked; empty where it is the least and more lower no risk."""
    found = choices(planned.exploration.model, plan)
    if (
        plan.on_other_cores
        or plan.budget.interval_s != planned.exploration.runs[0].budget.interval_s
        or len(found) <= 1
    ):
        return ""  # the risk is the model's, which knows one interval and the cores measured
    if found[0].planned and len({units.chance(one.risk) for one in found}) == 1:
        return ""
    priced = plan.price is not None
    rows = [
        (
            *([f"{one.workers:,}"] if priced else []),
            f"{one.slots:,}",
            *([f"{units.number(one.per_month)}"] if one.per_month is not None else []),
            units.chance(one.risk) + " ◀ planned" * one.planned,
        )
        for one in found
    ]
    names = ["Slots", "Risk"]
    if plan.price is not None:
        names = ["Workers", "Slots", f"{plan.price.instance.currency} a month", "Risk"]
    marked = next((number for number, one in enumerate(found) if one.planned), None)
    return table_html(
        names,
        rows,
        chosen=marked,
        caption=f"Risk {'against cost' if priced else 'by slots'}, {units.rate(plan.rate)}{_one_lost(plan)}",
    )


def _one_lost(planned: CapacityPlan) -> str:
    """Say what is left when a worker is lost: the row of one less, the table's order being that of the workers."""
    if planned.price is None:
        return ""
    if planned.price.workers == 1:
        return ". If the only worker is lost, the query stands still."
    return ". If a worker is lost, the row above the planned one is left."


def cares(plans: Sequence[CapacityPlan]) -> dict[str, Advice]:
    """Give reasons for care and what to do, those behind verdicts first, each once."""
    reasons: dict[str, Advice] = {}
    for plan in plans:
        if plan.verdict is not None and plan.verdict.level != "safe":
            reasons[f"{units.rate(plan.rate)}: {plan.verdict.reason}"] = plan.verdict.advised
    for card in _notable(plans):
        reasons.setdefault(card.finding, card.advised)
    return reasons


def _notable(plans: Sequence[CapacityPlan]) -> list[ModelFinding]:
    """Give the findings that no verdict has weighed, those of the most targets first."""
    found: dict[str, list[ModelFinding]] = {}
    for plan in plans:
        for card in plan.cards:
            if card.concern not in ALREADY_SAID and not card.settled:
                found.setdefault(card.concern, []).append(card)
    ranked = sorted(found.values(), key=lambda cards: -len(cards))
    return [max(cards, key=lambda card: card.value) for cards in ranked]
