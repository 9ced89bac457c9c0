"""What is said when Spark's driver process is gone, and a process that answers one question."""

import signal
from multiprocessing import Pipe
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from workbench.cli.progress import Progress
from workbench.errors import QueryError, WorkbenchError
from workbench.testbed.spark.driver.live import failed_at_run_time
from workbench.testbed.spark.driver.process import LEFT, DriverProcess, SparkRun, ask_apart, ended


def test_memory_is_the_likely_cause_unless_a_package_of_the_folder_hides_an_installed_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert str(ended("")).startswith("Spark's driver process ended by itself, most likely for lack of memory; close")
    said = "at x\njava.lang.OutOfMemoryError: Java heap space\n"
    assert "itself (java.lang.OutOfMemoryError: Java heap space), most likely for lack of memory" in str(ended(said))
    (tmp_path / "numpy").mkdir()
    (tmp_path / "numpy" / "__init__.py").touch()
    (tmp_path / "jobs.py").touch()
    monkeypatch.chdir(tmp_path)
    told = str(ended("ImportError: cannot import name 'array' from 'numpy'"))
    assert "take numpy in the current folder for a module of the same name: rename it" in told
    assert "jobs.py" not in told


@pytest.fixture
def folders(tmp_path):
    made = tmp_path / "run", tmp_path / "disk"
    for folder in made:
        folder.mkdir()
    return made


def test_the_logs_of_a_failed_deployment_go_with_its_error(folders):
    def fail():
        with DriverProcess(folders, None):
            (folders[0] / "jvm.log").write_text("java.lang.OutOfMemoryError: Java heap space\n")
            raise WorkbenchError("It failed.")

    with pytest.raises(WorkbenchError, match="It failed") as seen:
        fail()
    assert seen.value.__notes__[1] == "The last lines of Java's log:\njava.lang.OutOfMemoryError: Java heap space"
    assert not any(folder.exists() for folder in folders)


@pytest.mark.fault("the driver process of a deployment is killed before it answers")
def test_a_driver_that_is_killed_leaves_nothing(folders, injected):
    with DriverProcess(folders, None) as driver:
        driver._process.kill()
        with pytest.raises(WorkbenchError, match="ended by itself") as seen:
            driver.ask(b"")
    injected.seen(str(seen.value))
    assert driver._reaper.returncode == 0
    assert not any(folder.exists() for folder in folders)


def test_folders_above_a_drivers_own_go_only_if_they_are_empty(folders, tmp_path):
    made, kept = tmp_path / "checkpoints" / "fn", tmp_path / "written"
    own = made / "run", kept / "run"
    with DriverProcess((*folders, *own), None, above=(made, made.parent, kept)):
        for folder in own:
            folder.mkdir(parents=True)
        (kept / "another").mkdir()
    assert [one.name for one in tmp_path.iterdir()] == ["written"]
    assert [one.name for one in kept.iterdir()] == ["another"]


def test_what_a_driver_leaves_is_said(folders):
    said = []
    with DriverProcess(folders, None, progress=said.append):
        (folders[0] / "driver.log").write_text(f"a line\n{LEFT}the checkpoints in hdfs://n/c: remove the folder\n")
    assert said == ["the checkpoints in hdfs://n/c: remove the folder"]


def spoken_with(connection, progress=None, check=None):
    """A driver of which nothing but the connection is there."""
    driver = DriverProcess.__new__(DriverProcess)
    driver.connection, driver._progress, driver._check = connection, progress, check
    return driver


def test_a_warning_of_the_driver_stays_in_sight_of_its_owner():
    ours, theirs = Pipe()
    shown, kept = [], []
    progress = Progress(shown.append, kept.append, kept.append)
    run = SparkRun(None, None, None, 1.0, spoken_with(ours, progress))
    for message in (("progress", "warming up"), ("warning", "the topic is read again"), ("done", True)):
        theirs.send(message)
    assert run.fill(1.0, 2.0)
    assert (shown, kept) == (["warming up"], ["the topic is read again"])


def test_a_driver_that_does_not_end_is_killed_and_named(folders):
    said = []
    with DriverProcess(folders, None, ends_s=0.0, progress=said.append) as driver:
        driver._process.send_signal(signal.SIGSTOP)
    assert said[0].startswith("Spark did not end within 0 s and was killed; ")
    assert driver._process.returncode == -signal.SIGKILL


@pytest.mark.parametrize("kind", [QueryError, WorkbenchError])
def test_whose_fault_it_is_crosses_the_pipe(kind):
    ours, theirs = Pipe()
    theirs.send(("error", kind("It failed.", settings=("slots",))))
    with pytest.raises(kind, match="It failed") as seen:
        spoken_with(ours).ask(b"")
    assert type(seen.value) is kind
    assert seen.value.settings == ("slots",)


def test_a_cancellation_is_looked_for_while_it_is_waited_for():
    ours, _theirs = Pipe()
    with pytest.raises(KeyboardInterrupt):
        spoken_with(ours, check=MagicMock(side_effect=KeyboardInterrupt)).ask(b"")


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        ("Traceback\n  File x\nZeroDivisionError: division by zero\n\tat org.Connection.read(Timed out.x)", QueryError),
        ("x\nCaused by: org.apache.spark.SparkArithmeticException: [DIVIDE_BY_ZERO] Division by zero.", QueryError),
        ("Job aborted\nCaused by: java.lang.OutOfMemoryError: Java heap space", WorkbenchError),
        ("org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)", WorkbenchError),
        ("java.io.IOException: No space left on device", WorkbenchError),
        ("it stopped", WorkbenchError),
    ],
)
def test_a_query_is_to_blame_unless_the_budget_may_be(failure, kind):
    assert type(failed_at_run_time("q", failure)) is kind


ASKED = """
import json
import sys
import tempfile

from workbench.testbed.spark.driver.process import answering

def main():
    asked = json.load(sys.stdin)
    with answering() as result:
        print("x" * 200_000 + asked["last"])
        result.write(tempfile.mkdtemp())
"""


def test_it_answers_its_last_words_are_kept_and_its_files_are_removed(tmp_path, monkeypatch):
    (tmp_path / "asked_apart.py").write_text(ASKED)
    monkeypatch.syspath_prepend(tmp_path)
    answer, said, in_time = ask_apart("asked_apart", {"last": "word"})
    assert in_time
    assert Path(answer).is_absolute()
    assert not Path(answer).exists()
    assert said.endswith("xword\n")
    assert len(said) < 100_000
