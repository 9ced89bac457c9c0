"""Keys counted in the data, and what they mean for the plan's partitions."""

from dataclasses import replace

import numpy as np
import pytest
from staged_runs import staged_exploration

from workbench import units
from workbench.capacity import plan
from workbench.capacity.planning import hot_key
from workbench.capacity.planning.checks import check_counted_keys
from workbench.workload import KeyFrequencies

ONE_HOT = KeyFrequencies("auction", 10_000, 0, tuple(map(str, range(71))), (3_000, *[100] * 70), 71)


def runs_with(skew):
    """Runs whose stateful operators have a fullest partition of `skew` times the mean."""
    found = []
    for run in staged_exploration().measurements:
        seen = run.estimate.observation
        operators = tuple(
            replace(one, tasks=run.budget.slots, key_skew=skew if one.keeps_state else None) for one in seen.operators
        )
        found.append(replace(run, estimate=replace(run.estimate, observation=replace(seen, operators=operators))))
    return found


def test_a_hot_key_that_reaches_the_tasks_says_what_it_takes():
    runs = runs_with(2.1)
    found = check_counted_keys(runs, ONE_HOT, 40, 1.0)
    assert "'auction' has 30.00 % of the rows" in found.finding
    assert found.value == pytest.approx(ONE_HOT.likely_imbalance(40)) == pytest.approx(12.4, abs=0.5)
    most = max(run.budget.slots for run in runs)
    seen = [run.estimate.observation for run in runs if run.budget.slots == most]
    costs = [
        one.useful_s / observation.consumed_records for observation in seen for one in observation.operators
        if one.keeps_state
    ]  # fmt: skip
    limit = 1 / (0.3 * max(costs))
    assert hot_key(runs, ONE_HOT).limit == pytest.approx(limit)
    takes = f"At {units.rate(0.6 * limit)} the key '0' needs 0.6 of a slot of "
    found = check_counted_keys(runs, ONE_HOT, 40, 0.6 * limit)
    assert takes in found.finding
    assert "; more than 4 tasks do not raise the rate." in found.finding
    assert hot_key(runs, ONE_HOT).sentence(0.6 * limit) in found.finding
    assert "needs 2 slots of " in hot_key(runs, ONE_HOT).sentence(2 * limit)
    assert hot_key(runs, ONE_HOT, 2.0).limit == pytest.approx(2 * limit)


def test_rows_aggregated_before_the_shuffle_hide_a_hot_key():
    found = check_counted_keys(runs_with(1.02), ONE_HOT, 40, 1.0)
    assert "does not reach the tasks" in found.finding
    assert "1.02 times the mean and not" in found.finding


def test_even_keys_take_nothing_to_do_and_no_keys_say_nothing():
    even = KeyFrequencies("auction", 10_000, 0, tuple(map(str, range(1000))), (10,) * 1000, 1000)
    found = check_counted_keys(runs_with(1.1), even, 4, 1.0)
    assert found.advice == "Nothing to do."
    assert check_counted_keys(runs_with(1.1), None, 4, 1.0) is None


def test_the_likely_imbalance_is_that_of_a_spark_hash_within_its_scatter():
    """Against placements drawn by other means: the median of the fullest partition over its mean."""
    draw = np.random.default_rng(3)
    counts = np.sort(draw.zipf(1.5, 300).clip(max=5000))[::-1]
    keys = KeyFrequencies("k", int(counts.sum()), 0, tuple(map(str, range(300))), tuple(map(int, counts)), 300)
    fullest = [np.bincount(draw.permutation(300) % 8, counts, 8).max() for _ in range(500)]
    assert keys.likely_imbalance(8) == pytest.approx(np.median(fullest) * 8 / counts.sum(), rel=0.1)
    counted = replace(keys, partition_shares={8: (0.3, *[0.1] * 7)})
    assert counted.likely_imbalance(8) == pytest.approx(2.4)


def test_a_plan_has_it():
    found = staged_exploration()
    chosen = plan(replace(found, runs=tuple(runs_with(2.1))), 60_000, memory_mb=[600], keys=ONE_HOT)
    assert any("'auction' has 30.00 % of the rows" in card.finding for card in chosen.cards)


def test_a_key_that_fills_a_slot_below_the_rate_makes_the_plan_risky():
    found = staged_exploration()
    chosen = plan(replace(found, runs=tuple(runs_with(2.1))), 60_000, memory_mb=[600], keys=ONE_HOT)
    assert chosen.verdict.level != "safe"
    card = check_counted_keys(runs_with(2.1), ONE_HOT, 40, 1e12)
    assert card.concern == "hot key"
    assert card.value > 1
