"""Which point of a grid to measure next."""

import numpy as np
import pytest

from workbench.capacity.explore.acquisition import acquire, edge, farthest, nearest

GRID = [(i, j) for i in range(5) for j in range(2)]


def test_the_edge_follows_the_middle_at_both_ends_of_the_memory():
    assert [edge((5, 3), number) for number in range(6)] == [(2, 0), (2, 2), (4, 0), (4, 2), (4, 0), (4, 2)]
    assert [edge((4, 1), number) for number in range(3)] == [(2, 0), (3, 0), (3, 0)]
    assert edge((2, 1), 0) == (1, 0)  # no middle


@pytest.mark.parametrize(
    ("points", "found"),
    [
        ([(0, 0), (4, 0), (0, 1), (4, 1)], (2, 1)),
        ([(0, 0), (4, 0)], (2, 1)),
        ([(0, 0), (2, 0), (4, 0), (0, 1), (2, 1), (4, 1)], (3, 1)),  # (1, 1) is as far, on fewer slots
        (GRID, (4, 1)),
        ([], (4, 1)),
    ],
)
def test_the_farthest_point_fills_the_grid(points, found):
    assert farthest(points, (5, 2), GRID) == found


def test_only_what_is_allowed_is_chosen():
    assert farthest([(0, 0), (4, 0)], (5, 2), [(1, 0), (2, 0)]) == (2, 0)
    assert nearest((2, 0), GRID) == (2, 0)
    assert nearest((2, 0), [(0, 0), (3, 0), (2, 1)]) == (2, 1)


def test_the_same_runs_and_seed_propose_the_same_point():
    points, costs = [(0, 0), (3, 0), (0, 4), (3, 4), (1, 2)], [5.0, 5.0, 5.0, 5.0, 3.0]
    found = acquire(points, costs, (4, 5), seed=3).point
    assert found == acquire(points, costs, (4, 5), seed=3).point
    assert 0 <= found[0] < 4
    assert 0 <= found[1] < 5
    assert acquire([(0, 0), (3, 0)], [1.0, 1.0], (4, 1), seed=0).point[1] == 0


@pytest.mark.parametrize("seed", [2, 11, 25])
def test_the_point_asked_for_has_the_highest_expected_improvement_of_the_grid(seed):
    rng, corners = np.random.default_rng(seed), [(0, 0), (4, 0), (0, 2), (4, 2)]
    points = corners + [divmod(int(place), 3) for place in rng.choice(15, 9)]
    costs = [30 + 2 * (slots - 2) ** 2 + rng.normal() for slots, _ in points]  # a valley, where points are repeated
    found = acquire(points, costs, (5, 3), seed)
    assert found.improvement[found.point] == found.improvement.max()


@pytest.mark.parametrize("seed", [2**32 - 1, 202601311200, 10**30])
def test_any_seed_that_a_study_may_have_proposes_a_point(seed):
    assert acquire([(0, 0), (3, 0)], [1.0, 1.0], (4, 1), seed=seed).point[1] == 0
