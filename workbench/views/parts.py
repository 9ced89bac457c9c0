"""HTML parts, styles and scripts, made from the folder ``templates/views`` next to the package."""

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from workbench import units
from workbench.escaping import for_html

_FOLDER = Path(__file__).resolve().parents[2] / "templates" / "views"


def part(name: str, *values: object) -> str:
    """Fill the part `name` of ``parts.html.j2`` with values; texts in them are escaped."""
    return str(getattr(_parts(), name)(*values)).strip()


@cache
def style(*names: str) -> str:
    """Return style sheets as an element of a page."""
    return f"<style>{''.join(map(read, names))}</style>"


def cards_style() -> str:
    """Return the look of cards; colours follow the page's theme."""
    return style("cards.css", "dark.css")


def read(name: str) -> str:
    """Read a style sheet or a script."""
    return (_FOLDER / name).read_text(encoding="utf-8")


@cache
def _parts() -> object:
    templates = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        finalize=_escaped,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.globals["units"] = units
    return templates.get_template("parts.html.j2").module


def _escaped(value: object) -> object:
    return value if hasattr(value, "__html__") else Markup(for_html(str(value)))  # noqa: S704 - escaped
