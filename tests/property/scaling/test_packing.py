"""Packing against an exact search over all ways to fill workers."""

import random
from functools import cache

from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from workbench.scaling._replay import packed

DEMANDS = st.lists(st.tuples(st.integers(0, 4), st.integers(1, 10), st.integers(1, 10)), min_size=1, max_size=3)


def fewest_workers(counts, sizes, shape):
    """Over multisets: empty one worker at a time with every load that fits."""

    def loads(left, cpus, memory):
        if not left:
            yield ()
            return
        for number in range(left[0] + 1):
            used = (number * sizes[-len(left)][0], number * sizes[-len(left)][1])
            if used[0] > cpus or used[1] > memory:
                break
            for rest in loads(left[1:], cpus - used[0], memory - used[1]):
                yield (number, *rest)

    @cache
    def fewest(left):
        if not any(left):
            return 0
        return 1 + min(
            fewest(tuple(have - taken for have, taken in zip(left, load, strict=True)))
            for load in loads(left, *shape)
            if any(load)
        )

    return fewest(tuple(counts))


def both(operators):
    """Workers of ten cores and ten MB, by the packing and at least."""
    tasks = {f"o{i}": count for i, (count, _, _) in enumerate(operators)}
    sizes = {f"o{i}": (cpus / 10, memory / 10) for i, (_, cpus, memory) in enumerate(operators)}
    fewest = fewest_workers([t for t, _, _ in operators], [(c, m) for _, c, m in operators], (10, 10))
    return packed(tasks, sizes), fewest


@examples(100)
@given(operators=DEMANDS)
def test_never_fewer_workers_than_all_tasks_need(operators):
    workers, fewest = both(operators)
    assert fewest <= workers


def test_one_worker_too_many_is_rare():
    rng, surplus, count = random.Random(0), [], 200
    for _ in range(count):
        workers, fewest = both([(rng.randint(1, 4), rng.randint(1, 10), rng.randint(1, 10)) for _ in range(3)])
        surplus.append(workers - fewest)
    assert sum(surplus) <= 0.06 * count
