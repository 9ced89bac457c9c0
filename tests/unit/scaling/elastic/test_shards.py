import random

import pytest
from refusals import refusals

from workbench.errors import WorkbenchError
from workbench.scaling import advise_executors, rebalance_shards


def test_the_default_is_the_papers_and_large_executors_get_more_shards():
    advice = advise_executors(32, 8)
    assert (advice.executors, advice.shards, len(advice.reasons)) == (32, 256, 2)
    assert advise_executors(2, 32).shards == 512
    assert advise_executors(1, 512).shards == 1024


@pytest.mark.parametrize(
    ("nodes", "cores", "workload", "executors"),
    [
        (32, 8, {"data_intensity": 8192 * 1000.0}, 64),  # two per node where remote cores hurt
        (32, 8, {"shuffles_per_minute": 16}, 64),
        (32, 1, {}, 16),  # with at least two cores each
        (32, 8, {"operator_cores": 10}, 5),
        (1, 1, {}, 1),
    ],
)
def test_executors(nodes, cores, workload, executors):
    assert advise_executors(nodes, cores, **workload).executors == executors


def test_keys_bound_shards_and_cores():
    advice = advise_executors(4, 8, key_counts=[50] + [1] * 50)
    assert advice.shards == 12
    assert "with 2 cores the most frequent key" in advice.reasons[-1]
    with pytest.raises(WorkbenchError, match=r"^key_counts has no key with a count above 0\. Count the keys, or leave"):
        advise_executors(4, 8, key_counts=[0, 0])


LOADS, HERE = (12, 9, 7, 4, 3, 2), (0, 0, 0, 1, 1, 1)


def imbalance(loads, assignment, tasks):
    totals = [sum(load for load, owner in zip(loads, assignment, strict=True) if owner == t) for t in range(tasks)]
    return max(totals) / (sum(totals) / tasks)


def test_up_to_a_fifth_above_the_mean_is_left_alone():
    assert rebalance_shards(LOADS, HERE, 2).moves == ((1, 0, 1),)
    assert rebalance_shards((12, 8), (0, 1), 2).moves == ()


def reference(loads, assignment, tasks, threshold):
    """The rounds of section 3.1 in whole numbers: every move of the fullest task is tried."""
    owner, moves, mean = list(assignment), [], sum(loads) / tasks
    while mean:
        totals = [sum(load for load, o in zip(loads, owner, strict=True) if o == t) for t in range(tasks)]
        fullest, emptiest = totals.index(max(totals)), totals.index(min(totals))
        if max(totals) <= threshold * mean:
            break
        tried = []
        for shard, owned in enumerate(owner):
            if owned == fullest:
                after = list(totals)
                after[fullest] -= loads[shard]
                after[emptiest] += loads[shard]
                tried.append((max(after), shard))
        highest, shard = min(tried)
        if highest >= max(totals):
            break
        owner[shard] = emptiest
        moves.append((shard, fullest, emptiest))
    return tuple(owner), tuple(moves)


def test_rounds_are_those_of_a_plain_reference():
    rng = random.Random(2)
    for _ in range(150):
        tasks, shards = rng.randint(1, 6), rng.randint(1, 40)
        loads = [rng.choice((0, 1, 2, 3, 8, 20)) for _ in range(shards)]
        here = [rng.randrange(tasks) for _ in range(shards)]
        threshold = rng.choice((1, 1.25, 1.5))
        plan = rebalance_shards(loads, here, tasks, threshold)
        assert (plan.assignment, plan.moves) == reference(loads, here, tasks, threshold)
        if sum(loads):
            assert plan.imbalance == pytest.approx(imbalance(loads, plan.assignment, tasks))


test_bad_input_is_named = refusals(
    lambda arguments: rebalance_shards(*arguments),
    (((), (), 1), "There are no shards; give the load of at least one"),
    (((1, 2), (0,), 1), "There are 2 shard loads and 1 assigned tasks; give one task per shard"),
    (((1, -2), (0, 0), 1), "The load of shard 1 is -2.0; it must be a finite number of at least 0"),
    (((1, 2), (0, 2), 2), "Shard 1 is assigned to task 2; the tasks are 0 to 1. Reassign the shards of removed"),
    (((1e308,) * 3, (0,) * 3, 3), "The loads of the 3 shards add up to inf; use a larger unit"),
    (((1, 2), (0, 0), 0), "tasks is 0; it must be a whole number of at least 1"),
    (((1, 2), (0, 0), 2, 0.9), "threshold is 0.9; it must be at least 1, because the imbalance is never below 1"),
)
