"""StreamBed's own check (section VIII, Figures 9 and 10): budgets at 100 and 150 % of their estimated MST.

    python benchmarks/streambed_check.py [QUERY ...]

Sixteen budgets per query on the fluid testbed, laid out by BIDS2: what share of the offered rate is achieved, and how
busy the operators are at 100 %. Prints figures, asserts nothing.
"""

import statistics
import sys
import tempfile
from pathlib import Path

from workbench.capacity import CapacityEstimator
from workbench.capacity.explorer import Space
from workbench.capacity.optimizer import ConfigurationOptimizer
from workbench.journal import Journal
from workbench.simulation import PRESETS, preset
from workbench.testbed import FluidTestbed

MEMORY = Path("/dev/shm")  # noqa: S108 - a journal syncs every line
MEMORIES = (512, 1024, 2048, 4096)


def main(queries):
    for query in queries:
        least = len(preset(query).modelled)
        slots = tuple(least + extra for extra in (0, 4, 12, 24))
        space = Space(slots, MEMORIES)
        testbed = FluidTestbed()
        achieved = {1.0: [], 1.5: []}
        busy = {}
        with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
            optimizer = ConfigurationOptimizer(testbed, CapacityEstimator(), Journal(f"{folder}/journal.jsonl"))
            for memory in MEMORIES:
                for count in slots:
                    measured = optimizer.measure(preset(query), space.budget(count, memory))
                    with testbed.deploy(preset(query), measured.budget, measured.tasks, repeat=0) as run:
                        run.set_rate(float("inf"))
                        run.settle(120)  # code compiled, caches filled
                        for factor, shares in achieved.items():
                            run.set_rate(factor * measured.estimate.rate)
                            run.settle(30)
                            seen = run.observe(120)
                            shares.append(seen.consumed_rate / seen.commanded_rate)
                            if factor == 1.0:
                                for operator in seen.operators:
                                    busy.setdefault(operator.operator, []).append(operator.busyness)
        for factor, shares in achieved.items():
            print(
                f"{query:4} at {factor:.0%}: achieved / offered {min(shares):.3f} to {max(shares):.3f}, "
                f"median {statistics.median(shares):.3f} ({len(shares)} budgets)"
            )
        for name, shares in busy.items():
            low, middle, high = statistics.quantiles(shares, n=4)
            print(f"       busyness of {name:16} quartiles {low:.2f} {middle:.2f} {high:.2f}")


if __name__ == "__main__":
    main(sys.argv[1:] or PRESETS)
