import random

import pytest
from refusals import refusals

from workbench.scaling import assign_cores

KB = 1024.0
NAMES = ("current", "required", "node_cores", "state_bytes", "local_node", "data_intensity")
PROBLEM = dict(zip(NAMES, ([[2, 1], [0, 2]], [2, 4], [4, 3], [90, 60], [0, 1], [0, 0]), strict=True))


@pytest.mark.parametrize("method", ["greedy", "optimal"])
def test_data_intensive_executors_come_home(method):
    # executor 0 moves 1 MB/s per core and has a remote core; executor 1 has to make room
    answer = assign_cores([[1, 2], [1, 0]], [2, 2], [3, 2], [100, 10], [0, 0], [1024 * KB, 1 * KB], method=method)
    assert answer.matrix == ((2, 1), (0, 1))
    assert answer.threshold == 512 * KB
    assert answer.migrated_bytes == pytest.approx(50 + 5)


@pytest.mark.parametrize("method", ["greedy", "optimal"])
def test_threshold_doubles_until_everyone_finds_cores(method):
    # all three want two local cores on a node of four
    intensity = [600 * KB, 1100 * KB, 3000 * KB]
    answer = assign_cores([[2, 1, 1], [1, 0, 0]], [2, 2, 2], [4, 2], [1, 1, 1], [0, 0, 0], intensity, method=method)
    assert answer.threshold == 1024 * KB  # the first one may go away then
    assert answer.matrix[0][1:] == (2, 2)


def test_a_last_core_is_not_taken_from_an_executor_that_needs_it():
    answer = assign_cores([[1, 1], [0, 0]], [2, 1], [2, 1], [5, 50], [0, 0], [900 * KB, 0.0])
    assert answer.threshold == 1024 * KB  # executor 1 holds the only other local core: FAIL, then a remote core
    assert answer.matrix == ((1, 1), (1, 0))


def test_free_cores_come_first_and_ties_take_the_lowest_node():
    assert assign_cores([[0], [0], [0]], [2], [1, 1, 1], [7], [2], [0]).matrix == ((1,), (1,), (0,))
    # node 1 holds the state already: a core there moves less
    assert assign_cores([[0], [2], [0]], [3], [1, 3, 1], [7], [2], [0]).matrix == ((0,), (3,), (0,))


def test_greedy_on_random_instances_is_near_the_optimum():
    rng = random.Random(4)
    costs, best, equal, count = 0.0, 0.0, 0, 120
    for _ in range(count):
        nodes, executors = rng.randint(2, 3), rng.randint(2, 3)
        cores = [rng.randint(2, 4) for _ in range(nodes)]
        current = [[0] * executors for _ in range(nodes)]
        for node, available in enumerate(cores):
            for _ in range(rng.randint(0, available)):
                current[node][rng.randrange(executors)] += 1
        required = [1] * executors
        for _ in range(rng.randint(0, sum(cores) - executors)):
            required[rng.randrange(executors)] += 1
        problem = (
            current,
            required,
            cores,
            [rng.randint(1, 100) for _ in range(executors)],
            [rng.randrange(nodes) for _ in range(executors)],
            [rng.choice((0.0, 1e6, 2e6)) for _ in range(executors)],
        )
        greedy, optimal = assign_cores(*problem), assign_cores(*problem, method="optimal")
        if greedy.threshold == optimal.threshold:
            assert greedy.migrated_bytes >= optimal.migrated_bytes - 1e-6
        costs, best = costs + greedy.migrated_bytes, best + optimal.migrated_bytes
        equal += greedy.migrated_bytes <= optimal.migrated_bytes + 1e-6
    assert costs <= 1.06 * best
    assert equal >= 0.8 * count


test_bad_input_is_named = refusals(
    lambda change: assign_cores(**PROBLEM | change),
    ({"required": [4, 4]}, "executors require 8 cores and the nodes have 7; add nodes, or allocate fewer cores"),
    ({"node_cores": [2, 5]}, "current assignment uses 3 cores of node 0, which has 2; remove missing cores from"),
    ({"local_node": [0, 2]}, "local node of executor 1 is 2; the nodes are 0 to 1"),
    ({"current": [[2, 1]]}, "current has 1 entries for 2 nodes; give one per node, in the same order"),
    ({"current": [[2, 1, 0], [0, 2]]}, r"current\[0\] has 3 entries for 2 executors; give one per executor"),
    ({"method": "fast"}, "method is 'fast'; use one of 'greedy', 'optimal'"),
    ({"threshold": 0}, "threshold is 0; it must be a finite number above 0"),
    ({"state_bytes": [1.0, -1.0]}, "state of executor 1 is -1.0; it must be a finite number of at least 0"),
    ({"current": [[2, 0.5], [0, 2]]}, "cores of executor 1 on node 0 in current is 0.5; it must be a whole number"),
)
