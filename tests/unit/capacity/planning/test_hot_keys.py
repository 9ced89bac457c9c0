"""A key that has many of the rows is found by the sizes of a run's partitions."""

import random
from dataclasses import replace

import pytest
from staged_runs import staged_exploration

from workbench.capacity import plan
from workbench.capacity.planning.checks import check_keys


def fullest(hot, others, partitions, rows=40_000, seed=1):
    """Rows of the fullest partition over the mean: one key has the share `hot`, `others` keys the rest, evenly."""
    draw = random.Random(seed)
    place = [draw.randrange(partitions) for _ in range(others)]
    counts = [0.0] * partitions
    counts[draw.randrange(partitions)] += hot * rows
    for where in place:
        counts[where] += (1 - hot) * rows / others
    return max(counts) * partitions / sum(counts)


def runs_with(hot, others):
    """Runs whose stateful operators have partitions as uneven as these keys make them."""
    found = []
    for run in staged_exploration().measurements:
        seen = run.estimate.observation
        slots = run.budget.slots
        operators = tuple(
            replace(one, tasks=slots, key_skew=fullest(hot, others, slots))
            if one.keeps_state
            else replace(one, key_skew=None)
            for one in seen.operators
        )
        found.append(replace(run, estimate=replace(run.estimate, observation=replace(seen, operators=operators))))
    return found


def test_an_injected_hot_key_is_found_with_its_share():
    found = check_keys(runs_with(0.3, 20_000), 40)
    assert found.concern == "hot key"
    assert "it has 30 % of the rows" in found.finding or "it has 31 % of the rows" in found.finding
    assert found.value == pytest.approx(fullest(0.3, 20_000, 40), rel=0.05)
    assert "more than 3 slots make this operator no faster" in found.finding


@pytest.mark.parametrize("others", [300, 20_000])
def test_even_keys_are_not_called_hot(others):
    assert check_keys(runs_with(0.0, others), 40) is None


def test_the_keys_of_an_operator_that_does_hardly_anything_do_not_matter():
    runs = []
    for run in runs_with(0.3, 20_000):
        seen = run.estimate.observation
        idle = tuple(replace(one, useful_s=1e-3 * one.useful_s) if one.keeps_state else one for one in seen.operators)
        runs.append(replace(run, estimate=replace(run.estimate, observation=replace(seen, operators=idle))))
    assert check_keys(runs, 40) is None


def test_partitions_that_are_exactly_even_have_no_hot_key():
    runs = []
    for run in runs_with(0.0, 300):
        seen = run.estimate.observation
        even = tuple(replace(one, key_skew=1.0) for one in seen.operators)
        runs.append(replace(run, estimate=replace(run.estimate, observation=replace(seen, operators=even))))
    assert check_keys(runs, 40) is None


def test_it_is_said_only_where_it_matters_and_where_partitions_were_seen():
    assert check_keys(runs_with(0.3, 20_000), 1) is None
    assert check_keys((), 40) is None


def test_a_plan_says_so():
    found = staged_exploration()
    runs = tuple(runs_with(0.3, 20_000))
    chosen = plan(replace(found, runs=runs), 60_000, memory_mb=[600])
    assert "hot key" in [card.concern for card in chosen.cards]


@pytest.mark.parametrize("order", [(0.0, 0.3), (0.3, 0.0)])
def test_a_hot_key_is_found_whichever_run_shows_it(order):
    runs = [run for hot in order for run in runs_with(hot, 20_000)]
    found = check_keys(runs, 40)
    assert found == check_keys(runs_with(0.3, 20_000), 40)
