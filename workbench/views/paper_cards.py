"""Cards of the five papers: which figures there are, and each next to ours."""

import re
from collections import Counter
from functools import partial
from html import escape

from workbench.papers import Paper, PaperFigure, Reproduction
from workbench.views.cards import Card, Column, Table, gather
from workbench.views.figures import draw_reproduced

_MOST_POINTS = 40  # of a series in a table


def index_card(paper: Paper) -> Card:
    """List all figures and tables of the paper's evaluation, those that are not here included."""
    columns = (
        Column("Figure"),
        Column("What it shows"),
        Column("Here"),
        Column("How, or why not"),
        Column("Inputs to choose from"),
    )
    rows = tuple((one.number, one.shows, one.status, one.how, ", ".join(one.inputs)) for one in paper.figures)
    counts: Counter[str] = Counter(one.status for one in paper.figures)
    known = ("reproduced", "simulated", "not here")
    listed = ", ".join(f"{counts[status]} {status}" for status in known if counts[status])
    finding = f"{len(paper.figures)} figures and tables: {listed}."
    table = Table(f"Evaluation of {paper.title}", columns, rows, opened=True)
    return Card(f"{paper.name}-figures", paper.title, finding, table=table)


def figure_card(paper: Paper, figure: PaperFigure, chosen: str | None = None) -> Card:
    """Show one figure next to ours, for the chosen input or the usual one.

    Raises
    ------
    WorkbenchError
        When it is not here, or has no such input.
    """
    made = figure.reproduce(chosen)
    of = f" ({chosen or figure.inputs[0]})" if figure.inputs else ""
    html = (
        f"<p><strong>The paper:</strong> {escape(figure.said)}</p>"
        f"<p><strong>Ours, {escape(figure.status)}:</strong> {escape(figure.how)}</p>"
    )
    return Card(
        f"{paper.name}-{re.sub(r'[^a-z0-9]+', '-', figure.number.lower())}",
        f"{figure.number}{of}: {figure.shows}",
        f"{made.finding}.",
        draw_reproduced(made),
        _table(figure, made),
        html=html,
    )


def figure_cards(paper: Paper, figure: PaperFigure, chosen: str | None = None) -> list[Card]:
    """Show one figure next to ours, or an error card."""
    return gather([lambda one: [figure_card(one, figure, chosen)]], paper)


def cards(paper: Paper, chosen: str | None = None) -> list[Card]:
    """Show the list of figures and all that are here; those that have the input `chosen` are made for it."""
    sections = [
        partial(_section, figure=one, chosen=chosen if chosen in one.inputs else None)
        for one in paper.figures
        if one.make is not None
    ]
    return [index_card(paper), *gather(sections, paper)]


def _section(paper: Paper, figure: PaperFigure, chosen: str | None) -> list[Card]:
    return [figure_card(paper, figure, chosen)]


def _table(figure: PaperFigure, made: Reproduction) -> Table | None:
    """Write the values of all series that are short enough to read."""
    units = {panel.title: panel.y for panel in made.panels}
    rows = tuple(
        (one.panel, one.name, x, value, units[one.panel], "paper" if one.published else "ours")
        for one in made.series
        if len(one.x) <= _MOST_POINTS
        for x, value in zip(one.x, one.y, strict=True)
    )
    columns = (Column("Panel"), Column("Series"), Column("At"), Column("Value"), Column("Of"), Column("Source"))
    return Table(f"Values of {figure.number}", columns, rows) if rows else None
