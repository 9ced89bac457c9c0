"""The first screen of a plan: where it comes from, one sentence, a row per target with its verdict, what to mind."""

from collections.abc import Sequence

from workbench import units
from workbench.records import CapacityPlan, Measurement, ModelFinding, Price
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
    return f"{plan.query} at {units.rate(plan.rate)} needs {deployment(plan)}{verdict}."


def deployment(plan: CapacityPlan) -> str:
    """Say what to deploy, in a few words."""
    budget = plan.budget
    count = "1 slot" if budget.slots == 1 else f"{budget.slots} slots"
    slots = f"{count} of {budget.profile.cpus:g} core and {budget.profile.memory_mb} MB"
    return slots if plan.price is None else f"{slots} on {plan.price.workers} x {plan.price.instance.name}"


def capacity(plan: CapacityPlan, unit: str = "records/s") -> str:
    """Give the capacity and its interval, with digits that differ; without `unit` where a heading has it."""
    low, high = units.ends(plan.low, plan.high)
    return f"{units.padded(plan.expected_rate, unit)} ({low} to {high})"


def risk(plan: CapacityPlan) -> str:
    """Give the probability of falling short; empty where it is not known."""
    if plan.verdict is None or plan.verdict.risk is None:
        return ""
    return units.chance(plan.verdict.risk)


def front_html(planned: Planned) -> str:
    """Write the first screen; every text of the user's is escaped."""
    beside = beside_html(*(_choices_html(planned, plan) for plan in planned.plans))
    return "".join((header(planned), _targets(planned.plans), cares_html(cares(planned.plans)), beside))


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


def _targets(plans: Sequence[CapacityPlan]) -> str:
    if not plans:
        return ""
    priced = any(plan.price is not None for plan in plans)
    columns = ("Target", "Verdict", "Deploy", CAPACITY.capitalize(), "Risk of falling short")
    names = (*columns, *["Cost a month"] * priced)
    return table_html(names, (_target(plan, priced=priced) for plan in plans))


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
    """Set risk against cost, the planned deployment marked."""
    found = choices(planned.exploration.model, plan)
    if plan.budget.interval_s != planned.exploration.runs[0].budget.interval_s or len(found) <= 1:
        return ""  # the risk is the model's, which knows one interval
    priced = plan.price is not None
    rows = [
        (
            *([f"{one.workers}"] if priced else []),
            f"{one.slots}",
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
        caption=f"Risk {'against cost' if priced else 'by slots'}, {units.rate(plan.rate)}",
    )


def cares(plans: Sequence[CapacityPlan]) -> dict[str, str]:
    """Give reasons for care and what to do, those behind verdicts first, each once."""
    reasons: dict[str, str] = {}
    for plan in plans:
        if plan.verdict is not None and plan.verdict.level != "safe":
            reasons[f"{units.rate(plan.rate)}: {plan.verdict.reason}"] = plan.verdict.remedy
    for card in _notable(plans):
        reasons.setdefault(card.finding, card.advice)
    return reasons


def _notable(plans: Sequence[CapacityPlan]) -> list[ModelFinding]:
    """Give the findings that no verdict has weighed, those of the most targets first."""
    found: dict[str, list[ModelFinding]] = {}
    for plan in plans:
        for card in plan.cards:
            if card.concern not in ALREADY_SAID and not card.advice.startswith("Nothing to do"):
                found.setdefault(card.concern, []).append(card)
    ranked = sorted(found.values(), key=lambda cards: -len(cards))
    return [max(cards, key=lambda card: card.value) for cards in ranked]
