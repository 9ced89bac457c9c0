"""A capacity predicted from at most four slots, compared with that of eight, measured in the same warm deployment.

    python benchmarks/extrapolation.py [--interval S] [nexmark:q1 ... trips trips-hot]

It runs on real Spark with slots of 0.2 core: 1, 2, 4 and 8 slots take turns. The model is fitted to the first three
only. Drift and other load are common to a round, so the ratio of prediction to measurement does not need a quiet
machine. ``trips`` is a query and data of no benchmark; in ``trips-hot`` one key of a join has 30 % of the rows.
Measurements are kept in .workbench/benchmark; an interrupted benchmark goes on from there.
"""

import argparse
import sys
from pathlib import Path

from workbench.capacity import plan
from workbench.capacity.explore import conclude
from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.journal import Journal
from workbench.measuring import CapacityEstimator, Rounds, Together, measure_together, narrate, result_of
from workbench.study import find_query
from workbench.testbed import SparkTestbed
from workbench.views import units

sys.path.insert(0, str(Path(__file__).parent))

FOLDER = Path(".workbench/benchmark")
QUERIES = ("nexmark:q1", "nexmark:q5", "nexmark:q8", "nexmark:q11", "trips")
SLOTS = (1, 2, 4, 8)
PROFILE = SlotProfile(0.2, 1024)
OWN = {"trips": ("trips:fares", None), "trips-hot": ("trips:tariffs", None)}


def query_of(name):
    if name not in OWN:
        return find_query(name)
    import trips

    function, mode = OWN[name]
    return find_query(function, str(trips.write(FOLDER / "trips.parquet")), "picked_up", mode)


def measured(name, interval_s):
    budgets = tuple(Budget(slots, PROFILE, interval_s) for slots in SLOTS)
    journal = Journal(FOLDER / f"extrapolation-{name.replace(':', '-')}.jsonl")
    together = Together(query_of(name), budgets, Rounds(least=2, most=3))
    say = narrate(lambda text: print(f"    {text}", file=sys.stderr, flush=True))
    return result_of(
        measure_together(together, SparkTestbed(), CapacityEstimator(patience_s=20), journal, costs=False), say
    )


def rates(low, high):
    return f"{units.rate(low)} to {units.rate(high)}"


def compare(name, interval_s):
    runs = measured(name, interval_s)
    few, most = runs[:-1], runs[-1]
    explored = conclude(few, "three budgets", choice="edge")
    model = explored.model
    there = [(PROFILE.memory_mb, most.budget.slots)]
    (predicted,), ((low,), (high,)) = model.predict(there), model.interval(there)
    found = most.estimate.middle
    inside = low <= found <= high
    print(
        f"{name} at {interval_s:g} s: {', '.join(units.rate(run.estimate.middle) for run in few)} on "
        f"{', '.join(str(slots) for slots in SLOTS[:-1])} slots; on {SLOTS[-1]} predicted {units.rate(predicted)} "
        f"({rates(low, high)}), measured {units.rate(found)}: {predicted / found - 1:+.1%}, "
        f"{'inside' if inside else 'OUTSIDE'}",
        flush=True,
    )
    cards = plan(explored, found, memory_mb=[PROFILE.memory_mb], margin=1.0).cards
    for card in cards:
        if card.concern == "hot key":
            print(f"  {card.finding}", flush=True)
    return abs(predicted / found - 1), inside, high / low


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("queries", nargs="*", default=QUERIES)
    parser.add_argument("--interval", type=float, default=2.0)
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    rows = [compare(name, options.interval) for name in options.queries]
    errors, inside, widths = zip(*rows, strict=True)
    print(
        f"{sum(error <= 0.1 for error in errors)} of {len(rows)} within 10 %, {sum(inside)} inside the 90 % interval, "
        f"whose ends differ by a factor of {sorted(widths)[len(widths) // 2]:.2f} (median)"
    )


if __name__ == "__main__":
    try:
        main()
    except WorkbenchError as error:
        sys.exit(str(error))
