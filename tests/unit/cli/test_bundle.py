"""``workbench doctor --bundle``: what repeats a failure, listed first, without secrets, data and names."""

import getpass
import json
import socket
import zipfile

import pytest

from workbench import bundle
from workbench.cli import checking, planning
from workbench.cli.console import BAD_INPUT, DEFECT
from workbench.errors import WorkbenchError
from workbench.journal import Journal

STUDY = (
    "query: nexmark:q1\ntargets: [2000000]\nslots: [2, 4, 8]\nmemory_mb: [512]\ndataset: /home/me/private/orders.csv\n"
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(bundle, "examine", lambda: ())
    (tmp_path / "study.yaml").write_text(STUDY)
    for number in range(120):
        Journal(".workbench/journal.jsonl").append("probe", "q/1", number)


def fail(monkeypatch, error):
    def raising(*_):
        raise error

    monkeypatch.setattr(planning, "read_study", raising)


def made(prints, *more):
    prints("doctor", "--bundle", "x.zip", "--yes", *more)
    with zipfile.ZipFile("x.zip") as file:
        return {name: file.read(name).decode() for name in file.namelist()}


def test_it_is_listed_and_nothing_is_written_until_told(tmp_path, prints):
    output = prints("doctor", "--bundle", "x.zip", "--study", "study.yaml")
    listed = [line.split()[0] for line in output.splitlines() if ".json" in line or ".yaml" in line]
    assert "Nothing is written yet: add --yes." in output
    assert not (tmp_path / "x.zip").exists()
    assert listed == list(made(prints, "--study", "study.yaml"))


def test_a_defect_is_recorded_and_says_how_to_report_it(tmp_path, run, prints, monkeypatch):
    fail(monkeypatch, RuntimeError("spark.password=hunter2hunter2 is wrong"))
    code, output = run("plan", "study.yaml")
    assert code == DEFECT
    assert "It is recorded in .workbench/last-failure.json." in output.err
    assert output.err.endswith("workbench doctor --bundle workbench-defect.zip\n")
    parts = made(prints)
    failure = json.loads(parts["last-failure.json"])
    assert failure["command"] == ["workbench", "plan", "study.yaml"]
    assert "RuntimeError" in failure["error"]
    assert "hunter2" not in (tmp_path / ".workbench" / "last-failure.json").read_text()
    assert "dataset: orders.csv" in parts["study.yaml"]  # the study that the command names, without folders
    assert "private" not in parts["study.yaml"]
    _, output = run("plan", "study.yaml", "--journal", "my runs/j.jsonl")
    assert output.err.endswith("workbench doctor --bundle workbench-defect.zip --journal 'my runs/j.jsonl'\n")
    assert "RuntimeError" in made(prints, "--journal", "my runs/j.jsonl")["last-failure.json"]


def test_a_failed_deployment_s_logs_go_along(tmp_path, run, prints, monkeypatch):
    error = WorkbenchError("Spark's driver process ended by itself.")
    fail(monkeypatch, error)
    assert run("plan", "study.yaml")[0] == BAD_INPUT
    assert not (tmp_path / ".workbench" / "last-failure.json").exists()  # bad input is not a failure
    error.add_note("The last lines of Java's log:\njava.lang.OutOfMemoryError: Java heap space")
    code, output = run("plan", "study.yaml")
    assert code == BAD_INPUT
    assert output.err == "workbench: Spark's driver process ended by itself.\n"
    assert "Java heap space" in json.loads(made(prints)["last-failure.json"])["error"]


def test_where_nothing_can_be_recorded_the_defect_is_still_said(run, monkeypatch):
    fail(monkeypatch, RuntimeError("oops"))
    monkeypatch.setattr(bundle, "write_whole", lambda *_: (_ for _ in ()).throw(WorkbenchError("The disk is full.")))
    code, output = run("plan", "study.yaml")
    assert code == DEFECT
    assert "this is a defect of the workbench. To report it" in output.err


def test_names_of_you_and_your_machine_and_your_home_are_replaced(monkeypatch):
    monkeypatch.setenv("HOME", "/home/margaret")
    monkeypatch.setattr(getpass, "getuser", lambda: "margaret")
    monkeypatch.setattr(socket, "gethostname", lambda: "db7.example.org")
    text = "/home/margaret/x.csv on db7.example.org by margaret; https://margaret:pw123456@host/ margarets"
    assert bundle.anonymous(text) == "~/x.csv on HOST by USER; https://***@host/ margarets"


def test_equal_failures_make_equal_bundles_with_the_end_of_the_journal_alone(tmp_path, prints):
    lines = made(prints)["journal-end.jsonl"].splitlines()
    assert [json.loads(line)["data"] for line in lines] == list(range(20, 120))
    first = (tmp_path / "x.zip").read_bytes()
    made(prints)
    assert (tmp_path / "x.zip").read_bytes() == first


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--bundle", "x.zip", "--study", "none.yaml"), "The study 'none.yaml' cannot be read: No such file"),
        (("--bundle", "."), "'.' is a folder"),
        (("--yes",), "--yes is given without --bundle"),
        (("--study", "study.yaml"), "--study is given without --bundle"),
    ],
)
def test_what_cannot_be_done_is_one_line(tmp_path, refuses, monkeypatch, arguments, message):
    monkeypatch.setattr(checking, "examine", lambda _: ())
    assert message in refuses("doctor", *arguments)
    assert not (tmp_path / "x.zip").exists()


@pytest.mark.parametrize(
    "text",
    [
        b"query: [\n",
        b"a: 2026-13-45\n",
        b"a: !!timestamp x\n",
        b"a: !!int x\n",
        b"a: 1\na: 2\n",
        b"- \xe9\n",
        b"[" * 5_000,
    ],
)
def test_a_study_that_is_none_goes_in_all_the_same(tmp_path, prints, text):
    (tmp_path / "broken.yaml").write_bytes(text)
    assert made(prints, "--study", "broken.yaml")["study.yaml"] == text.decode(errors="replace")


def test_secrets_and_folders_of_a_study_are_replaced_wherever_they_are(tmp_path, prints):
    (tmp_path / "mine.yaml").write_text(
        "password: correct horse hunter2xyz\nnested:\n  sasl.password: |\n    hunter2xyz\n"
        "  files: [/home/me/hunter2xyz/orders.csv, s3a://bucket/orders]\n"
    )
    written = made(prints, "--study", "mine.yaml")["study.yaml"]
    assert "hunter2xyz" not in written
    assert "orders.csv" in written
    assert "s3a://bucket/orders" in written
