"""The cards of elastic executors."""

from dataclasses import replace

import pytest
from figure_checks import axis_titles, check_empty, check_figure, trace

from workbench.answers import page
from workbench.answers.replayed import answer
from workbench.scaling import advise_executors, assign_cores
from workbench.scaling.elastic import PARADIGMS, ElasticCluster
from workbench.simulation import KeyTrace, RateTrace
from workbench.study import replay_paradigms
from workbench.views.elastic_cards import advice_card, assignment_card
from workbench.views.figures.paradigms import draw_paradigms, paradigms

MB = 2**20
CURRENT = [[2, 1], [0, 2]]


@pytest.fixture
def answers():
    """Greedily 5 MB move, at least 4 MB: with a spare core more of the second executor's state stays."""
    given = (CURRENT, [2, 4], [4, 3], [90 * MB, 60 * MB], [0, 1], [0, 0])
    return assign_cores(*given), assign_cores(*given, method="optimal")


def test_cores_of_every_executor_on_every_node(answers):
    card = assignment_card(CURRENT, *answers, ["count", "join"])
    assert card.finding == "The greedy assignment moves 5 MiB of state to another node, the optimal one 4 MiB."
    assert card.table.rows == (
        ("count", "node 0", 2, 2, 2),
        ("count", "node 1", 0, 0, 0),
        ("join", "node 0", 1, 1, 2),
        ("join", "node 1", 2, 3, 3),
    )
    assert card.table.opened


def test_answers_at_unequal_thresholds_are_not_compared_tacitly(answers):
    greedy, optimal = answers
    card = assignment_card(CURRENT, replace(greedy, threshold=2 * optimal.threshold), optimal, ["count", "join"])
    assert card.finding.endswith(
        "Their thresholds differ: executors with at most 1 MiB/s per core may leave their node in the greedy "
        "assignment, with at most 512 KiB/s in the optimal one."
    )


def test_the_advice_gives_its_reasons():
    card = advice_card(advise_executors(4, 8, shuffles_per_minute=20, key_counts=[50] + [1] * 50))
    assert card.finding == "8 executors with 6 shards each."
    assert card.table.rows[0] == ("two executors per node: frequent shuffles of the keys make remote cores expensive",)
    assert len(card.table.rows) == 3


def test_paradigms_side_by_side_on_one_load():
    cluster = ElasticCluster(nodes=2, node_cores=4)
    replayed = replay_paradigms(
        RateTrace.constant(5000.0, 30.0), KeyTrace.hot_key(1000, 0.1, 6.0), cluster=cluster, settings={"shards": 64}
    )
    (card,) = page.cards(answer(replayed, {}))
    figure = check_figure(card.figure)
    assert {row[0] for row in card.table.rows} == set(PARADIGMS)
    assert card.finding.startswith(f"{paradigms(replayed.runs).best.paradigm} processes ")
    assert "mean load 5 k records/s, peak 5 k records/s over 30 s · 2 nodes of 4 cores" in card.html.replace(
        "\xa0", " "
    )
    assert axis_titles(figure) == {"Time (s)", "Throughput (records/s)", "Mean latency (ms)"}
    for run in replayed.runs:
        assert trace(figure, f"paradigms-throughput-{run.paradigm}").y == tuple(run.throughput_series)
    assert replayed.rows["static"] == replayed.runs[0].summary()
    assert '<span class="origin simulated">SIMULATED</span> a keyed operator of 1 ms per record' in card.html
    assert card.html.count("<tr>") == len(PARADIGMS)  # with the headings, but for the best, which is marked
    chosen = card.html.partition('<tr class="chosen">')[2]
    assert chosen.startswith(
        f"<td>{paradigms(replayed.runs).best.paradigm}\N{NO-BREAK SPACE}◀\N{NO-BREAK SPACE}best</td>"
    )
    assert "nothing was measured on a cluster" in card.html


def test_a_load_that_no_paradigm_carries_is_said_with_what_helps():
    cluster = ElasticCluster(nodes=2, node_cores=4)
    replayed = replay_paradigms(RateTrace.constant(20_000.0, 20.0), KeyTrace.zipf(1000, 0.8), cluster=cluster)
    (said, remedy), *_ = answer(replayed, {}).cautions.items()
    assert said.startswith("No paradigm keeps up")
    assert str(remedy) == (
        "Add a node. Run: workbench report scaling scaling.html -p rates LOAD.csv -p query keyed -p workers 3"
    )


def test_the_best_paradigm_keeps_up_before_it_is_quick():
    runs = replay_paradigms(
        RateTrace.constant(9000.0, 20.0),
        KeyTrace.zipf(1000, 0.8),
        ("static", "executor-centric"),
        cluster=ElasticCluster(nodes=2, node_cores=4),
    ).runs
    slow, quick = replace(runs[0], p99_latency_s=1e-3), replace(runs[1], throughput_per_s=2 * runs[0].throughput_per_s)
    assert paradigms((slow, quick)).best is quick
    assert check_empty(draw_paradigms(paradigms(())))
