"""Plans on the fluid presets against the truth: capacity and slots at the targets of Table IV, intervals, probe time.

    python benchmarks/planning.py [SEEDS] [QUERY ...]

For each of StreamBed's five queries and each seed: explore the budgets of Table III with at most ten measurements, plan
Table IV's rate at each memory, and compare with the engine's own steady state, which no form of model is part of.
Prints figures and ratios, asserts nothing.
"""

import csv
import statistics
import sys
import tempfile
from pathlib import Path

from workbench.capacity import CapacityEstimator
from workbench.capacity.explorer import ResourceExplorer, Space
from workbench.capacity.model import MARGIN, least_integer
from workbench.capacity.optimizer import ConfigurationOptimizer, allocate
from workbench.capacity.plan import plan
from workbench.capacity.streambed import SIMPLE_QUERIES, STATEFUL_QUERIES
from workbench.errors import WorkbenchError
from workbench.journal import Journal
from workbench.simulation import PRESETS, preset, true_capacity
from workbench.testbed import FluidTestbed

PUBLISHED = Path(__file__).parents[1] / "data" / "published"
MEMORY = Path("/dev/shm")  # noqa: S108 - a journal syncs every line
CALLS = 10
STATEFUL = ("q5", "q8")


def rows(number):
    with (PUBLISHED / f"streambed_table_{number}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def space_of(query, memories):
    """Slots from one per operator to those of Table III's runs, and its memory per slot."""
    least = len(preset(query).modelled)
    most = 48 if query in ("q5", "q8", "q11") else (16 if query == "q1" else 6)
    slots = sorted({round(least + share * (most - least)) for share in (0, 0.25, 0.5, 0.75, 1)})
    return Space(tuple(slots), tuple(memories))


def truth_at(query, minimal, memory):
    """The real capacity with the tasks that BIDS2 deals out, over slots."""
    model = preset(query)
    return lambda slots: true_capacity(model, memory, allocate(minimal, slots).tasks)


def one_study(query, memories, rate, seed):
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        testbed = FluidTestbed(seed=seed)
        optimizer = ConfigurationOptimizer(testbed, CapacityEstimator(), Journal(f"{folder}/journal.jsonl"))
        explorer = ResourceExplorer(optimizer, space_of(query, memories), seed, most_runs=CALLS)
        found = explorer.run(preset(query))
    seconds = sum(run.estimate.seconds for run in found.measurements)
    answers = []
    for memory in memories:
        try:
            made = plan(found, rate, memory_mb=(memory,))
        except WorkbenchError as error:
            print(f"  {query} seed {seed}: {error}")
            continue
        minimal = min(
            (run for run in found.measurements if set(run.tasks.values()) == {1} and run.estimate.rate),
            key=lambda run: abs(run.budget.profile.memory_mb - memory),
        )
        capacity = truth_at(query, minimal, memory)
        needed = least_integer(lambda slots: capacity(slots) >= MARGIN * rate, len(made.allocation.tasks), 4000)  # noqa: B023
        true = true_capacity(preset(query), memory, made.allocation.tasks)
        answers.append(
            (
                true / (MARGIN * rate) - 1,
                made.budget.slots / needed - 1 if needed else None,
                made.low <= true <= made.high,
                (made.high - made.low) / made.expected_rate,
            )
        )
    return answers, seconds, len(found.measurements)


def main(seeds, queries):
    for query in queries:
        cells = [row for row in rows("iv") if row["query"] == query]
        memories = sorted({int(float(row["memory_gb_per_slot"]) * 1024) for row in cells})
        rate = float(cells[0]["requested_rate_records_per_s"])
        results, seconds, calls = [], [], []
        for seed in range(seeds):
            answers, spent, count = one_study(query, memories, rate, seed)
            results += answers
            seconds.append(spent)
            calls.append(count)
        off = [abs(answer[0]) for answer in results]
        slots = [abs(answer[1]) for answer in results if answer[1] is not None]
        schedule = STATEFUL_QUERIES if query in STATEFUL else SIMPLE_QUERIES
        ratio = sum(seconds) / (sum(calls) * schedule.seconds)
        print(
            f"{query:4} noise {preset(query).noise:.3f}  plans {len(results):3}  capacity off by median "
            f"{statistics.median(off):.3f} worst {max(off):.3f}  slots off by median {statistics.median(slots):.3f}  "
            f"90 % interval holds {sum(answer[2] for answer in results) / len(results):.2f}, mean width "
            f"{statistics.mean(answer[3] for answer in results):.2f}  runs {statistics.mean(calls):.1f}  "
            f"probe time / paper's schedule {ratio:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20, sys.argv[2:] or PRESETS)
