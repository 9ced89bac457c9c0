"""The figures of the five papers next to ours: the list, what the papers say of them, and how to make them.

The list is in ``data/papers``, with results that take minutes; the module of a paper makes the other figures. A figure
is data (`Reproduction`); `workbench.views.paper_cards` draws it. Two modules are offered to the runs behind recorded
figures (``benchmarks/papers.py``).
"""

from workbench.papers import capsys, streambed
from workbench.papers.catalogue import PAPERS, find_paper
from workbench.papers.figure import (
    Compared,
    Headline,
    Panel,
    Paper,
    PaperFigure,
    Reproduction,
    Series,
    Status,
    counted,
)
from workbench.papers.group_optimum import optimal_allocation, reallocate
from workbench.papers.groups import four_groups, random_jobs
from workbench.papers.recorded import FOLDER, recorded
