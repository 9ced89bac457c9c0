"""An answer to a what-if question in tiles, and against a pinned one; in words and rows as a card."""

from collections.abc import Callable
from dataclasses import dataclass

from workbench import units
from workbench.capacity.planning import Answer, falls_short
from workbench.escaping import for_html as escape
from workbench.records import CapacityPlan
from workbench.views import front
from workbench.views.cards import Card, Column, Table


@dataclass(frozen=True)
class Scenario:
    """An answer, and the currency of its money; empty if nobody said one."""

    answer: Answer
    currency: str = ""

    @property
    def priced(self) -> bool:
        """Whether a worker has a price."""
        return self.answer.question.worker_price > 0

    @property
    def risk(self) -> float:
        """Probability of falling short."""
        verdict = self.answer.plan.verdict
        return 1.0 if verdict is None or verdict.risk is None else verdict.risk


def tiles_html(now: Scenario, pinned: Scenario | None = None) -> str:
    """Write the tiles: slots, workers, money per month, risk; each with the difference from a pinned scenario."""
    tiles = (_slots(now, pinned), _workers(now, pinned), _money(now, pinned), _risk(now, pinned))
    return f'<div class="workbench-tiles" role="status">{"".join(tiles)}</div>'


def pinned_words(pinned: Scenario) -> str:
    """Say what is pinned."""
    plan = pinned.answer.plan
    asked = f"{units.rate(plan.rate)} at a risk of {units.chance(pinned.risk)}"
    return f"Pinned: {asked}: {front.deployment(plan)}, {workers(pinned.answer.workers)}."


def _tile(name: str, value: str, notes: tuple[str, ...], against: str, kind: str = "") -> str:
    said = "".join(f"<div>{escape(note)}</div>" for note in notes if note)
    compared = f"<i>{escape(against)}</i>" if against else ""
    return f'<div class="workbench-tile {kind}"><div>{escape(name)}</div><b>{escape(value)}</b>{said}{compared}</div>'


def _slots(now: Scenario, pinned: Scenario | None) -> str:
    plan = now.answer.plan
    notes = (
        f"of {plan.budget.profile.cpus:g} core and {plan.budget.profile.memory_mb:,} MB",
        f"carry {front.capacity(plan)}",
    )
    return _tile(
        "Slots", f"{plan.budget.slots:,}", notes, _against(now, pinned, lambda one: one.answer.plan.budget.slots)
    )


def _workers(now: Scenario, pinned: Scenario | None) -> str:
    question = now.answer.question
    size = units.some(question.worker_slots, "slot")
    notes = (f"of {size}" + (", one spare" if question.one_lost else ""),)
    return _tile("Workers", f"{now.answer.workers:,}", notes, _against(now, pinned, lambda one: one.answer.workers))


def _money(now: Scenario, pinned: Scenario | None) -> str:
    if not now.priced:
        return _tile("Money per month", "no price", ("Choose a worker type, or a price.",), "")
    value = f"{units.number(now.answer.per_month)} {now.currency}".rstrip()
    comparable = pinned if pinned is not None and pinned.priced and pinned.currency == now.currency else None
    against = _against(now, comparable, lambda one: one.answer.per_month, units.number)
    return _tile("Money per month", value, (f"{units.number(now.answer.per_hour)} per hour",), against)


def _risk(now: Scenario, pinned: Scenario | None) -> str:
    plan, verdict = now.answer.plan, now.answer.plan.verdict
    if verdict is None:
        return _tile("Risk of falling short", "unknown", (), "")
    kind = "short" if falls_short(now.risk) else "safe" if verdict.level == "safe" else "risky"
    reason = "" if verdict.level == "safe" else verdict.reason
    if kind == "short":
        reason = f"The low end of the interval, {units.ends(plan.low, plan.rate)[0]}, is under the rate."
    against = _against(now, pinned, lambda one: 100 * one.risk, lambda points: f"{units.number(points, 2)} points")
    return _tile("Risk of falling short", front.risk(plan), (verdict.level, reason), against, kind)


def _against(
    now: Scenario,
    pinned: Scenario | None,
    of: Callable[[Scenario], float],
    written: Callable[[float], str] = lambda value: f"{value:,.0f}",
) -> str:
    """Say the difference from the pinned scenario; empty without one."""
    if pinned is None:
        return ""
    shown = written(abs(of(now) - of(pinned)))
    if shown == written(0):
        return "same as pinned"
    return f"{'+' if of(now) > of(pinned) else '-'}{shown} against pinned"


def answer_card(answer: Answer, currency: str = "") -> Card:
    """Put an answer into words and rows."""
    question, plan, budget = answer.question, answer.plan, answer.plan.budget
    paid = answer.workers * question.worker_slots
    beyond = f" That is {plan.beyond}: measure a larger one before you rely on it." if plan.beyond else ""
    on = f"{workers(answer.workers)}{per_hour(answer, currency)}"
    finding = (
        f"{units.rate(plan.rate)} need {units.some(budget.slots, 'slot')} on {on}.{beyond} All {paid} slots of these "
        f"carry {units.rate(answer.paid_rate)}; with one worker lost {_left(answer)}."
    )
    rows: list[tuple[str, str]] = [
        ("Slots", f"{budget.slots:,} of {budget.profile.cpus:g} core and {budget.profile.memory_mb:,} MB"),
        ("Fewest that carry the rate", f"{plan.least_slots:,}"),
        (
            "Their capacity",
            f"{units.rate(plan.expected_rate)} (90 %: {units.rate(plan.low)} to {units.rate(plan.high)})",
        ),
        (
            "Workers",
            f"{answer.workers:,} of {units.some(question.worker_slots, 'slot')}" + (", one spare" * question.one_lost),
        ),
        (f"Capacity of their {paid} slots", units.rate(answer.paid_rate)),
        ("With one worker lost", units.rate(answer.lost_rate)),
    ]
    if plan.on_other_cores:
        rows.append(("Cores", plan.whose_cores()))
    if plan.verdict is not None and plan.verdict.remedy:
        rows.append(("What to do", str(plan.verdict.advised)))
    if question.outage is not None:
        outage_s = question.outage.outage_s
        rows.append((f"After an outage of {units.seconds(outage_s)}", f"caught up in {_duration(plan, outage_s)}"))
    if question.worker_price:
        money = f"{units.number(answer.per_hour)} {currency} per hour, {units.number(answer.per_month)} per month"
        rows.append(("Cost", money))
    return Card(
        "what-if",
        f"What does {plan.query} take?",
        finding,
        table=Table("The deployment", (Column("What"), Column("Value")), tuple(rows), opened=True),
    )


def workers(count: int) -> str:
    """Write a number of workers."""
    return units.some(count, "worker")


def per_hour(answer: Answer, currency: str) -> str:
    """Write what the workers cost, to stand after their number; empty without a price."""
    if not answer.question.worker_price:
        return ""
    return f" for {units.number(answer.per_hour)} {currency}".rstrip() + " per hour"


def _duration(plan: CapacityPlan, outage_s: float) -> str:
    return units.seconds(plan.catch_up_s(outage_s))


def _left(answer: Answer) -> str:
    if answer.lost_rate is None:
        return "fewer slots are left than were measured, so what they carry is not known"
    if not answer.lost_rate:
        return "nothing is left"
    enough = "still above the rate on average" if answer.survives else "below the rate"
    return f"{units.rate(answer.lost_rate)} are left, {enough}"
