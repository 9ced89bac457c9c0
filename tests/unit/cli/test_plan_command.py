"""``workbench plan`` as a user runs it, on the simulated engine: killed, repeated, on recorded rates, with advice."""

import json
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import Random

import pytest
from simulated_study import PRICES, SIMULATED

from workbench import report
from workbench.answers.planned import cautions
from workbench.cli import planning
from workbench.cli.console import BAD_INPUT, DONE, NOT_SUSTAINED
from workbench.errors import WorkbenchError
from workbench.journal import Journal
from workbench.speed import CoreSpeed
from workbench.study import plans_path, read_planned

STUDY = f"{SIMULATED}choice: edge\nmost_runs: {{runs}}\n"
KILLS = 5


@pytest.fixture
def plan(tmp_path, prints):
    """Plans the study, of `runs` runs, in a folder of its own."""

    def command(*options, runs=3):
        (tmp_path / "study.yaml").write_text(STUDY.format(runs=runs))
        return prints("plan", "study.yaml", *options)

    return command


def answers(path):
    """Budget, capacity and tasks of every plan in a file."""
    plans = json.loads(path.read_text())["plans"]
    return [(plan["budget"], plan["expected_rate"], plan["allocation"]["tasks"]) for plan in plans]


def test_killed_at_five_random_moments_it_ends_as_an_undisturbed_one_and_repeats_nothing(plan, tmp_path):
    plan("--journal", "calm.jsonl", "--output", "calm.json", runs=12)
    calm, journal = Journal("calm.jsonl"), Path("journal.jsonl")
    random = Random(31)
    most = len(calm.entries()) // (KILLS + 3)
    command = [sys.executable, "-m", "workbench.cli", "plan", "study.yaml", "--journal", journal.name]

    for _ in range(KILLS):
        lines = journal.read_bytes().count(b"\n") if journal.exists() else 0
        enough = lines + random.randint(1, most)
        process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL)
        while process.poll() is None and lines < enough:
            time.sleep(0.001)
            lines = journal.read_bytes().count(b"\n") if journal.exists() else 0
        process.kill()
        assert process.wait() == -signal.SIGKILL

    assert subprocess.run([*command, "--output", "killed.json"], cwd=tmp_path, check=False).returncode == DONE
    assert answers(Path("killed.json")) == answers(Path("calm.json"))
    for kind, number in (("finished", None), ("probe", "number")):
        seen = [(entry.key, entry.data.get(number)) for entry in Journal(journal).entries(kind)]
        assert len(set(seen)) == len(seen)
        assert sorted(seen) == sorted((entry.key, entry.data.get(number)) for entry in calm.entries(kind))


def test_what_is_taken_from_the_journal_is_said(plan):
    today = datetime.now(UTC).date().isoformat()
    assert "journal" not in plan()
    again = plan()
    assert f"3 of 3 runs are taken from .workbench/journal.jsonl, measured {today}" in again
    assert "to measure them again, name another --journal." in again
    assert len(json.loads(plan("--json", runs=4))["taken_from_journal"]) == 3
    assert json.loads(plan("--json", "--journal", "other.jsonl"))["taken_from_journal"] == []


def test_a_report_that_fails_does_not_withhold_the_answer(run, monkeypatch):
    def fail(*_):
        raise WorkbenchError("The disk is full; free some of it.")

    monkeypatch.setattr("workbench.report.render", fail)
    Path("study.yaml").write_text(STUDY.format(runs=3))
    code, output = run("plan", "study.yaml", "--report", "plan.html")
    assert code == BAD_INPUT
    assert "SIMULATED · nexmark:q1" in output.out
    assert output.err == "workbench: The disk is full; free some of it.\n"


def test_the_report_shows_the_probes_and_operators_of_the_largest_run(plan):
    plan("--report", "plan.html")
    page = Path("plan.html").read_text()
    assert len(page.encode()) < 3_000_000
    for title in ("What rate does nexmark:q1 sustain?", "Which operator does the work?", "How was it measured?"):
        assert f"Run 2, on 8 slots: {title}" in page


@pytest.mark.parametrize(
    ("study", "name"),
    [
        ("study.yaml", "study-plan.json"),
        ("./data/q5.yaml", "data-q5-plan.json"),
        ("../other/q5.yaml", "other-q5-plan.json"),
        ("/home/me/q5.yaml", "home-me-q5-plan.json"),
    ],
)
def test_studies_of_one_name_in_two_folders_have_files_of_their_own(study, name):
    assert plans_path(Path(study)) == Path(".workbench", name)


@pytest.mark.parametrize("choice", ["choice: improvement", "choice: edge", "estimates: 2"])
def test_no_recorded_rate_counts_twice(tmp_path, prints, choice):
    rows = [f"{memory},{slots},{480 * slots + memory / 10}" for memory in (512, 1024) for slots in (2, 4, 8)]
    (tmp_path / "rates.csv").write_text("\n".join(["memory_mb,slots,rate", *rows, "512,8,3800"]))
    study = STUDY.replace("fluid", "recorded\ntable: rates.csv").replace("[512]", "[512, 1024]")
    text = study.format(runs=20).replace("choice: edge", choice).replace("2000000, 20000000", "3000")
    (tmp_path / "theirs.yaml").write_text(text)
    assert json.loads(prints("plan", "theirs.yaml", "--dry-run", "--json"))["runs"][1] <= 7
    planned = json.loads(prints("plan", "theirs.yaml", "--json"))
    taken = Counter((run["budget"]["slots"], run["budget"]["profile"]["memory_mb"]) for run in planned["runs"])
    assert taken[8, 512] <= 2
    assert all(count == 1 for budget, count in taken.items() if budget != (8, 512))
    assert len(planned["runs"]) >= 5
    (plan,) = planned["plans"]
    assert "state not known" in [card["concern"] for card in plan["cards"]]


def test_too_few_capacities_are_no_plan_and_a_dry_run_foresees_it(tmp_path, run, prints):
    (tmp_path / "rates.csv").write_text("memory_mb,slots,rate\n512,2,2000\n512,4,3900\n")
    study = STUDY.replace("fluid", "recorded\ntable: rates.csv\nform: linear").replace("[2, 4, 8]", "[2, 4]")
    (tmp_path / "theirs.yaml").write_text(study.format(runs=9))
    assert "no plan" not in prints("plan", "theirs.yaml", "--dry-run")
    code, said = run("plan", "theirs.yaml")
    reason = "Only 2 of 2 runs give a capacity; a model needs at least 3."
    assert (code, f"workbench: {reason}" in said.err) == (NOT_SUSTAINED, True)
    said = prints("plan", "theirs.yaml", "--dry-run")
    assert f"The recorded runs give no plan, and the same study would end so again. {reason}" in said


def test_rates_measured_elsewhere_are_planned(tmp_path, prints, capsys):
    rows = ["512,2,1000", "512,4,1900", "512,8,3700"]
    study = STUDY.replace("fluid", "recorded\ntable: rates.csv").replace("nexmark:q1", "checkout")
    (tmp_path / "theirs.yaml").write_text(study.format(runs=3).replace("2000000", "2000"))

    def planned():
        (tmp_path / "rates.csv").write_text("\n".join(["memory_mb,slots,rate", *rows]))
        return json.loads(prints("plan", "theirs.yaml", "--json"))

    first = planned()
    assert "trigger interval" not in str(first["plans"])
    report.ask("theirs.yaml")
    assert "from runs on 2 to 8 slots (measured elsewhere)?" in capsys.readouterr().out
    assert [run["estimate"]["low"] for run in first["runs"]] == pytest.approx([1000, 3700, 1900], rel=0.002)
    assert all(one["testbed"].startswith("recorded, 3 measurements") for one in first["plans"])
    assert first["plans"][0]["budget"]["slots"] in {4, 5, 6}
    rows[1] = "512,4,2100"
    second = planned()  # not what the same journal holds of the table before
    assert second["runs"][2]["estimate"]["low"] == pytest.approx(2100, rel=0.002)
    assert second["taken_from_journal"] == []


def test_the_risk_that_advice_names_has_a_plan(tmp_path, run, prints):
    rows = ["memory_mb,slots,rate", "512,2,61000", "512,4,118000", "512,4,121000", "512,8,233000"]
    (tmp_path / "rates.csv").write_text("\n".join(rows))
    study = STUDY.replace("fluid", "recorded\ntable: rates.csv").format(runs=3)
    for target, attainable in (("500000", False), ("250000", True)):
        (tmp_path / "theirs.yaml").write_text(study.replace("2000000, 20000000", target))
        (planned,) = json.loads(prints("plan", "theirs.yaml", "--json"))["plans"]
        assert planned["verdict"]["risk"] > 0.05
        assert ("risk: 0.05" in planned["verdict"]["remedy"]) == attainable
        (tmp_path / "safer.yaml").write_text((tmp_path / "theirs.yaml").read_text() + "risk: 0.05\n")
        code, said = run("plan", "safer.yaml")
        assert (code == DONE) == attainable
        assert ("rates from a table" in said.out) == ("plans, with Spark's settings" in said.out) == attainable
        if not attainable:
            refused = (
                r"500 k records/s at 512 MB a slot with a risk of at most 0.05: .* \d+ slots sustain the most, 3\d\d k"
            )
            assert re.search(refused, said.err)
            assert "runs, without a plan: " in said.out


@pytest.fixture
def priced(tmp_path, monkeypatch, prints):
    """Plans the study with prices."""
    monkeypatch.setenv("COLUMNS", "160")
    (tmp_path / "study.yaml").write_text(f"{SIMULATED}most_runs: 4\nform: linear\nprices: prices.csv\n")
    (tmp_path / "prices.csv").write_text(PRICES)
    return partial(prints, "plan", "study.yaml", "--output", "plan.json")


@pytest.mark.usefixtures("priced")
def test_the_recorded_answer_says_how_fast_the_cores_here_are(capsys, monkeypatch):
    recorded = Path(__file__).parents[3] / "data" / "q5.recorded.json"
    monkeypatch.setattr(planning, "measure_speed", lambda _: CoreSpeed(0.4e-3, 0.456e-3))
    planning._show_recorded(recorded, here=True)
    shown = capsys.readouterr().out
    assert shown.startswith("nexmark:q5: RECORDED on ")
    assert shown.splitlines()[-1].startswith("This machine's cores are 0.62 times as fast")
    monkeypatch.setattr(planning, "measure_speed", None)  # nothing runs here
    planning._show_recorded(recorded, here=False)
    assert shown.startswith(capsys.readouterr().out)


def test_the_plans_are_read_from_anywhere_and_name_their_study_without_its_folder(priced, tmp_path, monkeypatch):
    priced()
    (tmp_path / "prices.csv").unlink()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    path = tmp_path / "plan.json"
    document, again = json.loads(path.read_text()), read_planned(path)
    assert [plan.price.per_hour for plan in again.plans] == [plan["price"]["per_hour"] for plan in document["plans"]]
    assert again.study.file == again.exploration.asked.study == "study.yaml"
    assert any(advised.command == "workbench plan study.yaml" for advised in cautions(again.plans).values())
    document["study"]["file"] = "/home/alice/acme/s.yaml"
    path.write_text(json.dumps(document))
    assert read_planned(path).exploration.asked.plan("Now").command == "workbench plan s.yaml"


def test_advice_repeats_the_options_that_decide_where_and_what_is_measured(priced, tmp_path):
    output = priced("--master", "local", "--journal", str(tmp_path / "mine.jsonl"))
    assert "times the 8 slots measured" not in output  # a doubt that the verdict has named, with another remedy
    again = "workbench plan study.yaml --master local --journal mine.jsonl"
    assert f"then run: {again}" in output
    stored = read_planned(tmp_path / "plan.json")
    assert again.endswith(" ".join(f"--{name} {value}" for name, value in stored.exploration.asked.options.items()))
    assert any(advised.command == again for advised in cautions(stored.plans).values())
    assert str(tmp_path) not in (tmp_path / "plan.json").read_text()
