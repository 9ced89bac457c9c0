"""The layout of the PuLP model against all layouts there are."""

import itertools
import math
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from workbench.capacity import Stage, micro_batch_layout
from workbench.capacity.planning.layout import TIE

COSTS = st.builds(
    dict,
    fixed_s=st.one_of(st.sampled_from([0.0, 0.01, 0.1, 0.5]), st.floats(0.0, 1.0)),
    per_record_s=st.one_of(st.sampled_from([0.0, 0.001, 0.01]), st.floats(0.0, 0.05)),
    ratio=st.sampled_from([0.0, 0.5, 1.0, 2.0]),
    max_partitions=st.one_of(st.none(), st.none(), st.integers(1, 8)),
    stateful=st.booleans(),
)


@st.composite
def chains(draw):
    costs = draw(st.lists(COSTS, min_size=1, max_size=4))
    stages = tuple(Stage(f"s{i}", **cost) for i, cost in enumerate(costs))
    assume(len([stage for stage in stages if not stage.stateful]) + any(stage.stateful for stage in stages) <= 3)
    return stages


def batch_s(stages, partitions, slots, records):
    """Decision 1 of the design, as it is written."""
    return sum(
        math.ceil(partitions[stage.name] / slots)
        * (stage.fixed_s + stage.ratio * records / partitions[stage.name] * stage.per_record_s)
        for stage in stages
    )


def layouts(stages, limit, frozen):
    """All layouts, the smaller stateful count first, then the smaller counts in the order of the stages."""
    state = [stage for stage in stages if stage.stateful]
    choices = ([state] if state else []) + [[stage] for stage in stages if not stage.stateful]
    spans = [range(1, min([limit, *(s.max_partitions for s in choice if s.max_partitions)]) + 1) for choice in choices]
    if state and frozen:
        spans[0] = [frozen]
    for counts in itertools.product(*spans):
        yield {stage.name: count for choice, count in zip(choices, counts, strict=True) for stage in choice}


@settings(max_examples=150)
@given(
    stages=chains(),
    slots=st.sets(st.integers(1, 6), min_size=1, max_size=4),
    rate=st.sampled_from([10.0, 60.0]),
    grows=st.booleans(),
    frozen=st.one_of(st.none(), st.none(), st.integers(1, 14)),
)
def test_no_layout_has_a_smaller_maximum_regret_or_as_small_a_one_with_smaller_counts(
    *, stages, slots, rate, grows, frozen
):
    assume(frozen is None or any(stage.stateful for stage in stages))
    rates = {count: rate * (count if grows else 1) for count in slots}
    found = micro_batch_layout(stages, slots, 2.0, rate=rates, max_waves=2, stateful_partitions=frozen)
    candidates = list(layouts(stages, 2 * max(slots), frozen))
    seconds = [{n: batch_s(stages, layout, n, 2.0 * rates[n]) for n in slots} for layout in candidates]
    best = {n: min(one[n] for one in seconds) for n in slots}
    regrets = [max(one[n] - best[n] for n in slots) for one in seconds]
    tie = TIE * (max(best.values()) or 1.0)

    assert dict(found.partitions) in candidates
    assert found.best_s == pytest.approx(best)
    assert found.batch_s == pytest.approx(seconds[candidates.index(dict(found.partitions))])
    assert found.max_regret_s <= min(regrets) + 1.01 * tie
    first = next(layout for layout, regret in zip(candidates, regrets, strict=True) if regret <= min(regrets) + tie / 2)
    assert candidates.index(dict(found.partitions)) <= candidates.index(first)


@settings(max_examples=60)
@given(stages=chains(), slots=st.integers(1, 12), waves=st.integers(1, 3))
def test_one_slot_count_is_filled_by_one_wave(stages, slots, waves):
    stages = [
        replace(one, fixed_s=one.fixed_s + 0.01, per_record_s=one.per_record_s + 1e-3, ratio=one.ratio + 0.5)
        for one in stages
    ]
    found = micro_batch_layout(stages, slots, rate=100.0, max_waves=waves)
    frozen = min([slots, *(stage.max_partitions for stage in stages if stage.stateful and stage.max_partitions)])
    for stage in stages:
        own = slots if stage.max_partitions is None else min(slots, stage.max_partitions)
        assert found.partitions[stage.name] == (frozen if stage.stateful else own)
    assert found.max_regret_s == pytest.approx(0.0, abs=1e-12)
