"""Spark's own cluster manager: cores are counters, and only the heap of an executor is counted as its memory."""

from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError

from workbench.dataflow import Budget
from workbench.errors import WorkbenchError
from workbench.records import Executor
from workbench.testbed.spark.cluster.settings import Cluster, asked


@dataclass(frozen=True)
class Worker:
    """A live worker with its resources; the master does not report which of them are free."""

    cores: int
    memory_mb: int


@dataclass(frozen=True)
class Offer:
    """The resources of a master: its live workers, and the names of the applications, including this one."""

    workers: tuple[Worker, ...]
    applications: tuple[str, ...] = ()

    def room(self, executor: Executor) -> int:
        """How many of `executor` the workers have room for when nothing else runs."""
        cores = executor.millicores // 1000
        return sum(min(one.cores // cores, one.memory_mb // executor.heap_mb) for one in self.workers)

    def sentence(self) -> str:
        """Return a sentence on the master's resources."""
        if not self.workers:
            return "The master has no live worker"
        listed = "; ".join(f"{one.cores} cores and {one.memory_mb:,} MB" for one in self.workers)
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
            tuple(Worker(one.cores(), one.memory()) for one in state.workers() if one.isAlive()),
            tuple(str(one.desc().name()) for one in state.activeApps()),
        )
    finally:
        network.shutdown()
