"""HTML parts, styles and scripts, made from the folder ``templates/views`` next to the package."""

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from workbench import units
from workbench.errors import WorkbenchError
from workbench.escaping import for_html

FOLDER = Path(__file__).resolve().parents[2] / "templates"


def template_folder(folder: Path = FOLDER) -> Path:
    """Return the folder of templates, or refuse a package that was installed without its repository."""
    if not (folder / "report" / "index.html.j2").is_file():
        raise WorkbenchError(
            f"The report templates are not in {folder}; the package was installed without its repository. "
            "Next step: clone the repository and install it with 'pip install -e .' there."
        )
    return folder


@cache
def style(*names: str) -> str:
    """Return style sheets as an element of a page."""
    return f"<style>{''.join(map(read, names))}</style>"


def cards_style() -> str:
    """Return the look of cards; colours follow the page's theme."""
    return style("cards.css", "dark.css")


def read(name: str) -> str:
    """Read a style sheet or a script."""
    return (template_folder() / "views" / name).read_text(encoding="utf-8")


def part(name: str, *values: object) -> str:
    """Fill the part `name` of ``parts.html.j2`` with values; texts in them are escaped."""
    return str(getattr(_parts(), name)(*values)).strip()


@cache
def _parts() -> object:
    templates = Environment(
        loader=FileSystemLoader(template_folder() / "views"),
        autoescape=True,
        finalize=lambda value: value if hasattr(value, "__html__") else Markup(for_html(str(value))),  # noqa: S704
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.globals["units"] = units
    return templates.get_template("parts.html.j2").module
