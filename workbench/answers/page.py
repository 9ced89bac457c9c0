"""An answer as the cards of a page or a notebook: the first has all that it says, its evidence is folded."""

from collections.abc import Callable, Iterable
from functools import partial

from workbench.answers.answer import Answer, Fact
from workbench.views.cards import Card, Column, Table, fold, gather
from workbench.views.cards import show as show_cards
from workbench.views.first_screen import Chip, cares_html, header_html, table_html


def cards(answer: Answer) -> list[Card]:
    """Make all cards; one that cannot be made becomes an error card and does not hide the others."""
    evidence = gather([partial(_section, made) for made in answer.evidence], None)
    return [*gather((_lead,), answer), *map(fold, [*_about(answer), *evidence])]


def show(answer: Answer) -> None:
    """Display the answer in a notebook."""
    show_cards(cards(answer))


def _section(made: Callable[[], Iterable[Card]], _: None) -> Iterable[Card]:
    return made()


def _lead(answer: Answer) -> list[Card]:
    html = header_html(answer.origin, answer.of) + _listed(answer) + cares_html(answer.cautions)
    finding = " ".join((answer.headline, *answer.details))
    figure = None if answer.draw is None else answer.draw()
    return [Card(answer.name, answer.question, finding, figure, _exact(answer), html=html)]


def _about(answer: Answer) -> Iterable[Card]:
    if answer.about:
        table = Table("The query", (Column("What"), Column("Seen")), tuple(answer.about.items()), opened=True)
        yield Card("what-it-is", "What is it, and what was read?", f"{answer.source}.", table=table)


def _listed(answer: Answer) -> str:
    if not answer.listed or not answer.rows:
        return ""
    columns = [fact.name for fact in answer.rows[0] if _seen(fact)]
    rows = [
        [_cell(fact, chosen=at == 0 and number == answer.chosen) for at, fact in enumerate(row) if _seen(fact)]
        for number, row in enumerate(answer.rows)
    ]
    return table_html(columns, rows, chosen=answer.chosen)


def _seen(fact: Fact) -> bool:
    return bool(fact.name) and fact.shown != "data"


def _cell(fact: Fact, *, chosen: bool) -> str | Chip:
    text = f"{fact.text}\N{NO-BREAK SPACE}◀\N{NO-BREAK SPACE}best" if chosen else fact.text
    return Chip(text, fact.verdict) if fact.verdict else text


def _exact(answer: Answer) -> Table | None:
    """Make the table of the exact figures."""
    if not answer.rows:
        return None
    columns = tuple(Column(fact.name, fact.unit.label) for fact in answer.rows[0] if fact.name)
    return Table(answer.caption, columns, tuple(tuple(fact.exact for fact in row if fact.name) for row in answer.rows))
