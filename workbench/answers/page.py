"""An answer as cards of a page or a notebook: the first has everything that it says, the rest folds its evidence."""

from functools import partial

from workbench.answers.answer import Answer
from workbench.views.cards import Card, Column, Table, fold, gather
from workbench.views.cards import show as show_cards
from workbench.views.parts import part

MOST_CAUTIONS = 4  # cautions that a page shows unfolded: the first ones


def cards(answer: Answer, *, source: bool = True) -> list[Card]:
    """Make all cards, with an error card for each that fails; without `source`, another card gives the origin."""
    at_once = gather((partial(_lead, answer, source=source), *answer.also))
    about = []
    if answer.about:
        known = Table("The query", (Column("What"), Column("Seen")), tuple(answer.about.items()), opened=True)
        about.append(Card("what-it-is", "What is it, and what was read?", f"{answer.source}.", table=known))
    return [*at_once, *map(fold, [*about, *gather(answer.evidence)])]


def show(answer: Answer) -> None:
    """Display the answer in a notebook."""
    show_cards(cards(answer))


def table(answer: Answer) -> Table | None:
    """Make the table of the exact figures; None without any."""
    if not answer.rows:
        return None
    columns = tuple(Column(fact.name, fact.unit.label) for fact in answer.rows[0] if fact.name)
    return Table(answer.caption, columns, tuple(tuple(fact.exact for fact in row if fact.name) for row in answer.rows))


def _lead(answer: Answer, *, source: bool) -> list[Card]:
    html = part("answer", answer, source, MOST_CAUTIONS)
    finding = " ".join((answer.headline, *answer.details))
    figure = None if answer.draw is None else answer.draw()
    return [Card(answer.name, answer.question, finding, figure, table(answer), html=html)]
