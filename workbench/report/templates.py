"""The report notebooks in the folder ``templates`` next to the package."""

from pathlib import Path

from workbench.errors import WorkbenchError
from workbench.reading import is_there
from workbench.views.parts import template_folder


def find_template(name: str | Path) -> Path:
    """Find a report notebook: a path, or the name of one of ours with or without ``.ipynb``.

    Raises
    ------
    WorkbenchError
        When there is none; the message lists ours.
    """
    path = Path(name)
    if is_there(path) and path.is_file():
        return path
    ours = template_folder()
    for candidate in (ours / path.name, ours / f"{path.name}.ipynb"):
        if len(path.parts) == 1 and is_there(candidate):
            return candidate
    known = ", ".join(sorted(notebook.stem for notebook in ours.glob("*.ipynb")))
    raise WorkbenchError(f"There is no report notebook {str(name)!r}; give the path of one, or one of: {known}.")
