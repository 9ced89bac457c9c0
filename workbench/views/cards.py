"""Results, missing results, errors and advice as cards: title, one sentence with the finding, figure, table.

A card is shown as a heading, a plain plotly figure in an output of its own, so that a page carries the chart library
once, and a table in a ``<details>`` element with a CSV link.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeVar, get_args

import plotly.graph_objects as go
from IPython.display import display

from workbench.escaping import csv_text
from workbench.views.parts import cards_style, part
from workbench.views.theme import QUIET, untitled

Kind = Literal["result", "health", "error", "not-yet", "no-data", "no-plan"]
Cell = str | float | None
Item = TypeVar("Item")

_WORDS: dict[Kind, str] = {
    "result": "",
    "health": "⚠ Advice",
    "error": "✖ Error",
    "not-yet": "… Not yet",
    "no-data": "No data",
    "no-plan": "No plan",
}

_TITLES = {
    "WorkbenchError": "This result is missing",
    "NoCapacityError": "There is no plan",
    "CapacityFellError": "The capacity fell, so this report ends with an error as asked",
    "MeasurementFailedError": "A measurement failed, so this report is partial",
}
_DIGITS = 7  # of numbers in charts
_BOM = "\ufeff"  # the sign by which spreadsheets know that a CSV file is UTF-8


class Column(NamedTuple):
    """Heading of a table's column; an empty unit means that the column has none."""

    name: str
    unit: str = ""


@dataclass(frozen=True)
class Table:
    """Plain rows under named columns: each cell is text, a number in the column's unit, or None for undefined."""

    caption: str  # title of the rows
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    opened: bool = False  # whether it is shown unfolded

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"Table {self.caption!r} has {len(self.columns)} columns but a row {row!r}.")

    def csv(self) -> str:
        """All values, exact, as comma-separated text; an undefined value is empty."""
        header = [f"{name} ({unit})" if unit else name for name, unit in self.columns]
        return csv_text([header, *self.rows], "\r\n")


def headings(names: Iterable[str]) -> tuple[Column, ...]:
    """Make columns from headings such as ``"Rate (records/s)"``, with the unit in parentheses at the end."""
    return tuple(Column(name, unit.removesuffix(")")) for name, _, unit in (one.partition(" (") for one in names))


def tabulate(
    caption: str, items: Iterable[Item], columns: Mapping[str, Callable[[Item], Cell]], *, opened: bool = False
) -> Table:
    """Make a table with a row for each item: `columns` map a heading, as `headings` takes it, to an item's cell."""
    rows = tuple(tuple(cell(one) for cell in columns.values()) for one in items)
    return Table(caption, headings(columns), rows, opened)


def facts_table(caption: str, facts: Mapping[str, Cell | bool]) -> Table:
    """Make a table of names and values, as text; values keep all digits."""
    return Table(caption, headings(("What", "Value")), tuple((name, _fact(facts[name])) for name in facts), opened=True)


def times(factor: float, value: float | None) -> float | None:
    """Multiply a value that may be undefined."""
    return None if value is None else factor * value


def finite(value: float) -> float | None:
    """Return a number for a table, which has no infinite ones."""
    return value if math.isfinite(value) else None


def _fact(value: Cell | bool) -> str:
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int | float) else str(value)


@dataclass(frozen=True)
class Card:
    """One result as an analyst sees it."""

    name: str  # short and unique on its page; names the CSV file
    title: str  # the question
    finding: str  # the answer in one sentence
    figure: go.Figure | None = None
    table: Table | None = None
    kind: Kind = "result"  # "no-data" and "no-plan": nothing will come
    html: str = ""  # more of the answer, under the finding: markup in which all text of users is escaped
    folded: bool = False  # whether a page folds it: it is evidence, not the answer
    of: str = ""  # what it is evidence of, one title for all such cards; empty: of the whole answer

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise ValueError(f"Card {self.name!r} has kind {self.kind!r}; use one of {', '.join(get_args(Kind))}.")

    def heading_html(self) -> str:
        """Title and finding."""
        return part("card", self, _WORDS[self.kind])

    def table_html(self, *, download: bool = True) -> str:
        """Write the table in a ``<details>`` element, empty without one; live panels cannot offer the CSV link."""
        if self.table is None:
            return ""
        numeric = [
            any(isinstance(row[place], int | float) for row in self.table.rows)
            for place in range(len(self.table.columns))
        ]
        return part("table", self.table, self.name, numeric, _BOM + self.table.csv() if download else "")

    def _ipython_display_(self) -> None:
        show((self,))


def outputs(card: Card) -> Iterator[dict[str, object]]:
    """Yield what a notebook shows of a card: its heading, its figure and its table."""
    yield {"text/html": card.heading_html(), "text/plain": f"{card.title}: {card.finding}"}
    if card.figure is not None:
        yield chart(card.figure)
    if card.table is not None:
        yield {"text/html": card.table_html(), "text/plain": card.table.csv()}


def show(cards: Iterable[Card]) -> None:
    """Display cards in a notebook, in order."""
    style = cards_style()
    for card in cards:
        heading, *evidence = outputs(card)
        for bundle in ({**heading, "text/html": f"{style}{heading['text/html']}"}, *evidence):
            display(bundle, raw=True)  # type: ignore[no-untyped-call]
        style = ""


def chart(figure: go.Figure) -> dict[str, object]:
    """Return the figure as a notebook output: its JSON with quiet settings, without the chart library.

    Its card says the title, which is the finding. Tables keep all digits, charts as many as a screen can show.
    """
    drawn = json.loads(untitled(figure).to_json(), parse_float=lambda digits: float(f"{float(digits):.{_DIGITS}g}"))
    return {
        "application/vnd.plotly.v1+json": {**drawn, "config": dict(QUIET)},
        "text/plain": str((figure.layout.meta or {}).get("finding", "chart")),
    }


def gather(sections: Iterable[Callable[[], Iterable[Card]]]) -> list[Card]:
    """Make the cards of all sections; one that cannot be made becomes an error card and never hides the others."""
    made: list[Card] = []
    for number, section in enumerate(sections, start=1):
        try:
            made += section()
        except Exception as error:  # noqa: BLE001 - one bad chart must not cost the report
            made.append(replace(error_card(type(error).__name__, str(error)), name=f"error-{number}"))
    return made


def fold(card: Card) -> Card:
    """Return the card folded, as evidence; an error stays in sight."""
    return replace(card, folded=card.kind != "error")


def error_card(kind: str, message: str) -> Card:
    """Make a card of an error, without a traceback; other kinds than the workbench's own are defects."""
    if kind not in _TITLES:
        message = f"{kind}: {message} (Please report this sentence together with the input that was read.)"
    title = _TITLES.get(kind, "This result is missing because of a defect of the workbench")
    return Card("error", title, message, kind="error")
