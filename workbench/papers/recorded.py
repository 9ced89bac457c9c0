"""What ``data/papers`` keeps of each paper: its figures with what it says of them, and our results that take minutes.

Results have one row per point, and are written by ``benchmarks/papers.py``.
"""

import csv
import math
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import MappingProxyType

from workbench.errors import WorkbenchError
from workbench.papers.figure import Headline, Number, Panel, PaperFigure, Reproduction, Series, reader

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


def read_figures(
    paper: str,
    makers: Mapping[str, Callable[[str], Reproduction]],
    own: Mapping[str, Callable[..., float]] = MappingProxyType({}),
    derived: Mapping[str, Iterable[Headline]] = MappingProxyType({}),
) -> tuple[PaperFigure, ...]:
    """Read the figures of a paper; there are none if the package was installed without its repository.

    Parameters
    ----------
    makers
        What makes ours, by number, of figures that are not drawn from recorded results.
    own
        Readers that the paper's headlines name, see `reader`.
    derived
        Further headlines, which follow from tables, by number; not read where there are no figures.
    """
    try:
        text = (FOLDER / "papers" / f"{paper}.toml").read_text(encoding="utf-8")
    except OSError:
        return ()
    figures = []
    for one in tomllib.loads(text)["figures"]:
        number, headlines = one["number"], list[Headline]()
        for row in one.pop("headlines", ()):
            if isinstance(row["published"], list):
                row["published"] = tuple(row["published"])
            if "ours" in row:
                row["ours"] = reader(row["ours"], own)
            headlines.append(Headline(**row))
        panels = tuple(Panel(**row) for row in one.pop("panels", ()))
        published = tuple(
            Series(
                row["panel"],
                row["name"],
                tuple(row["x"]),
                tuple(None if math.isnan(y) else y for y in row["y"]),
                published=True,
            )
            for row in one.pop("published", ())
        )
        of = one.pop("recorded", number)  # the figure whose results it shows
        make = partial(_redrawn, paper, of, panels, published) if panels else makers.get(number)
        one["inputs"] = tuple(one.get("inputs", ()))
        with suppress(WorkbenchError):  # without the tables that they follow from
            headlines += derived.get(number, ())
        figures.append(PaperFigure(**one, make=make, headlines=tuple(headlines), panels=panels))
    return tuple(figures)


def _redrawn(
    paper: str, number: str, panels: tuple[Panel, ...], published: tuple[Series, ...], chosen: str
) -> Reproduction:
    """Make a figure of what is recorded in these panels, next to the paper's series."""
    titles = {panel.title for panel in panels}
    ours = (one for one in recorded(paper, number, chosen) if one.panel in titles)
    return Reproduction(panels, (*published, *ours))


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


def _column(points: Sequence[Mapping[str, str]], column: str) -> tuple[Number, ...]:
    """Return the values, or one end of the ranges: empty where no point has one."""
    values = tuple(float(point[column]) if point[column] else None for point in points)
    return () if column != "y" and not any(point[column] for point in points) else values


def _place(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
