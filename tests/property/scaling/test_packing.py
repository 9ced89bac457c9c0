"""Packing against an exact search over all ways to fill workers."""

import random
from functools import cache

from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from workbench.scaling._replay import TaskDemand, WorkerShape, pack_tasks

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


@examples(100)
@given(operators=DEMANDS)
def test_every_task_fits_and_few_workers_are_used(operators):
    shape = (10, 10)
    demands = {f"o{i}": TaskDemand(tasks, memory, cpus) for i, (tasks, cpus, memory) in enumerate(operators)}
    packing = pack_tasks(demands, WorkerShape(*shape))
    assert packing == pack_tasks(demands, WorkerShape(*shape))
    for name, demand in demands.items():
        assert sum(worker.get(name, 0) for worker in packing) == demand.tasks
    for worker in packing:
        assert sum(tasks * demands[name].cpus for name, tasks in worker.items()) <= shape[0]
        assert sum(tasks * demands[name].memory_mb for name, tasks in worker.items()) <= shape[1]
    fewest = fewest_workers([t for t, _, _ in operators], [(c, m) for _, c, m in operators], shape)
    assert fewest <= len(packing)


def test_one_worker_too_many_is_rare():
    rng, surplus, count = random.Random(0), [], 200
    for _ in range(count):
        operators = [(rng.randint(1, 4), rng.randint(1, 10), rng.randint(1, 10)) for _ in range(3)]
        demands = {f"o{i}": TaskDemand(tasks, memory, cpus) for i, (tasks, cpus, memory) in enumerate(operators)}
        fewest = fewest_workers([t for t, _, _ in operators], [(c, m) for _, c, m in operators], (10, 10))
        surplus.append(len(pack_tasks(demands, WorkerShape(10, 10))) - fewest)
    assert sum(surplus) <= 0.06 * count
