"""The cards of elastic executors."""

from dataclasses import replace

import pytest

from workbench.answers.replayed import answer
from workbench.scaling import assign_cores
from workbench.scaling.elastic import ElasticCluster
from workbench.simulation import KeyTrace, RateTrace
from workbench.study import replay_paradigms
from workbench.views.elastic_cards import assignment_card
from workbench.views.figures.elastic import best_paradigm

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
    assert [row[:2] for row in card.table.rows] == [(op, f"node {n}") for op in ("count", "join") for n in range(2)]
    assert [row[2:] for row in card.table.rows] == [(2, 2, 2), (0, 0, 0), (1, 1, 2), (2, 3, 3)]
    greedy, optimal = answers
    card = assignment_card(CURRENT, replace(greedy, threshold=2 * optimal.threshold), optimal, ["count", "join"])
    assert card.finding.endswith("with at most 512 KiB/s in the optimal one.")


def test_a_load_that_no_paradigm_carries_is_said_with_what_helps():
    cluster = ElasticCluster(nodes=2, node_cores=4)
    replayed = replay_paradigms(RateTrace.constant(20_000.0, 20.0), KeyTrace.zipf(1000, 0.8), cluster=cluster)
    (said, remedy), *_ = answer(replayed, {}).cautions.items()
    assert said.startswith("No paradigm keeps up")
    assert str(remedy).endswith("scaling.html -p rates LOAD.csv -p query keyed -p workers 3")


def test_the_best_paradigm_keeps_up_before_it_is_quick():
    runs = replay_paradigms(
        RateTrace.constant(9000.0, 20.0),
        KeyTrace.zipf(1000, 0.8),
        ("static", "executor-centric"),
        cluster=ElasticCluster(nodes=2, node_cores=4),
    ).runs
    slow, quick = replace(runs[0], p99_latency_s=1e-3), replace(runs[1], throughput_per_s=2 * runs[0].throughput_per_s)
    assert best_paradigm((slow, quick)) is quick
