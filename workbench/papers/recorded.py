"""Results that take minutes, kept in ``data/papers``: one row per point, written by ``benchmarks/papers.py``."""

import csv
import io
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from workbench.errors import WorkbenchError
from workbench.papers.figure import Number, Series

FOLDER = Path(__file__).resolve().parents[2] / "data"
COLUMNS = ("figure", "input", "panel", "series", "x", "y", "low", "high")

Slow = Mapping[tuple[str, str], Callable[[], Iterable[Series]]]
"""What makes a recorded result, by figure and input."""


def rows(path: Path) -> list[dict[str, str]]:
    """Read a CSV file of the repository.

    Raises
    ------
    WorkbenchError
        When it is missing, as in a package installed without its repository.
    """
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

    Raises
    ------
    WorkbenchError
        When none were, or their file is missing.
    """
    found: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in rows(FOLDER / "papers" / f"{paper}.csv"):
        if (row["figure"], row["input"]) == (number, chosen):
            found.setdefault((row["panel"], row["series"]), []).append(row)
    if not found:
        raise WorkbenchError(
            f"Nothing is recorded of {number} for {chosen!r}; run python benchmarks/papers.py {paper} --record."
        )
    return tuple(
        Series(
            panel,
            name,
            tuple(_place(row["x"]) for row in points),
            tuple(_number(row["y"]) for row in points),
            *(
                tuple(_number(row[end]) for row in points) if any(row[end] for row in points) else ()
                for end in ("low", "high")
            ),
        )
        for (panel, name), points in found.items()
    )


def written(results: Mapping[tuple[str, str], Iterable[Series]]) -> str:
    """Write recorded results, by figure and input, as the text of their file; numbers with four digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for (number, chosen), series in results.items():
        for one in series:
            empty = (None,) * len(one.x)
            for x, y, low, high in zip(one.x, one.y, one.low or empty, one.high or empty, strict=True):
                writer.writerow([number, chosen, one.panel, one.name, x, *map(_text, (y, low, high))])
    return text.getvalue()


def _text(value: Number) -> str:
    return "" if value is None else f"{value:.4g}"


def _number(text: str) -> Number:
    return float(text) if text else None


def _place(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
