"""An answer to a what-if question: the same figures in tiles, against a pinned answer, and in words and rows."""

from collections.abc import Callable
from typing import NamedTuple

from workbench import units
from workbench.capacity.planning import Answer, falls_short
from workbench.views import findings
from workbench.views.cards import Card, Column, Table
from workbench.views.parts import part


class _Tile(NamedTuple):
    """A figure in writing, its note, and its number for the difference; None: it has none."""

    name: str
    value: str
    notes: tuple[str, ...]
    number: float | None
    written: Callable[[float], str] = units.count
    kind: str = ""

    def against(self, pinned: "_Tile | None") -> str:
        """Describe how it differs from the pinned one; empty where that is unknown."""
        if pinned is None or self.number is None or pinned.number is None:
            return ""
        difference = self.number - pinned.number
        shown = self.written(abs(difference))
        if shown == self.written(0):
            return "same as pinned"
        return f"{'+' if difference > 0 else '-'}{shown} against pinned"


def _tiles(answer: Answer) -> tuple[_Tile, ...]:
    plan, question = answer.plan, answer.question
    profile, verdict = plan.budget.profile, plan.verdict
    slots = (f"of {profile.cpus:g} core and {profile.memory_mb:,} MB", f"carry {findings.expected(plan)}")
    spare = ", one spare" * question.one_lost
    workers = (f"of {units.some(question.worker_slots, 'slot')}{spare}",)
    money = _Tile("Money per month", "no price", ("Choose a worker type, or a price.",), None)
    if question.worker_price:
        paid, hourly = f"{units.number(answer.per_month)} {question.currency}".rstrip(), units.number(answer.per_hour)
        money = _Tile(money.name, paid, (f"{hourly} per hour",), answer.per_month, units.number)
    risk = _Tile("Risk of falling short", "unknown", (), None)
    if verdict is not None:
        kind = "short" if falls_short(answer.risk) else "safe" if verdict.level == "safe" else "risky"
        low = f"The low end of the interval, {units.ends(plan.low, plan.rate)[0]}, is under the rate."
        reason = low if kind == "short" else "" if verdict.level == "safe" else verdict.reason
        said, points = (verdict.level, reason), lambda value: f"{units.number(value, 2)} points"
        risk = _Tile(risk.name, units.chance(answer.risk), said, 100 * answer.risk, points, kind)
    return (
        _Tile("Slots", units.count(plan.budget.slots), slots, plan.budget.slots),
        _Tile("Workers", units.count(answer.workers), workers, answer.workers),
        money,
        risk,
    )


def tiles_html(now: Answer, pinned: Answer | None = None) -> str:
    """Write the tiles: slots, workers, money per month, risk; each with the difference from a pinned scenario."""
    comparable: list[_Tile | None] = [None] * 4 if pinned is None else [*_tiles(pinned)]
    if pinned is not None and pinned.question.currency != now.question.currency:
        comparable[2] = None
    return part("tiles", [(tile, tile.against(other)) for tile, other in zip(_tiles(now), comparable, strict=True)])


def pinned_words(pinned: Answer) -> str:
    """Describe what is pinned."""
    plan = pinned.plan
    asked = f"{units.rate(plan.rate)} at a risk of {units.chance(pinned.risk)}"
    return f"Pinned: {asked}: {findings.deployment(plan)}, {units.some(pinned.workers, 'worker')}."


def needed(answer: Answer) -> str:
    """Describe what the rate takes, and its cost if a worker has a price."""
    plan = answer.plan
    price = f" for {units.number(answer.per_hour)} {answer.question.currency}".rstrip() + " per hour"
    return (
        f"{plan.query} at {units.rate(plan.rate)} needs {units.some(plan.budget.slots, 'slot')} of "
        f"{plan.budget.profile.memory_mb:,} MB on {units.some(answer.workers, 'worker')}"
        f"{price if answer.question.worker_price else ''}"
    )


def answer_card(answer: Answer) -> Card:
    """Show an answer in words and rows."""
    question, plan = answer.question, answer.plan
    paid = answer.workers * question.worker_slots
    beyond = f" That is {findings.beyond(plan)}: measure a larger one before you rely on it."
    finding = (
        f"{needed(answer)}.{beyond * (plan.extrapolation > 1)} All {paid} slots of these carry "
        f"{units.rate(answer.paid_rate)}; with one worker lost {_left(answer)}."
    )
    slots, workers, money, _ = ((tile.name, f"{tile.value} {', '.join(tile.notes)}") for tile in _tiles(answer))
    rows = [slots, ("Fewest that carry the rate", f"{plan.least_slots:,}"), workers]
    rows += [(f"Capacity of their {paid} slots", units.rate(answer.paid_rate))]
    rows += [("With one worker lost", units.rate(answer.lost_rate))]
    if plan.on_other_cores:
        rows.append(("Cores", findings.whose_cores(plan)))
    if plan.verdict is not None and plan.verdict.remedy:
        rows.append(("What to do", str(plan.verdict.advised)))
    if question.outage is not None:
        outage_s = question.outage.outage_s
        caught_up = f"caught up in {units.seconds(plan.catch_up_s(outage_s))}"
        rows.append((f"After an outage of {units.seconds(outage_s)}", caught_up))
    if question.worker_price:
        rows.append(money)
    table = Table("The deployment", (Column("What"), Column("Value")), tuple(rows), opened=True)
    return Card("what-if", f"What does {plan.query} take?", finding, table=table)


def _left(answer: Answer) -> str:
    if answer.lost_rate is None:
        return "fewer slots are left than were measured, so what they carry is not known"
    if not answer.lost_rate:
        return "nothing is left"
    enough = "still above the rate on average" if answer.lost_rate >= answer.question.rate else "below the rate"
    return f"{units.rate(answer.lost_rate)} are left, {enough}"
