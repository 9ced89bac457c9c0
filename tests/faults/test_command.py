"""A command that is killed, interrupted or out of space, at any moment: run again, it ends with the same plan."""

import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import chdir, suppress
from pathlib import Path

import psutil
import pytest
from fault_injection import PLAN, STUDY, command, left_behind, planned
from papermill.clientwrap import PapermillNotebookClient

from workbench.cli.console import BAD_INPUT, DONE, INTERRUPTED
from workbench.journal import Journal

AGAIN = 20  # calls between a signal and the next


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """What the command plans when nothing happens, and how many calls it makes."""
    folder = tmp_path_factory.mktemp("calm")
    with chdir(folder):
        Path("study.yaml").write_text(STUDY)
        ended = command(*PLAN, moments={})
        assert ended.code == DONE, ended.said
        return planned(), ended.calls


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("study.yaml").write_text(STUDY)
    return tmp_path


def kept_lines():
    journal = Path("kept/journal.jsonl")
    return journal.read_bytes().splitlines(keepends=True) if journal.exists() else []


def ends_as(expected, folder, kept):
    """Run the command again: nothing that was measured is lost, and nothing is left."""
    again = command(*PLAN)
    assert again.code == DONE, again.said
    assert planned() == expected
    whole = [line for line in kept if line.endswith(b"\n")]
    assert kept_lines()[: len(whole)] == whole
    assert len(Journal("kept/journal.jsonl").entries("finished")) == 3
    assert left_behind(folder) == []
    shutil.rmtree("kept")


@pytest.mark.fault("the command is killed (kill -9) at any moment")
def test_killed(calm, study, injected):
    expected, calls = calm
    for moment in injected.moments(calls):
        ended = command(*PLAN, moments={moment: signal.SIGKILL})
        assert ended.code == -signal.SIGKILL
        injected.seen("what the shell says; the same command goes on")
        ends_as(expected, study, kept_lines())


@pytest.mark.parametrize(
    "numbers",
    [
        pytest.param((signal.SIGINT,), marks=pytest.mark.fault("Ctrl-C at any moment")),
        pytest.param((signal.SIGTERM,), marks=pytest.mark.fault("SIGTERM at any moment")),
        pytest.param((signal.SIGINT, signal.SIGINT), marks=pytest.mark.fault("Ctrl-C twice at any moment")),
        pytest.param((signal.SIGTERM, signal.SIGINT), marks=pytest.mark.fault("SIGTERM and Ctrl-C at any moment")),
    ],
    ids=lambda numbers: "-".join(one.name for one in numbers),
)
def test_interrupted(calm, study, injected, numbers):
    expected, calls = calm
    for moment in injected.moments(calls - AGAIN):
        ended = command(*PLAN, moments={moment + AGAIN * place: one for place, one in enumerate(numbers)})
        assert ended.code == INTERRUPTED, (moment, ended.said)
        assert "Traceback" not in ended.said, (moment, ended.said)
        (said,) = [line for line in ended.said.splitlines() if line.startswith("workbench:")]
        assert "was interrupted" in said
        injected.seen(said)
        ends_as(expected, study, kept_lines())


@pytest.mark.fault("Ctrl-C while a report is rendered")
@pytest.mark.usefixtures("calm")
def test_interrupted_report(study, injected, monkeypatch):
    assert command(*PLAN).code == DONE
    temporary = study / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    execute = PapermillNotebookClient.execute_cell

    def interrupted(*arguments, **options):
        os.kill(os.getpid(), signal.SIGINT)
        return execute(*arguments, **options)

    monkeypatch.setattr(PapermillNotebookClient, "execute_cell", interrupted)
    ended = command("report", "kept/plan.json", "report.html")
    assert ended.code == INTERRUPTED, ended.said
    assert "Traceback" not in ended.said, ended.said
    assert ended.said.endswith("workbench: report was interrupted.\n")
    injected.seen(ended.said.splitlines()[-1])
    assert not [one for one in psutil.process_iter() if str(temporary) in " ".join(_command_of(one))]
    assert [*temporary.rglob("*")] == []
    assert left_behind(study) == []


def _command_of(process):
    with suppress(psutil.Error):
        return process.cmdline()
    return []


@pytest.mark.fault("two processes measure the same into one journal")
def test_two_at_once(calm, study, injected):
    expected, _ = calm
    for _ in injected.moments(2):
        other = os.fork()
        if other == 0:
            Path("other").mkdir()
            os._exit(command(*PLAN[:-1], "other/plan.json", files="other/").code)
        mine = command(*PLAN)
        _, status = os.waitpid(other, 0)
        assert (mine.code, os.waitstatus_to_exitcode(status)) == (DONE, DONE)
        assert planned() == planned("other/plan.json") == expected
        injected.seen("two equal plans")
        assert all(line.endswith(b"\n") for line in kept_lines())
        shutil.rmtree("kept")
        shutil.rmtree("other")
        assert left_behind(study) == []


@pytest.fixture
def small_disk(study):
    """Mounts a disk of `kib` KiB on ``kept``, and makes room on it."""
    Path("kept").mkdir()

    def mount(kib, *, again=False):
        options = f"{'remount,' if again else ''}size={kib}k"
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", "kept"], check=False, capture_output=True
        )
        if done.returncode:
            pytest.skip("this user may not mount a small disk")

    yield mount
    while Path("kept").is_mount():
        subprocess.run(["umount", str(study / "kept")], check=True)


@pytest.mark.fault("the disk is full while the journal or the plan is written")
def test_disk_full(calm, study, small_disk, injected):
    expected, _ = calm
    for page in injected.moments(28):  # the journal and the plan need 30 pages or more
        small_disk(4 * page)
        ended = command(*PLAN)
        assert ended.code == BAD_INPUT, ended.said
        (said,) = [line for line in ended.said.splitlines() if line.startswith("workbench:")]
        assert "No space left on device" in said
        kept = kept_lines()
        injected.seen(said)
        small_disk(10_000, again=True)
        again = command(*PLAN)
        assert again.code == DONE, again.said
        assert planned() == expected
        assert kept_lines()[: len(kept) - 1] == kept[:-1]
        assert left_behind(study) == []
        subprocess.run(["umount", "kept"], check=True)


@pytest.mark.fault("a journal has a torn last line")
def test_torn_journal(calm, study, injected):
    expected, _ = calm
    assert command(*PLAN).code == DONE
    whole = Path("kept/journal.jsonl").read_bytes()
    for cut in injected.moments(len(whole) - 1):
        Path("kept").mkdir(exist_ok=True)
        Path("kept/journal.jsonl").write_bytes(whole[:cut])
        injected.seen("nothing: the torn line is measured again")
        ends_as(expected, study, kept_lines())


@pytest.mark.fault("a journal has a line of another version")
def test_other_version(study, injected):
    Path("kept").mkdir()
    line = b'{"v": 7, "kind": "probe", "key": "q", "data": 1}\n'
    Path("kept/journal.jsonl").write_bytes(line)
    ended = command(*PLAN)
    assert ended.code == BAD_INPUT
    (said,) = [one for one in ended.said.splitlines() if one.startswith("workbench:")]
    assert "has version 7; this workbench reads version 1. Read it with the workbench that wrote it" in said
    injected.seen(said)
    assert Path("kept/journal.jsonl").read_bytes() == line
    assert left_behind(study) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda one: one.name)
@pytest.mark.fault("Ctrl-C or SIGTERM where Python drops exceptions")
@pytest.mark.usefixtures("study")
def test_interrupted_where_a_generator_is_deleted(injected, monkeypatch, number):
    def endless():
        try:
            yield
        finally:
            os.kill(os.getpid(), number)

    def delete_suspended(_options):
        work = endless()
        next(work)
        del work
        for _ in range(3 * 10**8):  # until the signal comes again
            pass

    monkeypatch.setattr("workbench.cli.planning.run_plan", delete_suspended)
    ended = command(*PLAN)
    assert ended.code == INTERRUPTED, ended.said
    assert "Traceback" not in ended.said
    injected.seen(ended.said.splitlines()[-1])
