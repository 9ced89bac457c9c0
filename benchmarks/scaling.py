"""Speed and quality of the Elasticutor algorithms, on seeded instances of the paper's sizes.

Run ``python benchmarks/scaling.py``. Prints, medians of several runs:

- milliseconds of the scheduler (core allocation, core assignment, both) for 12 operators on 8, 16 and 32 nodes of
  8 cores when about a tenth of the cores move, and the paper's own times (Table 3);
- migrated bytes of the greedy assignment and of the optimum, and the seconds of both;
- milliseconds of rebalancing 8192 shards after their loads were shuffled.

Asserts nothing.
"""

import random
import statistics
import time
from functools import partial

from workbench.scaling import allocate_cores, assign_cores, rebalance_shards

OPERATORS = 12
NODE_CORES = 8
PAPER_MS = {8: 4.1, 16: 5.2, 32: 5.7}  # Table 3
REPEATS = 15


def timed(run, repeats=REPEATS):
    """The result and the median seconds of `run`, after one to warm up."""
    result = run()
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return result, statistics.median(taken)


def shares(rng, count, total, least):
    """`total` whole units over `count` places, at least `least` each."""
    values = [least] * count
    for _ in range(total - least * count):
        values[rng.randrange(count)] += 1
    return values


def instance(nodes, executors, seed):
    """A cluster nearly full of executors, and new needs for which about a tenth of the cores must move."""
    rng = random.Random(seed)
    total = nodes * NODE_CORES
    held = shares(rng, executors, total - total // 20, 1)
    local = [j % nodes for j in range(executors)]
    free = [NODE_CORES] * nodes
    current = [[0] * executors for _ in range(nodes)]
    for j, cores in enumerate(held):
        for step in range(nodes):
            node = (local[j] + step) % nodes
            current[node][j] = min(cores - sum(row[j] for row in current), free[node])
            free[node] -= current[node][j]
    required = list(held)
    for _ in range(total // 10):
        loser = rng.choice([j for j in range(executors) if required[j] > 1])
        required[loser] -= 1
        required[rng.randrange(executors)] += 1
    return {
        "current": current,
        "required": required,
        "node_cores": [NODE_CORES] * nodes,
        "state_bytes": [rng.choice((10e6, 200e6, 400e6)) / executors * OPERATORS for _ in range(executors)],
        "local_node": local,
        "data_intensity": [rng.choice((50e3, 200e3, 700e3)) for _ in range(executors)],
    }


def scheduler(nodes, executors, problem):
    """Allocation for the needs of `problem`, then its assignment, each timed."""
    service = [1000.0] * executors
    arrivals = [(cores - 0.5) * 1000.0 for cores in problem["required"]]
    # a target that takes every core
    target = 1.01 * OPERATORS / service[0]
    allocate = partial(allocate_cores, arrivals, service, sum(arrivals) / OPERATORS, target, nodes * NODE_CORES)
    (allocated, allocation_s), (_, assignment_s) = timed(allocate), timed(partial(assign_cores, **problem))
    return allocated, 1e3 * allocation_s, 1e3 * assignment_s


def main():
    print(f"Scheduling time, {OPERATORS} operators, {NODE_CORES} cores a node, a tenth of the cores moved")
    print("nodes  executors  allocation ms  assignment ms  together ms  paper ms")
    for nodes in (8, 16, 32):
        for executors in (OPERATORS, OPERATORS * nodes // 2):
            problem = instance(nodes, executors, seed=nodes)
            _, allocation, assignment = scheduler(nodes, executors, problem)
            print(
                f"{nodes:5}  {executors:9}  {allocation:13.3f}  {assignment:13.3f}  {allocation + assignment:11.3f}"
                f"  {PAPER_MS[nodes]:8}"
            )

    print("\nGreedy against the optimum, data-intensity threshold off")
    print("nodes  executors  greedy MB  optimum MB  ratio  greedy ms  optimum ms  optimum/greedy time")
    for nodes, executors in ((2, 4), (4, 8), (8, 12), (8, 16)):
        greedy = optimal = greedy_s = optimal_s = 0.0
        for seed in range(3):
            problem = instance(nodes, executors, seed) | {"threshold": 1e12}
            answer, seconds = timed(partial(assign_cores, **problem), 3)
            greedy, greedy_s = greedy + answer.migrated_bytes, greedy_s + seconds
            start = time.perf_counter()
            best = assign_cores(**problem, method="optimal", timeout_s=8.0)
            optimal, optimal_s = optimal + best.migrated_bytes, optimal_s + time.perf_counter() - start
            if best.bound < best.migrated_bytes * (1 - 1e-6) - 1:
                print(f"       seed {seed} not proven: {best.migrated_bytes:.4g} bytes, bound {best.bound:.4g}")
        print(
            f"{nodes:5}  {executors:9}  {greedy / 1e6:9.3f}  {optimal / 1e6:10.3f}  {greedy / optimal:5.3f}"
            f"  {1e3 * greedy_s / 3:9.3f}  {1e3 * optimal_s / 3:10.1f}  {optimal_s / greedy_s:8.0f}"
        )

    print("\nRebalancing 8192 shards after a shuffle of zipf(0.5) loads")
    print("tasks  moves  imbalance before  after  ms")
    for tasks in (8, 32, 256):
        rng = random.Random(1)
        loads = [(rank + 1) ** -0.5 for rank in range(8192)]
        rng.shuffle(loads)
        here = rebalance_shards(loads, [shard % tasks for shard in range(8192)], tasks, 1.0).assignment
        rng.shuffle(loads)
        before = rebalance_shards(loads, here, tasks, 1e9).imbalance
        for limit in (1.2, 1.02):
            plan, seconds = timed(partial(rebalance_shards, loads, here, tasks, limit))
            print(f"{tasks:5}  {len(plan.moves):5}  {before:16.3f}  {plan.imbalance:5.3f}  {1e3 * seconds:.3f}")


if __name__ == "__main__":
    main()
