"""BIDS2's partitions against as many as slots, on Spark, where tasks cost more than their rows.

    python benchmarks/layouts.py [--slots 12] [--slot-cpus 0.1] [--interval 2] [trips nexmark:q1 nexmark:q11]

A quarter of the slots are measured, with several times as many partitions too, which shows what a task costs. BIDS2
chooses the partitions of all slots by that. Then both layouts take turns in one deployment, each at the maximum rate:
A B B A. Prints the layouts, what BIDS2 promises and what was measured.
"""

import argparse
import math
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from extrapolation import DIVIDED, FOLDER, query_of

from workbench import units
from workbench.capacity.explore import best_layout, settings_of
from workbench.capacity.model import fit_micro_batch
from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.journal import Journal
from workbench.measuring import CapacityEstimator, Configuration, filling_rate, measure, result_of
from workbench.testbed import SparkTestbed, WarmTestbed

MEMORY_MB, OBSERVED_S = 512, 24.0


def compare(name, slots, cpus, interval_s):
    profile, query = SlotProfile(cpus, MEMORY_MB), query_of(name)
    few, many = Budget(slots // 4, profile, interval_s), Budget(slots, profile, interval_s)
    journal = Journal(FOLDER / f"layouts-{name.replace(':', '-')}.jsonl")
    with WarmTestbed(SparkTestbed(), (few, many)) as warm:
        asked = Configuration(query, few, shared=True)
        estimator = CapacityEstimator(tolerance=0.1, most_s=90.0)
        run = result_of(measure(asked, warm, estimator, journal, many_tasks=DIVIDED, reuse=True))
    parts = fit_micro_batch([run])
    begun = time.perf_counter()
    layout = best_layout(parts, many)
    took_s = time.perf_counter() - begun
    chosen = None if layout is None else settings_of(layout, slots)
    print(
        f"{name}: {units.rate(run.estimate.middle)} on {few.slots} slots; BIDS2 on {slots}: {chosen} ({took_s:.3f} s)"
    )
    if chosen is None:
        print("  as many partitions as slots are best", flush=True)
        return
    as_many = {"source": slots, "state": slots}
    rates = {"as many as slots": [], "BIDS2's": []}
    with SparkTestbed().deploy(query, many) as live:
        for which in (*rates, *reversed(rates)):
            live.turn(many, chosen if which == "BIDS2's" else as_many)
            live.set_rate(math.inf)
            live.fill(max(12.0, 3 * interval_s), max(45.0, 6 * interval_s))
            rates[which].append(filling_rate(live.observe(OBSERVED_S).batches[1:]))
    plain, best = (statistics.mean(found) for found in rates.values())
    promised = layout.rate / parts.rate(slots, slots, interval_s)
    shown = "; ".join(f"{which} {', '.join(units.rate(rate) for rate in found)}" for which, found in rates.items())
    print(f"  {shown}: x{best / plain:.2f} (promised x{promised:.2f})", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("queries", nargs="*", default=("trips", "nexmark:q1", "nexmark:q11"))
    parser.add_argument("--slots", type=int, default=12)
    parser.add_argument("--slot-cpus", type=float, default=0.1)
    parser.add_argument("--interval", type=float, default=2.0)
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in options.queries:
        compare(name, options.slots, options.slot_cpus, options.interval)


if __name__ == "__main__":
    try:
        main()
    except WorkbenchError as error:
        sys.exit(str(error))
