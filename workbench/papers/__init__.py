"""The figures of the five papers next to ours: the list, what the papers say of them, and how to make them.

One module per paper. A figure is data (`Reproduction`); `workbench.views.paper_cards` draws it. Modules whose figures
are recorded are offered to the runs behind them (``benchmarks/papers.py``).
"""

from workbench.papers import capsys, capsys_motivation, capsys_scaling, elasticutor, streambed
from workbench.papers.catalogue import PAPERS, find_paper
from workbench.papers.figure import Panel, Paper, PaperFigure, Reproduction, Series, Status
from workbench.papers.group_optimum import optimal_allocation, reallocate
from workbench.papers.groups import four_groups, random_jobs
from workbench.papers.headline import Compared, Headline, counted
from workbench.papers.recorded import FOLDER, recorded
