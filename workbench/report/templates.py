"""Where the report notebooks and the HTML template are: the folder ``templates`` next to the package."""

from pathlib import Path

from workbench.errors import WorkbenchError
from workbench.reading import is_there

FOLDER = Path(__file__).resolve().parents[2] / "templates"


def template_folder(folder: Path = FOLDER) -> Path:
    """Return the folder of templates, or refuse a package that was installed without its repository."""
    if not (folder / "report" / "index.html.j2").is_file():
        raise WorkbenchError(
            f"The report templates are not in {folder}; the package was installed without its repository. "
            "Next step: clone the repository and install it with 'pip install -e .' there."
        )
    return folder


def find_template(name: str | Path, folder: Path = FOLDER) -> Path:
    """Find a report notebook: a path, or the name of one of ours with or without ``.ipynb``.

    Raises
    ------
    WorkbenchError
        When there is none; the message lists ours.
    """
    path = Path(name)
    if is_there(path) and path.is_file():
        return path
    ours = template_folder(folder)
    for candidate in (ours / path.name, ours / f"{path.name}.ipynb"):
        if len(path.parts) == 1 and is_there(candidate):
            return candidate
    known = ", ".join(sorted(notebook.stem for notebook in ours.glob("*.ipynb")))
    raise WorkbenchError(f"There is no report notebook {str(name)!r}; give the path of one, or one of: {known}.")
