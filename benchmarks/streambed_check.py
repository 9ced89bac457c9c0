"""StreamBed's own check (section VIII, Figures 9 and 10): budgets at 100 and 150 % of their estimated MST.

    python benchmarks/streambed_check.py [q1 q2 q5 q8 q11]
    python benchmarks/streambed_check.py nexmark:q1 [BUDGETS]

Sixteen budgets per query: the share of the offered rate that is achieved, and the operators' busyness at 100 %. BIDS2
lays out the fluid presets, and each runs on a separate deployment; a query with a workload's name is measured on
real Spark, where each budget takes about four minutes and the two loads follow the estimate on its deployment. Prints
figures, asserts nothing.
"""

import itertools
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from streambed_runs import FACTORS, checked, loads

from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.measuring import CapacityEstimator
from workbench.simulation import PRESETS
from workbench.study import find_query
from workbench.testbed import SparkTestbed

SPARK_SLOTS, SPARK_MEMORIES = (1, 2, 3, 4), (1024, 1280, 1536, 2048)  # one smaller slot has no room for Spark's heap


def spark_budgets():
    """Sixteen budgets of slots of a fifth of a core."""
    return [
        Budget(count, SlotProfile(0.2, memory), 2.0) for memory, count in itertools.product(SPARK_MEMORIES, SPARK_SLOTS)
    ]


def spark(query, most):
    """Both loads of up to sixteen budgets of a query on Spark, printed as they finish."""
    testbed = SparkTestbed(slot_cpus="auto")
    for budget in spark_budgets()[:most]:
        named = f"{budget.slots} slots of {budget.profile.memory_mb} MiB"
        with testbed.deploy(find_query(query), budget) as run:
            estimate = CapacityEstimator(0.05).estimate(run)
            if estimate.rate is None:
                print(f"{named}: nothing was sustained", flush=True)
                continue
            seen = loads(run, estimate.rate, 10, 20)
        shares = ", ".join(f"{one.consumed_rate / one.commanded_rate:.3f} at {at:.0%}" for at, one in seen.items())
        print(f"{named}, {estimate.rate:,.0f} records/s: {shares}", flush=True)
        yield seen


def main(queries, most=16):
    for query in queries:
        seen = [one for *_, one in checked(query)] if query in PRESETS else list(spark(query, most))
        for factor in FACTORS:
            shares = [one[factor].consumed_rate / one[factor].commanded_rate for one in seen]
            print(
                f"{query:4} at {factor:.0%}: achieved / offered {min(shares):.3f} to {max(shares):.3f}, "
                f"median {statistics.median(shares):.3f} ({len(shares)} budgets)"
            )
        busy = {}
        for one in seen:
            for operator in one[1.0].operators:
                busy.setdefault(operator.operator, []).append(operator.busyness)
        for name, shares in busy.items():
            low, middle, high = statistics.quantiles(shares, n=4)
            print(f"       busyness of {name:16} quartiles {low:.2f} {middle:.2f} {high:.2f}")


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    try:
        main([word for word in sys.argv[1:] if not word.isdigit()] or PRESETS, *numbers)
    except WorkbenchError as error:
        sys.exit(str(error))
