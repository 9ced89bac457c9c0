import random

import pytest

from workbench.errors import WorkbenchError
from workbench.scaling import Fleet, WorkerShape
from workbench.scaling._justin import managed_memory_mb
from workbench.scaling._replay import packed

TASK_MANAGERS = Fleet(WorkerShape(cpus=4, memory_mb=2048), task_memory_mb=200)  # Justin, section 5


@pytest.mark.parametrize(
    ("tasks", "levels", "workers"),
    [
        ({"o": 12, "sink": 1}, {"o": 0, "sink": 0}, 4),  # equal tasks fill whole workers
        ({"o": 6, "map": 2}, {"o": 2, "map": None}, 3),  # 832 MB: two to a worker, and a map next to them
        ({}, {}, 0),
    ],
)
def test_tasks_are_packed(tasks, levels, workers):
    managed = {name: managed_memory_mb(level) for name, level in levels.items()}
    assert TASK_MANAGERS.paid(tasks, managed).workers == workers


def one_by_one(tasks, sizes, order):
    """Put each task where least room is left: the number of workers."""
    workers = []
    for name in sorted(tasks, key=lambda name: -order(sizes[name])):
        size = sizes[name]
        for _ in range(tasks[name]):
            fitting = [one for one in workers if one[0] + size[0] <= 1 and one[1] + size[1] <= 1]
            chosen = max(fitting, key=sum, default=None)
            if chosen is None:
                workers.append(chosen := [0.0, 0.0])
            chosen[:] = chosen[0] + size[0], chosen[1] + size[1]
    return len(workers)


def test_as_few_workers_as_when_tasks_are_placed_one_by_one():
    orders = (max, sum, lambda size: size[1], lambda size: size[0])
    chance = random.Random(0)
    for _ in range(100):  # sizes are powers of two, so that sums are exact
        tasks = {name: chance.randint(0, 30) for name in "abcde"}
        sizes = {name: (2.0 ** chance.randint(-5, 0), 2.0 ** chance.randint(-5, 0)) for name in tasks}
        assert packed(tasks, sizes) == min(one_by_one(tasks, sizes, order) for order in orders)


def test_a_task_larger_than_a_worker_is_named():
    with pytest.raises(WorkbenchError, match=r"'o' needs 1 cores and 2,528 MB; a worker has 4 and 2,048\. Choose"):
        TASK_MANAGERS.paid({"o": 1}, {"o": 2328.0})
