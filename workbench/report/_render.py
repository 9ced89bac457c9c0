"""Rendering: check, run, export, write.

A report notebook runs with papermill in a kernel of this very interpreter, whose command, connection file and IPython
folder are made in the run's folder: no installed ones have a say. It becomes one HTML text that needs no network: the
page carries the chart library once, compressed; its policy forbids every other load, and `fetched_urls` finds attempts.
Scripts run only with a number that a notebook's outputs cannot know.
"""

import base64
import gzip
import os
import re
import secrets
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

import nbformat
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbconvert import HTMLExporter
from papermill import PapermillExecutionError, execute_notebook
from plotly.offline import get_plotlyjs

from workbench import __version__
from workbench.errors import WorkbenchError
from workbench.files import write_whole
from workbench.redaction import redacted
from workbench.report.parameters import UNREADABLE, check
from workbench.report.steps import find_template
from workbench.views.cards import error_card
from workbench.views.parts import cards_style, template_folder

_MINUTE = "%Y-%m-%d %H:%M UTC"
_ANSWER = re.compile(
    r'<h2>(?:<span class="kind">[^<]*</span>)?([^<]+)</h2>\s*<p>[^<]*</p>\s*<p class="workbench-origin">'
)
_READABLE = 0o644  # reports are made to be shared
_BANNERS = frozenset({"papermill-error-cell-tag"})


class Execution(NamedTuple):
    """An executed notebook; if an error stopped it, up to that point, with the name and text of the exception."""

    notebook: nbformat.NotebookNode
    failure: tuple[str, str] | None


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
        ran = nbformat.read(str(path), as_version=4)  # type: ignore[no-untyped-call]
        nbformat.validate(ran)  # an invalid notebook is read as well
    except UNREADABLE as error:
        reason = str(error).partition("\n")[0]
        raise WorkbenchError(f"The notebook {path} cannot be read ({reason}); give an executed notebook.") from error
    errors = (
        (output.ename, redacted(output.evalue))
        for cell in ran.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if output.output_type == "error"
    )
    facts = (("Run", datetime.fromtimestamp(path.stat().st_mtime, UTC).strftime(_MINUTE)),)
    return _finish(Execution(ran, next(errors, None)), path, target, title, facts)


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
    html = export(page, title or notebook_title(page, notebook.stem), facts)
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


_KERNEL = "python3"
_SAFE = ("-P", "-m", "ipykernel_launcher")  # no file in the working directory replaces an installed module
_OWN_MODULES = "--IPKernelApp.exec_lines=import sys; sys.path.append('')"  # but it is found if there is no such module


def execute(
    notebook: Path, parameters: Mapping[str, object], folder: Path, timeout_s: float | None = None
) -> Execution:
    """Run `notebook` in a temporary `folder`, no cell over `timeout_s`; relative paths start in the current one."""
    output = folder / "executed.ipynb"
    failure = None
    try:
        execute_notebook(
            str(notebook),
            str(output),
            parameters=dict(parameters),
            kernel_name=_KERNEL,
            kernel_manager_class=_kernel_manager(folder),
            execution_timeout=timeout_s,
            progress_bar=False,
            log_output=False,
            cwd=str(Path.cwd()),
        )
    except PapermillExecutionError as error:
        failure = error.ename, redacted(error.evalue)
    except CellTimeoutError:
        failure = "WorkbenchError", f"A cell ran longer than {timeout_s:g} s; allow more time."
    except DeadKernelError:
        ended = "The report's Python process ended, most likely for want of memory; free some and render again."
        failure = "WorkbenchError", ended
    source = output if output.is_file() else notebook
    return Execution(nbformat.read(str(source), as_version=4), failure)  # type: ignore[no-untyped-call]


def _kernel_manager(folder: Path) -> type[AsyncKernelManager]:
    """Make a class of kernel managers whose only kernel is this interpreter."""
    own = KernelSpec(
        argv=[sys.executable, *_SAFE, "-f", "{connection_file}", "--log-level=CRITICAL", _OWN_MODULES],
        env={"IPYTHONDIR": str(folder / "ipython"), "PYDEVD_DISABLE_FILE_VALIDATION": "1"},
        display_name=_KERNEL,
        language="python",
    )

    class OwnKernel(AsyncKernelManager):
        kernel_spec = own

        def __init__(self, **settings: object) -> None:
            super().__init__(**{**settings, "connection_file": str(folder / "kernel.json")})

    return OwnKernel


_POLICY = (
    "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'unsafe-inline'; img-src data: blob:; font-src data:; "
    "base-uri 'none'; form-action 'none'"
)
_LOADING = frozenset({"src", "srcset", "href", "data", "poster", "background"})
_INLINE = ("data:", "blob:", "#")
_CSS_URL = re.compile(r"""(?:url\(|@import)\s*["']?([^"')\s;]+)""", re.IGNORECASE)
_PLOTLY_MIME = "application/vnd.plotly.v1+json"


def export(notebook: nbformat.NotebookNode, title: str, facts: tuple[tuple[str, str], ...]) -> str:
    """Write an executed notebook as HTML by ``report/index.html.j2`` of the templates, with `facts` at its foot."""
    notebook.metadata["title"] = title
    notebook.metadata.pop("widgets", None)
    exporter = HTMLExporter(  # type: ignore[no-untyped-call]
        template_name="report",
        extra_template_basedirs=[str(template_folder())],
        exclude_input=True,
        exclude_input_prompt=True,
        exclude_output_prompt=True,
        embed_images=True,
    )
    nonce = secrets.token_urlsafe(16)
    shown = [output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", ())]
    library = ""
    if any(_PLOTLY_MIME in data for data in shown):  # the chart library, compressed and as base64
        library = base64.b64encode(gzip.compress(get_plotlyjs().encode(), compresslevel=6, mtime=0)).decode("ascii")
    extra = {"report": {"policy": _POLICY.format(nonce=nonce), "nonce": nonce, "facts": facts, "library": library}}
    html, _ = exporter.from_notebook_node(notebook, resources=extra)
    return str(html)


def fetched_urls(html: str) -> list[str]:
    """List everything a browser would load from elsewhere; empty for a self-contained page."""
    parser = _Fetched()
    parser.feed(html)
    return parser.urls


class _Fetched(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.urls: list[str] = []
        self._in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_style = tag == "style"
        given = {name: value or "" for name, value in attrs}
        if tag == "meta" and given.get("http-equiv", "").lower() == "refresh":  # no policy forbids navigating elsewhere
            self.urls.append(given.get("content", ""))
        for name, value in attrs:
            if tag != "a" and name in _LOADING and value and not value.startswith(_INLINE):
                self.urls.append(value)
            if name == "style" and value:
                self._css(value)

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self._css(data)

    def _css(self, text: str) -> None:
        self.urls += [url for url in _CSS_URL.findall(text) if not url.startswith(_INLINE)]
