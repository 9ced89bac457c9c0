"""What people see of answers, kept whole: a change of a figure or a word is seen in a snapshot's difference."""

import json
from dataclasses import replace
from pathlib import Path

import faces
import pytest
from example_measurement import example_measurement
from placement_file import CALM, written
from simulated_study import PRICES
from written_logs import TRUE, a_day, events
from written_logs import written as log_written

from workbench.answers import measured as of_a_measurement
from workbench.answers import observed as of_a_log
from workbench.answers import page
from workbench.answers import placed as of_a_placement
from workbench.answers import planned as of_a_plan
from workbench.answers import replayed as of_a_replay
from workbench.cli import look, main, measuring
from workbench.cli.console import NOT_SUSTAINED
from workbench.placement import read_placement_input
from workbench.scaling.elastic import ElasticCluster
from workbench.simulation import KeyTrace, RateTrace
from workbench.study import observe, read_planned, replay_paradigms, replay_start, simulated_start, study_placement
from workbench.study.planned import plan_targets

DATA = Path(__file__).parents[3] / "data"
LOAD = "time_s,rate_per_s\n0,200000\n600,600000\n1200,400000\n1800,400000\n"
SESSIONS = {
    "policies": ("q11", "load.csv", "--slots", "12", "--policy", "static", "ds2", "justin"),
    "keyed": ("keyed", "load.csv", *("--workers", "2", "--worker-slots", "8", "--setting", "shards=64")),
}


def doubtful(run):
    """Give the measurement with something to do about it."""
    return replace(
        run, estimate=replace(run.estimate, steady=False, limit="none", exhausted=True), unbounded_state=True
    )


MEASURED = {
    "measured": example_measurement,
    "doubtful": lambda: doubtful(example_measurement()),
    "simulated": lambda: replace(example_measurement(), testbed_kind="fluid", testbed="fluid, seed 0"),
}


@pytest.fixture
def measured(request, tmp_path, monkeypatch):
    """Measure what the test names without Spark; return the command's arguments, the cards, and those known before."""
    found = MEASURED[request.param]()

    def measure(*_, **__):
        yield from ()
        return found

    monkeypatch.setattr(measuring, "measure", measure)
    monkeypatch.chdir(tmp_path)
    before = () if request.param == "measured" else of_a_measurement.cards(example_measurement())
    return ["measure", "nexmark:q1"], of_a_measurement.cards(found), before


@pytest.fixture
def replayed(request, tmp_path, monkeypatch):
    keyed = request.param == "keyed"
    load = "time_s,rate_per_s\n0,6000\n30,9000\n60,9000\n" if keyed else LOAD
    (tmp_path / "load.csv").write_text(load, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    more = ["--hot-key", "keyed", "0.05", "6"] if keyed else []
    return ["replay", *SESSIONS[request.param], *more]


@pytest.mark.parametrize("measured", MEASURED, indirect=True)
def test_a_measurement(measured, capsys, monkeypatch, snapshot):
    arguments, cards, before = measured
    assert faces.lines(faces.in_json(arguments, capsys, 3, 4)) == snapshot(name="json")
    faces.check_terminals(arguments, capsys, monkeypatch, snapshot)
    assert faces.page(cards, before) == snapshot(name="page")


@pytest.mark.parametrize("replayed", SESSIONS, indirect=True)
def test_a_replay(replayed, capsys, monkeypatch, snapshot):
    assert faces.lines(faces.in_json(replayed, capsys, 3, 4)) == snapshot(name="json")
    faces.check_terminals(replayed, capsys, monkeypatch, snapshot)


def test_the_page_of_a_replay(snapshot):
    load = RateTrace.steps([(1200, 200_000), (1800, 900_000)])
    found = replay_start(simulated_start("q11", 12, 2048.0), load, ("static", "ds2", "justin"))
    assert faces.page(page.cards(of_a_replay.answer(found, {"query": "q11", "rates": "day.csv"}))) == snapshot


def test_the_page_of_a_keyed_replay(snapshot):
    found = replay_paradigms(
        RateTrace.constant(5000.0, 30.0),
        KeyTrace.hot_key(1000, 0.1, 6.0),
        cluster=ElasticCluster(nodes=2, node_cores=4),
        settings={"shards": 64},
    )
    assert faces.page(page.cards(of_a_replay.answer(found, {}))) == snapshot


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
    return written(tmp_path, {name: value for name, value in (CALM | changes).items() if value is not None})


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
    said = of_a_placement.studied(found, of_a_placement.of_a_report(placement="problem.json", samples=3))
    made = faces.facts(page.cards(said), most_rows=20)
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


def test_the_shipped_log(capsys, monkeypatch, snapshot):
    monkeypatch.chdir(DATA)
    arguments = ["observe", "q5-eventlog.zstd"]
    assert faces.lines(faces.rounded(faces.in_json(arguments, capsys, 1))) == snapshot(name="json")
    faces.check_terminals(arguments, capsys, monkeypatch, snapshot)


STUDY = """
query: nexmark:q1
targets: [2000000, 20000000, 1.0e+15]
slots: [2, 4, 8]
memory_mb: [512]
testbed: fluid
slot_cpus: 1
most_runs: 4
outage_s: 600
catch_up_s: 1200
low_rate: 100000
prices: prices.csv
"""


def of_spark():
    """Plan again from what a journal recorded on Spark."""
    stored = read_planned(DATA / "q5.recorded.json")
    return plan_targets(stored.study, stored.exploration, (), stored.instances)


def test_a_simulated_plan(tmp_path, capsys, monkeypatch, snapshot):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.yaml").write_text(STUDY)
    (tmp_path / "prices.csv").write_text(PRICES)
    assert main(["plan", "study.yaml", "--json"]) == NOT_SUSTAINED  # one target has no plan
    document = json.loads(capsys.readouterr().out)
    told = {name: document[name] for name in ("plans", "refused", "forms")}
    assert faces.lines(faces.rounded(told)) == snapshot(name="json")
    faces.check_terminals(["plan", "study.yaml"], capsys, monkeypatch, snapshot, faces.undated)
    shown = faces.page(of_a_plan.cards(read_planned(tmp_path / ".workbench/study-plan.json")))
    assert faces.undated(shown) == snapshot(name="page")


@pytest.mark.parametrize("columns", [80, 120])
def test_a_plan_from_a_recorded_journal(columns, capsys, monkeypatch, snapshot):
    monkeypatch.setattr(faces, "main", lambda _: look.show(of_a_plan.answer(of_spark())))
    assert faces.terminal([], capsys, monkeypatch, columns) == snapshot


def test_the_page_of_a_plan_from_a_recorded_journal(snapshot):
    assert faces.page(of_a_plan.cards(of_spark())) == snapshot
