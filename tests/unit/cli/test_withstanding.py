"""What the fuzzer (benchmarks/fuzz.py) found, each as the command that it broke, with the message that it gives now."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from workbench.study import read_study

ROOT = Path(__file__).parents[3]
DAY = "time_s,rate_per_s\n0,100000\n60,200000\n120,100000\n"
STUDY = "query: nexmark:q1\ntargets: [200000]\nslots: [2, 4]\nmemory_mb: [512]\ntestbed: fluid\nmost_runs: 3\n"
LINE = '{"v": 1, "kind": "x", "key": "k", "data": {}}\n'
POLICY = "class Policy:\n    interval_s = 60.0\n\n    def decide(self, window, memory):\n        {}\n"

PLAN = ("plan", "study.yaml", "--journal", "j.jsonl")
REPORT = ("report", "placement", "r.html", "-p", "placement", "p.yaml")
OWN = ("replay", "q11", "day.csv", "--slots", "12", "--policy", "own:Policy")
RECORDED = STUDY.replace("testbed: fluid", "testbed: recorded\ntable: t.csv").replace("[2, 4]", "[2, 4, 8]")


@pytest.fixture(autouse=True)
def folder():
    Path("day.csv").write_text(DAY)
    Path("study.yaml").write_text(STUDY)
    Path("t.csv").write_text("memory_mb,slots,rate\n512,2,200000\n512,4,390000\n512,8,770000\n")
    shutil.copy(ROOT / "tests" / "stored" / "measurement.json", "m.json")
    shutil.copy(ROOT / "data" / "placement.yaml", "p.yaml")
    yield
    sys.modules.pop("own", None)  # each test has its own


def of_a_module(query):
    return STUDY.replace("nexmark:q1", query).replace("testbed: fluid", "dataset: day.csv")


JOURNALS = (
    ('{"v": 1, "kind": "probe", "key": "k", "data": ' + "[" * 1_500 + "]" * 1_500 + "}", "nested more than 64 deep"),
    ('{"v": 1, "kind": [], "key": "k", "data": {}}', "Line 1 of the journal j.jsonl has a kind or key"),
    ('{"v": ' + "9" * 900 + ', "kind": "x", "key": "k", "data": {}}', "has version 999"),
)
MODULES = (
    (POLICY.format("raise SystemExit(0)"), "'own:Policy' failed in decide at 60 s: SystemExit: 0."),
    (POLICY.format("raise BaseException"), "failed in decide at 60 s: BaseException: ."),
    (POLICY.format("raise type('E', (Exception,), {'__str__': lambda _: 1 / 0})"), "E: its message cannot be shown."),
    (POLICY.format("raise Exception('x' * 100_000)"), "Exception: xxx"),
    ("raise BaseException('b')\n", "The module 'own' of policy 'own:Policy' cannot be imported: BaseException: b."),
    ("import sys; sys.exit(7)\n", "cannot be imported: SystemExit: 7."),
    ("__getattr__ = lambda name: 1 / 0\n", "The module 'own' cannot provide 'Policy': ZeroDivisionError"),
    (
        "class Policy:\n    interval_s = property(lambda self: 1 / 0)\n",
        "The members of the policy 'own:Policy' cannot be read: ZeroDivisionError",
    ),
    ("class Policy:\n    def __init__(self): raise SystemExit(1)\n", "'own:Policy' cannot be made: SystemExit"),
)
PARAMETERS = ("[" * 3_000, "a: &a [*a]", "a: 1\na: 2", "!!timestamp x", "9" * 5_000 + ": 1")
DOCUMENTS = (b"", b"\0", b"\xff", b"[" * 100_000, b'{"estimate": ' + b"[" * 900 + b"]" * 900 + b"}")


@pytest.mark.parametrize(
    ("written", "arguments", "message"),
    [
        ({}, ("replay", "q11", "day.csv", "--slots", "9" * 5_000), "is not a whole number"),
        ({}, (*REPORT, "-p", "shapes", f'["{"9" * 900}x1"]'), "is not a shape such as 4x4 (workers x slots, each at"),
        ({}, (*REPORT, "-p", "samples", "[" * 1_500 + "]" * 1_500), "Parameter 'samples' of placement.ipynb is "),
        *(({"j.jsonl": f"{line}\n{LINE}"}, PLAN, message) for line, message in JOURNALS),
        *(({"own.py": text}, OWN, message) for text, message in MODULES),
        *(({"given.yaml": text}, (*REPORT, "-f", "given.yaml"), "The parameters given.yaml") for text in PARAMETERS),
        *(
            ({"m.json": content}, arguments, "m.json")
            for content in DOCUMENTS
            for arguments in (("place", "m.json"), ("report", "m.json", "r.html"), ("replay", "m.json", "day.csv"))
        ),
        *(  # a module of a name that no file can have
            ({"study.yaml": of_a_module(query)}, ("plan", "study.yaml", *options), "workbench: The module 'm")
            for query in ("m" * 4_000 + ":f", "m:" + "f" * 4_000)
            for options in ((), ("--dry-run",))
        ),
    ],
)
def test_what_is_none_is_refused_within_a_few_lines(written, arguments, message, refuses):
    for name, content in written.items():
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    assert message in refuses(*arguments)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda entry: entry.update(data=3), "the content of 'deployed' is 3; it must be an object"),
        (lambda entry: entry["data"].pop("budget"), "the content of 'deployed' lacks 'budget'"),
        (lambda entry: entry["data"]["budget"].update(slots="x"), "'x' is not of type int @ $.slots"),
        (lambda entry: entry["data"]["budget"].update(profile=None), "@ $.profile"),
    ],
)
def test_an_event_of_a_journal_that_is_none_is_named_with_its_line(change, message, prints, refuses):
    prints(*PLAN)
    lines = [json.loads(line) for line in Path("j.jsonl").read_text().splitlines()]
    place = next(number for number, line in enumerate(lines) if line["kind"] == "deployed")
    change(lines[place])
    kept = [line for line in lines if line["kind"] != "finished"]  # else nothing of the run is read
    Path("j.jsonl").write_text("".join(json.dumps(line) + "\n" for line in kept))
    said = refuses(*PLAN)
    assert f"Line {place + 1} of the journal j.jsonl: " in said
    assert message in said


def test_what_a_module_of_yours_prints_is_no_result_and_its_folder_is_its_own(prints):
    Path("own.py").write_text("import os\nprint('hello')\nos.chdir('/')\n" + POLICY.format("return None, memory"))
    assert list(json.loads(prints(*OWN, "--json", "--output", "steps.csv"))) == ["own:Policy"]
    assert Path("steps.csv").exists()


def test_as_many_targets_as_allowed_are_read():
    Path("study.yaml").write_text(STUDY.replace("[200000]", str([1000 + n for n in range(10_000)])))
    assert len(read_study("study.yaml").targets) == 10_000


def test_a_plan_of_recorded_rates_has_nothing_to_place_or_to_replay(prints, refuses):
    Path("study.yaml").write_text(RECORDED)
    prints("plan", "study.yaml", "--output", "plan.json", "--json")
    for arguments in (["place", "plan.json", "--workers", "2", "--slots", "4"], ["replay", "plan.json", "day.csv"]):
        assert "rests on recorded rates, which say nothing of operators" in refuses(*arguments)
