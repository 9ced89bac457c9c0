from collections import Counter
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from placement_oracle import example_a
from refusals import refusals

from workbench.placement import PlacementProblem, flink_default, flink_evenly, random_slots, round_robin

PLANS = {"first": ((2, 1, 0), (0, 2, 1)), "second": ((2, 0, 1), (0, 3, 0)), "third": ((1, 2, 0), (1, 1, 1))}


class Fixed:
    """A generator that permutes as given."""

    def __init__(self, order):
        self.order = order

    def permutation(self, values):
        return np.asarray(values)[list(self.order)]


def plan_of(problem, counts):
    return tuple(map(tuple, problem.plan(counts).counts.T.tolist()))


def wider():
    """Example A on workers of four slots: two are idle."""
    return PlacementProblem((2, 3, 1), [(0, 1), (1, 2)], 2, 4, (4, 6, 1), (0, 5, 0), (10, 2, 0))


def distribution(problem, strategy, draws):
    seen = Counter(plan_of(problem, strategy(problem, Fixed(order))) for order in permutations(range(draws)))
    return {plan: Fraction(count, sum(seen.values())) for plan, count in seen.items()}


@pytest.mark.parametrize("strategy", [flink_default, flink_evenly, random_slots])
def test_without_idle_slots_all_strategies_of_chance_are_alike(strategy):
    assert distribution(example_a(), strategy, 6) == {
        PLANS["first"]: Fraction(3, 10),
        PLANS["second"]: Fraction(1, 10),
        PLANS["third"]: Fraction(3, 5),
    }


def test_with_idle_slots_evenly_stays_even_and_default_does_not():
    assert set(distribution(wider(), flink_evenly, 6)) == set(PLANS.values())
    assert distribution(wider(), flink_default, 6) == {
        ((2, 2, 0), (0, 1, 1)): Fraction(1, 5),
        ((2, 1, 1), (0, 2, 0)): Fraction(1, 5),
        ((2, 0, 0), (0, 3, 1)): Fraction(1, 15),
        ((1, 3, 0), (1, 0, 1)): Fraction(2, 15),
        ((1, 2, 1), (1, 1, 0)): Fraction(2, 5),
    }


def test_in_listing_order_default_fills_and_the_others_deal():
    problem, listed = example_a(), Fixed(range(6))
    assert plan_of(problem, flink_default(problem, listed)) == PLANS["first"]
    assert plan_of(problem, flink_evenly(problem, listed)) == PLANS["third"]
    assert plan_of(problem, round_robin(problem)) == PLANS["third"]


@pytest.mark.parametrize(
    ("strategy", "tasks", "free", "counts"),
    [
        (round_robin, 5, [1, 3, 1], [1, 3, 1]),
        (round_robin, 5, [0, 3, 3], [0, 3, 2]),
        (flink_evenly, 3, [1, 3, 2], [0, 2, 1]),
    ],
)
def test_round_robin_passes_over_full_workers_and_evenly_prefers_those_with_fewer_tasks(strategy, tasks, free, counts):
    problem = PlacementProblem((tasks,), [], 3, 3, (1,), (0,), (0,))
    assert strategy(problem, np.random.default_rng(0), free).tolist() == [counts]


test_free_slots_that_do_not_fit_are_refused = refusals(
    lambda free: flink_default(example_a(), np.random.default_rng(0), free),
    ([1, 2], r"There are 6 tasks, but only 3 free slots; add workers or slots"),
    ([1], r"The free slots are \[1\]; give one number from 0 to 3 for each of the 2 workers"),
    ([4, 3], "give one number from 0 to 3"),
)
