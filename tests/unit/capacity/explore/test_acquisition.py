"""Which point of a grid to measure next."""

import pytest

from workbench.capacity.explore.acquisition import edge, farthest, nearest

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
