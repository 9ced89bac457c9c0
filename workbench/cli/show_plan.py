"""What is printed of plans: a row for each target, why it is not safe, each note once with the targets it concerns."""

from collections.abc import Mapping, Sequence

from rich.table import Table
from rich.text import Text

from workbench import units
from workbench.advice import Advice
from workbench.cli import look
from workbench.records import CapacityPlan
from workbench.views.front import ALREADY_SAID, CAPACITY, capacity, deployment

_STYLES: Mapping[str, str] = {"safe": "green", "risky": "yellow", "don't rely on it yet": "bold red"}
_CAPACITY = CAPACITY.replace(", ", ",\n")  # so that the heading takes no room from the deployment


def verdict_of(plan: CapacityPlan) -> Text:
    """Give the verdict in its colour; a dash where a plan of an earlier version has none."""
    if plan.verdict is None:
        return Text("-")
    return Text(plan.verdict.level, style=_STYLES[plan.verdict.level])


def targets(plans: Sequence[CapacityPlan]) -> Table:
    """Make the table of targets: verdict, deployment, capacity with its interval, cost."""
    prices = [plan.price for plan in plans if plan.price is not None]
    paid = [f"{prices[0].instance.currency}\na month"] if prices else []
    names = ("target", "verdict", "deploy")
    table = look.table({**dict.fromkeys(names, "left"), **dict.fromkeys((_CAPACITY, *paid), "right")})
    for plan in plans:
        cells: list[str | Text] = [units.rate(plan.rate), verdict_of(plan), deployment(plan), capacity(plan, "")]
        if paid:
            cells.append(cost(plan))
        table.add_row(*cells)
    return table


def cost(plan: CapacityPlan) -> str:
    """Give the price of a month, without its currency, which the heading has."""
    return "" if plan.price is None else units.number(plan.price.per_month)


def reasons(plans: Sequence[CapacityPlan]) -> list[tuple[str, Advice]]:
    """Say for every target that is not safe why, and what to do."""
    return [
        (f"{units.rate(plan.rate)}: {plan.verdict.level}. {plan.verdict.reason}", plan.verdict.advised)
        for plan in plans
        if plan.verdict is not None and plan.verdict.level != "safe"
    ]


def notes(plans: Sequence[CapacityPlan]) -> list[tuple[str, Advice]]:
    """Give each note once, with what to do and the targets it concerns, if not all; not what a verdict has said."""
    found: dict[tuple[str, Advice], list[CapacityPlan]] = {}
    for plan in plans:
        verdict = plan.verdict
        said = ALREADY_SAID if verdict is not None and verdict.level != "safe" else frozenset()
        for card in (one for one in plan.cards if one.concern not in said):
            if verdict is not None and card.finding == verdict.reason:
                continue
            found.setdefault((card.finding, card.advised), []).append(plan)
    return [(_note(finding, own, plans), advised) for (finding, advised), own in found.items()]


def _note(finding: str, own: Sequence[CapacityPlan], plans: Sequence[CapacityPlan]) -> str:
    concerned = "" if len(own) == len(plans) else f"{', '.join(units.rate(plan.rate) for plan in own)}: "
    return f"note: {concerned}{finding}"
