"""An answer as the cards of a page or a notebook: the first has all that it says, its evidence is folded."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from workbench.answers.answer import Answer, Fact
from workbench.views.cards import Card, Column, Table, fold, gather
from workbench.views.cards import show as show_cards
from workbench.views.first_screen import Chip, beside_html, cares_html, header_html, table_html

_Made = Callable[[], Iterable[Card]]


def cards(answer: Answer, *, source: bool = True) -> list[Card]:
    """Make all cards; one that cannot be made becomes an error card and does not hide the others.

    Without `source`, the first does not say where the figures come from, because another card says it.
    """
    lead = gather((partial(_lead, source=source),), answer)
    return [*lead, *_made(answer.also), *map(fold, [*_about(answer), *_made(answer.evidence)])]


def show(answer: Answer) -> None:
    """Display the answer in a notebook."""
    show_cards(cards(answer))


def header(answer: Answer) -> str:
    """Write where the figures come from."""
    return header_html(answer.origin, answer.of)


def _made(sections: Sequence[_Made]) -> list[Card]:
    return gather([partial(_section, made) for made in sections], None)


def _section(made: _Made, _: None) -> Iterable[Card]:
    return made()


def _lead(answer: Answer, *, source: bool) -> list[Card]:
    listed = _listed(answer.rows, answer.chosen, "best") if answer.listed else ""
    beside = beside_html(*(_listed(one.rows, one.chosen, "planned", one.caption) for one in answer.listings))
    html = header(answer) * source + listed + cares_html(answer.cautions) + beside
    finding = " ".join((answer.headline, *answer.details))
    figure = None if answer.draw is None else answer.draw()
    return [Card(answer.name, answer.question, finding, figure, _exact(answer), html=html)]


def _about(answer: Answer) -> Iterable[Card]:
    if answer.about:
        table = Table("The query", (Column("What"), Column("Seen")), tuple(answer.about.items()), opened=True)
        yield Card("what-it-is", "What is it, and what was read?", f"{answer.source}.", table=table)


def _listed(rows: Sequence[Sequence[Fact]], chosen: int | None, mark: str, caption: str = "") -> str:
    if not rows:
        return ""
    columns = [fact.name for fact in rows[0] if _seen(fact)]
    cells = [
        [
            Chip(text, fact.verdict) if fact.verdict else text
            for at, fact in enumerate(row)
            if _seen(fact)
            for text in (fact.text + f"\N{NO-BREAK SPACE}◀\N{NO-BREAK SPACE}{mark}" * (at == 0 and number == chosen),)
        ]
        for number, row in enumerate(rows)
    ]
    return table_html(columns, cells, chosen=chosen, caption=caption)


def _seen(fact: Fact) -> bool:
    return bool(fact.name) and fact.shown != "data"


def _exact(answer: Answer) -> Table | None:
    """Make the table of the exact figures."""
    if not answer.rows:
        return None
    columns = tuple(Column(fact.name, fact.unit.label) for fact in answer.rows[0] if fact.name)
    return Table(answer.caption, columns, tuple(tuple(fact.exact for fact in row if fact.name) for row in answer.rows))
