"""Separate processes with Spark: the driver of a deployment, and those that answer one question."""

import json
import os
import pickle
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import packages_distributions
from multiprocessing import Pipe
from pathlib import Path
from typing import Any, Self, TextIO

from workbench.dataflow import Budget
from workbench.errors import WorkbenchError
from workbench.metrics import Observation, SourceProfile
from workbench.records import Machine
from workbench.testbed.spark.driver.session import Turn, last_line
from workbench.testbed.spark.machine.quota import CpuQuota

LEFT = "left by the workbench: "  # prefix of a line of the driver's output that names what it could not clean up
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


def ask_apart(module: str, asked: object, longest_s: float | None = None) -> tuple[str, str, bool]:
    """Run ``main`` of `module` in a separate process, which gets `asked` as JSON.

    Return its answer, the end of its output, and whether it ended within `longest_s` seconds. In the end all that it
    started is killed, and its temporary files are removed.
    """
    with (
        tempfile.TemporaryDirectory(prefix="workbench-apart-", ignore_cleanup_errors=True) as folder,
        tempfile.TemporaryFile() as said,
    ):
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", f"from {module} import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            start_new_session=True,
            env=environment_of_modules() | {"TMPDIR": folder},
        )
        in_time = True
        try:
            found, _ = process.communicate(json.dumps(asked), longest_s)
        except subprocess.TimeoutExpired:
            in_time = False
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if not in_time:
            found, _ = process.communicate()
        said.seek(max(0, said.seek(0, os.SEEK_END) - _END))
        return found, said.read().decode(errors="replace"), in_time


@contextmanager
def answering() -> Iterator[TextIO]:
    """Yield the file for the answer to `ask_apart`; other output is kept out of it."""
    ours = os.dup(1)
    os.dup2(2, 1)
    with os.fdopen(ours, "w") as result:
        yield result


class DriverProcess:
    """The driver process and its reaper, which end when the context is left, and `folders` and `quota` with them.

    The first folder has the logs. Folders `above` them are removed, too, if they are empty then. The driver has
    `ends_s` to end, before it is killed. `progress` hears each step, and what is left; its warnings stay in sight if
    `progress` can keep a line.
    """

    def __init__(
        self,
        folders: Sequence[Path],
        quota: CpuQuota | None,
        ends_s: float = ENDS_S,
        progress: Callable[[str], None] = lambda _: None,
        check: Callable[[], None] = go_on,
        *,
        above: Sequence[Path] = (),
    ) -> None:
        self.folders, self.quota = folders, quota
        self._ends_s, self._progress, self._check = ends_s, progress, check
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
            named = (str(alive_read), str(self._process.pid), *map(str, folders), "--", *groups, "--", *map(str, above))
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

    def ask(self, message: bytes) -> Any:  # noqa: ANN401
        """Send a pickled `message`; wait for the answer, or raise the driver's error."""
        kind, value = self._exchange(message)
        while kind in ("progress", "warning"):
            (self._progress if kind == "progress" else keeping(self._progress))(value)
            kind, value = self._exchange()
        if kind == "error":
            raise value
        if kind == "crash":
            if any(repr(name.partition(".")[0]) in last_line(value) for name in _hidden(Path.cwd())):
                raise ended(value)
            raise RuntimeError(f"The Spark driver failed unexpectedly:\n{value}")
        return value

    def _exchange(self, message: bytes | None = None) -> Any:  # noqa: ANN401
        try:
            if message is not None:
                self.connection.send_bytes(message)
            while not self.connection.poll(_CHECK_S):
                self._check()
            return self.connection.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError) as error:
            raise ended(self.said()) from error

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self.connection.close()
        try:
            self._process.wait(self._ends_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            keeping(self._progress)(
                f"Spark did not end within {self._ends_s:g} s and was killed; on a cluster, checkpoints may be left "
                "and the event log may be missing"
            )
        with suppress(subprocess.TimeoutExpired):  # it continues without help
            self._reaper.wait(60)
        with self._log, self._jvm_log:
            for line in self.said().splitlines():
                if line.startswith(LEFT):
                    keeping(self._progress)(line.removeprefix(LEFT))
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


@dataclass
class SparkRun:
    """One live deployment; see `workbench.testbed.base.SharedRun`."""

    budget: Budget
    machine: Machine
    source: SourceProfile
    expected_rate: float
    _driver: DriverProcess
    _layout: Mapping[str, int] | None = None
    _restarts: bool = True  # whether its rows begin again with the query

    def __post_init__(self) -> None:
        self.deployed = self.budget

    def turn(self, budget: Budget, layout: Mapping[str, int] | None = None) -> None:
        """Continue with `budget` in the same executor: the query starts again, with warm code and an empty state."""
        if budget.slots > self.deployed.slots or budget.profile != self.deployed.profile:
            raise WorkbenchError(
                f"{budget.words} cannot take a turn in a deployment of {self.deployed.words}. Give at most its slots, "
                "of its profile.",
                settings=("slots",),
            )
        self.source, self.expected_rate = self._ask("turn", turn_of(budget, layout))
        self.budget, self._layout = budget, layout

    def empty(self) -> bool:
        """Start the query again with an empty state; False on a cluster, and for a topic, which is read on."""
        if self._restarts:
            self.turn(self.budget, self._layout)
        return self._restarts

    def set_rate(self, rate: float) -> None:
        """Offer `rate` records/s from the next batch on; inf offers the maximum rate that fits the interval."""
        self._ask("rate", rate)

    def settle(self, seconds: float) -> None:
        """Let `seconds` pass unobserved."""
        self._ask("settle", seconds)

    def fill(self, least_s: float, most_s: float) -> bool:
        """Let the state reach its working size, within `least_s` to `most_s` seconds; return whether it has."""
        filled: bool = self._ask("fill", (least_s, most_s))
        return filled

    def await_quiet(self, most_s: float) -> None:
        """Wait for disturbing load on the machine to end, about `most_s` seconds at most."""
        self._ask("await_quiet", most_s)

    def observe(self, seconds: float) -> Observation:
        """Let `seconds` pass and report the complete batches in them."""
        observation: Observation = self._ask("observe", seconds)
        return observation

    def _ask(self, verb: str, value: float | Turn | tuple[float, float]) -> Any:  # noqa: ANN401
        return self._driver.ask(pickle.dumps((verb, value)))


def turn_of(budget: Budget, layout: Mapping[str, int] | None) -> Turn:
    """Add to `budget` the numbers of partitions of the source and of the state."""
    layout = layout or {}
    unknown = layout.keys() - {"source", "state"}
    wrong = [count for count in layout.values() if not isinstance(count, int) or count < 1]
    if unknown or wrong:
        raise WorkbenchError(
            f"The layout {dict(layout)!r} cannot be deployed on Spark: it may set 'source' and 'state' to whole "
            "numbers of at least 1. Leave out the rest."
        )
    return Turn(budget, layout.get("source", budget.slots), layout.get("state", budget.slots))
