"""What people see of answers, kept whole: a change of a figure or a word is seen in a snapshot's difference."""

from dataclasses import replace

import faces
import pytest
from example_measurement import example_measurement

from workbench.answers import measured as of_a_measurement
from workbench.answers import page
from workbench.answers import replayed as of_a_replay
from workbench.cli import measuring
from workbench.scaling.elastic import ElasticCluster
from workbench.simulation import KeyTrace, RateTrace
from workbench.study import replay_paradigms, replay_start, simulated_start

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
