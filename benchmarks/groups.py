"""Group allocation (CIKM '14): speed of both algorithms in one run, quality against the optimum, the paper's figures.

Run ``python benchmarks/groups.py [graphs]``. Prints

- seconds per allocation, and allocations per second, of top-down and task-level for four groups of 100 tasks
  (section 7.2), and their ratio;
- the share of the optimum each algorithm reaches on random graphs (section 7.3), and microseconds per graph;
- gains for Figures 2, 4(a), 4(b), 8 and 9. The jobs of 8 and 9 have the published topologies and total traffic;
  only the figures show how it divides among the edges, so the division here is ours and only shapes compare.

Asserts nothing.
"""

import random
import statistics
import sys
import time
from pathlib import Path

from group_jobs import CAPACITY, random_job
from reallocation import reallocate

from workbench.placement import Job, best_allocation, naive, task_level, top_down

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from group_optimum import optimal_allocation

SEED = 2014
ALGORITHMS = {
    "naive": naive,
    "TL, communication, row": lambda job, capacity: task_level(job, capacity, "imc"),
    "TL, communication, diagonal": lambda job, capacity: task_level(job, capacity, "imc", "diagonal"),
    "TL, significance, row": task_level,
    "TD, communication": lambda job, capacity: top_down(job, capacity, "imc"),
    "TD, significance": top_down,
    "best_allocation": best_allocation,
    "optimum": optimal_allocation,
}
PAPER = {"TL, communication, row": 85.9, "TD, significance": 93.1}


def seconds(run, repeats):
    """Median seconds of `run`, after one to warm up."""
    run()
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def throughput():
    job = Job((100,) * 4, (200,) * 4, ((0, 1, 10.2), (1, 2, 10.1), (2, 3, 10.0)))
    capacity = (100,) * 10
    by_group = seconds(lambda: top_down(job, capacity), 100)
    by_task = seconds(lambda: task_level(job, capacity, "imc"), 9)
    better = seconds(lambda: best_allocation(job, capacity), 9)
    print("Four groups of 100 tasks (section 7.2)")
    print(f"  top-down        {1e3 * by_group:9.3f} ms  {1 / by_group:9.0f}/s   (paper: 264/s on its machine)")
    print(f"  task-level      {1e3 * by_task:9.3f} ms  {1 / by_task:9.0f}/s")
    print(f"  best_allocation {1e3 * better:9.3f} ms  {1 / better:9.0f}/s")
    print(f"  task-level / top-down: {by_task / by_group:.0f} (paper: two orders of magnitude)")


def quality(graphs):
    rng = random.Random(SEED)
    jobs = [random_job(rng) for _ in range(graphs)]
    best_allocation(jobs[0], CAPACITY)  # compiled before it is timed
    totals = {}
    print(f"\n{graphs} random graphs of section 7.3, seed {SEED}")
    for name, allocate in reversed(ALGORITHMS.items()):
        start = time.perf_counter()
        answers = [allocate(job, CAPACITY) for job in jobs]
        per_graph = (time.perf_counter() - start) / graphs
        totals[name] = sum(answer.gain for answer in answers)
        share = 100 * totals[name] / totals["optimum"]
        paper = f"  (paper: {PAPER[name]} %)" if name in PAPER else ""
        print(f"  {name:28} {share:7.2f} % of the optimum  {1e6 * per_graph:7.0f} us{paper}")


def figures():
    print("\nFigure 2: links of the first pair collocated")
    job = Job((10, 20, 10, 10), (40,) * 4, ((0, 1, 10), (1, 2, 9.9), (2, 3, 1)))
    for name in ("TD, significance", "TL, communication, diagonal", "TL, communication, row"):
        counts = ALGORITHMS[name](job, (40,) * 4).counts
        print(f"  {name:28} {sum(a * b for a, b in zip(*counts[:2], strict=True)):4}")

    print("\nFigure 4(a): gain of TL while the second edge shrinks from 200 to 100 (first edge: 100)")
    shrinking = range(200, 90, -20)
    for priority in ("imc", "rs"):
        jobs = [Job((10, 10, 10), (100, 100, 400), ((0, 1, 100), (1, 2, c))) for c in shrinking]
        for order in ("row", "diagonal"):
            gains = [task_level(one, (100,) * 8, priority, order).gain for one in jobs]
            print(f"  {priority:4} {order:9}" + "".join(f"{gain:8.2f}" for gain in gains))

    print("\nFigure 4(b): gain with 10 and 10 f tasks, f = 1 to 7")
    for name in ("TD, significance", "TL, communication, row", "TL, communication, diagonal"):
        jobs = [Job((10, 10 * f), (200, 200), ((0, 1, 100),)) for f in range(1, 8)]
        print(f"  {name:28}" + "".join(f"{ALGORITHMS[name](one, (80,) * 6).gain:8.2f}" for one in jobs))


def round_robin(job, nodes):
    """Assign tasks in turn, as Storm does by default."""
    counts, node = [], 0
    for size in job.sizes:
        row = [0] * nodes
        for _ in range(size):
            row[node % nodes] += 1
            node += 1
        counts.append(row)
    return counts


def feature_breakdown():
    """Bargain detection: trades -> VWAP -> join <- quotes, join -> filter -> result; 790 MB/s in total."""
    sizes, costs = (8, 12, 16, 24, 8, 1), (160, 240, 640, 720, 80, 10)
    job = Job(sizes, costs, ((0, 2, 190), (2, 3, 180), (1, 3, 340), (3, 4, 60), (4, 5, 20)))
    features = {
        "Storm": lambda capacity: job.gain(round_robin(job, len(capacity))),
        "TL (IMC)": lambda capacity: gain(task_level(job, capacity, "imc")),
        "TD-IMC": lambda capacity: gain(top_down(job, capacity, "imc")),
        "TD-RS": lambda capacity: gain(top_down(job, capacity)),
        "best_allocation": lambda capacity: gain(best_allocation(job, capacity)),
    }

    def gain(found):
        return float("nan") if found.unplaced else found.gain

    nodes, capacities = 12, (160, 180, 200, 240, 280, 320, 400, 500, 600, 800)
    print(f"\nFigure 8: gain, MB/s of 790, on {nodes} nodes of growing capacity (paper: TD-IMC about TL, TD-RS above;")
    print("  TD up to 89 % above Storm, up to 31 % above TL; nan: tasks left over)")
    print(f"  {'capacity, %':16}" + "".join(f"{capacity:8}" for capacity in capacities) + "     all")
    for name, allocate in features.items():
        gains = [allocate((capacity,) * nodes) for capacity in capacities]
        total = sum(gain for gain in gains if gain == gain)  # noqa: PLR0124 - nan is not itself
        print(f"  {name:16}" + "".join(f"{gain:8.1f}" for gain in gains) + f"{total:8.0f}")


def varying_rate():
    print("\nFigure 9: gain, MB/s, over a varying input rate (share of the peak)")
    peak = Job((8, 16, 8, 1), (600, 800, 300, 40), ((0, 1, 100), (1, 2, 40), (2, 3, 3)))
    capacity = (400,) * 6
    fixed, dealt = top_down(peak, capacity).counts, round_robin(peak, len(capacity))
    current = fixed
    print("  rate   TD with reconfiguration  moved tasks  TD at the peak  round-robin")
    for rate in (0.6, 0.8, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2, 0.2, 0.5):
        job = peak.scaled(rate)
        change = reallocate(job, capacity, current)
        current = change.allocation.counts
        print(
            f"  {rate:4}   {change.allocation.gain:23.1f}  {change.moved:11}  {job.gain(fixed):14.1f}"
            f"  {job.gain(dealt):11.1f}"
        )


def main():
    throughput()
    quality(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
    figures()
    feature_breakdown()
    varying_rate()


if __name__ == "__main__":
    main()
