"""Rendering: check, run, export, write."""

import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from html import unescape
from pathlib import Path

import nbformat

from workbench import __version__
from workbench.errors import WorkbenchError
from workbench.files import write_whole
from workbench.redaction import redacted
from workbench.report.execution import UNREADABLE, Execution, execute, read_executed
from workbench.report.html import export, fetched_urls
from workbench.report.parameters import check
from workbench.report.steps import find_template
from workbench.views.cards import error_card
from workbench.views.parts import cards_style, template_folder

_MINUTE = "%Y-%m-%d %H:%M UTC"
_ANSWER = re.compile(
    r'<h2>(?:<span class="kind">[^<]*</span>)?([^<]+)</h2>\s*<p>[^<]*</p>\s*<p class="workbench-origin">'
)
_READABLE = 0o644  # reports are made to be shared
_BANNERS = frozenset({"papermill-error-cell-tag"})


@dataclass(frozen=True)
class Report:
    """One written report; a caller that is a command exits non-zero for a partial one."""

    path: Path  # the HTML file
    error: str | None = None  # why it is partial: the message of what failed; None for a complete one

    @property
    def complete(self) -> bool:
        """Whether every cell ran."""
        return self.error is None


def render(
    template: str | Path,
    parameters: Mapping[str, object],
    output: str | Path,
    title: str | None = None,
    timeout_s: float | None = None,
) -> Report:
    """Run a report notebook and write it as one self-contained HTML file, complete or not at all.

    The `template` is a notebook's path or its name in ``templates/``; relative paths in `parameters` start at the
    working directory. A cell that fails or exceeds `timeout_s` gives a partial report with an ``error``. Raises a
    WorkbenchError for refused parameters, an output that cannot be written, and a page that loads from elsewhere.
    """
    notebook = find_template(template)
    values = check(notebook, parameters)
    target = _checked(output)
    started = datetime.now(UTC)
    try:
        with tempfile.TemporaryDirectory(prefix="workbench-report-") as folder:
            execution = execute(notebook, parameters, Path(folder), timeout_s)
    except OSError as error:
        raise WorkbenchError(
            f"The report cannot be run without a place for temporary files: {error.strerror or error}. Make room "
            "there, or set TMPDIR to another folder."
        ) from error
    for name, value in values.items():
        if isinstance(value, str) and os.sep in value:
            values[name] = Path(value).name  # reports travel, and folders name people
    facts = (
        ("Rendered", started.strftime(_MINUTE)),
        *((f"Parameter {name}", redacted(str(value))) for name, value in values.items()),
    )
    return _finish(execution, notebook, target, title, facts)


def export_executed(notebook: str | Path, output: str | Path, title: str | None = None) -> Report:
    """Write a report notebook that another program has run, such as a scheduler, as `render` writes its own."""
    path, target = Path(notebook), _checked(output)
    try:
        execution = read_executed(path)
    except UNREADABLE as error:
        reason = str(error).partition("\n")[0]
        raise WorkbenchError(f"The notebook {path} cannot be read ({reason}); give an executed notebook.") from error
    facts = (("Run", datetime.fromtimestamp(path.stat().st_mtime, UTC).strftime(_MINUTE)),)
    return _finish(execution, path, target, title, facts)


def _checked(output: str | Path) -> Path:
    target = Path(output)
    if target.is_dir():
        raise WorkbenchError(f"The report's path {target} is a folder; name a file, such as {target / 'report.html'}.")
    return target


def _finish(
    execution: Execution, notebook: Path, target: Path, title: str | None, facts: tuple[tuple[str, str], ...]
) -> Report:
    page = _presentable(execution)
    facts = (("Report notebook", notebook.name), ("Workbench", __version__), *facts)
    html = export(page, template_folder(), title or notebook_title(page, notebook.stem), facts)
    if elsewhere := fetched_urls(html):
        raise WorkbenchError(
            f"The report would load {elsewhere[0]} and so not work offline; "
            f"put it into {notebook.name} as a data: address or leave it out."
        )
    write_whole(target, html, _READABLE)
    return Report(target, execution.failure and execution.failure[1])


def notebook_title(notebook: nbformat.NotebookNode, otherwise: str) -> str:
    """Return the title of the answer, which names what the report is about; without one, the first top heading."""
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            answer = _ANSWER.search(str(output.get("data", {}).get("text/html", "")))
            if answer:
                return unescape(answer[1])
    for cell in notebook.cells:
        first = cell.source.lstrip().splitlines()[:1]
        if cell.cell_type == "markdown" and first and first[0].startswith("# "):
            return str(first[0][2:].strip())
    return otherwise


def _presentable(execution: Execution) -> nbformat.NotebookNode:
    """Put the error card where a cell failed; drop papermill's banners, every traceback, and standard error."""
    notebook = execution.notebook
    notebook.cells = [cell for cell in notebook.cells if not _BANNERS & set(cell.metadata.get("tags", ()))]
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    if execution.failure is None:
        return notebook
    html = cards_style() + error_card(*execution.failure).heading_html()
    card = nbformat.v4.new_output("display_data", {"text/html": html})  # type: ignore[no-untyped-call]
    shown = False
    for cell in notebook.cells:
        if cell.cell_type == "code" and any(output.output_type == "error" for output in cell.outputs):
            cell.outputs = [output for output in cell.outputs if output.output_type != "error"] + [card]
            shown = True
    if not shown:
        notebook.cells.append(nbformat.v4.new_code_cell(outputs=[card]))  # type: ignore[no-untyped-call]
    return notebook
