"""What the fuzzer (benchmarks/fuzz.py) found, each as the command that it broke, with the message that it gives now."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from workbench.cli import main
from workbench.study import read_study

ROOT = Path(__file__).parents[3]
DAY = "time_s,rate_per_s\n0,100000\n60,200000\n120,100000\n"
STUDY = "query: nexmark:q1\ntargets: [200000]\nslots: [2, 4]\nmemory_mb: [512]\ntestbed: fluid\nmost_runs: 3\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    Path("day.csv").write_text(DAY)
    Path("study.yaml").write_text(STUDY)
    shutil.copy(ROOT / "tests" / "stored" / "measurement.json", "m.json")
    shutil.copy(ROOT / "data" / "placement.yaml", "p.yaml")
    yield
    sys.modules.pop("own", None)  # each test has its own


def refused(arguments, capsys):
    """The message of a command that refuses its input, within a few lines."""
    try:
        code = main(arguments)
    except SystemExit as end:  # of argparse
        code = end.code
    said = capsys.readouterr()
    assert (code, said.out) == (2, "")
    assert len(said.err) < 3_000
    return said.err


def test_a_number_of_thousands_of_digits_is_none(capsys):
    assert "is not a whole number" in refused(["replay", "q11", "day.csv", "--slots", "9" * 5_000], capsys)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            '{"v": 1, "kind": "probe", "key": "k", "data": ' + "[" * 1_500 + "]" * 1_500 + "}",
            "it is nested more than 64 deep",
        ),
        ('{"v": 1, "kind": [], "key": "k", "data": {}}', "Line 1 of the journal j.jsonl has a kind or key"),
        ('{"v": ' + "9" * 900 + ', "kind": "x", "key": "k", "data": {}}', "has version 999"),
    ],
)
def test_a_line_of_a_journal_that_is_none_is_named(line, message, capsys):
    Path("j.jsonl").write_text(f"{line}\n" + '{"v": 1, "kind": "x", "key": "k", "data": {}}\n')
    assert message in refused(["plan", "study.yaml", "--journal", "j.jsonl"], capsys)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda entry: entry.update(data=3), "the content of 'deployed' is 3; it must be an object"),
        (lambda entry: entry["data"].pop("budget"), "the content of 'deployed' lacks 'budget'"),
        (lambda entry: entry["data"]["budget"].update(slots="x"), "'x' is not of type int @ $.slots"),
        (lambda entry: entry["data"]["budget"].update(profile=None), "@ $.profile"),
    ],
)
def test_an_event_of_a_journal_that_is_none_is_named_with_its_line(change, message, capsys):
    assert main(["plan", "study.yaml", "--journal", "j.jsonl"]) == 0
    capsys.readouterr()
    lines = [json.loads(line) for line in Path("j.jsonl").read_text().splitlines()]
    place = next(number for number, line in enumerate(lines) if line["kind"] == "deployed")
    change(lines[place])
    kept = [line for line in lines if line["kind"] != "finished"]  # else nothing of the run is read
    Path("j.jsonl").write_text("".join(json.dumps(line) + "\n" for line in kept))
    said = refused(["plan", "study.yaml", "--journal", "j.jsonl"], capsys)
    assert f"Line {place + 1} of the journal j.jsonl: " in said
    assert message in said


POLICY = "class Policy:\n    interval_s = 60.0\n\n    def decide(self, window, memory):\n        {}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (POLICY.format("raise SystemExit(0)"), "'own:Policy' failed in decide at 60 s: SystemExit: 0."),
        (POLICY.format("raise BaseException"), "failed in decide at 60 s: BaseException: ."),
        (
            POLICY.format("raise type('E', (Exception,), {'__str__': lambda _: 1 / 0})"),
            "E: its message cannot be shown.",
        ),
        (POLICY.format("raise Exception('x' * 100_000)"), "Exception: xxx"),
        ("raise BaseException('b')\n", "The module 'own' of policy 'own:Policy' cannot be imported: BaseException: b."),
        ("import sys; sys.exit(7)\n", "cannot be imported: SystemExit: 7."),
        ("__getattr__ = lambda name: 1 / 0\n", "The module 'own' cannot provide 'Policy': ZeroDivisionError"),
        (
            "class Policy:\n    interval_s = property(lambda self: 1 / 0)\n",
            "cannot be read: ZeroDivisionError",
        ),
        (
            "class Policy:\n    def __init__(self): raise SystemExit(1)\n",
            "The policy 'own:Policy' cannot be made: SystemExit",
        ),
    ],
)
def test_a_module_of_yours_neither_ends_the_command_nor_sets_its_exit_code(text, message, capsys):
    Path("own.py").write_text(text)
    said = refused(["replay", "q11", "day.csv", "--slots", "12", "--policy", "own:Policy"], capsys)
    assert message in said


def test_what_a_module_of_yours_prints_is_no_result_and_its_folder_is_its_own(capsys):
    Path("own.py").write_text("import os\nprint('hello')\nos.chdir('/')\n" + POLICY.format("return None, memory"))
    asked = ("--slots", "12", "--policy", "own:Policy", "--json", "--output", "steps.csv")
    assert main(["replay", "q11", "day.csv", *asked]) == 0
    assert list(json.loads(capsys.readouterr().out)) == ["own:Policy"]
    assert Path("steps.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-p", "samples", "100000000"], "The number of draws is 100,000,000; it must be at most 100,000 (samples)"),
        (["-p", "timeout_s", "1e300"], "The time limit is 1e+300; give at most 604,800 seconds (timeout_s)"),
        (["-p", "shapes", f'["{"9" * 900}x1"]'], "is not a shape such as 4x4 (workers x slots, each at most 100,000)"),
        (["-p", "samples", "[" * 1_500 + "]" * 1_500], "Parameter 'samples' of placement.ipynb is "),
    ],
)
def test_parameters_of_a_report_have_bounds(arguments, message, capsys):
    assert message in refused(["report", "placement", "r.html", "-p", "placement", "p.yaml", *arguments], capsys)


@pytest.mark.parametrize("text", ["[" * 3_000, "a: &a [*a]", "a: 1\na: 2", "!!timestamp x", "9" * 5_000 + ": 1"])
def test_a_file_of_parameters_that_is_none_is_refused(text, capsys):
    Path("given.yaml").write_text(text)
    assert "The parameters given.yaml" in refused(["report", "placement", "r.html", "-f", "given.yaml"], capsys)


@pytest.mark.parametrize(
    "content", [b"", b"\0", b"\xff", b"[" * 100_000, b'{"estimate": ' + b"[" * 900 + b"]" * 900 + b"}"]
)
def test_a_document_that_is_none_is_refused(content, capsys):
    Path("m.json").write_bytes(content)
    for arguments in (["place", "m.json"], ["report", "m.json", "r.html"], ["replay", "m.json", "day.csv"]):
        assert "m.json" in refused(arguments, capsys)


@pytest.mark.parametrize("query", ["m" * 4_000 + ":f", "m:" + "f" * 4_000])
def test_a_module_of_a_name_that_no_file_can_have_is_refused(query, capsys):
    Path("study.yaml").write_text(STUDY.replace("nexmark:q1", query).replace("testbed: fluid", "dataset: day.csv"))
    for options in (["--dry-run"], []):
        assert "workbench: The module 'm" in refused(["plan", "study.yaml", *options], capsys)


def test_as_many_targets_as_allowed_are_read():
    Path("study.yaml").write_text(STUDY.replace("[200000]", str([1000 + n for n in range(10_000)])))
    assert len(read_study("study.yaml").targets) == 10_000


def test_a_plan_of_recorded_rates_has_nothing_to_place_or_to_replay(capsys):
    Path("t.csv").write_text("memory_mb,slots,rate\n512,2,200000\n512,4,390000\n512,8,770000\n")
    study = STUDY.replace("testbed: fluid", "testbed: recorded\ntable: t.csv").replace("[2, 4]", "[2, 4, 8]")
    Path("study.yaml").write_text(study)
    assert main(["plan", "study.yaml", "--output", "plan.json", "--json"]) == 0
    capsys.readouterr()
    for arguments in (["place", "plan.json", "--workers", "2", "--slots", "4"], ["replay", "plan.json", "day.csv"]):
        assert "rests on recorded rates, which say nothing of operators, so there is nothing to" in refused(
            arguments, capsys
        )
