"""A standalone cluster of two workers compared with the same budgets on this machine: the rates, and their ratio.

    python benchmarks/clusters.py [nexmark:q1 nexmark:q5]

The cluster comes from the PySpark package: a master and two workers of one core each, on loopback addresses of their
own. Each query is measured on one executor and on two, of one core each, and on one and two whole cores of this machine
(budgets that leave the driver no core are left out). Prints figures, asserts nothing. A figure of a cluster rests on
cores that are counted and not limited: on a machine with few cores, the driver shares them with the executors.
"""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from standalone_cluster import standalone

from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.journal import Journal
from workbench.measuring import CapacityEstimator, Configuration, measure, result_of
from workbench.study import find_query
from workbench.testbed import SparkTestbed
from workbench.testbed.spark import Cluster

SLOTS, PROFILE, INTERVAL_S = (1, 2), SlotProfile(1, 1024), 2.0
WAIT_S = 300.0


def rate(name, slots, testbed, journal):
    """Middle of the bracket, records/s; None with the reason printed where it cannot be measured."""
    budget = Budget(slots, PROFILE, INTERVAL_S)
    try:
        testbed.check(budget)
        found = result_of(
            measure(Configuration(find_query(name), budget), testbed, CapacityEstimator(0.1), journal, costs=False)
        )
    except WorkbenchError as error:
        print(f"  {name} on {slots}: {error}", flush=True)
        return None
    return found.estimate.middle


def main(queries):
    with tempfile.TemporaryDirectory() as folder, standalone(folder) as running:
        there = SparkTestbed(
            cluster=Cluster(running.master, f"{Path(folder).as_uri()}/checkpoints", allocation_s=WAIT_S)
        )
        here = SparkTestbed(slot_cpus="cores")
        for name in queries:
            for slots in SLOTS:
                journal = Journal(Path(folder) / "journal.jsonl")
                cluster, desk = (rate(name, slots, testbed, journal) for testbed in (there, here))
                ratio = f"{cluster / desk:.2f}" if cluster and desk else "-"
                rates = " and ".join("-" if one is None else f"{one:,.0f}" for one in (cluster, desk))
                print(f"{name} on {slots} slots: {rates} records/s on the cluster and here, ratio {ratio}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or ["nexmark:q1", "nexmark:q5"])
