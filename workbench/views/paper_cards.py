"""Cards of the five papers: the list of figures, and each figure next to ours."""

import re
from collections import Counter
from functools import partial
from typing import get_args

from workbench import units
from workbench.papers import Paper, PaperFigure, Reproduction, Status, counted
from workbench.views.cards import Card, Table, gather, headings, tabulate
from workbench.views.figures import draw_reproduced
from workbench.views.parts import part

_MOST_POINTS = 40  # of a series in a table


def index_card(paper: Paper) -> Card:
    """List the figures and tables of the paper's evaluation with their status, including those that are not here."""
    table = tabulate(
        f"Evaluation of {paper.title}",
        paper.figures,
        {
            "Figure": lambda one: one.number,
            "What it shows": lambda one: one.shows,
            "Ours is": lambda one: one.status,
            "How, or why not": lambda one: one.how,
            "Inputs to choose from": lambda one: ", ".join(one.inputs),
        },
        opened=True,
    )
    counts = Counter(one.status for one in paper.figures)
    listed = "; ".join(
        f"{counts[status]} {status.removesuffix(', because')}" for status in get_args(Status) if counts[status]
    )
    finding = f"{len(paper.figures)} figures and tables: {listed}."
    return Card(f"{paper.name}-figures", paper.title, finding, table=table)


def headlines_card(paper: Paper) -> Card:
    """List the numbers of the paper next to ours, and count how many agree and how many were fitted."""
    found = [(figure, one) for figure in paper.figures for one in figure.compare_all()]
    table = tabulate(
        f"Headlines of {paper.title}",
        found,
        {
            "Figure": lambda one: one[1].number,
            "Headline": lambda one: one[1].headline.what,
            "Paper": lambda one: one[1].headline.said,
            "Ours": lambda one: "" if one[1].ours is None else one[1].headline.written(one[1].ours),
            "Difference": lambda one: one[1].difference,
            "Verdict": lambda one: one[1].verdict,
            "Ours is": lambda one: one[0].status,
        },
        opened=True,
    )
    counts = counted(one for _, one in found)
    listed = "; ".join(f"{count} {verdict}" for verdict, count in counts.items())
    finding = f"{units.some(len(found), 'number')}: {listed}."
    return Card(f"{paper.name}-headlines", "Headlines next to ours", finding, table=table)


def figure_card(paper: Paper, figure: PaperFigure, chosen: str | None = None) -> Card:
    """Show one figure next to ours, for the chosen input or the usual one."""
    made = figure.reproduce(chosen)
    of = f" ({chosen or figure.inputs[0]})" if figure.inputs else ""
    compared = "; ".join(one.sentence for one in figure.compare(made, chosen))
    finding = compared or f"The paper has no number of it for {chosen or figure.inputs[0]}"
    return Card(
        f"{paper.name}-{re.sub(r'[^a-z0-9]+', '-', figure.number.lower())}",
        f"{figure.number}{of}: {figure.shows}",
        f"{finding}.",
        draw_reproduced(made, finding),
        _table(figure, made),
        html=part("paper", figure),
    )


def figure_cards(paper: Paper, figure: PaperFigure, chosen: str | None = None) -> list[Card]:
    """Show one figure next to ours, or an error card."""
    return gather([partial(_section, paper, figure, chosen)])


def cards(paper: Paper, chosen: str | None = None) -> list[Card]:
    """Show the list of figures and all that are here; those that have the input `chosen` are made for it."""
    sections = [
        partial(_section, paper, one, chosen if chosen in one.inputs else None)
        for one in paper.figures
        if one.make is not None
    ]
    return [index_card(paper), *gather([lambda: [headlines_card(paper)], *sections])]


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
    columns = headings(("Panel", "Series", "At", "Value", "Of", "Source"))
    return Table(f"Values of {figure.number}", columns, rows) if rows else None
