"""An answer as the cards of a page or a notebook: the first has all that it says, its evidence is folded."""

from collections.abc import Iterable
from functools import partial

from workbench.answers.answer import Answer
from workbench.views.cards import Card, Column, Table, fold, gather
from workbench.views.cards import show as show_cards
from workbench.views.parts import part

MOST_CAUTIONS = 4
"""Cautions that a page shows at once: the first."""


def cards(answer: Answer, *, source: bool = True) -> list[Card]:
    """Make all cards; one that cannot be made becomes an error card and does not hide the others.

    Without `source`, the first does not say where the figures come from, because another card says it.
    """
    at_once = gather((partial(_lead, answer, source=source), *answer.also))
    return [*at_once, *map(fold, [*_about(answer), *gather(answer.evidence)])]


def show(answer: Answer) -> None:
    """Display the answer in a notebook."""
    show_cards(cards(answer))


def header(answer: Answer) -> str:
    """Write where the figures come from."""
    return part("origin", answer)


def _lead(answer: Answer, *, source: bool) -> list[Card]:
    html = part("answer", answer, source, MOST_CAUTIONS)
    finding = " ".join((answer.headline, *answer.details))
    figure = None if answer.draw is None else answer.draw()
    return [Card(answer.name, answer.question, finding, figure, _exact(answer), html=html)]


def _about(answer: Answer) -> Iterable[Card]:
    if answer.about:
        table = Table("The query", (Column("What"), Column("Seen")), tuple(answer.about.items()), opened=True)
        yield Card("what-it-is", "What is it, and what was read?", f"{answer.source}.", table=table)


def _exact(answer: Answer) -> Table | None:
    """Make the table of the exact figures."""
    if not answer.rows:
        return None
    columns = tuple(Column(fact.name, fact.unit.label) for fact in answer.rows[0] if fact.name)
    return Table(answer.caption, columns, tuple(tuple(fact.exact for fact in row if fact.name) for row in answer.rows))
