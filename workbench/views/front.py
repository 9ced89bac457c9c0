"""The first screen of a plan: where it comes from, one sentence, a row per target with its verdict, what to mind."""

from collections.abc import Sequence
from html import escape

from workbench.records import CapacityPlan, Measurement, ModelFinding
from workbench.study import Planned
from workbench.views import units

ORIGINS = {"fluid": "SIMULATED", "recorded": "RECORDED"}
"""What the figures are where nothing was measured here, by the kind of the testbed; elsewhere they are MEASURED."""

MOST_CARES = 4
_CLASSES = {"safe": "safe", "risky": "risky", "don't rely on it yet": "unsure"}
_ALREADY_SAID = frozenset({"extrapolation", "wide interval", "few runs"})  # the verdict weighs them


def origin(kind: str) -> str:
    """Give the word that says where figures come from."""
    return ORIGINS.get(kind, "MEASURED")


def sentence(planned: Planned) -> str:
    """Give the answer to the largest target in one sentence, or what could not be planned."""
    if not planned.plans:
        return "No target could be planned; the reasons are below."
    plan = max(planned.plans, key=lambda one: one.rate)
    verdict = "" if plan.verdict is None else f": {plan.verdict.level}"
    return f"{units.rate(plan.rate)} of {plan.query} take {deployment(plan)}{verdict}."


def deployment(plan: CapacityPlan) -> str:
    """Say what to deploy, in a few words."""
    budget = plan.budget
    count = "1 slot" if budget.slots == 1 else f"{budget.slots} slots"
    slots = f"{count} of {budget.profile.cpus:g} core and {budget.profile.memory_mb} MB"
    return slots if plan.price is None else f"{slots} on {plan.price.workers} x {plan.price.instance.name}"


def capacity(plan: CapacityPlan) -> str:
    """Give the capacity and its interval, with the digits one can stand for."""
    return f"{units.rate(plan.expected_rate, 2)} ({units.scaled(plan.low, '', 2)} to {units.scaled(plan.high, '', 2)})"


def risk(plan: CapacityPlan) -> str:
    """Give the probability of falling short; empty where it is not known."""
    if plan.verdict is None or plan.verdict.risk is None:
        return ""
    shown = plan.verdict.risk
    return "under 0.1 %" if shown < 0.001 else units.share(round(shown, 3) if shown < 0.01 else round(shown, 2))


def front_html(planned: Planned) -> str:
    """Write the first screen; every text of the user's is escaped."""
    return "".join((_header(planned), _targets(planned.plans), _cares(planned.plans)))


def _header(planned: Planned) -> str:
    runs = planned.exploration.measurements
    kind = runs[0].testbed_kind if runs else ""
    facts = [planned.study.query, *_when_and_where(runs)]
    word = origin(kind)
    return (
        f'<p class="workbench-origin"><span class="origin {word.lower()}">{word}</span> '
        f"{escape(' · '.join(filter(None, facts)))}</p>"
    )


def _when_and_where(runs: Sequence[Measurement]) -> tuple[str, ...]:
    if not runs:
        return ()
    dates = dict.fromkeys(run.started_at[:10] for run in (runs[0], runs[-1]))
    return " to ".join(dates), runs[-1].testbed.split(", master", maxsplit=1)[0], runs[-1].machine.processor or ""


def _targets(plans: Sequence[CapacityPlan]) -> str:
    if not plans:
        return ""
    priced = any(plan.price is not None for plan in plans)
    names = ["Target", "Verdict", "Deploy", "Capacity (90 %)", "Risk of falling short", *["Cost a month"] * priced]
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    rows = "".join(_target(plan, priced=priced) for plan in plans)
    return f'<div class="workbench-front"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _target(plan: CapacityPlan, *, priced: bool) -> str:
    cells = [units.rate(plan.rate), "", deployment(plan), capacity(plan), risk(plan)]
    if priced:
        price = plan.price
        cells.append("" if price is None else f"{units.number(price.per_month)} {price.instance.currency}")
    written = [f"<td>{escape(cell)}</td>" for cell in cells]
    if plan.verdict is not None:
        style = _CLASSES[plan.verdict.level]
        written[1] = f'<td><span class="verdict {style}">{escape(plan.verdict.level)}</span></td>'
    return f"<tr>{''.join(written)}</tr>"


def _cares(plans: Sequence[CapacityPlan]) -> str:
    """List at most four reasons for care, those behind verdicts first, each once and with what to do."""
    reasons: dict[str, str] = {}
    for plan in plans:
        if plan.verdict is not None and plan.verdict.level != "safe":
            reasons[f"{units.rate(plan.rate)}: {plan.verdict.reason}"] = plan.verdict.remedy
    for card in _notable(plans):
        reasons.setdefault(card.finding, card.advice)
    if not reasons:
        return ""
    items = "".join(
        f"<li>{escape(reason)} <strong>{escape(remedy)}</strong></li>"
        for reason, remedy in list(reasons.items())[:MOST_CARES]
    )
    return f'<ul class="workbench-cares">{items}</ul>'


def _notable(plans: Sequence[CapacityPlan]) -> list[ModelFinding]:
    """Give the findings that no verdict has weighed, those of the most targets first."""
    found: dict[str, list[ModelFinding]] = {}
    for plan in plans:
        for card in plan.cards:
            if card.concern not in _ALREADY_SAID and not card.advice.startswith("Nothing to do"):
                found.setdefault(card.concern, []).append(card)
    ranked = sorted(found.values(), key=lambda cards: -len(cards))
    return [max(cards, key=lambda card: card.value) for cards in ranked]
