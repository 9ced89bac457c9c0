"""What people see of answers, kept whole: a change of a figure or a word is seen in a snapshot's difference."""

import json
from dataclasses import replace
from pathlib import Path

import faces
import pytest
from example_measurement import example_measurement

from workbench.answers import measured as of_a_measurement
from workbench.answers import page
from workbench.answers import planned as of_a_plan
from workbench.answers import replayed as of_a_replay
from workbench.cli import main, measuring, planning
from workbench.scaling.elastic import ElasticCluster
from workbench.simulation import KeyTrace, RateTrace
from workbench.study import read_planned, replay_paradigms, replay_policies
from workbench.study.carry_out import plan_targets

LOAD = "time_s,rate_per_s\n0,200000\n600,600000\n1200,400000\n1800,400000\n"
SESSIONS = {
    "policies": ("q11", "load.csv", "--slots", "12", "--policy", "static", "ds2", "justin"),
    "keyed": ("keyed", "load.csv", *("--workers", "2", "--worker-slots", "8", "--setting", "shards=64")),
}
RECORDED = Path(__file__).parents[3] / "data" / "q5.recorded.json"


def doubtful(run):
    """Give the measurement with something to do about it."""
    return replace(
        run, estimate=replace(run.estimate, steady=False, limit="none", exhausted=True), unbounded_state=True
    )


MEASURED = {
    "measured": example_measurement,
    "doubtful": lambda: doubtful(example_measurement()),
    "simulated": lambda: replace(example_measurement(), testbed_kind="fluid", testbed="fluid, seed 0"),
    "from readings": lambda: next(
        run for run in read_planned(RECORDED).exploration.measurements if run.estimate.from_readings
    ),
}


@pytest.fixture
def measured(request, tmp_path, monkeypatch):
    """Measure what the test names without Spark; return the command's arguments and the measurement."""
    found = MEASURED[request.param]()

    def measure(*_, **__):
        yield from ()
        return found

    monkeypatch.setattr(measuring, "measure", measure)
    monkeypatch.chdir(tmp_path)
    return ["measure", "nexmark:q1"], found


@pytest.fixture
def replayed(request, tmp_path, monkeypatch):
    keyed = request.param == "keyed"
    load = "time_s,rate_per_s\n0,6000\n30,9000\n60,9000\n" if keyed else LOAD
    (tmp_path / "load.csv").write_text(load, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    more = ["--hot-key", "keyed", "0.05", "6"] if keyed else []
    return ["replay", *SESSIONS[request.param], *more]


def in_json(arguments, capsys):
    assert main([*arguments, "--json"]) in {0, 1, 3}
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("measured", MEASURED, indirect=True)
def test_a_measurement(measured, capsys, monkeypatch, snapshot):
    arguments, found = measured
    assert in_json(arguments, capsys) == snapshot(name="json")
    for columns in (80, 120):
        assert faces.terminal(arguments, capsys, monkeypatch, columns) == snapshot(name=f"terminal of {columns}")
    assert faces.page(of_a_measurement.cards(found)) == snapshot(name="page")


@pytest.mark.parametrize("replayed", SESSIONS, indirect=True)
def test_a_replay(replayed, capsys, monkeypatch, snapshot):
    assert in_json(replayed, capsys) == snapshot(name="json")
    for columns in (80, 120):
        assert faces.terminal(replayed, capsys, monkeypatch, columns) == snapshot(name=f"terminal of {columns}")


def test_the_page_of_a_replay(snapshot):
    load = RateTrace.steps([(1200, 200_000), (1800, 900_000)])
    found = replay_policies("q11", load, slots=12, policies=("static", "ds2", "justin"))
    assert faces.page(page.cards(of_a_replay.answer(found, {"query": "q11", "rates": "day.csv"}))) == snapshot


def test_the_page_of_a_keyed_replay(snapshot):
    found = replay_paradigms(
        RateTrace.constant(5000.0, 30.0),
        KeyTrace.hot_key(1000, 0.1, 6.0),
        cluster=ElasticCluster(nodes=2, node_cores=4),
        settings={"shards": 64},
    )
    assert faces.page(page.cards(of_a_replay.answer(found, {}))) == snapshot


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
PRICES = "name,provider,region,vcpus,memory_mb,price_per_hour,currency,source,date\nlarge,x,y,8,16384,0.5,USD,z,2026\n"


def of_spark():
    """Plan again from what a journal recorded on Spark."""
    stored = read_planned(RECORDED)
    return plan_targets(stored.study, stored.exploration, (), stored.instances)


def test_a_simulated_plan(tmp_path, capsys, monkeypatch, snapshot):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.yaml").write_text(STUDY)
    (tmp_path / "prices.csv").write_text(PRICES)
    document = in_json(["plan", "study.yaml"], capsys)
    assert faces.rounded({name: document[name] for name in ("plans", "refused", "forms")}) == snapshot(name="json")
    for columns in (80, 120):
        shown = faces.terminal(["plan", "study.yaml"], capsys, monkeypatch, columns)
        assert faces.undated(shown) == snapshot(name=f"terminal of {columns}")
    shown = faces.page(of_a_plan.cards(read_planned(tmp_path / ".workbench/study-plan.json")))
    assert [faces.undated(card) for card in shown] == snapshot(name="page")


@pytest.mark.parametrize("columns", [80, 120])
def test_a_plan_from_a_recorded_journal(columns, capsys, monkeypatch, snapshot):
    monkeypatch.setattr(faces, "main", lambda _: planning._show(of_spark()))
    assert faces.terminal([], capsys, monkeypatch, columns) == snapshot


def test_the_page_of_a_plan_from_a_recorded_journal(snapshot):
    assert faces.page(of_a_plan.cards(of_spark())) == snapshot
