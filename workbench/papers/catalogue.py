"""The five papers by name."""

from collections.abc import Mapping

from workbench.errors import WorkbenchError
from workbench.papers import capsys, elasticutor, groups, justin, streambed
from workbench.papers.figure import Paper

PAPERS: Mapping[str, Paper] = {
    one.name: one for one in (streambed.PAPER, capsys.PAPER, justin.PAPER, elasticutor.PAPER, groups.PAPER)
}
"""The papers by name."""


def find_paper(name: str) -> Paper:
    """Return a paper by its name, one of `PAPERS`. Raises `WorkbenchError` when there is none."""
    if name not in PAPERS:
        raise WorkbenchError(f"There is no paper {name!r}; use one of {', '.join(PAPERS)}.")
    return PAPERS[name]
