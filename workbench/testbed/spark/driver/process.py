"""Separate processes with Spark: the driver of a deployment, and those that answer one question."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import packages_distributions
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Self, TextIO

from workbench.errors import WorkbenchError
from workbench.testbed.spark.driver.session import last_line
from workbench.testbed.spark.machine.quota import CpuQuota

LEFT = "left by the workbench: "
"""Prefix of a line of the driver's output that names what it could not clean up."""

ENDS_S, ENDS_ON_CLUSTER_S = 30.0, 120.0
"""Longest time for a driver to end; on a cluster, checkpoints are removed and a log may be copied over the network."""

_CHECK_S = 0.25
_NOTED = 50  # lines of each log that an error includes
_END = 1 << 16  # bytes of a process's output that are kept


def go_on() -> None:
    """Let the deployment continue."""


def environment_of_modules() -> dict[str, str]:
    """Environment in which the driver and Spark's Python workers find the same modules as this process, and no others.

    So a file in the current folder is imported only where a query of yours, or a notebook, has put that folder on the
    path; Spark's workers, which Python starts as modules, would have it there too.
    """
    return os.environ | {
        "PYTHONSAFEPATH": "1",
        "PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path),
    }


def ask_apart(module: str, asked: object, longest_s: float | None = None) -> tuple[str, str]:
    """Run `module` in a separate process, which gets `asked` as JSON; return its answer, and the end of its output.

    It raises `subprocess.TimeoutExpired` after `longest_s` seconds. In the end all that the process started is killed,
    and its temporary files are removed.
    """
    with (
        tempfile.TemporaryDirectory(prefix="workbench-apart-", ignore_cleanup_errors=True) as folder,
        tempfile.TemporaryFile() as said,
    ):
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            start_new_session=True,
            env=environment_of_modules() | {"TMPDIR": folder},
        )
        try:
            found, _ = process.communicate(json.dumps(asked), longest_s)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        said.seek(max(0, said.seek(0, os.SEEK_END) - _END))
        return found, said.read().decode(errors="replace")


@contextmanager
def answering() -> Iterator[TextIO]:
    """Yield the file for the answer to `ask_apart`; other output is kept out of it."""
    ours = os.dup(1)
    os.dup2(2, 1)
    with os.fdopen(ours, "w") as result:
        yield result


class DriverProcess:
    """The driver process and its reaper, which end when the context is left, and `folders` and `quota` with them.

    The first folder has the logs. The driver has `ends_s` to end, before it is killed; `say` hears what it left.
    """

    def __init__(
        self,
        folders: Sequence[Path],
        quota: CpuQuota | None,
        ends_s: float = ENDS_S,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._ends_s, self._say = ends_s, say
        self.connection, theirs = Pipe()
        alive_read, alive_write = os.pipe()
        environment, folder = environment_of_modules(), folders[0]
        with (folder / "driver.log").open("ab") as log:
            self._log = (folder / "driver.log").open(errors="replace")  # stays readable after the reaper has removed it
            (folder / "jvm.log").touch()
            self._jvm_log = (folder / "jvm.log").open(errors="replace")
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "workbench.testbed.spark.driver.deployment", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(theirs.fileno(), alive_write),
                start_new_session=True,
                env=environment,
            )
            groups = [str(group) for group in quota.all_folders] if quota else []
            if quota:
                quota.add_driver(self._process.pid)
            reaper = str(Path(__file__).with_name("reaper.py"))
            named = (str(alive_read), str(self._process.pid), *map(str, folders), "--", *groups)
            self._reaper = subprocess.Popen(
                [sys.executable, "-I", reaper, *named],  # -I: nothing in the user's folder or path can break it
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(alive_read,),
                start_new_session=True,
                env=environment,
            )
        theirs.close()
        os.close(alive_read)
        os.close(alive_write)

    def __enter__(self) -> Self:
        return self

    def said(self) -> str:
        """Return the output of the process, also after it has ended."""
        self._log.seek(0)
        return self._log.read()

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self.connection.close()
        try:
            self._process.wait(self._ends_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            self._say(
                f"Spark did not end within {self._ends_s:g} s and was killed; on a cluster, checkpoints may be left "
                "and the event log may be missing"
            )
        with suppress(subprocess.TimeoutExpired):  # it continues without help
            self._reaper.wait(60)
        with self._log, self._jvm_log:
            for line in self.said().splitlines():
                if line.startswith(LEFT):
                    self._say(line.removeprefix(LEFT))
            if isinstance(error, Exception):  # for a bundle: the folder with the logs is gone
                for name, said in (("driver", self.said()), ("Java", self._jvm_log.read())):
                    error.add_note("\n".join([f"The last lines of {name}'s log:", *said.splitlines()[-_NOTED:]]))


def ended(said: str) -> WorkbenchError:
    """Return the error for a driver process that has ended, with the cause if its output `said` names one."""
    last = last_line(said)
    hidden = _hidden(Path.cwd())
    if hidden and re.match(r"\w+Error\b", last):
        return WorkbenchError(
            f"Spark's driver process ended by itself: {last.rstrip('.')}. Python may take {', '.join(hidden)} in the "
            "current folder for a module of the same name: rename it, then run the same command again."
        )
    cause = f" ({last.rstrip('.')})" if re.match(r"[\w.]+Error\b", last) else ""
    return WorkbenchError(
        f"Spark's driver process ended by itself{cause}, most likely for lack of memory; "
        "close other programs or use smaller slots, then run the same command again.",
        settings=("memory_mb",),
    )


def keeping(progress: Callable[[str], None]) -> Callable[[str], None]:
    """Return a function that leaves a line in sight, if `progress` can do that."""
    kept: Callable[[str], None] = getattr(progress, "keep", progress)
    return kept


def _hidden(folder: Path) -> list[str]:
    """Files and packages in `folder` with the name of a standard module or of an installed package."""
    names = sys.stdlib_module_names | packages_distributions().keys() - {"workbench"}
    found = (path for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists())
    return sorted(path.name for path in found if path.stem in names)


def answer(
    connection: Connection,
    progress: Callable[[str], None] = lambda _: None,
    check: Callable[[], None] = go_on,
    said: Callable[[], str] = str,
) -> Any:  # noqa: ANN401
    """Wait for the driver's answer, or raise its error; its warnings stay in sight where `progress` can keep a line."""
    while True:
        try:
            while not connection.poll(_CHECK_S):
                check()
            kind, value = connection.recv()
        except (EOFError, ConnectionResetError) as error:
            raise ended(said()) from error
        if kind == "progress":
            progress(value)
        elif kind == "warning":
            keeping(progress)(value)
        elif kind == "error":
            raise value
        elif kind == "crash":
            if any(repr(name.partition(".")[0]) in last_line(value) for name in _hidden(Path.cwd())):
                raise ended(value)
            raise RuntimeError(f"The Spark driver failed unexpectedly:\n{value}")
        else:
            return value
