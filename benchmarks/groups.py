"""Group allocation (CIKM '14): speed of both algorithms in one run, and quality against the optimum.

Run ``python benchmarks/groups.py [graphs]``. Prints

- seconds per allocation, and allocations per second, of top-down and task-level for four groups of 100 tasks
  (section 7.2), and their ratio;
- the share of the optimum each algorithm reaches on random graphs (section 7.3), and microseconds per graph.

The paper's figures are in ``workbench report papers``. Asserts nothing.
"""

import statistics
import sys
import time

from workbench.papers import four_groups, optimal_allocation, random_jobs
from workbench.placement import best_allocation, naive, task_level, top_down

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
    job, capacity = four_groups()
    by_group = seconds(lambda: top_down(job, capacity), 100)
    by_task = seconds(lambda: task_level(job, capacity, "imc"), 9)
    better = seconds(lambda: best_allocation(job, capacity), 9)
    print("Four groups of 100 tasks (section 7.2)")
    print(f"  top-down        {1e3 * by_group:9.3f} ms  {1 / by_group:9.0f}/s   (paper: 264/s on its machine)")
    print(f"  task-level      {1e3 * by_task:9.3f} ms  {1 / by_task:9.0f}/s")
    print(f"  best_allocation {1e3 * better:9.3f} ms  {1 / better:9.0f}/s")
    print(f"  task-level / top-down: {by_task / by_group:.0f} (paper: two orders of magnitude)")


def quality(graphs):
    jobs, capacity = random_jobs(graphs)
    best_allocation(jobs[0], capacity)  # compiled before it is timed
    totals = {}
    print(f"\n{graphs} random graphs of section 7.3")
    for name, allocate in reversed(ALGORITHMS.items()):
        start = time.perf_counter()
        answers = [allocate(job, capacity) for job in jobs]
        per_graph = (time.perf_counter() - start) / graphs
        totals[name] = sum(answer.gain for answer in answers)
        share = 100 * totals[name] / totals["optimum"]
        paper = f"  (paper: {PAPER[name]} %)" if name in PAPER else ""
        print(f"  {name:28} {share:7.2f} % of the optimum  {1e6 * per_graph:7.0f} us{paper}")


def main():
    throughput()
    quality(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)


if __name__ == "__main__":
    main()
