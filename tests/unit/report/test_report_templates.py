"""The reports that come with the workbench, rendered by its command line."""

import json
import re
from pathlib import Path

import html5lib
import nbformat
import papermill
import pytest
from example_measurement import example_measurement
from placement_file import PROBLEM, written

from workbench import cli, report
from workbench.cli.console import BAD_INPUT, DONE, NOT_SUSTAINED
from workbench.journal import Journal
from workbench.report import Report, find_template
from workbench.report.parameters import check
from workbench.study import Study, StudyHistory, read_planned, run_study, write_planned

DATA = Path(__file__).parents[3] / "data"

DAY, QUERY = str(DATA / "day.csv"), str(DATA / "placement.yaml")

STUDY = """query: {query}
targets: [2000000]
slots: [2, 4, 8]
memory_mb: [512]
testbed: fluid
slot_cpus: 1
most_runs: 3
form: linear
dataset: {dataset}
"""

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
def run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def command(*arguments):
        code = cli.main(("report", *arguments))
        return code, capsys.readouterr()

    return command


def words(path):
    text = path.read_text()
    assert len(text.encode()) < 3_000_000
    page = html5lib.parse(text, namespaceHTMLElements=False)
    for unseen in (*page.iter("script"), *page.iter("style")):
        unseen.text = ""
    return " ".join(" ".join(page.itertext()).split())


def test_capacity_twice_says_what_changed(run, tmp_path):
    study = tmp_path / "weekly.yaml"
    study.write_text(STUDY.format(query="nexmark:q1", dataset="null"))
    assert run("capacity", "one.html", "-p", "study", "weekly.yaml", "-p", "history", "kept")[0] == DONE
    assert "This is the first run of the study" in words(tmp_path / "one.html")
    study.write_text(study.read_text() + "seed: 3\n")
    code, output = run("capacity", "two.html", "-p", "study", "weekly.yaml", "-p", "history", "kept", "--json")
    assert code == DONE
    assert json.loads(output.out) == {"report": "two.html", "complete": True, "error": None}
    text = words(tmp_path / "two.html")
    assert "The capacity of nexmark:q1" in text
    assert "Do the previous plans still hold?" in text
    assert "Testbed fluid, seed 0" in text
    assert len(StudyHistory(tmp_path / "kept" / "weekly").runs) == 2


def test_a_loss_of_capacity_ends_with_an_error_where_that_is_asked_for(run, tmp_path):
    study = tmp_path / "weekly.yaml"
    study.write_text(STUDY.format(query="nexmark:q1", dataset="null"))
    given = ("-p", "study", "weekly.yaml", "-p", "history", "kept", "-p", "alarm", "true")
    assert run("capacity", "one.html", *given)[0] == DONE
    (earlier,) = (tmp_path / "kept" / "weekly").glob("*.json")
    document = json.loads(earlier.read_text())
    for measured in document["runs"]:  # as if every rate had been twice as high
        for name in ("rate", "low", "high"):
            measured["estimate"][name] *= 2
    earlier.write_text(json.dumps(document))
    code, output = run("capacity", "two.html", *given)
    assert code == NOT_SUSTAINED
    assert "The capacity of nexmark:q1 fell by 50.0%" in output.err
    text = words(tmp_path / "two.html")
    assert "What do I deploy?" in text
    assert "✖ Error The capacity fell, so this report ends with an error as asked" in text


def test_a_measurement_is_compared_with_one_before(run, tmp_path):
    example_measurement().to_json(tmp_path / "now.json")
    example_measurement().to_json(tmp_path / "before.json")
    assert run("now.json", "out.html", "-p", "previous", "before.json")[0] == DONE
    assert "The capacity of q5 did not change beyond the noise" in words(tmp_path / "out.html")
    assert run("now.json", "alone.html")[0] == DONE
    assert "What changed" not in words(tmp_path / "alone.html")


def test_third_measurement_fails(run, tmp_path):
    (tmp_path / "failing.py").write_text(FAILING)
    (tmp_path / "rows.csv").write_text("a\n1\n")
    study = tmp_path / "weekly.yaml"
    study.write_text(STUDY.format(query="failing:query", dataset="null"))
    given = ("capacity", "out.html", "-p", "study", "weekly.yaml", "-p", "history", "kept")
    code, output = run(*given)
    assert code == NOT_SUSTAINED
    assert "the report is partial: The disk <b>is</b> full" in output.err
    text = words(tmp_path / "out.html")
    assert "What was asked?" in text
    assert "2 runs had been finished and are kept" in text
    assert "✖ Error This result is missing The disk <b>is</b> full; free some of it." in text
    assert "What do I deploy?" not in text
    assert "Traceback" not in text
    journal = tmp_path / "kept" / "weekly" / "journal.jsonl"
    lines = journal.read_text().splitlines()
    assert [json.loads(line)["kind"] for line in lines].count("finished") == 2
    assert len(Journal(journal).entries()) == len(lines)
    # the next try goes on from there: one more deployment, which now succeeds
    (tmp_path / "failing.py").write_text(FAILING.replace("len(deployed) == 3", "False"))
    assert run(*given)[0] == DONE
    (finished,) = (tmp_path / "kept" / "weekly").glob("*.jsonl")
    assert finished.read_text().startswith(lines[0])
    assert finished.name != "journal.jsonl"


def test_third_measurement_fails_and_the_others_suffice_for_an_answer(run, tmp_path):
    (tmp_path / "failing.py").write_text(FAILING)
    (tmp_path / "rows.csv").write_text("a\n1\n")
    asked = STUDY.format(query="failing:query", dataset="null").replace("most_runs: 3", "most_runs: 6")
    (tmp_path / "weekly.yaml").write_text(asked)
    given = ("capacity", "out.html", "-p", "study", "weekly.yaml", "-p", "history", "kept")
    code, output = run(*given)
    assert code == NOT_SUSTAINED
    said = "1 of 6 measurements failed, so the answer rests on the others. Run 3 (4 slots of 512 MB): The disk <b>is"
    assert output.err.startswith(f"workbench: the report is partial: {said}</b> full; free some of it. What failed is")
    assert output.err.count("\n") == 1
    text = words(tmp_path / "out.html")
    assert "What do I deploy?" in text
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
    assert "What do I deploy?" in words(tmp_path / "plans.html")
    # the next run measures afresh
    (tmp_path / "failing.py").write_text(FAILING.replace("len(deployed) == 3", "False"))
    assert run(*given)[0] == DONE
    assert len(list((tmp_path / "kept" / "weekly").glob("*.jsonl"))) == 2
    assert "The capacity of failing:query did not change beyond the noise" in words(tmp_path / "out.html")


def test_placement(run, tmp_path):
    assert run("placement", "out.html", "-p", "placement", str(DATA / "placement.yaml"), "-p", "samples", "5")[0] == 0
    text = words(tmp_path / "out.html")
    assert "Where do the tasks go?" in text
    assert "What would others do?" in text
    assert "Parameter samples 5" in text


def test_scaling(run, tmp_path):
    given = ("-p", "rates", str(DATA / "day.csv"), "-p", "policies", "[static, flink]", "-p", "slots", "20")
    assert run("scaling", "out.html", *given)[0] == DONE
    text = words(tmp_path / "out.html")
    assert "Which policy keeps up, and at what cost?" in text
    assert "What does flink do?" in text
    assert "Parameter policies ['static', 'flink']" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("capacity", "x.html", "-p", "studdy", "a"),
            "has no parameter 'studdy'; did you mean 'study'?",
        ),
        (
            ("placement", "x.html", "-p", "seed", "many"),
            "'seed' of placement.ipynb is 'many' (str); it must be",
        ),
        (
            ("scaling", "x.html", "-p", "slots", "2.5"),
            "'slots' of scaling.ipynb is 2.5 (float); it must be",
        ),
        (("scaling", "x.html", "-p", "policies", "ds2"), "'policies' of scaling.ipynb is 'ds2' (str); it must be of"),
        (
            ("scaling", "x.html", "-p", "policies", "[static, 3]"),
            "is ['static', 3] (list); it must be of type list[str]",
        ),
        (("scaling", "x.html", "-p", "restart_s", "inf"), "'restart_s' of scaling.ipynb is 'inf' (str); it must be"),
        (("capacity", "x.html"), "Parameter 'study' of capacity.ipynb must be given: path of the study's YAML file."),
        (("capacity", "x.html", "-p", "study", "weekly.yml"), "The study weekly.yml cannot be read"),
        (("placement", "x.html", "-p", "placement", "none.yaml"), "The file none.yaml cannot be read: No such file"),
        (("placement", "x.html", "-p", "placement", DAY), "is neither JSON nor YAML"),
        (
            ("placement", "x.html", "-p", "placement", QUERY, "-p", "slots", "1"),
            "4 workers with 1 slots offer 4 slots; add workers or slots",
        ),
        (("placement", "x.html", "-p", "placement", QUERY, "-p", "workers", "-1"), "workers is -1; give a whole"),
        (("placement", "x.html", "-p", "placement", QUERY, "-p", "rate", "-1"), "The rate to place for is -1"),
        (
            ("placement", "x.html", "-p", "placement", QUERY, "-p", "samples", "0"),
            "samples is 0; it must be a whole number of at least 1.",
        ),
        (
            ("placement", "x.html", "-p", "placement", QUERY, "-p", "seed", "-1"),
            "seed is -1; it must be a whole number of at least 0.",
        ),
        (("placement", "x.html", "-p", "placement", QUERY, "-p", "timeout_s", "0"), "timeout_s is 0; give seconds"),
        (("scaling", "x.html", "-p", "rates", QUERY), "has no column 'time_s'"),
        (("scaling", "x.html", "-p", "rates", DAY, "-p", "query", "q12"), "There is no preset 'q12'; there are q1, q2"),
        (("scaling", "x.html", "-p", "rates", DAY, "-p", "query", "none.json"), "The plans none.json cannot be read"),
        (
            ("scaling", "x.html", "-p", "rates", DAY, "-p", "policies", "[static, ds3]"),
            "There is no policy 'ds3'; use one of static, ds2",
        ),
        (("scaling", "x.html", "-p", "rates", DAY, "-p", "policies", "[]"), "There are no policies; use one of"),
        (("scaling", "x.html", "-p", "rates", DAY, "-p", "policies", "[capsys]"), "'capsys' places tasks on workers"),
        (
            ("scaling", "x.html", "-p", "rates", DAY, "-p", "policies", "[capsys]", "-p", "workers", "1"),
            "1 workers with 4 slots offer 4 slots; add workers or slots",
        ),
        (("scaling", "x.html", "-p", "rates", DAY, "-p", "slots", "0"), "A budget of 0 slots misses the minimum"),
        (("scaling", "x.html", "-p", "rates", DAY, "-p", "memory_mb", "0"), "Slots of 0 MB cannot hold"),
        (("scaling", "x.html", "-p", "rates", DAY, "-p", "restart_s", "-1"), "restart_s is -1; it must be"),
        (("scaling", "x.html", "-p", "rates", DAY, "-p", "workers", "-1"), "workers is -1; it must be"),
        (("scaling", "x.html", "-p", "rates", DAY, "-p", "worker_slots", "0"), "worker_slots is 0; it must be"),
        (
            ("capacity", "x.html", "-p", "study", str(DATA / "q5.yaml"), "-p", "history", DAY),
            "The history in " + DAY + " cannot be kept",
        ),
        (("x.ipynb", "x.html", "--executed", "-p", "study", "a"), "parameters (-p, -f) would have no effect"),
        (("nothing", "x.html"), "no report notebook 'nothing'; give the path of one, or one of: capacity, measure"),
        (("scaling",), "No file is named to write the report to"),
        (("scaling", "."), "is a folder"),
        (("scaling", "x.html", "-f", "none.yaml"), "The parameters none.yaml cannot be read"),
        (("none.json", "x.html"), "none.json cannot be read as a result"),
    ],
)
def test_bad_parameters_fail_before_anything_runs(run, monkeypatch, tmp_path, arguments, message):
    monkeypatch.setattr("workbench.report._render.execute", None)
    code, output = run(*arguments)
    assert code == BAD_INPUT
    assert output.err.startswith("workbench: ")
    assert message in output.err
    assert output.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("made_by", ["measure", "plan"])
def test_a_previous_result_that_is_named_must_be_there(run, monkeypatch, tmp_path, made_by):
    monkeypatch.setattr("workbench.report._render.execute", None)
    if made_by == "measure":
        example_measurement().to_json(tmp_path / "now.json")
    else:
        study = Study("nexmark:q1", (2e6,), (2, 4, 8), (512,), testbed="fluid", slot_cpus=1.0, most_runs=3)
        write_planned(run_study(study, Journal(tmp_path / "journal.jsonl")), tmp_path / "now.json")
    (tmp_path / "out.html").write_text("last week's")
    code, output = run("now.json", "out.html", "-p", "previous", "before.json")
    assert code == BAD_INPUT
    assert re.fullmatch(r"workbench: The \w+ before.json cannot be read: No such file.*Check the path.\n", output.err)
    (tmp_path / "before.json").write_text("{}")
    assert run("now.json", "out.html", "-p", "previous", "before.json")[0] == BAD_INPUT
    assert (tmp_path / "out.html").read_text() == "last week's"


def test_what_placing_warns_of_is_not_said_while_it_is_checked(tmp_path, monkeypatch, recwarn):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, {**PROBLEM, "edges": [["A", "B", "forward"], ["B", "C"]]}, "forward.json")
    check(find_template("placement"), {"placement": "forward.json"})
    assert list(recwarn) == []


def test_a_wrong_study_leaves_last_weeks_page_alone(run, tmp_path):
    (tmp_path / "weekly.yaml").write_text("query: nexmark:q1\ntarget: [1000]\n")
    (tmp_path / "out.html").write_text("last week's")
    code, output = run("capacity", "out.html", "-p", "study", "weekly.yaml")
    assert code == BAD_INPUT
    assert "unknown key 'target'; did you mean 'targets'?" in output.err
    assert (tmp_path / "out.html").read_text() == "last week's"


@pytest.mark.parametrize(
    "case",
    [
        ("float", "1e6", 1e6),
        ("float", "2.5e6", 2.5e6),
        ("float", "3", 3),
        ("int", "2e3", 2000),
        ("list[float]", "[1e6, 2]", [1e6, 2]),
        ("str", "1e6", "1e6"),
    ],
)
@pytest.mark.parametrize("in_file", [False, True])
def test_numbers_are_read_as_they_are_written(run, tmp_path, monkeypatch, case, in_file):
    (kind, text, value), asked = case, []
    monkeypatch.setattr(
        report, "render", lambda _name, parameters, *_: asked.append(parameters) or Report(Path("x.html"))
    )
    cell = nbformat.v4.new_code_cell(f"rate: {kind} = None", metadata={"tags": ["parameters"]})
    kernel = {"kernelspec": {"name": "python3", "display_name": "x", "language": "python"}}
    nbformat.write(nbformat.v4.new_notebook(metadata=kernel, cells=[cell]), tmp_path / "own.ipynb")
    (tmp_path / "given.yaml").write_text(f"rate: {text!r}\n" if kind == "str" else f"rate: {text}\n")
    given = ("-f", "given.yaml") if in_file else ("-p", "rate", text)
    assert run("own.ipynb", "x.html", *given)[0] == DONE
    assert asked == [{"rate": value}]


def test_what_placing_warns_of_is_advice_and_names_no_code(run, tmp_path):
    forward = {**PROBLEM, "edges": [["A", "B", "forward"], ["B", "C"]]}
    written(tmp_path, forward, "forward.json")
    given = ("-p", "placement", "forward.json", "-p", "samples", "2", "-p", "timeout_s", "1")
    assert run("placement", "out.html", *given)[0] == DONE
    text = words(tmp_path / "out.html")
    assert text.count("⚠ Advice What to know Edge A -> B is forward, but 2 tasks cannot feed 3 one to one") == 1
    assert "UserWarning" not in text
    assert ".py:" not in text


def test_parameters_can_stand_in_a_file_and_are_listed(run, tmp_path):
    (tmp_path / "given.yaml").write_text("slots: many\nmemory_mb: 1024\n")
    code, output = run("scaling", "x.html", "-f", "given.yaml", "-p", "slots", "none")
    assert code == BAD_INPUT
    assert "is 'none' (str)" in output.err  # the command line counts more than the file
    code, output = run("capacity", "--parameters")
    assert code == DONE
    assert output.out.splitlines()[0] == "study (study file, ''): path of the study's YAML file"
    code, output = run("scaling", "--parameters", "--json")
    slots = json.loads(output.out)[2]
    assert (slots["name"], slots["kind"], slots["default"]) == ("slots", "int", 30)
    assert slots["help"].startswith("at the beginning, assigned by BIDS2")


def test_a_result_names_its_report_itself(run, tmp_path):
    (tmp_path / "x.json").write_text("[]")
    code, output = run("x.json", "x.html")
    assert code == BAD_INPUT
    assert "is no result of the workbench" in output.err


def test_a_notebook_that_a_scheduler_has_run_becomes_a_page(run, tmp_path):
    study = STUDY.format(query="nexmark:q1", dataset="null")
    (tmp_path / "weekly.yaml").write_text(study)
    template = str(find_template("capacity"))
    options = {"kernel_name": "python3", "progress_bar": False}
    papermill.execute_notebook(template, "ran.ipynb", {"study": "weekly.yaml"}, **options)
    assert run("ran.ipynb", "ran.html", "--executed")[0] == DONE
    assert "What do I deploy?" in words(tmp_path / "ran.html")
    with pytest.raises(papermill.PapermillExecutionError):
        papermill.execute_notebook(template, "failed.ipynb", {}, **options)
    code, output = run("failed.ipynb", "failed.html", "--executed")
    assert code == NOT_SUSTAINED
    assert "No study is named; set the parameter 'study'" in output.err
    assert "✖ Error" in words(tmp_path / "failed.html")
    assert run("none.ipynb", "x.html", "--executed")[0] == BAD_INPUT


def test_a_result_is_no_notebook_that_has_been_run(run, tmp_path):
    example_measurement().to_json(tmp_path / "now.json")
    code, output = run("now.json", "x.html", "--executed")
    assert code == BAD_INPUT
    assert re.fullmatch(
        r"workbench: The notebook now.json cannot be read \(.+\); give an executed notebook.\n", output.err
    )


def test_plan_says_why_its_report_is_partial(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "weekly.yaml").write_text(STUDY.format(query="nexmark:q1", dataset="null"))
    monkeypatch.setattr(report, "render", lambda _name, _parameters, path: Report(Path(path), "The disk is full."))
    assert cli.main(("plan", "weekly.yaml", "--report", "plan.html")) == NOT_SUSTAINED
    output = capsys.readouterr()
    assert output.err == "workbench: the report is partial: The disk is full.\n"
    assert "plans, with Spark's settings: .workbench/weekly-plan.json" in output.out
