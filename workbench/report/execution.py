"""Running a report notebook with papermill, in a kernel of this very interpreter.

The kernel's command, connection file and IPython folder are made in the run's folder: no installed ones have a say.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import nbformat
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from papermill import PapermillExecutionError, execute_notebook

from workbench.redaction import redacted

UNREADABLE = (OSError, ValueError, TypeError, AttributeError, KeyError, nbformat.ValidationError)
"""Errors of reading a file that is not a notebook: the readers do not check its form."""

_KERNEL = "python3"
_SAFE = ("-P", "-m", "ipykernel_launcher")  # no file in the working directory replaces an installed module
_OWN_MODULES = "--IPKernelApp.exec_lines=import sys; sys.path.append('')"  # but it is found if there is no such module


class Execution(NamedTuple):
    """An executed notebook; if an error stopped it, up to that point, with the name and text of the exception."""

    notebook: nbformat.NotebookNode
    failure: tuple[str, str] | None


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


def read_executed(path: Path) -> Execution:
    """Read a notebook that another program has run, or raise one of `UNREADABLE`; its first error is the failure."""
    notebook = nbformat.read(str(path), as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)  # an invalid notebook is read as well
    errors = (
        (output.ename, redacted(output.evalue))
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
        if output.output_type == "error"
    )
    return Execution(notebook, next(errors, None))


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
