"""Plans on the fluid presets against the truth: capacity and slots at the targets of Table IV, intervals, probe time.

    python benchmarks/planning.py [--paper] [--rates-only] [--estimates N] [SEEDS] [QUERY ...]

For each of StreamBed's five queries and each seed: explore the budgets of Table III with at most ten calls of the
optimizer, plan Table IV's rate at each memory, and compare with the engine's steady state, which is independent of all
forms of the model. A call after the corners makes two runs (``--estimates``), in the paper up to two. Table IV needs
5.6 (q8) to 22 (q5) times the most slots measured, as in the paper. Further lines show the error of predictions at 2, 5
and 10 times, and the error that would remain if the model were exact: the error of the runs' mean speed.

``--paper`` explores with the paper's Gaussian process and stop rule; ``--rates-only`` fits rates only.
Prints figures and ratios, asserts nothing.
"""

import argparse
import csv
import itertools
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from query_truths import true_capacity

from workbench.capacity import ConfigurationOptimizer, ResourceExplorer, ScalingModel, Space, allocate, plan
from workbench.capacity.explore import keeps_state
from workbench.capacity.model import MARGIN, least_integer
from workbench.errors import WorkbenchError
from workbench.journal import Journal
from workbench.measuring import LEVEL, SIMPLE_QUERIES, STATEFUL_QUERIES, CapacityEstimator
from workbench.simulation import PRESETS, preset
from workbench.testbed import FluidTestbed

PUBLISHED = Path(__file__).parents[1] / "data" / "published"
MEMORY = Path("/dev/shm")  # noqa: S108 - a journal syncs every line
CALLS = 10
STATEFUL = ("q5", "q8")
BEYOND = (2, 5, 10)


def rows(number, query):
    with (PUBLISHED / f"streambed_table_{number}.csv").open(newline="", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["query"] == query]


def space_of(query, memories):
    """Slots and memory per slot as in Table III: from one slot per operator to the most of the paper's runs."""
    (row,) = rows("iii", query)
    least, most = len(preset(query).modelled), int(row["max_slots"])
    slots = sorted({round(least + share * (most - least)) for share in (0, 0.25, 0.5, 0.75, 1)})
    return Space(tuple(slots), tuple(memories))


def explore(query, memories, seed, asked):
    """Explore once, on a separate testbed."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        optimizer = ConfigurationOptimizer(FluidTestbed(seed=seed), CapacityEstimator(), Journal(f"{folder}/j.jsonl"))
        choice = "improvement" if asked.paper else "edge"
        explorer = ResourceExplorer(
            optimizer,
            space_of(query, memories),
            seed,
            most_calls=CALLS,
            choice=choice,
            estimates=asked.estimates,
        )
        found = explorer.run(preset(query))
    if asked.rates_only:
        stateful = keeps_state(found.measurements)
        return replace(found, model=ScalingModel(stateful=stateful, growth="tasks").fit(found.points, found.rates))
    return found


def minimal_of(found, memory):
    """Run of one task per operator at the nearest memory."""
    minimal = (run for run in found.measurements if set(run.tasks.values()) == {1} and run.estimate.rate)
    return min(minimal, key=lambda run: abs(run.budget.profile.memory_mb - memory))


def judge(query, found, rate, memory):
    """Errors of capacity and slots, whether the interval holds, and its width; None if there is no plan."""
    try:
        made = plan(found, rate, memory_mb=(memory,))
    except WorkbenchError as error:
        print(f"  {query}: {error}")
        return None
    minimal = minimal_of(found, memory)
    capacity = lambda slots: true_capacity(preset(query), memory, allocate(minimal, slots).tasks)  # noqa: E731
    needed = least_integer(lambda slots: capacity(slots) >= MARGIN * rate, len(made.allocation.tasks), 4000)
    true = true_capacity(preset(query), memory, made.allocation.tasks)
    return (
        true / (MARGIN * rate) - 1,
        made.budget.slots / needed - 1 if needed else None,
        made.low <= true <= made.high,
        (made.high - made.low) / made.expected_rate,
    )


def beyond(query, found, memories):
    """Relative errors at a few times the most slots measured, and whether the interval holds, by factor."""
    most = int(found.points[:, 1].max())
    errors = {factor: [] for factor in BEYOND}
    for memory, factor in itertools.product((memories[0], memories[-1]), BEYOND):
        slots = factor * most
        true = true_capacity(preset(query), memory, allocate(minimal_of(found, memory), slots).tasks)
        low, high = found.model.interval([[memory, slots]], LEVEL)
        error = found.model.predict([[memory, slots]])[0] / true - 1
        errors[factor].append((float(error), bool(low[0] <= true <= high[0])))
    return errors


def error_of_mean(query, found):
    """Error of the mean of the runs' speeds: measured / true capacity of each run's own deployment."""
    speeds = [
        np.sqrt(run.estimate.low * run.estimate.high)
        / true_capacity(preset(query), run.budget.profile.memory_mb, dict(run.tasks))
        for run in found.measurements
    ]
    return float(np.mean(speeds)) - 1


def spread(errors):
    sizes = [abs(error) for error in errors if error is not None]
    return f"median {statistics.median(sizes):.3f} worst {max(sizes):.3f}" if sizes else "none"


def report(query, asked):
    begun = time.perf_counter()
    cells = rows("iv", query)
    memories = sorted({int(float(row["memory_gb_per_slot"]) * 1024) for row in cells})
    rate = float(cells[0]["requested_rate_records_per_s"])
    found = [explore(query, memories, seed, asked) for seed in range(asked.seeds)]
    judged = [judge(query, one, rate, memory) for one in found for memory in memories]
    answers = [answer for answer in judged if answer is not None]
    schedule = STATEFUL_QUERIES if query in STATEFUL else SIMPLE_QUERIES
    seconds = [sum(run.estimate.seconds for run in one.measurements) for one in found]
    runs = [len(one.measurements) for one in found]
    (published,) = rows("iii", query)
    print(
        f"{query:4} noise {preset(query).noise:.3f}  plans {len(answers):3} of {len(judged):3}  capacity off by "
        f"{spread(answer[0] for answer in answers)}  slots off by {spread(answer[1] for answer in answers)}  "
        f"90 % interval holds {statistics.mean(answer[2] for answer in answers):.2f}, width mean "
        f"{statistics.mean(answer[3] for answer in answers):.2f}  runs {statistics.mean(runs):.1f}  probe time / "
        f"paper's schedule for as many runs {sum(seconds) / (sum(runs) * schedule.seconds):.2f}, for its own "
        f"{statistics.mean(seconds) / (int(published['estimator_runs']) * schedule.seconds):.2f}"
    )
    far = [beyond(query, one, memories) for one in found]
    for factor in BEYOND:
        some = [pair for one in far for pair in one[factor]]
        print(
            f"       at {factor:2} x the most slots: predicted off by {spread(error for error, _ in some)}  holds "
            f"{statistics.mean(hit for _, hit in some):.2f}"
        )
    print(
        f"       error of the runs alone: {spread(error_of_mean(query, one) for one in found)}   "
        f"({time.perf_counter() - begun:.0f} s)",
        flush=True,
    )
    return answers


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seeds", type=int, nargs="?", default=20)
    parser.add_argument("queries", nargs="*", default=PRESETS)
    parser.add_argument("--paper", action="store_true")
    parser.add_argument("--rates-only", action="store_true")
    parser.add_argument("--estimates", type=int, default=2)
    asked = parser.parse_args()
    answers = [answer for query in asked.queries or PRESETS for answer in report(query, asked)]
    print(
        f"all  plans {len(answers)}  capacity off by {spread(answer[0] for answer in answers)}  90 % interval holds "
        f"{statistics.mean(answer[2] for answer in answers):.2f}"
    )


if __name__ == "__main__":
    main()
