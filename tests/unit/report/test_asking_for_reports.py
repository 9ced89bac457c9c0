"""What a report is asked for is checked before anything runs."""

import json
import re
import shutil
from functools import partial
from pathlib import Path

import nbformat
import pytest
from example_measurement import example_measurement
from placement_file import PROBLEM, written

from workbench import report
from workbench.cli.console import BAD_INPUT, DONE
from workbench.report import Report, find_template
from workbench.report.parameters import check

COMMAND = ["report"]
DATA = Path(__file__).parents[3] / "data"
DAY, QUERY = str(DATA / "day.csv"), str(DATA / "placement.yaml")


USUAL = {"placement": {"placement": QUERY}, "scaling": {"rates": DAY}}
"""What the reports are given where a case does not say otherwise."""


@pytest.fixture
def refused(refuses, monkeypatch, tmp_path):
    monkeypatch.setattr("workbench.report._render.execute", None)
    yield partial(refuses, lines=1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("placement", {"seed": "many"}, "'seed' of placement.ipynb is 'many' (str); it must be"),
        ("capacity", {"study": "a\0"}, "'study' of capacity.ipynb is 'a\\x00', of which '\\x00' is not text"),
        ("capacity", {"history": "\ud83d"}, "is '\\ud83d', of which '\\ud83d' is not text. Leave it out."),
        ("scaling", {"policies": str([3, *["ds2"] * 400])}, "... (list); it must be of type list[str]"),
        ("scaling", {"restart_s": "inf"}, "'restart_s' of scaling.ipynb is 'inf' (str); it must be"),
        ("placement", {"placement": "none.yaml"}, "The file none.yaml cannot be read: No such file"),
        ("placement", {"placement": DAY}, "cannot be read as JSON or YAML"),
        ("placement", {"slots": "1"}, "4 workers of 1 slot cannot hold more than 4; add workers or slots"),
        ("placement", {"samples": "0"}, "The number of draws is 0; it must be a whole number of at least 1 (samples)."),
        ("papers", {"paper": "capsys", "query": "q1"}, "No figure can be made for the query 'q1'; use one of Q1"),
        ("observe", {"log": "nofile"}, "The log nofile does not exist. Give a file, or a folder of files"),
        ("scaling", {"rates": QUERY}, "has no column 'time_s'"),
        ("scaling", {"query": "q12"}, "There is no simulated query 'q12'; use one of q1, q2"),
        ("scaling", {"query": "none.json"}, "The plans none.json cannot be read"),
        ("scaling", {"workers": "-1"}, "workers is -1; it must be"),
        ("scaling", {"worker_slots": "0"}, "The number of slots of a worker is 0; it must be above 0 (worker_slots)"),
        ("capacity", {"study": str(DATA / "q5.yaml"), "history": DAY}, "The history in " + DAY + " cannot be kept"),
        ("nothing", {}, "no report notebook 'nothing'; give the path of one, or one of: capacity, measure"),
        ("none.json", {}, "The result none.json cannot be read: No such file or directory. Check the path"),
    ],
)
def test_bad_parameters_fail_before_anything_runs(refused, name, given, message):
    given = USUAL.get(name, {}) | given
    assert message in refused(name, "x.html", *(word for one in given.items() for word in ("-p", *one)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("x.ipynb", "x.html", "--executed", "-p", "study", "a"), "parameters (-p, -f) would have no effect"),
        (("scaling",), "No file is named to write the report to"),
        (("scaling", "."), "is a folder"),
        (("scaling", "x.html", "-f", "none.yaml"), "The parameters none.yaml cannot be read"),
    ],
)
def test_a_report_that_cannot_be_is_refused_before_anything_runs(refused, arguments, message):
    assert message in refused(*arguments)


@pytest.mark.parametrize("made_by", ["measure", "plan"])
def test_a_previous_result_that_is_named_must_be_there(run, monkeypatch, tmp_path, made_by):
    monkeypatch.setattr("workbench.report._render.execute", None)
    if made_by == "measure":
        example_measurement().to_json(tmp_path / "now.json")
    else:
        shutil.copy(DATA.parent / "tests" / "stored" / "plan-fluid.json", tmp_path / "now.json")
    (tmp_path / "out.html").write_text("last week's")
    code, output = run("now.json", "out.html", "-p", "previous", "before.json")
    assert code == BAD_INPUT
    assert re.fullmatch(r"workbench: The \w+ before.json cannot be read: No such file.*Check the path.\n", output.err)
    (tmp_path / "before.json").write_text("{}")
    assert run("now.json", "out.html", "-p", "previous", "before.json")[0] == BAD_INPUT
    assert (tmp_path / "out.html").read_text() == "last week's"


def test_what_placing_warns_of_is_not_said_while_it_is_checked(tmp_path, recwarn):
    written(tmp_path, {**PROBLEM, "edges": [["A", "B", "forward"], ["B", "C"]]}, "forward.json")
    check(find_template("placement"), {"placement": "forward.json"})
    assert list(recwarn) == []


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
    assert (asked, type(asked[0]["rate"])) == ([{"rate": value}], type(value))


def test_parameters_can_stand_in_a_file_and_are_listed(run, refuses, tmp_path):
    (tmp_path / "given.yaml").write_text("slots: many\nmemory_mb: 1024\n")
    said = refuses("scaling", "x.html", "-f", "given.yaml", "-p", "slots", "none")
    assert "is 'none' (str)" in said  # the command line counts more than the file
    code, output = run("capacity", "--parameters")
    assert code == DONE
    assert output.out.splitlines()[0] == "study (study file, ''): path of the study's YAML file"
    code, output = run("scaling", "--parameters", "--json")
    slots = next(one for one in json.loads(output.out) if one["name"] == "slots")
    assert (slots["name"], slots["kind"], slots["default"]) == ("slots", "int", 30)
    assert slots["help"].startswith("at the beginning, assigned by BIDS2")


def test_a_result_names_its_report_itself(refuses, tmp_path):
    (tmp_path / "x.json").write_text("[]")
    assert "is not a result of the workbench" in refuses("x.json", "x.html")
