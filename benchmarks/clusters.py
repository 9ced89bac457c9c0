"""A standalone cluster of two workers compared with the same budgets on this machine, and what a slow worker does.

    python benchmarks/clusters.py [nexmark:q1 nexmark:q5] [--cpus .4] [--rounds 5] [--together] [--neighbour]
                                  [--plan] [--forks]

The cluster comes from the PySpark package: a master and two workers of one counted core each, in network namespaces of
their own. Each query is measured on one executor and on two, and on one and two slots here. Both sides are deployed
first, their code warm, and then take turns: while one is read, the other has next to nothing to do. So what drifts or
disturbs for minutes meets both and cancels in the ratio, which every round gives once more.

Each worker is limited to ``--cpus`` of a core, as the slots here are: the compiler stays outside, so that both sides
have the same cores, and the driver has its own; checkpoints are in memory. Hadoop's local file system starts a process
for every file of a checkpoint, which a shared store does not and the slots here do not, so executors there write with
the same file system without forks; ``--forks`` leaves them Hadoop's. ``--together`` measures two slots of one executor,
as the slots here are, instead of two executors: what is left of the difference is then not the layout's.
``--neighbour`` keeps every core busy for 20 of each 45 seconds while the sides take turns. Last, one worker is slowed
to half while the query runs. ``--plan`` instead plans each query from runs on one and two executors of the cluster, as
`workbench plan` prints it. Prints figures, asserts nothing.
"""

import argparse
import json
import math
import os
import statistics
import sys
import tempfile
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from deployments import neighbour
from pyspark.java_gateway import launch_gateway
from standalone_cluster import Standalone, standalone

from workbench import units
from workbench.cli import main as workbench
from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.measuring import filling_rate
from workbench.metrics import slow_executors
from workbench.study import find_query
from workbench.testbed import SparkTestbed
from workbench.testbed.spark import WITHOUT_FORKS, Cluster, compile_into, find_java

SLOTS, INTERVAL_S, MEMORY_MB = (1, 2), 2.0, 1024
WAIT_S, WARMUP_S = 300.0, 60.0
TARGETS = (400_000, 2_000_000)  # records/s, of a plan
IDLE_RATE = 1.0  # records/s of the side whose turn it is not
READ_S = 30.0
MEMORY = Path("/dev/shm")  # noqa: S108 - Linux's shared memory, where deployments here have their checkpoints
WORKERS = ("worker-0", "worker-1")


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


class InTurns:
    """Two warm deployments that take turns: what is asked of it is asked of the one whose budget has its turn."""

    def __init__(self, runs):
        self._runs, self._present = runs, None

    def turn(self, budget, layout=None):
        if self._present:
            self._present.set_rate(IDLE_RATE)
        self._present = self._runs[budget]
        self._present.turn(budget, layout)

    def __getattr__(self, name):
        return getattr(self._present or next(iter(self._runs.values())), name)


@dataclass(frozen=True)
class Sides:
    """A testbed of two: the cluster `there`, whose workers get `cpus` once the code is warm, and this machine."""

    there: SparkTestbed
    here: SparkTestbed
    running: Standalone
    cpus: float
    kind: str = "spark"

    @property
    def identity(self):
        return f"{self.there.identity}; {self.here.identity}"

    @contextmanager
    def deploy_shared(self, query, budgets):
        on_cluster, on_desk = budgets
        limit(self.running, None)
        with self.there.deploy(query, on_cluster) as cluster:
            cluster.set_rate(IDLE_RATE)
            with self.here.deploy(query, on_desk) as desk:
                desk.set_rate(IDLE_RATE)
                limit(self.running, self.cpus)
                yield InTurns({on_cluster: cluster, on_desk: desk})


def limit(running, cpus, names=WORKERS):
    """Limit workers of the cluster to `cpus` each; None: not at all."""
    for name in names:
        running.limit(name, cpus)


def compared(name, slots, sides, options):
    """Measure both sides in turns, and print their rates and the ratio of each round."""
    budgets = [Budget(slots, SlotProfile(cpus, MEMORY_MB), INTERVAL_S) for cpus in (1.0, options.cpus)]
    for testbed, budget in zip((sides.there, sides.here), budgets, strict=True):
        testbed.check(budget)
    rates, seen = ([], []), [None, None]
    with (
        neighbour(20.0, 25.0) if options.neighbour else nullcontext(),
        sides.deploy_shared(find_query(name), budgets) as run,
    ):
        for number in range(options.rounds):
            for place in (0, 1) if number % 2 == 0 else (1, 0):
                run.turn(budgets[place])
                run.set_rate(math.inf)
                run.fill(12.0, 45.0)
                seen[place] = run.observe(READ_S)
                rates[place].append(filling_rate(seen[place].batches[1:]))
    used = [
        sum(one.cpu_s for one in last.operators) / (last.elapsed_s * slots) if last.operators else None for last in seen
    ]
    ratios = [cluster / desk for cluster, desk in zip(*rates, strict=True)]
    cores = " and ".join("-" if one is None else f"{one:.2f}" for one in used)
    there, here = (statistics.geometric_mean(some) for some in rates)
    print(
        f"{name} on {units.some(slots, 'slot')}: {units.rate(there)} on the cluster, {units.rate(here)} here; "
        f"rounds {', '.join(f'{ratio:.2f}' for ratio in ratios)}; "
        f"ratio {statistics.geometric_mean(ratios[1:]):.2f} without the first; "
        f"cores that the tasks of a slot used: {cores}",
        flush=True,
    )


def slowed(name, there, running, cpus):
    """Slow one of two workers to half while the query runs as fast as it can."""
    limit(running, None)
    with there.deploy(find_query(name), Budget(2, SlotProfile(1, MEMORY_MB), INTERVAL_S)) as run:
        limit(running, cpus)
        run.set_rate(math.inf)
        run.settle(20)
        for text, slow in (("both the same", cpus), ("one at half", cpus / 2), ("both the same again", cpus)):
            limit(running, slow, WORKERS[1:])
            run.settle(20)
            seen = run.observe(20)
            named = [pace.sentence for pace in slow_executors(seen.executors)]
            said = named[0] if named else "no executor is said to be slow"
            print(f"{name}, {text}: {units.rate(seen.consumed_rate)}; {said}", flush=True)


def planned(name, cluster, folder):
    """Let the command plan the query on the cluster."""
    study = {
        "query": name,
        "targets": list(TARGETS),
        "slots": list(SLOTS),
        "memory_mb": [MEMORY_MB],
        "interval_s": INTERVAL_S,
        "warmup_s": WARMUP_S,
        "master": cluster.master,
        "checkpoint": cluster.checkpoint,
        "allocation_s": cluster.allocation_s,
        "most_runs": 3,
        "tolerance": 0.05,
        "patience_s": 0,
        "max_repeats": 1,
    }
    file = folder / "study.yaml"
    file.write_text(json.dumps(study), encoding="utf-8")  # which is YAML, too
    places = {"--journal": "plan.jsonl", "--output": "plan.json", "--report": "plan.html"}
    workbench(["plan", str(file), *(text for option, to in places.items() for text in (option, str(folder / to)))])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("queries", nargs="*", default=["nexmark:q1", "nexmark:q5"])
    parser.add_argument("--cpus", type=float, default=0.4, help="cores of a slot")
    parser.add_argument("--rounds", type=int, default=5, help="at least 2; an odd number, so that drift cancels")
    parser.add_argument("--together", action="store_true", help="two slots in one executor, and nothing else")
    parser.add_argument("--neighbour", action="store_true", help="with other load that comes and goes")
    parser.add_argument("--plan", action="store_true", help="plan each query on the cluster, and nothing else")
    parser.add_argument("--forks", action="store_true", help="leave executors of the cluster Hadoop's file system")
    options = parser.parse_args()
    if options.rounds < 2:
        parser.error(f"--rounds is {options.rounds}; it must be at least 2, because the first is a look")
    together = 2 if options.together else 1
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        if not options.forks:
            without_forks(Path(stack.enter_context(tempfile.TemporaryDirectory())))
        running = stack.enter_context(standalone(folder, apart=True, cores=together))
        memory = stack.enter_context(tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None))
        there = SparkTestbed(
            cluster=Cluster(running.master, Path(memory).as_uri(), allocation_s=WAIT_S, executor_slots=together)
        )
        sides = Sides(there, SparkTestbed(), running, together * options.cpus)
        for name in options.queries:
            if options.plan:
                limit(running, options.cpus)
                planned(name, there.cluster, Path(folder))
                continue
            for slots in SLOTS[together - 1 :]:
                try:
                    compared(name, slots, sides, options)
                except WorkbenchError as error:
                    print(f"  {name} on {slots}: {error}", flush=True)
            if not options.together:
                slowed(name, there, running, options.cpus)


if __name__ == "__main__":
    main()
