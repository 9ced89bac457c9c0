"""Streams that are closed, full or without a reader; files that would be overwritten, and those that never end."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from io import StringIO
from pathlib import Path

import pytest
from terminal_session import environment

from workbench import bundle
from workbench.cli import main
from workbench.cli.console import BAD_INPUT, DONE, PIPE_CLOSED
from workbench.cli.progress import progress
from workbench.journal import Journal
from workbench.speed import CoreSpeed

ROOT = Path(__file__).parents[3]
STUDY = "query: nexmark:q1\ntargets: [200000]\nslots: [2, 4]\nmemory_mb: [512]\ntestbed: fluid\nmost_runs: 3\n"


@pytest.fixture(autouse=True)
def folder():
    Path("study.yaml").write_text(STUDY)
    for name in ("day.csv", "placement.yaml"):
        shutil.copy(ROOT / "data" / name, name)
    shutil.copy(ROOT / "tests" / "stored" / "measurement.json", "m.json")
    Path("j.jsonl").write_text("")


def in_shell(line, errors=subprocess.PIPE, **more):
    """Run a line of a shell in which ``$W`` is the command: exit code, standard output, standard error."""
    given = environment(W=f"{sys.executable} -m workbench.cli", **more)
    done = subprocess.run(["sh", "-c", line], env=given, check=False, stdout=subprocess.PIPE, stderr=errors, text=True)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("$W journal --journal j.jsonl >&-", DONE),
        ("$W journal --journal j.jsonl <&- >&- 2>&-", DONE),
        ("$W journal show none --journal j.jsonl 2>&-", BAD_INPUT),
        ("$W plan study.yaml --journal new.jsonl <&- >&- 2>&-", DONE),
    ],
)
def test_a_stream_that_is_closed_is_no_defect_and_no_file_takes_its_number(line, code):
    assert in_shell(line) == (code, "", "")
    assert not Path("last-failure.json").exists()
    assert "new" not in line or Journal("new.jsonl").entries("finished")


def test_a_module_of_yours_that_takes_the_output_away_is_no_defect(monkeypatch):
    Path("mine.py").write_text("import sys\nsys.stdout = None\n\ndef mine(rows):\n    return rows\n")
    shutil.copy(ROOT / "data" / "orders.csv", "orders.csv")
    monkeypatch.setattr("sys.stdout", sys.stdout)
    assert main(["init", "mine.py:mine", "orders.csv", "--output", "mine.yaml"]) == DONE


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("more", ["", "--json"])
def test_an_answer_for_which_there_is_no_room_is_one_line_of_complaint(more, unbuffered):
    code, _, said = in_shell(f"$W journal --journal j.jsonl {more} >/dev/full", PYTHONUNBUFFERED=unbuffered)
    assert code == BAD_INPUT
    assert said.startswith("workbench: there is no room for the answer or temporary files: No space left on device.")
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("$W journal show none --journal j.jsonl", BAD_INPUT),
        ("$W plan study.yaml --journal new.jsonl", PIPE_CLOSED),  # as of standard output
    ],
)
def test_standard_error_without_a_reader_leaves_the_exit_code(line, code):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        assert in_shell(line, errors=writer)[0] == code
    finally:
        os.close(writer)


@pytest.mark.parametrize("columns", ["0", ""])
def test_no_columns_is_no_width(columns):
    assert "0 measurements in j.jsonl" in in_shell("$W journal --journal j.jsonl", COLUMNS=columns)[1]


def test_letters_that_the_output_cannot_encode_are_escaped():
    Path("placement.yaml").write_text(Path("placement.yaml").read_text().replace("window", "fen\u00eatre"))
    code, said, errors = in_shell("$W place placement.yaml", PYTHONIOENCODING="ascii")
    assert (code, errors) == (DONE, "")
    assert r"fen\xeatre" in said


@pytest.mark.parametrize(
    ("arguments", "twice"),
    [
        (["plan", "study.yaml", "--journal", "j.jsonl", "--output", "j.jsonl"], "j.jsonl"),
        (["plan", "study.yaml", "--journal", "link.jsonl", "--report", "j.jsonl"], "link.jsonl"),
        (["plan", "study.yaml", "--journal", "j.jsonl", "--report", "./study.yaml"], "./study.yaml"),
        (["plan", "study.yaml", "--journal", "j.jsonl", "--report", "x", "--output", "x"], "x"),
        (["plan", "study.yaml", "--journal", "j.jsonl", "--report", ".workbench/study-plan.json"], None),
        (["measure", "nexmark:q1", "--journal", "j.jsonl", "--output", "j.jsonl"], "j.jsonl"),
        (["observe", "log", "--output", "log"], "log"),
        (["replay", "q11", "day.csv", "--slots", "12", "--output", "day.csv"], "day.csv"),
        (["place", "placement.yaml", "--flink", "placement.yaml"], "placement.yaml"),
        (["report", "m.json", "m.json"], "m.json"),
        (["report", "measure", "m.json", "-p", "measurement", "m.json"], "m.json"),
        (["doctor", "--bundle", "j.jsonl", "--journal", "j.jsonl", "--yes"], "j.jsonl"),
    ],
)
def test_a_file_that_the_command_needs_is_not_overwritten(tmp_path, refuses, arguments, twice):
    Path("link.jsonl").symlink_to("j.jsonl")
    Path("log").write_text("a log")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    said = refuses(*arguments)
    assert f"{twice or arguments[-1]!r} would be overwritten: the command or its study names it twice" in said
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_file_that_the_study_names_is_not_overwritten(refuses):
    Path("day.csv").write_text("time_s,rate_per_s\n0,1000\n60,2000\n")
    Path("study.yaml").write_text(f"{STUDY}day: day.csv\n")
    assert "'day.csv' would be overwritten" in refuses("plan", "study.yaml", "--report", "day.csv")
    assert Path("day.csv").read_text().startswith("time_s")


def test_a_name_that_no_plan_can_hold_is_refused_before_anything_runs(refuses):
    Path("st\udcff.yaml").write_text(STUDY)
    for arguments in (["st\udcff.yaml", "--journal", "j.jsonl"], ["study.yaml", "--journal", "j\udcff.jsonl"]):
        assert "is not text in UTF-8, so results cannot hold it. Rename it." in refuses("plan", *arguments)
    assert Path("j.jsonl").read_text() == ""
    assert not Path("j\udcff.jsonl").exists()


def test_two_answers_may_go_nowhere():
    nowhere = ["--output", os.devnull, "--report", os.devnull]
    assert main(["plan", "study.yaml", "--dry-run", "--journal", "j.jsonl", *nowhere]) == DONE


@pytest.mark.parametrize("endless", ["/dev/zero", "/dev/full", "pipe"])
def test_a_journal_that_never_ends_is_refused_and_left_out_of_a_bundle(refuses, monkeypatch, endless):
    os.mkfifo("pipe")
    monkeypatch.setattr(bundle, "examine", lambda: ())
    assert [part.name for part in bundle.collect(Path(endless))] == ["versions.json", "doctor.json"]
    for command in (["journal"], ["plan", "study.yaml"], ["plan", "study.yaml", "--dry-run"]):
        assert f"The journal {endless} is not a regular file." in refuses(*command, "--journal", endless)


def test_the_doctor_says_that_there_is_no_place_for_temporary_files(prints, monkeypatch):
    monkeypatch.setattr("workbench.doctor.measure_speed", lambda _: CoreSpeed(0.5e-3, 0.6e-3))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/nowhere"])
    found = {one["thing"]: one for one in json.loads(prints("doctor", "--json", code=BAD_INPUT))}
    for thing in ("disk", "Java"):
        assert not found[thing]["fit"]
        assert "No usable temporary directory" in found[thing]["found"]
        assert found[thing]["fix"].startswith("set TMPDIR to a folder")


def test_progress_for_which_there_is_no_room_ends_nothing(monkeypatch, tmp_path):
    class Full(StringIO):
        def flush(self):
            raise OSError(28, "No space left on device")

        def fileno(self):
            return log.fileno()

    with (tmp_path / "log").open("w") as log:
        monkeypatch.setattr(sys, "stderr", Full())
        with progress() as say:
            say.keep("a round is complete")
            say.keep("another")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["plan", "study.yaml", "--conf", "spark.ssl.keyPassword=hunter2"], "--conf spark.ssl.keyPassword=***"),
        (["https://me:hunter2@host"], "invalid choice: 'https://***@host'"),
        (["journal", "prune", "--before", "2026-13-45"], "'2026-13-45' is not a date; write it like 2026-01-31"),
    ],
)
def test_options_that_are_none_are_named_without_secrets(refuses, arguments, message):
    said = refuses(*arguments)
    assert message in said
    assert "hunter2" not in said
