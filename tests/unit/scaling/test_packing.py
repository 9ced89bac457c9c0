import random

import pytest

from workbench.errors import WorkbenchError
from workbench.scaling import WorkerShape
from workbench.scaling._justin import managed_memory_mb
from workbench.scaling._replay import TaskDemand, pack_tasks

TASK_MANAGER = WorkerShape(cpus=4, memory_mb=2048)  # Justin, section 5
HEAP_MB = 200


def demand(tasks, level):
    return TaskDemand(tasks, HEAP_MB + managed_memory_mb(level))


@pytest.mark.parametrize(
    ("demands", "packing"),
    [
        ({"o": demand(12, 0), "sink": demand(1, 0)}, [{"o": 4}] * 3 + [{"sink": 1}]),  # equal tasks fill whole workers
        ({"o": demand(6, 2), "map": demand(2, None)}, [{"o": 2, "map": 1}] * 2 + [{"o": 2}]),  # 832 MB: two to a worker
        (  # small tasks go where least room is left
            {"big": TaskDemand(1, 1500), "middle": TaskDemand(1, 1000), "small": TaskDemand(1, 500)},
            [{"big": 1, "small": 1}, {"middle": 1}],
        ),
        ({"o": TaskDemand(0, 1e9)}, []),
        ({}, []),
    ],
)
def test_tasks_are_packed(demands, packing):
    assert pack_tasks(demands, TASK_MANAGER) == packing


def one_by_one(demands, order):
    """Put each task where least room is left: the counts of the workers."""
    workers = []
    for name in sorted(demands, key=lambda name: -order(demands[name])):
        size = demands[name].cpus / 4, demands[name].memory_mb / 2048
        for _ in range(demands[name].tasks):
            fitting = [one for one in workers if one[0] + size[0] <= 1 and one[1] + size[1] <= 1]
            chosen = max(fitting, key=lambda one: one[0] + one[1], default=None)
            if chosen is None:
                workers.append(chosen := [0.0, 0.0])
            chosen[:] = chosen[0] + size[0], chosen[1] + size[1]
    return len(workers)


def test_as_few_workers_as_when_tasks_are_placed_one_by_one():
    orders = (
        lambda one: max(one.cpus / 4, one.memory_mb / 2048),
        lambda one: one.cpus / 4 + one.memory_mb / 2048,
        lambda one: one.memory_mb,
        lambda one: one.cpus,
    )
    chance = random.Random(0)
    for _ in range(100):  # sizes are powers of two, so that sums are exact
        demands = {
            str(n): TaskDemand(chance.randint(0, 30), 2.0 ** chance.randint(6, 11), 2.0 ** chance.randint(-3, 2))
            for n in range(5)
        }
        assert len(pack_tasks(demands, TASK_MANAGER)) == min(one_by_one(demands, order) for order in orders)


def test_a_task_larger_than_a_worker_is_named():
    with pytest.raises(WorkbenchError, match=r"'o' needs 1 cores and 2,528 MB; a worker has 4 and 2,048\. Choose"):
        pack_tasks({"o": TaskDemand(1, 2528)}, TASK_MANAGER)
