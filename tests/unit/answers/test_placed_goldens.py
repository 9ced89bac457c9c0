"""What people see of placements and of logs, kept whole, as the goldens of other answers."""

from pathlib import Path

import faces
import pytest
from placement_file import PROBLEM, written
from written_logs import TRUE, a_day, events
from written_logs import written as log_written

from workbench.answers import observed as of_a_log
from workbench.answers import placed as of_a_placement
from workbench.placement import read_placement_input
from workbench.study import observe, study_placement

PLACED = {
    "rated": ([], {"speeds": [1, 1]}),
    "crowded": (["--cpus", "0.4"], {}),
    "round-robin": (["--method", "round-robin", "--cpus", "0.4"], {}),
    "many workers": (["--method", "round-robin", "--workers", "12"], {}),
    "unrated": ([], {"rate": None, "worker": None}),
    "compared": (["--compare", "--draws", "3"], {}),
    "compared by costs": (["--compare", "--draws", "3"], {"rate": None, "worker": None}),
    "shapes": (["--shapes", "2x3,1x6", "--draws", "5"], {}),
}


def problem(tmp_path, changes):
    """Write a problem whose tasks fit two workers."""
    loads = {"A": {"tasks": 2, "cpu": 0.4, "net": 10}, "B": {"tasks": 3, "cpu": 0.6, "io": 5, "net": 2}}
    document = PROBLEM | {"operators": loads | {"C": {"tasks": 1, "cpu": 0.1}}} | changes
    return written(tmp_path, {name: value for name, value in document.items() if value is not None})


@pytest.mark.parametrize("name", PLACED)
def test_a_placement(name, tmp_path, capsys, monkeypatch, snapshot):
    options, changes = PLACED[name]
    monkeypatch.chdir(tmp_path)
    arguments = ["place", problem(tmp_path, changes).name, *options]
    told = faces.rounded(without_seconds(faces.in_json(arguments, capsys, 1)))
    assert faces.lines(told[:2] if isinstance(told, list) else told) == snapshot(name="json")
    faces.check_terminals(arguments, capsys, monkeypatch, snapshot, faces.untimed)


def without_seconds(document):
    """Leave out how long a decision took, which differs from run to run, and the tasks, which the counts say."""
    for one in document if isinstance(document, list) else [document]:
        one.pop("seconds", None)
        one.pop("tasks", None)
    return document


@pytest.mark.parametrize("asked", [{}, {"method": "round-robin"}, {"changes": {"rate": None, "worker": None}}])
def test_the_page_of_a_placement(asked, tmp_path, snapshot):
    given = read_placement_input(problem(tmp_path, asked.get("changes", {})))
    found = study_placement(given, method=asked.get("method"), samples=3, timeout_s=30.0)
    cards = of_a_placement.cards(found, of_a_placement.of_a_report(placement="problem.json", samples=3))
    made = faces.facts(cards, most_rows=20)
    for card in made[:2]:
        card["table"][1:] = [row.rpartition(" | ")[0] for row in card["table"][1:]]  # without how long each decided
        card["words"] = faces.untimed(card["words"])
    assert faces.lines(made) == snapshot


OBSERVED = {
    "calm": (lambda: events(a_day(0.5 * TRUE)), [], {}),
    "tight": (lambda: events(a_day(0.95 * TRUE)), [], {}),
    "planned": (lambda: events(a_day(0.5 * TRUE)), ["--target", "40000", "120000"], {"targets": [4e4, 1.2e5]}),
    "flat": (lambda: events([0.5 * TRUE] * 60), ["--target", "50000"], {"targets": [5e4]}),
}


@pytest.mark.parametrize("name", OBSERVED)
def test_an_observed_query(name, tmp_path, capsys, monkeypatch, snapshot):
    log, options, asked = OBSERVED[name]
    monkeypatch.chdir(tmp_path)
    log_written(tmp_path / "log", log())
    told = faces.in_json(["observe", "log", *options], capsys, 1)
    told["plans"] = told["plans"] and [plan["rate"] for plan in told["plans"]["plans"]]
    assert faces.lines(faces.rounded(told)) == snapshot(name="json")
    faces.check_terminals(["observe", "log", *options], capsys, monkeypatch, snapshot)
    made = [card for card in of_a_log.cards(observe("log", **asked), 600.0) if card.name in HEAD_ROOM]
    assert faces.lines(faces.facts(made, most_rows=20)) == snapshot(name="page")


HEAD_ROOM = {"head-room", "what-it-is", "batches", "operators", "plans"}
SHIPPED = Path(__file__).parents[3] / "data" / "q5-eventlog.zstd"


def test_the_shipped_log(capsys, monkeypatch, snapshot):
    monkeypatch.chdir(SHIPPED.parent)
    arguments = ["observe", SHIPPED.name]
    assert faces.lines(faces.rounded(faces.in_json(arguments, capsys, 1))) == snapshot(name="json")
    faces.check_terminals(arguments, capsys, monkeypatch, snapshot)
