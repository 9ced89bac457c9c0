"""The figures of the five papers next to ours: the list, what the papers say of them, and how to make them.

The list is in ``data/papers``, with results that take minutes; the module of a paper makes the other figures. A figure
is data (`Reproduction`); `workbench.views.paper_cards` draws it. Parts of one are offered to the runs behind recorded
figures (``benchmarks/papers.py``).
"""

from collections.abc import Mapping

from workbench.errors import WorkbenchError
from workbench.papers import capsys, elasticutor, groups, justin, streambed
from workbench.papers.figure import (
    FOLDER,
    Compared,
    Headline,
    Panel,
    Paper,
    PaperFigure,
    Reproduction,
    Series,
    Status,
    counted,
    recorded,
)
from workbench.papers.groups import four_groups, optimal_allocation, random_jobs, reallocate

PAPERS: Mapping[str, Paper] = {
    one.name: one for one in (streambed.PAPER, capsys.PAPER, justin.PAPER, elasticutor.PAPER, groups.PAPER)
}
"""The papers by name."""


def find_paper(name: str) -> Paper:
    """Return a paper by its name, one of `PAPERS`. Raises `WorkbenchError` when there is none."""
    if name not in PAPERS:
        raise WorkbenchError(f"There is no paper {name!r}; use one of {', '.join(PAPERS)}.")
    return PAPERS[name]
