"""The figures of the five papers next to ours: which there are, what the papers say of them, and how to make them.

One module per paper. A figure is data (`Reproduction`); `workbench.views.paper_cards` draws it.
"""

from collections.abc import Mapping
from types import MappingProxyType

from workbench.errors import WorkbenchError
from workbench.papers import capsys, elasticutor, groups, justin, streambed
from workbench.papers.figure import Panel, Paper, PaperFigure, Reproduction, Series
from workbench.papers.group_optimum import optimal_allocation
from workbench.papers.groups import four_groups, random_jobs
from workbench.papers.reallocation import reallocate
from workbench.papers.recorded import FOLDER, recorded
from workbench.papers.streambed import FACTORS, checked, loads

__all__ = [
    "FACTORS",
    "FOLDER",
    "PAPERS",
    "Panel",
    "Paper",
    "PaperFigure",
    "Reproduction",
    "Series",
    "checked",
    "find_paper",
    "four_groups",
    "loads",
    "optimal_allocation",
    "random_jobs",
    "reallocate",
    "recorded",
]

PAPERS: Mapping[str, Paper] = MappingProxyType(
    {one.name: one for one in (streambed.PAPER, capsys.PAPER, justin.PAPER, elasticutor.PAPER, groups.PAPER)}
)
"""The papers by name."""


def find_paper(name: str) -> Paper:
    """Give a paper by its name, one of `PAPERS`.

    Raises
    ------
    WorkbenchError
        When there is none.
    """
    if name not in PAPERS:
        raise WorkbenchError(f"There is no paper {name!r}; use one of {', '.join(PAPERS)}.")
    return PAPERS[name]
