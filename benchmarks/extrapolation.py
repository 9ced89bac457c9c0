"""Capacities predicted from at most four slots, compared with those of more, measured in the same warm deployment.

    python benchmarks/extrapolation.py [--interval S] [--slot-cpus 0.2|0.05] [nexmark:q1 ... trips trips-hot]

It runs on real Spark. Slots of 0.2 core are measured 1, 2, 4 and 8 at once, slots of 0.05 core 2, 3, 4, 16 and 32, in
turns. Eight are then deployed once more, with as many and with twice as many partitions in turns. Two models
predict them: one is fitted to the budgets of up to four slots, the other to the four slots alone, with 4, 8, 16 and 32
partitions. Drift and other load are common to a round, so the ratio of prediction to measurement does not need a quiet
machine. ``trips`` is a query and data of no benchmark; in ``trips-hot`` one key of a join has 30 % of the rows.
Measurements are kept in .workbench/benchmark; an interrupted benchmark goes on from there.
"""

import argparse
import json
import math
import statistics
import sys
from pathlib import Path

from workbench import units
from workbench.capacity.explore import keeps_state
from workbench.capacity.model import PartsLaw, model_of_form
from workbench.capacity.planning import check_keys
from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.journal import Journal
from workbench.measuring import CapacityEstimator, Configuration, describe, filling_rate, measure, result_of
from workbench.study import find_query
from workbench.testbed import SparkTestbed, WarmTestbed

sys.path.insert(0, str(Path(__file__).parent))

FOLDER = Path(".workbench/benchmark")
QUERIES = ("nexmark:q1", "nexmark:q5", "nexmark:q8", "nexmark:q11", "trips")
SMALL, LARGE = {0.2: (1, 2, 4), 0.05: (2, 3, 4)}, {0.2: (8,), 0.05: (16, 32)}
MEMORY_MB = {0.2: 1024, 0.05: 512}  # of 0.05 core and 512 MB one slot alone has too little heap for Spark
MOST_DIVIDED = 8
DIVIDED = (2, 4, 8)  # partitions for each of the most slots that the model sees
OWN = {"trips": ("trips:fares", None), "trips-hot": ("trips:tariffs", None)}


def query_of(name):
    if name not in OWN:
        return find_query(name)
    import trips

    function, mode = OWN[name]
    return find_query(function, str(trips.write(FOLDER / "trips.parquet")), "picked_up", mode)


def measured(name, interval_s, cpus):
    profile = SlotProfile(cpus, MEMORY_MB[cpus])
    few, many = ([Budget(slots, profile, interval_s) for slots in counts] for counts in (SMALL[cpus], LARGE[cpus]))
    journal, query = Journal(FOLDER / f"extrapolation-{name.replace(':', '-')}.jsonl"), query_of(name)
    estimator, found = CapacityEstimator(tolerance=0.05, most_s=120.0), {}

    def say(event):
        if (text := describe(event)) is not None:
            print(f"    {text}", file=sys.stderr, flush=True)

    with WarmTestbed(SparkTestbed(), (*few, *many)) as warm:
        for budget in (*reversed(many), *reversed(few)):
            guess = next((run.estimate.middle * budget.slots / run.budget.slots for run in found.values()), None)
            asked = Configuration(query, budget, guess=guess, shared=True)
            costs, times = budget == few[-1], DIVIDED if budget == few[-1] else ()
            found[budget] = result_of(
                measure(asked, warm, estimator, journal, costs=costs, many_tasks=times, reuse=True), say
            )
    return [found[budget] for budget in (*few, *many)]


def truths(name, runs):
    """Return what was measured beyond four slots: the slots, their partitions, the records/s.

    With twice as many partitions it is the rate with as many times the ratio of the two, read in turns.
    """
    for run in runs:
        slots, rate = run.budget.slots, run.estimate.middle
        yield slots, slots, rate
        if slots <= MOST_DIVIDED:
            yield slots, 2 * slots, rate * divided(name, run.budget, rate)


def divided(name, budget, rate):
    """Read `budget` with as many and twice as many partitions as slots, in turns; give the ratio of the rates.

    Its state is filled at `rate`, records/s.
    """
    kept = FOLDER / f"divided-{name.replace(':', '-')}-{budget.slots}-{budget.interval_s:g}.json"
    if not kept.exists():
        interval_s, rates = budget.interval_s, {budget.slots: [], 2 * budget.slots: []}
        with SparkTestbed().deploy(query_of(name), budget) as run:
            for partitions in (*rates, *reversed(rates), *rates):
                run.turn(budget, {"source": partitions, "state": partitions})
                run.set_rate(rate)
                run.fill(max(12.0, 3 * interval_s), max(45.0, 6 * interval_s))
                run.set_rate(math.inf)
                run.settle(2 * interval_s)
                rates[partitions].append(filling_rate(run.observe(max(30.0, 4 * interval_s)).batches[1:]))
        kept.write_text(json.dumps(list(rates.values())))
    as_many, twice = (statistics.median(some) for some in json.loads(kept.read_text()))
    return twice / as_many


def model_of(runs):
    """Fit the model to `runs`, one or several, as a study does."""
    return model_of_form("scaling", stateful=keeps_state(runs)).fit(
        [(run.budget.profile.memory_mb, run.budget.slots) for run in runs],
        [run.estimate.middle for run in runs],
        runs,
    )


def predicted(model, memory_mb, slots, partitions, interval_s):
    """Return the median and the ends of the 90 % interval; None where the parts of a batch do not explain the runs."""
    there = [(memory_mb, slots)]
    if partitions == slots:
        (middle,), ((low,), (high,)) = model.predict(there), model.interval(there)
        return middle, low, high
    if not isinstance(model.law_, PartsLaw):
        return None
    parts = model.law_.parts
    (middle,), ((low,), (high,)) = model.predict(there), model.interval(there)
    gain = parts.rate(slots, partitions, interval_s) / parts.rate(slots, slots, interval_s)
    return gain * middle, gain * low, gain * high


def compare(name, interval_s, cpus):
    runs = measured(name, interval_s, cpus)
    few, many = runs[: len(SMALL[cpus])], runs[len(SMALL[cpus]) :]
    models = {"few slots": model_of(few), "4 alone": model_of(few[-1:])}
    memory_mb = few[-1].budget.profile.memory_mb
    print(
        f"{name}, {interval_s:g} s, slots of {cpus:g} core: "
        + ", ".join(f"{units.rate(run.estimate.middle)} on {run.budget.slots}" for run in few),
        flush=True,
    )
    rows = []
    for slots, partitions, found in truths(name, many):
        for source, model in models.items():
            answer = predicted(model, memory_mb, slots, partitions, interval_s)
            if answer is None:
                print(f"  {slots:2} slots, {partitions:2} partitions, {source}: the parts do not explain the runs")
                continue
            middle, low, high = answer
            rows.append((source, middle / found - 1, low <= found <= high, high / low))
            print(
                f"  {slots:2} slots, {partitions:2} partitions, {source:9}: predicted {units.rate(middle)} "
                f"({units.rate(low)} to {units.rate(high)}), measured {units.rate(found)}: {middle / found - 1:+.1%}, "
                f"{'inside' if low <= found <= high else 'OUTSIDE'}",
                flush=True,
            )
    if card := check_keys(few, many[-1].budget.slots):
        print(f"  {card.finding}", flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("queries", nargs="*", default=QUERIES)
    parser.add_argument("--interval", type=float, default=2.0)
    parser.add_argument("--slot-cpus", type=float, default=0.2, choices=sorted(LARGE))
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    rows = [row for name in options.queries for row in compare(name, options.interval, options.slot_cpus)]
    for source in dict.fromkeys(row[0] for row in rows):
        own = [row for row in rows if row[0] == source]
        errors = [abs(error) for _, error, _, _ in own]
        print(
            f"from {source}: {sum(error <= 0.1 for error in errors)} of {len(own)} within 10 %, median error "
            f"{statistics.median(errors):.1%}, {sum(inside for _, _, inside, _ in own)} inside the 90 % interval, "
            f"whose ends differ by a factor of {statistics.median(width for *_, width in own):.2f} (median)"
        )


if __name__ == "__main__":
    try:
        main()
    except WorkbenchError as error:
        sys.exit(str(error))
