"""BIDS2 against enumeration, the slot-by-slot greedy, the paper's MILP and the argument why it is optimal."""

import itertools
import random
from fractions import Fraction

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from workbench.capacity import bids2

# Quarters and small whole numbers: capacities are exact in floats and often equal.
EVEN = st.tuples(st.integers(1, 6).map(float), st.sampled_from([0.25, 0.5, 1.0, 2.0]))
ANY = st.tuples(st.floats(1e-2, 1e6), st.floats(1e-3, 50.0))


def mappings(pairs):
    names = [f"o{i}" for i in range(len(pairs))]
    rates, ratios = zip(*pairs, strict=True)
    return dict(zip(names, rates, strict=True)), dict(zip(names, ratios, strict=True))


def instance(seed, operators, spread=1.0):
    rng = random.Random(seed)
    return mappings([(rng.lognormvariate(9, spread), rng.uniform(0.05, 2)) for _ in range(operators)])


def compositions(slots, parts):
    for cuts in itertools.combinations(range(1, slots), parts - 1):
        yield [b - a for a, b in itertools.pairwise((0, *cuts, slots))]


def enumerated(rates, ratios, slots):
    """Highest source rate over all allocations, exactly."""
    singles = [Fraction(rates[name]) / Fraction(ratios[name]) for name in rates]
    return max(
        min(count * single for count, single in zip(counts, singles, strict=True))
        for counts in compositions(slots, len(singles))
    )


def slot_by_slot(rates, ratios, slots):
    tasks = dict.fromkeys(rates, 1)
    for _ in range(slots - len(rates)):
        tasks[min(rates, key=lambda name: tasks[name] * rates[name] / ratios[name])] += 1
    return tasks


def assert_optimal(allocation, slots):
    """No moved slot raises the rate.

    A higher rate takes another task at the bottleneck, and at every operator at least the tasks it has, because one
    task less carries no more than the present rate. Together that is more than the budget.
    """
    assert sum(allocation.tasks.values()) == slots
    assert allocation.source_rate == min(allocation.capacities.values())
    for name, tasks in allocation.tasks.items():
        assert allocation.capacities[name] * (tasks - 1) / tasks <= allocation.source_rate * (1 + 1e-12)


@examples(120)
@given(pairs=st.lists(st.one_of(EVEN, ANY), min_size=1, max_size=5), data=st.data())
def test_exact_is_the_best_of_all_allocations(pairs, data):
    slots = data.draw(st.integers(len(pairs), 14))
    rates, ratios = mappings(pairs)
    found = bids2(rates, ratios, slots)
    assert_optimal(found, slots)
    assert found.source_rate == pytest.approx(float(enumerated(rates, ratios, slots)), rel=1e-14)


@examples(150)
@given(
    pairs=st.one_of(st.lists(EVEN, min_size=1, max_size=12), st.lists(ANY, min_size=1, max_size=12)),
    further=st.integers(0, 150),
)
def test_exact_hands_out_slots_as_the_greedy_would_ties_to_the_first(pairs, further):
    rates, ratios = mappings(pairs)
    slots = len(pairs) + further
    found = bids2(rates, ratios, slots)
    assert found.tasks == slot_by_slot(rates, ratios, slots)
    assert_optimal(found, slots)


@examples(30)
@given(seed=st.integers(0, 10**9), spread=st.sampled_from([1.0, 3.0]))
def test_exact_equals_cbc_at_9_operators_and_48_slots(seed, spread):
    # A few instances with repeated operators keep CBC busy for 10 s; those drawn here have none.
    rates, ratios = instance(seed, 9, spread)
    exact, cbc = bids2(rates, ratios, 48), bids2(rates, ratios, 48, solver="cbc")
    assert cbc.status == "optimal"
    assert sum(cbc.tasks.values()) == 48
    assert cbc.source_rate == pytest.approx(exact.source_rate, rel=1e-8)
    assert cbc.source_rate <= exact.source_rate * (1 + 1e-12)


@pytest.mark.parametrize("seed", [1, 2])
def test_exact_equals_cbc_at_100_operators_and_10_000_slots(seed):
    rates, ratios = instance(seed, 100)
    exact, cbc = bids2(rates, ratios, 10_000), bids2(rates, ratios, 10_000, solver="cbc")
    assert_optimal(exact, 10_000)
    assert cbc.status == "optimal"
    assert cbc.source_rate == pytest.approx(exact.source_rate, rel=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_no_moved_slot_raises_the_rate_at_1000_operators_and_100_000_slots(seed):
    rates, ratios = instance(seed, 1000)
    found = bids2(rates, ratios, 100_000)
    assert_optimal(found, 100_000)
    assert found == bids2(rates, ratios, 100_000)
