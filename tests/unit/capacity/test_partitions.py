"""BIDS2 for micro-batches against every layout there is, each by its own root."""

import itertools
import math
from random import Random

import pytest
from scipy.optimize import brentq

from workbench.capacity import bids2_micro_batch
from workbench.capacity.model import MicroBatch, StageLine
from workbench.capacity.partitions import lowest
from workbench.errors import WorkbenchError


def problem(seed):
    """A random batch of one to four stages, its slots, and how much faster a task is that has idle slots next to it."""
    random, state = Random(seed), Random(seed)
    stays_s = state.choice([0.0, 60.0])
    stages = tuple(
        StageLine(
            f"{place} stage",
            random.choice([0.0, random.uniform(0, 0.4)]),
            10 ** random.uniform(-6, -4),
            random.choice([1.0, random.uniform(0.05, 1.5)]),
            random.choice([1.0, 1.0, random.uniform(0.3, 1.0)]),
            stateful=place > 0 and random.random() < 0.6,
            source=place == 0,
            held_s=10 ** state.uniform(-7, -6),
            stays_s=stays_s,
        )
        for place in range(random.randint(1, 4))
    )
    per_task = random.choice([0.0, random.uniform(0, 0.05)])
    batch = MicroBatch(random.uniform(0, 0.6), per_task, stages, 0.0, 5)
    return batch, random.randint(1, 5), random.choice([1.0, 1.0, 2.5, 20.0])


def best_of_all(batch, slots, interval_s, speedup):
    """The highest rate of all layouts of up to four waves; stateful stages share a count."""
    kinds = ["state" if one.stateful else one.name for one in batch.stages]
    names, best = list(dict.fromkeys(kinds)), 0.0
    counts = [*range(1, slots + 1), *(slots * waves for waves in (2, 3, 4))]
    for layout in itertools.product(counts, repeat=len(names)):
        own = [dict(zip(names, layout, strict=True))[kind] for kind in kinds]

        def spare(rows, own=own):
            seconds = batch.driver_s + batch.driver_task_s * sum(own)
            for stage, count in zip(batch.stages, own, strict=True):
                turns = max(count / slots, 1 / speedup) if count < slots else math.ceil(count / slots)
                each = rows / count
                held_s = stage.held_s * stage.stays_s * each / interval_s
                seconds += turns * (stage.fixed_s + stage.per_row_s * stage.scale * each**stage.power + held_s)
            return interval_s - seconds

        if spare(1e-9) > 0:
            best = max(best, brentq(spare, 1e-9, 1e13, xtol=1e-9, rtol=1e-13) / interval_s)
    return best


@pytest.mark.parametrize("seed", range(60))
def test_no_layout_carries_more(seed):
    batch, slots, speedup = problem(seed)
    best = best_of_all(batch, slots, 2.0, speedup)
    exact = bids2_micro_batch(batch, slots, 2.0, slot_speedup=speedup)
    assert exact.rate == pytest.approx(best, rel=1e-6, abs=2.0)
    if seed % 3 == 0:
        assert bids2_micro_batch(batch, slots, 2.0, slot_speedup=speedup, solver="cbc").rate == pytest.approx(
            exact.rate, rel=1e-6, abs=2.0
        )
    assert len({exact.partitions[one.name] for one in batch.stages if one.stateful}) <= 1


SCAN = StageLine("1 scan", 0.5, 1e-4, 1.0, 1.0, source=True)
TINY = MicroBatch(0.2, 0.002, (SCAN, StageLine("2 sum", 0.83, 1e-4, 0.2, 1.0, stateful=True)), 0.0, 6)


def test_tiny_slots_get_fewer_partitions_a_frozen_count_is_kept_and_full_intervals_leave_no_rate():
    found = bids2_micro_batch(TINY, 32, 10.0, slot_speedup=20.0)
    assert max(found.partitions.values()) < 32
    assert found.rate > 1.1 * TINY.rate(32, 32, 10.0)
    whole_cores = bids2_micro_batch(TINY, 32, 10.0)
    assert set(whole_cores.partitions.values()) == {32}
    found = bids2_micro_batch(TINY, 8, 10.0, frozen=12)
    assert found.partitions == {"1 scan": 8, "2 sum": 12}
    assert found.rate < bids2_micro_batch(TINY, 8, 10.0).rate
    found = bids2_micro_batch(TINY, 4, 1.0)
    assert (found.rate, found.limit) == (0.0, "2 sum")
    found = bids2_micro_batch(TINY, 5000, 10.0)
    assert found.rate >= TINY.rate(5000, 5000, 10.0)
    assert found.rate >= bids2_micro_batch(TINY, 4000, 10.0).rate * 0.999


@pytest.mark.parametrize("fields", [{"slots": 0}, {"interval_s": 0.0}, {"solver": "simplex"}, {"slot_speedup": 0.5}])
def test_numbers_out_of_range_are_refused(fields):
    with pytest.raises(WorkbenchError, match=next(iter(fields)).split("_", maxsplit=1)[0]):
        bids2_micro_batch(TINY, **{"slots": 4, "interval_s": 2.0, **fields})


@pytest.mark.parametrize("seed", range(20))
def test_only_lines_that_are_the_lowest_somewhere_are_candidates(seed):
    random = Random(seed)
    lines = [(random.uniform(-1, 1), random.uniform(0, 2), count) for count in range(1, 60)]
    kept = lowest(lines, 4.0)
    assert len(kept) < len(lines) / 3
    for step in range(401):
        at = step / 100
        assert min(a + b * at for a, b, _ in kept) == pytest.approx(min(a + b * at for a, b, _ in lines), abs=1e-12)
