"""The cards of the most informative run of a study: its probes, its operators and their costs."""

from dataclasses import replace

from workbench import units
from workbench.records import Measurement
from workbench.study import Planned
from workbench.views import measurement_cards
from workbench.views.cards import Card


def cards(planned: Planned) -> list[Card]:
    """Make the cards of the run with the most closely measured costs, or of the largest if none has costs.

    A run that failed shows nothing.
    """
    made = [(row, run) for row, run in enumerate(planned.exploration.runs) if isinstance(run, Measurement)]
    row, run = max(made, key=lambda one: (sum(cost.levels for cost in one[1].costs), one[1].budget.slots))
    where = f"Run {row + 1}, on {units.some(run.budget.slots, 'slot')}"
    shown = measurement_cards.cards(run)
    return [replace(card, name=f"run-{card.name}", title=f"{where}: {card.title}", html="", of=where) for card in shown]
