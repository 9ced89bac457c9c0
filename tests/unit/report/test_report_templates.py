"""The reports that come with the workbench, rendered by its command line."""

import json
import shlex
from pathlib import Path

import html5lib
import papermill
import pytest
from example_measurement import example_measurement
from placement_file import PROBLEM, written

from workbench import cli, report
from workbench.answers.placed import of_a_report, studied
from workbench.cli.console import BAD_INPUT, DONE, NOT_SUSTAINED
from workbench.journal import Journal
from workbench.placement import read_placement_input
from workbench.report import Report, find_template
from workbench.study import StudyHistory, read_planned, study_placement

STUDY = """query: {query}
targets: [2000000]
slots: [2, 4, 8]
memory_mb: [512]
testbed: fluid
slot_cpus: 1
most_runs: 3
form: linear
"""
COMMAND = ["report"]
GIVEN = ("-p", "study", "weekly.yaml", "-p", "history", "kept")
# A user's module: from the third deployment on, the testbed fails as a full disk would make it fail.
FAILING = """
from workbench.errors import WorkbenchError
from workbench.testbed.fluid import FluidTestbed
from workbench.workload.query import Dataset, Query

deploy, deployed = FluidTestbed.deploy, []

def failing(self, *arguments, **options):
    deployed.append(1)
    if len(deployed) == 3:
        raise WorkbenchError("The disk <b>is</b> full; free some of it.")
    return deploy(self, *arguments, **options)

FluidTestbed.deploy = failing

def build(stream):
    return stream

query = Query("q1", build, Dataset.at("rows.csv"), None)
"""


@pytest.fixture
def weekly(tmp_path):
    """Write the study, and with `failing` its query's module."""

    def write(failing=None, **changes):
        asked = STUDY.format(query="failing:query" if failing else "nexmark:q1")
        for old, new in changes.items():
            asked = asked.replace(old, new)
        (tmp_path / "weekly.yaml").write_text(asked)
        if failing:
            (tmp_path / "failing.py").write_text(failing)

    (tmp_path / "rows.csv").write_text("a\n1\n")
    return write


def words(path):
    text = path.read_text()
    assert len(text.encode()) < 3_000_000
    page = html5lib.parse(text, namespaceHTMLElements=False)
    for unseen in (*page.iter("script"), *page.iter("style")):
        unseen.text = ""
    return " ".join(" ".join(page.itertext()).split())


def test_capacity_twice_says_what_changed(run, tmp_path, weekly):
    weekly()
    assert run("capacity", "one.html", *GIVEN)[0] == DONE
    first, page = words(tmp_path / "one.html"), (tmp_path / "one.html").read_text()
    assert first.index("How do I start it?") < first.index("This is the first run of the study")
    assert 'class="workbench-card not-yet folded" id="card-drift"' in page
    assert "<title>What do I deploy for nexmark:q1?</title>" in page
    assert first.count("SIMULATED") == 1
    weekly(form="seed: 3\nform")
    code, output = run("capacity", "two.html", *GIVEN, "--json")
    assert code == DONE
    assert json.loads(output.out) == {"report": "two.html", "complete": True, "error": None}
    text = words(tmp_path / "two.html")
    assert "The capacity of nexmark:q1" in text
    start = 'class="workbench-card result{}" id="card-start"'  # what changed is asked every week, how to start it not
    assert start.format("") in page
    assert start.format(" folded") in (tmp_path / "two.html").read_text()
    assert "Do the previous plans still hold?" in text
    assert "Testbed fluid, seed 0" in text
    assert len(StudyHistory(tmp_path / "kept" / "weekly").runs) == 2


@pytest.mark.long
def test_a_loss_of_capacity_ends_with_an_error_where_that_is_asked_for(run, tmp_path, weekly):
    weekly()
    given = (*GIVEN, "-p", "alarm", "true")
    assert run("capacity", "one.html", *given)[0] == DONE
    (earlier,) = (tmp_path / "kept" / "weekly").glob("*.json")
    document = json.loads(earlier.read_text())
    for measured in document["runs"]:  # as if every rate had been twice as high
        for name in ("rate", "low", "high"):
            measured["estimate"][name] *= 2
    earlier.write_text(json.dumps(document))
    code, output = run("capacity", "two.html", *given)
    assert code == NOT_SUSTAINED
    assert "The capacity of nexmark:q1 fell by 50.0 %" in output.err
    text = words(tmp_path / "two.html")
    assert "What do I deploy for" in text
    assert "✖ Error The capacity fell, so this report ends with an error as asked" in text


@pytest.mark.long
def test_a_measurement_is_compared_with_one_before(run, tmp_path):
    example_measurement().to_json(tmp_path / "now.json")
    example_measurement().to_json(tmp_path / "before.json")
    assert run("now.json", "out.html", "-p", "previous", "before.json")[0] == DONE
    assert "The capacity of q5 did not change beyond the noise" in words(tmp_path / "out.html")
    assert run("now.json", "alone.html")[0] == DONE
    assert "What changed" not in words(tmp_path / "alone.html")


def test_third_measurement_fails(run, tmp_path, weekly):
    weekly(FAILING)
    code, output = run("capacity", "out.html", *GIVEN)
    assert code == NOT_SUSTAINED
    assert "the report is partial: The disk <b>is</b> full" in output.err
    text = words(tmp_path / "out.html")
    assert "What was asked?" in text
    assert "2 runs had been finished and are kept" in text
    assert "✖ Error This result is missing The disk <b>is</b> full; free some of it." in text
    assert "What do I deploy for" not in text
    assert "Traceback" not in text
    journal = tmp_path / "kept" / "weekly" / "journal.jsonl"
    lines = journal.read_text().splitlines()
    assert [json.loads(line)["kind"] for line in lines].count("finished") == 2
    assert len(Journal(journal).entries()) == len(lines)
    # the next try goes on from there: one more deployment, which now succeeds
    weekly(FAILING.replace("len(deployed) == 3", "False"))
    assert run("capacity", "out.html", *GIVEN)[0] == DONE
    (finished,) = (tmp_path / "kept" / "weekly").glob("*.jsonl")
    assert finished.read_text().startswith(lines[0])
    assert finished.name != "journal.jsonl"


@pytest.mark.long
def test_third_measurement_fails_and_the_others_suffice_for_an_answer(run, tmp_path, weekly):
    more = {"most_runs: 3": "most_runs: 6"}
    weekly(FAILING, **more)
    code, output = run("capacity", "out.html", *GIVEN)
    assert code == NOT_SUSTAINED
    said = "1 of 6 measurements failed, so the answer rests on the others. Run 3 (4 slots of 512 MB): The disk <b>is"
    assert output.err.startswith(f"workbench: the report is partial: {said}</b> full; free some of it. Run the same")
    assert output.err.count("\n") == 1
    text = words(tmp_path / "out.html")
    assert "What do I deploy for" in text
    assert "This is the first run of the study" in text
    assert f"✖ Error A measurement failed, so this report is partial {said}" in text
    assert "Traceback" not in text
    (plans,) = (tmp_path / "kept" / "weekly").glob("*.json")
    assert len(read_planned(plans).exploration.measurements) == 5
    journal = plans.with_suffix(".jsonl")
    lines = journal.read_text().splitlines()
    assert [json.loads(line)["kind"] for line in lines].count("finished") == 5
    assert len(Journal(journal).entries()) == len(lines)
    code, output = run(str(plans), "plans.html")
    assert code == NOT_SUSTAINED
    assert said in output.err
    assert "What do I deploy for" in words(tmp_path / "plans.html")
    # the next run measures again
    weekly(FAILING.replace("len(deployed) == 3", "False"), **more)
    assert run("capacity", "out.html", *GIVEN)[0] == DONE
    assert len(list((tmp_path / "kept" / "weekly").glob("*.jsonl"))) == 2
    assert "The capacity of failing:query did not change beyond the noise" in words(tmp_path / "out.html")


@pytest.mark.long
def test_one_worker_more_is_advised_by_a_command_that_runs(run, tmp_path):
    operators = {"A": {"tasks": 2, "cpu": 0.4}, "B": {"tasks": 3, "cpu": 0.6}, "C": {"tasks": 1, "cpu": 0.1}}
    path = written(tmp_path, PROBLEM | {"speeds": [1, 1], "operators": operators, "worker": {"cpus": 0.4}})
    again = of_a_report(placement=path.name, samples=2, timeout_s=1.0)
    study = study_placement(read_placement_input(path), samples=2, timeout_s=1.0)
    (advised,) = (one for one in studied(study, again).cautions.values() if one.words == "Add a worker. Run")
    code, output = run(*shlex.split(advised.command)[2:])
    assert code == DONE, output.err
    assert "3 workers of 3 slots" in words(tmp_path / "placement.html")


@pytest.mark.long
def test_papers(run, tmp_path):
    assert run("papers", "out.html", "-p", "paper", "justin", "-p", "query", "q8")[0] == DONE
    text = words(tmp_path / "out.html")
    assert "Figure 5 (q8): Rate, cores and memory over time under DS2 and Justin" in text
    assert "Justin as released: 12 published, 12 here" in text
    assert "their managed memory: 316 MB published, 316 MB here" in text


@pytest.mark.long
def test_what_placing_warns_of_is_advice_and_names_no_code(run, tmp_path):
    forward = {**PROBLEM, "edges": [["A", "B", "forward"], ["B", "C"]]}
    written(tmp_path, forward, "forward.json")
    given = ("-p", "placement", "forward.json", "-p", "samples", "2", "-p", "timeout_s", "1")
    assert run("placement", "out.html", *given)[0] == DONE
    text = words(tmp_path / "out.html")
    assert text.count("⚠ Advice What to know Edge A -> B is forward, but 2 tasks cannot feed 3 one to one") == 1
    assert "UserWarning" not in text
    assert ".py:" not in text


@pytest.mark.long
def test_a_notebook_that_a_scheduler_has_run_becomes_a_page(run, tmp_path, weekly):
    weekly()
    template = str(find_template("capacity"))
    options = {"kernel_name": "python3", "progress_bar": False}
    papermill.execute_notebook(template, "ran.ipynb", {"study": "weekly.yaml"}, **options)
    assert run("ran.ipynb", "ran.html", "--executed")[0] == DONE
    assert "What do I deploy for" in words(tmp_path / "ran.html")
    with pytest.raises(papermill.PapermillExecutionError):
        papermill.execute_notebook(template, "failed.ipynb", {}, **options)
    code, output = run("failed.ipynb", "failed.html", "--executed")
    assert code == NOT_SUSTAINED
    assert "No study is named; set the parameter 'study'" in output.err
    assert "✖ Error" in words(tmp_path / "failed.html")
    assert run("none.ipynb", "x.html", "--executed")[0] == BAD_INPUT


def test_plan_says_why_its_report_is_partial(capsys, tmp_path, monkeypatch, weekly):
    monkeypatch.chdir(tmp_path)
    weekly()
    monkeypatch.setattr(report, "render", lambda _name, _parameters, path: Report(Path(path), "The disk is full."))
    assert cli.main(("plan", "weekly.yaml", "--report", "plan.html")) == NOT_SUSTAINED
    output = capsys.readouterr()
    assert output.err == "workbench: the report is partial: The disk is full.\n"
    assert "plans, with Spark's settings: .workbench/weekly-plan.json" in output.out
