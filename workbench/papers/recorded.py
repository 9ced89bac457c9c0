"""Results that take minutes, kept in ``data/papers``: one row per point, written by ``benchmarks/papers.py``."""

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from workbench.errors import WorkbenchError
from workbench.papers.figure import Number, Panel, Reproduction, Series

FOLDER = Path(__file__).resolve().parents[2] / "data"


def rows(path: Path) -> list[dict[str, str]]:
    """Read a CSV file of the repository, which a package installed without its repository lacks."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))
    except OSError as error:
        raise WorkbenchError(
            f"{path} cannot be read ({error.strerror}); the package was installed without its repository. "
            "Next step: clone the repository and install it with 'pip install -e .' there."
        ) from error


def recorded(paper: str, number: str, chosen: str = "") -> tuple[Series, ...]:
    """Read the series of a figure that were recorded for an input.

    Raises `WorkbenchError` when none were, or their file is missing.
    """
    found: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in rows(FOLDER / "papers" / f"{paper}.csv"):
        if (row["figure"], row["input"]) == (number, chosen):
            found.setdefault((row["panel"], row["series"]), []).append(row)
    if not found:
        raise WorkbenchError(
            f"Nothing is recorded of {number} for {chosen!r}; run python benchmarks/papers.py {paper} --record."
        )
    series = []
    for (panel, name), points in found.items():
        y, low, high = (_column(points, column) for column in ("y", "low", "high"))
        series.append(Series(panel, name, tuple(_place(row["x"]) for row in points), y, low, high))
    return tuple(series)


def redrawn(
    paper: str, number: str, panels: Sequence[Panel], published: Iterable[Series] = ()
) -> Callable[[str], Reproduction]:
    """Make a figure of what is recorded in these panels, next to the paper's series."""
    titles, paper_series = {panel.title for panel in panels}, tuple(published)

    def make(chosen: str) -> Reproduction:
        ours = (one for one in recorded(paper, number, chosen) if one.panel in titles)
        return Reproduction(tuple(panels), (*paper_series, *ours))

    return make


def _column(points: Sequence[Mapping[str, str]], column: str) -> tuple[Number, ...]:
    """Return the values, or one end of the ranges: empty where no point has one."""
    values = tuple(float(point[column]) if point[column] else None for point in points)
    return () if column != "y" and not any(point[column] for point in points) else values


def _place(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
