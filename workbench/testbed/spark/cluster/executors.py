"""The executors of a deployment on a cluster, as its driver sees them."""

import os
import platform
import re
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

from workbench.dataflow import Budget
from workbench.errors import WorkbenchError
from workbench.records import Executor, Machine
from workbench.testbed.spark.cluster.settings import SLOTS, Cluster, asked
from workbench.testbed.spark.cluster.storage import cause_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOOK_S = 1.0
_OTHER_SPARK = ("local class incompatible", "InvalidClassException", "NoSuchMethodError")
_NO_CLASS = re.compile(r"(?:ClassNotFoundException|NoClassDefFoundError):(?: Class)? ([\w.$/]+)")
_SPARKS_OWN = "org.apache.spark."
_KUBECTL = "'kubectl get pods' and 'kubectl describe pod' show whether the pods wait for room, for their image or for"
_NOT_GIVEN = {
    "kubernetes": ("Kubernetes", "pod", f"{_KUBECTL} a permission."),
    "yarn": ("YARN", "container", "'yarn application -list' shows whether the queue has room."),
}
_WRONG_PYTHONS = (
    (
        ("PYTHON_VERSION_MISMATCH", "has different version"),
        "version",
        (
            "The executors' Python is of another version than this one: {found}. Name an interpreter of the same minor "
            "version that exists on the workers, or give an environment."
        ),
        "The environment {name} has a Python of another version than this one: {found}. Pack one with Python {here}.",
    ),
    (
        ("Cannot run program",),
        "Cannot run program",
        "The workers have no such Python: {found}. Name an interpreter that exists there, or give an environment.",
        (
            "The environment {name} has no Python that runs on the workers: {found}. Pack one with bin/python in it: "
            "conda-pack brings Python along, and venv-pack needs the same Python at its path there."
        ),
    ),
    (
        ("ModuleNotFoundError",),
        "ModuleNotFoundError",
        (
            "The executors' Python lacks a package: {found}. Install it there, name another interpreter, or give an "
            "environment."
        ),
        "The environment {name} lacks a package: {found}. Install it there, and pack again.",
    ),
)
"""Signs of a wrong Python of the executors, the text they quote, and the advice for workers and for an archive."""


def check_room(jvm: Any, cluster: Cluster, budget: Budget, host: str | None) -> None:  # noqa: ANN401 - py4j is not typed
    """Ask a standalone master, before an application starts, whether it could hold the executors at all."""
    if cluster.kind != "standalone":
        return
    try:
        offer = offer_of(jvm, cluster, host or "")
    except Py4JError as error:
        raise refused(str(error), cluster) from error
    refuse(cluster, budget, offer)


def registered(spark: "SparkSession") -> frozenset[str]:
    """Return Spark's names of the registered executors."""
    listed = str(spark._jsc.sc().getExecutorIds().mkString(","))  # noqa: SLF001 - py4j's only door
    return frozenset(filter(None, listed.split(",")))


def await_executors(
    spark: "SparkSession", cluster: Cluster, budget: Budget, let_pass: Callable[[], None], say: Callable[[str], None]
) -> None:
    """Wait until all executors have registered."""
    count, executor = cluster.executors(budget)
    context = spark._jsc.sc()  # noqa: SLF001 - py4j's only door
    end, looked, seen = time.monotonic() + cluster.allocation_s, 0.0, -1
    while True:
        if context.isStopped():
            raise WorkbenchError(
                f"The cluster {cluster.master} removed the application before it had {asked(count, executor)}: "
                "executors start and end again, or the master was lost. The logs of the workers show why."
            )
        got = len(registered(spark))
        if got >= count:
            return
        if got != seen:
            say(f"waiting for executors: {got} of {count}")
            seen = got
        if time.monotonic() > end:
            raise _not_registered(spark, cluster, budget, got)
        looked = time.monotonic()
        while time.monotonic() < looked + _LOOK_S:
            let_pass()


def _not_registered(spark: "SparkSession", cluster: Cluster, budget: Budget, got: int) -> WorkbenchError:
    """Return the error for executors that were not given in time."""
    if cluster.kind == "standalone":
        offer = offer_of(spark._jvm, cluster, cluster.reach() or "")  # noqa: SLF001 - py4j's only door
        return waiting(cluster, budget, offer, got)
    (count, executor), (name, unit, look) = cluster.executors(budget), _NOT_GIVEN[cluster.kind]
    return WorkbenchError(
        f"{name} started {got} of {asked(count, executor)} ({executor.memory_mb:,} MB per {unit}) within "
        f"{cluster.allocation_s:g} s; nothing was measured. {look}",
        settings=("slots", "memory_mb", "allocation_s"),
    )


def refused(text: str, cluster: Cluster) -> WorkbenchError:
    """Return the error for a cluster that Spark could not work with, from Java's or Python's own `text`."""
    import pyspark  # noqa: PLC0415 - only processes with Spark call this

    missing = next(iter(_NO_CLASS.findall(text)), "").replace("/", ".")
    if missing and not missing.startswith(_SPARKS_OWN):
        return WorkbenchError(
            f"The class {missing} is missing on the workers of {cluster.master}. Add its package to your "
            "spark-defaults.conf (spark.jars.packages)."
        )
    if missing or any(sign in text for sign in _OTHER_SPARK):
        return WorkbenchError(
            f"The cluster {cluster.master} does not understand this machine's Spark, {pyspark.__version__}: it runs "
            f"another version ({cause_of(text)}). Install the version of the cluster's Spark here, or the other way "
            "round."
        )
    for signs, quoted, of_workers, of_archive in _WRONG_PYTHONS:
        if any(sign in text for sign in signs):
            lines = [line.strip() for line in text.splitlines() if quoted in line]
            found = (lines[-1] if lines else "no reason given").rstrip(".")[:300]
            if cluster.environment is None:
                return WorkbenchError(of_workers.format(found=found), settings=("python", "environment"))
            name, here = Path(cluster.environment).name, ".".join(platform.python_version_tuple()[:2])
            return WorkbenchError(of_archive.format(name=name, found=found, here=here), settings=("environment",))
    return WorkbenchError(
        f"The cluster {cluster.master} failed: {cause_of(text)}. 'workbench doctor --master' shows what it lacks."
    )


def describe_workers(spark: "SparkSession", cluster: Cluster, budget: Budget) -> Machine:
    """Return facts about the executors' machines, which also shows that their Python works."""
    from pyspark.errors import PySparkException  # noqa: PLC0415 - only the driver process loads Spark

    count, executor = cluster.executors(budget)
    try:
        seen = _on_executors(spark, budget.slots)
    except (Py4JError, PySparkException) as error:
        raise refused(str(error), cluster) from error
    processors, virtual, memory_gib, systems, pythons = (list(dict.fromkeys(each)) for each in zip(*seen, strict=True))
    return Machine(
        slots=f"{SLOTS[cluster.kind]}, in {count} executor{'s' * (count != 1)} of {executor.slots}",
        processor=" and ".join(processors),
        virtual=virtual[0] if len(virtual) == 1 else None,
        cores=float(budget.cpus),
        memory_gib=min(memory_gib),
        system=" and ".join(systems),
        dedicated=cluster.kind == "kubernetes",
        facts={
            "Python": " and ".join(pythons),
            "master": cluster.kind,
            **({"environment": Path(cluster.environment).name} if cluster.environment else {}),
        },
    )


def _on_executors(spark: "SparkSession", tasks: int) -> Sequence[tuple[Any, ...]]:
    """Return facts about the machines that run `tasks` tasks: processor, virtual or not, GiB, system, and Python."""

    def look(_: object) -> "Iterator[Any]":
        import platform  # noqa: PLC0415 - in the executor
        from pathlib import Path  # noqa: PLC0415

        import numpy  # noqa: ICN001, F401, PLC0415 - every source needs both
        import pyarrow  # noqa: ICN001, F401, PLC0415

        found: dict[str, str] = {}
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            key, _, value = line.partition(":")
            found.setdefault(key.strip(), value.strip())
        flags = found.get("flags")
        yield (
            found.get("model name") or platform.machine(),
            None if flags is None else "hypervisor" in flags.split(),
            os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30,
            f"{platform.system()} {platform.release()}",
            platform.python_version(),
        )

    return _in_tasks(spark, tasks, look)


def compilers(spark: "SparkSession", tasks: int, names: tuple[str, ...]) -> Callable[[], float]:
    """Return a function that returns the mean CPU seconds so far of the executors' just-in-time compilers.

    The code is warm when they have little to do. A Python task finds its executor's JVM among the processes above it.
    Executors that no task has met yet are left out, and without Linux's ``/proc`` nothing is seen, which counts as 0.
    """

    def look(_: object) -> Iterator[tuple[str, float]]:
        import platform  # noqa: PLC0415 - in the executor
        from contextlib import suppress  # noqa: PLC0415
        from pathlib import Path  # noqa: PLC0415

        def stat(path: Path) -> tuple[str, list[str]]:
            name, _, rest = path.read_text().partition("(")[2].rpartition(")")
            return name, rest.split()

        with suppress(OSError):
            process = os.getpid()
            while stat(Path(f"/proc/{process}/stat"))[0] != "java":
                process = int(stat(Path(f"/proc/{process}/stat"))[1][1])  # its parent
            ticks = 0
            for thread in Path(f"/proc/{process}/task").iterdir():
                with suppress(OSError):
                    name, fields = stat(thread / "stat")
                    ticks += (int(fields[11]) + int(fields[12])) * name.startswith(names)
            yield f"{platform.node()} {process}", ticks / os.sysconf("SC_CLK_TCK")

    used: dict[str, float] = {}

    def mean() -> float:
        used.update(_in_tasks(spark, tasks, look))
        return statistics.fmean(used.values()) if used else 0.0

    return mean


def _in_tasks(spark: "SparkSession", tasks: int, look: Callable[[object], "Iterator[Any]"]) -> Sequence[Any]:
    """Run `look` in `tasks` tasks. An inner function crosses by value, so it needs nothing that is shipped."""
    found: Sequence[Any] = spark.sparkContext.parallelize(range(tasks), tasks).mapPartitions(look).collect()
    return found


@dataclass(frozen=True)
class Offer:
    """The resources of a master: its live workers, and the names of the applications, including this one."""

    workers: tuple[tuple[int, int], ...]  # cores and MB of each, of which the master does not report what is free
    applications: tuple[str, ...] = ()

    def room(self, executor: Executor) -> int:
        """How many of `executor` the workers have room for when nothing else runs."""
        cores = executor.millicores // 1000
        return sum(min(there // cores, memory_mb // executor.heap_mb) for there, memory_mb in self.workers)

    def sentence(self) -> str:
        """Return a sentence on the master's resources."""
        if not self.workers:
            return "The master has no live worker"
        listed = "; ".join(f"{cores} cores and {memory_mb:,} MB" for cores, memory_mb in self.workers)
        many = len(self.workers)
        return f"The master has {many} live worker{'s' * (many > 1)} ({listed})"


def refuse(cluster: Cluster, budget: Budget, offer: Offer) -> None:
    """Refuse a budget that the cluster could not hold even if nothing else ran on it."""
    count, executor = cluster.executors(budget)
    room = offer.room(executor)
    if room >= count:
        return
    fewer = f"use {room} or fewer, or smaller ones" if room else "use smaller ones"
    remedy = f"{fewer}, or add workers" if offer.workers else "start workers"
    raise WorkbenchError(
        f"The cluster {cluster.master} has no room for {asked(count, executor)}. {offer.sentence()}: {remedy}.",
        settings=("slots", "memory_mb"),
    )


def waiting(cluster: Cluster, budget: Budget, offer: Offer, got: int) -> WorkbenchError:
    """Return the error for executors that were not given in time although the cluster could hold them."""
    count, executor = cluster.executors(budget)
    other = len(offer.applications) - 1  # one is this application
    others = f", and {other} other application{'s run or wait' if other > 1 else ' runs or waits'}" if other > 0 else ""
    remedy = (
        "Wait until other applications end, or ask for less"
        if other > 0
        else "Executors were assigned but did not register: look into the workers' logs, and check that the workers "
        "reach this machine (driver_host)"
    )
    return WorkbenchError(
        f"The cluster {cluster.master} gave {got} of {asked(count, executor)} within {cluster.allocation_s:g} s; "
        f"nothing was measured. {offer.sentence()}{others}. {remedy}.",
        settings=("slots", "allocation_s"),
    )


def offer_of(jvm: Any, cluster: Cluster, host: str) -> Offer:  # noqa: ANN401 - py4j is not typed
    """Ask the master what it has, over its own protocol, from the address `host` of this machine."""
    spark = jvm.org.apache.spark
    settings = spark.SparkConf()
    single = "MODULE$"
    manager = getattr(getattr(spark, "SecurityManager$"), single)
    default = "$lessinit$greater$default$"
    security = spark.SecurityManager(settings, getattr(manager, default + "2")(), getattr(manager, default + "3")())
    network = getattr(getattr(spark.rpc, "RpcEnv$"), single).create("workbench", host, 0, settings, security, True)  # noqa: FBT003 - a client
    try:
        states = []
        failed: Py4JError | None = None
        for name, port in cluster.addresses:
            answer = jvm.java.lang.Class.forName("org.apache.spark.deploy.DeployMessages$MasterStateResponse")
            tag = getattr(getattr(jvm.scala.reflect, "ClassTag$"), single).apply(answer)
            question = getattr(getattr(spark.deploy, "DeployMessages$RequestMasterState$"), single)
            try:
                master = network.setupEndpointRef(spark.rpc.RpcAddress(name, port), "Master")
                states.append(master.askSync(question, tag))
            except Py4JError as error:  # of several masters, one may be down
                failed = error
        if failed is not None and not states:
            raise failed
        state = next((one for one in states if one.status().toString() == "ALIVE"), states[0])
        return Offer(
            tuple((one.cores(), one.memory()) for one in state.workers() if one.isAlive()),
            tuple(str(one.desc().name()) for one in state.activeApps()),
        )
    finally:
        network.shutdown()
