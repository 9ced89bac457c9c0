"""A standalone cluster of two workers compared with the same budgets on this machine, and what a slow worker does.

    python benchmarks/clusters.py [nexmark:q1 nexmark:q5] [--cpus .4] [--whole] [--together] [--forks]

The cluster comes from the PySpark package: a master and two workers of one counted core each, in network namespaces of
their own. Each worker is limited to ``--cpus`` of a core once the query is deployed, its code warm, as the slots here
are: the compiler stays outside, so that both sides have the same cores, and the driver has its own. Each query is
measured on one executor and on two, and on one and two slots here; the sides take turns, with checkpoints in memory.
Hadoop's local file system starts a process for every file of a checkpoint, which a shared store does not and the slots
here do not, so executors there write with the same file system without forks; ``--forks`` leaves them Hadoop's. Last,
one worker is slowed to half while the query runs. Prints figures, asserts nothing. ``--whole`` leaves the workers whole
cores, which the driver then shares, as it does wherever a cluster only counts. ``--together`` measures two slots of one
executor, as the slots here are, instead of two executors: what is left of the difference is then not the layout's.
"""

import argparse
import math
import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from pyspark.java_gateway import launch_gateway
from standalone_cluster import standalone

from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.journal import Journal
from workbench.measuring import CapacityEstimator, Configuration, Deployed, measure, result_of
from workbench.metrics import slow_executors
from workbench.study import find_query
from workbench.testbed import SparkTestbed
from workbench.testbed.spark import WITHOUT_FORKS, Cluster, compile_into, find_java

SLOTS, INTERVAL_S, MEMORY_MB = (1, 2), 2.0, 1024
WAIT_S = 300.0
MEMORY = Path("/dev/shm")  # noqa: S108 - Linux's shared memory, where deployments here have their checkpoints


def without_forks(folder):
    """Let executors of clusters write files without forks, by settings like those in ``spark-defaults.conf``."""
    os.environ["JAVA_HOME"] = find_java(folder).home
    gateway = launch_gateway()
    compile_into(folder / "classes", gateway.jvm)
    gateway.shutdown()
    settings = {
        **WITHOUT_FORKS,
        "spark.driver.extraClassPath": folder / "classes",
        "spark.executor.extraClassPath": folder / "classes",
    }
    text = "".join(f"{key} {value}\n" for key, value in settings.items())
    (folder / "spark-defaults.conf").write_text(text, encoding="utf-8")
    os.environ["SPARK_CONF_DIR"] = str(folder)


class Workers:
    """The cluster's workers, whose quotas begin with a deployment's measuring and end with it."""

    def __init__(self, running, cpus):
        self._running, self._cpus = running, cpus

    def limit(self, cpus, names=("worker-0", "worker-1")):
        for name in names:
            self._running.limit(name, cpus)

    def heard(self, event):
        if self._cpus and isinstance(event, Deployed):  # its code is warm
            self.limit(self._cpus)


def measured(name, budget, testbed, journal, listen):
    """Bracket the maximum; None with the reason printed where it cannot be measured."""
    try:
        testbed.check(budget)
        found = result_of(
            measure(Configuration(find_query(name), budget), testbed, CapacityEstimator(0.05), journal, costs=False),
            listen,
        )
    except WorkbenchError as error:
        print(f"  {name} on {budget.slots}: {error}", flush=True)
        return None
    return found


def compared(name, slots, sides, journal, listen):
    """Measure on each of `sides`, (testbed, cores of a slot), and print the ratio."""
    cluster, desk = (
        measured(name, Budget(slots, SlotProfile(cpus, MEMORY_MB), INTERVAL_S), testbed, journal, listen)
        for testbed, cpus in sides
    )
    rates = [one.estimate.middle if one else math.nan for one in (cluster, desk)]  # 0: none was sustained
    used = [one.used_cores if one else None for one in (cluster, desk)]
    cores = " and ".join("-" if one is None else f"{one:.2f}" for one in used)
    print(
        f"{name} on {slots} slots: {rates[0]:,.0f} records/s on the cluster, {rates[1]:,.0f} here, ratio "
        f"{rates[0] / (rates[1] or math.nan):.3f}; cores that the tasks of a slot used: {cores}",
        flush=True,
    )
    return rates


def slowed(name, there, workers, cpus):
    """Slow one of two workers to half while the query runs as fast as it can."""
    with there.deploy(find_query(name), Budget(2, SlotProfile(1, MEMORY_MB), INTERVAL_S)) as run:
        workers.limit(cpus)
        run.set_rate(math.inf)
        run.settle(20)
        for text, limit in (("both the same", cpus), ("one at half", cpus / 2), ("both the same again", cpus)):
            workers.limit(limit, ("worker-1",))
            run.settle(20)
            seen = run.observe(20)
            slow = [pace.sentence for pace in slow_executors(seen.executors)]
            said = slow[0] if slow else "no executor is said to be slow"
            print(f"{name}, {text}: {seen.consumed_rate:,.0f} records/s; {said}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("queries", nargs="*", default=["nexmark:q1", "nexmark:q5"])
    parser.add_argument("--cpus", type=float, default=0.4)
    parser.add_argument("--whole", action="store_true", help="leave the workers and the slots here whole cores")
    parser.add_argument("--together", action="store_true", help="two slots in one executor, and nothing else")
    parser.add_argument("--forks", action="store_true", help="leave executors of the cluster Hadoop's file system")
    options = parser.parse_args()
    cpus = None if options.whole else options.cpus
    together = 2 if options.together else 1
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        if not options.forks:
            without_forks(Path(stack.enter_context(tempfile.TemporaryDirectory())))
        running = stack.enter_context(standalone(folder, apart=True, cores=together))
        workers = Workers(running, cpus and together * cpus)
        memory = stack.enter_context(tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None))
        there = SparkTestbed(
            cluster=Cluster(running.master, Path(memory).as_uri(), allocation_s=WAIT_S, executor_slots=together)
        )
        here = SparkTestbed(slot_cpus="cores" if options.whole else "auto")
        sides = ((there, 1.0), (here, cpus or 1.0))
        journal = Journal(Path(folder) / "journal.jsonl")
        for name in options.queries:
            rates = []
            for slots in SLOTS[together - 1 :]:
                workers.limit(None)
                rates.append(compared(name, slots, sides, journal, workers.heard))
            if options.together:
                continue
            growth = [two / one for one, two in zip(*rates, strict=True)]
            print(f"{name}: two slots have {growth[0]:.2f} times the rate of one on the cluster, {growth[1]:.2f} here")
            if cpus:
                workers.limit(None)
                slowed(name, there, workers, cpus)


if __name__ == "__main__":
    main()
