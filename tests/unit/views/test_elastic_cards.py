"""The cards of elastic executors."""

from dataclasses import replace

import pytest

from workbench.scaling import advise_executors, assign_cores
from workbench.views.elastic_cards import advice_card, assignment_card

MB = 2**20
CURRENT = [[2, 1], [0, 2]]


@pytest.fixture
def answers():
    """Greedily 5 MB move, at the least 4 MB: with a spare core more of the second executor's state stays."""
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
    assert len(card.table.rows) == 4
