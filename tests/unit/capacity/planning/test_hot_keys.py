"""A key that has many of the rows: found by the sizes of a run's partitions, or counted in the data."""

import random
import re
from dataclasses import replace

import numpy as np
import pytest
from staged_runs import seeing, staged_exploration

from workbench import units
from workbench.capacity import plan
from workbench.capacity.planning import hot_key
from workbench.capacity.planning.checks import check_counted_keys, check_keys
from workbench.metrics import InputRows
from workbench.workload import KeyFrequencies

FOUND = staged_exploration()
ONE_HOT = KeyFrequencies("auction", 10_000, 0, tuple(map(str, range(71))), (3_000, *[100] * 70), 71)


def fullest(hot, others, partitions, rows=40_000, seed=1):
    """Rows of the fullest partition over the mean: one key has the share `hot`, `others` keys the rest, evenly."""
    draw = random.Random(seed)
    place = [draw.randrange(partitions) for _ in range(others)]
    counts = [0.0] * partitions
    counts[draw.randrange(partitions)] += hot * rows
    for where in place:
        counts[where] += (1 - hot) * rows / others
    return max(counts) * partitions / sum(counts)


def runs_with(skew_of, busy=1.0):
    """Runs whose stateful operators have a partition of `skew_of(slots)` times the mean, and `busy` of their work."""
    found = []
    for run in FOUND.measurements:
        seen, slots = run.estimate.observation, run.budget.slots
        operators = tuple(
            replace(one, tasks=slots, key_skew=skew_of(slots), useful_s=busy * one.useful_s)
            if one.keeps_state
            else replace(one, key_skew=None)
            for one in seen.operators
        )
        found.append(seeing(run, operators=operators))
    return found


def drawn(hot, others, busy=1.0):
    """Runs whose partitions are as uneven as these keys make them."""
    return runs_with(lambda slots: fullest(hot, others, slots), busy)


def skewed(skew):
    return runs_with(lambda _: skew)


def planned(runs, keys=None):
    return plan(replace(FOUND, runs=tuple(runs)), 60_000, memory_mb=[600], keys=keys)


def test_an_injected_hot_key_is_found_with_its_share():
    found = check_keys(drawn(0.3, 20_000), 40)
    assert found.concern == "hot key"
    assert re.search("it has 3[01] % of the rows", found.finding)
    assert found.value == pytest.approx(fullest(0.3, 20_000, 40), rel=0.05)
    assert "more than 3 slots make this operator no faster" in found.finding
    assert "hot key" in [card.concern for card in planned(drawn(0.3, 20_000)).cards]


@pytest.mark.parametrize(
    ("runs", "partitions"),
    [
        (drawn(0.0, 300), 40),
        (drawn(0.0, 20_000), 40),
        (drawn(0.3, 20_000, busy=1e-3), 40),  # of an operator that does hardly anything
        (skewed(1.0), 40),
        (drawn(0.3, 20_000), 1),
        ((), 40),
    ],
)
def test_keys_that_do_not_matter_are_not_called_hot(runs, partitions):
    assert check_keys(runs, partitions) is None


@pytest.mark.parametrize("order", [(0.0, 0.3), (0.3, 0.0)])
def test_a_hot_key_is_found_whichever_run_shows_it(order):
    runs = [run for hot in order for run in drawn(hot, 20_000)]
    assert check_keys(runs, 40) == check_keys(drawn(0.3, 20_000), 40)


def test_a_counted_hot_key_that_reaches_the_tasks_says_what_it_takes():
    runs = skewed(2.1)
    found = check_counted_keys(runs, ONE_HOT, 40, 1.0)
    assert "'auction' has 30.00 % of the rows" in found.finding
    assert found.value == pytest.approx(ONE_HOT.likely_imbalance(40)) == pytest.approx(12.4, abs=0.5)
    most = max(run.budget.slots for run in runs)
    seen = [run.estimate.observation for run in runs if run.budget.slots == most]
    costs = [one.useful_s / each.consumed_records for each in seen for one in each.operators if one.keeps_state]
    limit = 1 / (0.3 * max(costs))
    assert hot_key(runs, ONE_HOT).limit == pytest.approx(limit)
    takes = f"At {units.rate(0.6 * limit)} the key '0' needs 0.6 of a slot of "
    found = check_counted_keys(runs, ONE_HOT, 40, 0.6 * limit)
    assert takes in found.finding
    assert "; more than 4 tasks do not raise the rate." in found.finding
    assert hot_key(runs, ONE_HOT).sentence(0.6 * limit) in found.finding
    assert "needs 2 slots of " in hot_key(runs, ONE_HOT).sentence(2 * limit)
    assert hot_key(runs, ONE_HOT, 2.0).limit == pytest.approx(2 * limit)


def test_hidden_or_even_counted_keys_take_nothing_to_do_and_no_keys_say_nothing():
    found = check_counted_keys(skewed(1.02), ONE_HOT, 40, 1.0)
    assert "does not reach the tasks" in found.finding
    even = KeyFrequencies("auction", 10_000, 0, tuple(map(str, range(1000))), (10,) * 1000, 1000)
    assert check_counted_keys(skewed(1.1), even, 4, 1.0).advice == "Nothing to do."
    assert check_counted_keys(skewed(1.1), None, 4, 1.0) is None


def test_the_likely_imbalance_is_that_of_a_spark_hash_within_its_scatter():
    """Against placements drawn by other means: the median of the fullest partition over its mean."""
    draw = np.random.default_rng(3)
    counts = np.sort(draw.zipf(1.5, 300).clip(max=5000))[::-1]
    keys = KeyFrequencies("k", int(counts.sum()), 0, tuple(map(str, range(300))), tuple(map(int, counts)), 300)
    most = [np.bincount(draw.permutation(300) % 8, counts, 8).max() for _ in range(500)]
    assert keys.likely_imbalance(8) == pytest.approx(np.median(most) * 8 / counts.sum(), rel=0.1)
    counted = replace(keys, partition_shares={8: (0.3, *[0.1] * 7)})
    assert counted.likely_imbalance(8) == pytest.approx(2.4)


def test_a_counted_key_that_fills_a_slot_below_the_rate_makes_the_plan_risky():
    chosen = planned(skewed(2.1), ONE_HOT)
    assert any("'auction' has 30.00 % of the rows" in card.finding for card in chosen.cards)
    assert chosen.verdict.level != "safe"
    card = check_counted_keys(skewed(2.1), ONE_HOT, 40, 1e12)
    assert card.concern == "hot key"
    assert card.value > 1


def joined_then_grouped(**grouped):
    """A run whose orders and payments are joined by 'order_id', and the pairs grouped."""
    run = max(skewed(1.1), key=lambda one: one.budget.slots)
    seen = run.estimate.observation
    stateful = next(one for one in seen.operators if one.keeps_state)
    sides = [replace(stateful, operator=f"{number} scan", scans=True, key_skew=None, useful_s=0.1) for number in (1, 2)]
    join = replace(stateful, operator="3 join", kind="join", keys=("order_id",), useful_s=40.0)
    last = replace(stateful, operator="4 aggregate", kind="aggregate", useful_s=0.4, **grouped)
    edges = (("1 scan", "3 join"), ("2 scan", "3 join"), ("3 join", "4 aggregate"))
    inputs = (InputRows("orders", 300, 0.0, ("1 scan",), 1.0), InputRows("payments", 100, 0.0, ("2 scan",), 1.0))
    return [seeing(run, operators=(*sides, join, last), edges=edges, inputs=inputs)]


def test_a_key_is_looked_for_at_the_operator_that_goes_by_it_or_is_in_no_one_task():
    customers = replace(ONE_HOT, column="customer_id", input="orders")
    runs = joined_then_grouped(keys=("customer_id",), partial_sums=True)
    said = hot_key(runs, customers).sentence(1e3)
    assert said.startswith("'customer_id' is the key of '4 aggregate', which receives partial sums: ")
    card = check_counted_keys(runs, customers, 40, 1e9)
    assert (card.concern, card.settled, card.advice) == ("keys", True, "Nothing to do.")
    runs = joined_then_grouped(keys=("customer_id",))
    costs = 0.4 / runs[0].estimate.observation.consumed_records
    assert hot_key(runs, replace(customers, counts=(900, *[900] * 70), records=63_900)).limit == pytest.approx(
        71 / costs
    )
    runs = joined_then_grouped(keys=("window",))
    found = hot_key(runs, replace(ONE_HOT, column="customer_id"))
    assert not found.reaches
    assert found.sentence(1e3).startswith("No operator whose tasks were compared goes by 'customer_id': '3 join'")


def test_the_rows_of_a_key_are_those_of_its_input():
    runs = joined_then_grouped()
    orders = replace(ONE_HOT, column="order_id", input="orders")
    whole, part = (hot_key(runs, one) for one in (replace(orders, input=""), orders))
    assert part.limit == pytest.approx(whole.limit / 0.75)
    assert part.useful_tasks == pytest.approx(whole.useful_tasks / 0.75)
    assert f"of which {units.rate(750)} are of orders" in replace(part, expected=1.0).sentence(1e3)
