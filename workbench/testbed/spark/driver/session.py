"""What is deployed, as it crosses the pipe to the driver process once, and the Spark session that it gets there.

A second kind of session, in this process, reads data at rest.
"""

import math
import os
import re
import secrets
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

from workbench import units
from workbench.dataflow import Budget
from workbench.defaults import LEAST_HEAP_MB
from workbench.errors import WorkbenchError
from workbench.records import FUNCTION, JOINED, MEASURED, NOOP, Executor, JobSettings, state_settings
from workbench.redaction import VARIABLE
from workbench.testbed.spark.cluster import Cluster, check_room, cluster_conf, merged_with_yours, refused, stand_in
from workbench.testbed.spark.driver.feed import TopicRows
from workbench.testbed.spark.machine.java import WITHOUT_FORKS, bring, compile_into, find_java, load_here
from workbench.testbed.spark.machine.quota import CpuQuota
from workbench.workload import Generator

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

_CATALOG, _ICEBERG = "workbench", "org.apache.iceberg.spark.SparkCatalog"


@dataclass(frozen=True)
class Writes:
    """Where the queries of a deployment write."""

    kind: str = NOOP  # a key of `workbench.records.MODES`
    place: str = ""  # a folder of the deployment, as Hadoop names it, or the address of a topic
    call: Callable[..., Any] | None = None  # called by ``foreachBatch``, with `place` if there is one
    options: Mapping[str, str] = field(default_factory=dict)  # options of Spark's sink

    @property
    def folder(self) -> str:
        """The folder that is removed with the deployment; "" if there is none."""
        return "" if self.kind == "kafka" else self.place

    def folder_of(self, name: str) -> str:
        """Name the folder of the query `name`; "" if it has none."""
        return self.folder and f"{self.folder}/{name}"

    def begin(self, writer: "DataStreamWriter", spark: "SparkSession", name: str) -> "StreamingQuery":
        """Start the query `name` of `writer`, which writes to a place of its own."""
        own = self.folder_of(name)
        if self.kind == FUNCTION and self.call is not None:
            return writer.foreachBatch(partial(self.call, place=own) if own else self.call).start()
        writer = writer.format(self.kind).options(**self.options)
        if self.kind == "iceberg":
            for key, value in {"": _ICEBERG, ".type": "hadoop", ".warehouse": self.folder}.items():
                spark.conf.set(f"spark.sql.catalog.{_CATALOG}{key}", value)
            return writer.toTable(f"{_CATALOG}.measured.{name}")
        return (writer.option("path", own) if own else writer).start()


@dataclass(frozen=True)
class Turn:
    """A smaller or equal budget with a turn in a warm deployment, and its numbers of partitions."""

    budget: Budget
    source_partitions: int
    state_partitions: int


@dataclass(frozen=True, kw_only=True)
class DeploymentSpec(Turn):
    """What to deploy, its folders, and the turn that it begins with.

    `folder` is in memory if the machine permits it, so that batches do not include the latency of its disk.
    """

    name: str
    build: "Callable[..., DataFrame]"
    generator: Generator | TopicRows | tuple[Generator, ...]
    output_mode: str = "append"
    cluster: Cluster | None = None
    folder: Path  # of checkpoint, logs and control files
    disk: Path  # of shuffle files, and state beyond RocksDB's memory
    quota: CpuQuota | None = None
    warmup_cap_s: float = 0.0
    asked_rate: float = 0.0  # see `SparkTestbed`
    checkpoints: str = ""  # folder of its own for checkpoints, on a cluster and where the job says so
    settings: JobSettings = field(default_factory=JobSettings)
    jars: tuple[str, ...] = ()  # of the job and its packages, on this machine
    inputs: tuple[str, ...] = ()  # their names, where `generator` is several
    connector: tuple[str, ...] = ()  # jars of Kafka's connector, if used
    writes: Writes = field(default_factory=Writes)

    @property
    def places(self) -> dict[str, str]:
        """Folders of the deployment that are removed with it, by the key of a study that they are in."""
        return {key: place for key, place in (("sink", self.writes.folder), ("checkpoint", self.checkpoints)) if place}


def slot_cores(budget: Budget, allowed: Iterable[int]) -> frozenset[int]:
    """Cores that the slots of `budget` run on: the fewest of `allowed` that hold them, lowest numbers first.

    On more cores, tasks that share one core's quota would run at once or in turns by chance. At once, they slow each
    other down if the cores are threads of one physical core or share its caches.
    """
    return frozenset(sorted(allowed)[: max(1, math.ceil(round(budget.cpus, 6)))])


# A job that runs for days has all its code compiled, but a run of minutes would still interpret the code that a batch
# calls once. So the JVM compiles code after a tenth of the usual calls.
COMPILED_SOON = "-XX:CompileThresholdScaling=0.1"  # for executors: code of rows soon reaches its final speed
COMPILED_ONCE = "-XX:TieredStopAtLevel=1"
"""For the driver, whose code runs a few times a batch: the second compiler would work on it for minutes.

On two cores, slots of three tenths of a core were ready after 91 s instead of 157 s, and a batch of few rows took 0.5 s
after 40 s instead of 1 s after 57 s.
"""


_SECRETS = "(?i)secret|passw(or)?d|token|credential|jaas|(access|account|api|private|keystore)[._-]?key"
AUTHENTICATED: Mapping[str, str] = MappingProxyType({"spark.authenticate": "true", "spark.redaction.regex": _SECRETS})
"""Settings by which Spark's processes talk only to those that know the run's secret, and log no secret."""

_QUIET = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.sql.session.timeZone": "UTC"}
_ON_LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", **AUTHENTICATED}


def divide_memory(budget: Budget) -> Executor:
    """Divide the budget's memory between RocksDB and the heap of one executor; refuse it where Spark needs more."""
    executor = Executor(budget.slots, budget.profile)
    heap = budget.memory_mb - executor.rocksdb_mb
    if heap < LEAST_HEAP_MB:
        least = -(-LEAST_HEAP_MB * 10 // 6) // budget.slots + 1
        raise WorkbenchError(
            f"The heap of {units.some(budget.slots, 'slot')} of {budget.profile.memory_mb:,} MB is {heap} MB; Spark "
            f"needs {LEAST_HEAP_MB} MB. Give each slot at least {least} MB, or use more slots.",
            settings=("memory_mb", "slots"),
        )
    return executor


def spark_conf(
    budget: Budget,
    folder: Path,
    disk: Path,
    state_partitions: int,
    *,
    cluster: Cluster | None = None,
    address: str | None = None,
) -> dict[str, str]:
    """Spark's configuration for a deployment on `budget`; `address` is this machine's, as a cluster reaches it."""
    executor = divide_memory(budget if cluster is None else replace(budget, slots=cluster.executor_slots))
    # A query's relative paths mean this folder, even where the JVM must start in another.
    place = f' "-Duser.dir={Path.cwd()}"' if cluster and cluster.environment else ""
    if cluster is None:
        theirs = {
            **_ON_LOOPBACK,
            "spark.executor.memory": f"{executor.heap_mb}m",
            "spark.executor.cores": str(executor.slots),
            "spark.executorEnv.PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "spark.executorEnv.PYTHONSAFEPATH": "1",  # no file in the current folder replaces a library
            "spark.executor.extraJavaOptions": (
                f'"-Djava.io.tmpdir={disk}" {COMPILED_SOON} -XX:-UseDynamicNumberOfCompilerThreads'
            ),
            "spark.driver.extraClassPath": str(folder / "classes"),
            "spark.executor.extraClassPath": str(folder / "classes"),
            **WITHOUT_FORKS,
        }
    else:  # a cluster's own settings define how its processes trust each other
        theirs = {"spark.redaction.regex": _SECRETS, **cluster_conf(cluster, budget, address)}
    return {
        **_QUIET,
        "spark.log.level": "ERROR",
        "spark.executor.syncLogLevel.enabled": "true",  # otherwise executors write a page of log for every batch
        "spark.driver.memory": "1g",
        "spark.local.dir": str(disk),
        "spark.driver.extraJavaOptions": f'"-Djava.io.tmpdir={disk}" {COMPILED_ONCE}{place}',
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.shuffle.partitions": str(state_partitions),
        "spark.sql.streaming.metricsEnabled": "false",
        "spark.sql.streaming.numRecentProgressUpdates": "5",
        **MEASURED,
        **state_settings(executor.rocksdb_mb),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (folder / "eventlog").as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        **theirs,
    }


def at_start(ours: Mapping[str, str], settings: JobSettings) -> dict[str, str]:
    """Add to `ours` those of a job's settings that a JVM needs at its start: its options and its class path."""
    joined = {name: value for name, value in settings.spark.items() if name in JOINED}
    return JobSettings(spark=joined).conf(ours)


def after_start(ours: Mapping[str, str], settings: JobSettings) -> dict[str, str]:
    """Return the rest of a job's settings, with the variables of the environment replaced.

    They go over the gateway, since everybody can read command lines. Spark's logs hide those that name a variable.
    """
    hidden = [re.escape(name) for name, value in settings.spark.items() if VARIABLE.search(value)]
    given = {name: value for name, value in settings.resolved().items() if name not in JOINED}
    return given | ({"spark.redaction.regex": "|".join((ours["spark.redaction.regex"], *hidden))} if hidden else {})


def start_session(spec: DeploymentSpec) -> "SparkSession":
    """Start the JVM, which logs to ``jvm.log``, and the session; without a cluster, with one executor JVM here."""
    import pyspark  # noqa: PLC0415 - only the driver process loads Spark
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    budget, folder, disk, cluster = spec.budget, spec.folder, spec.disk, spec.cluster
    address = cluster.reach() if cluster else "127.0.0.1"
    if cluster and "SPARK_HOME" in os.environ:  # your own configuration there stays in force
        os.environ.setdefault("SPARK_CONF_DIR", str(Path(os.environ["SPARK_HOME"]) / "conf"))
    for name in ("classes", "eventlog", "home"):
        (folder / name).mkdir(exist_ok=True)
    # local-cluster writes into SPARK_HOME/work, so its home is a folder of links, not the installed package.
    for name in ("bin", "jars", "python"):
        (folder / "home" / name).symlink_to(Path(pyspark.__file__).parent / name)
    os.environ.update(
        JAVA_HOME=find_java(disk).home,
        PYSPARK_PYTHON=python_of(cluster, folder),
        SPARK_HOME=str(folder / "home"),
        TMPDIR=str(disk),
        **({"SPARK_LOCAL_IP": address} if address else {}),
    )
    ours = spark_conf(budget, folder, disk, spec.state_partitions, cluster=cluster, address=address)
    here = f"local-cluster[1,{budget.slots},{max(1024, divide_memory(budget).heap_mb)}]"
    master = cluster.master if cluster else here
    conf = SparkConf().setAppName("workbench").setMaster(master).setAll(list(at_start(ours, spec.settings).items()))
    connector = spec.connector
    if connector and not cluster:  # not spark.jars, which Spark copies before it has our file system
        for side in ("driver", "executor"):
            key = f"spark.{side}.extraClassPath"
            conf.set(key, os.pathsep.join((str(conf.get(key)), *connector)))
    elsewhere = chdir(folder) if cluster and cluster.environment else nullcontext()
    with (folder / "jvm.log").open("ab") as log, elsewhere:
        gateway = launch_gateway(conf, {"stdout": log, "stderr": log})  # type: ignore[no-untyped-call]
    load_here(spec.jars, gateway.jvm)
    if cluster:
        check_room(gateway.jvm, cluster, budget, address)
        load_here(connector, gateway.jvm)
        # Spark has put your settings among the JVM's properties, where those that it was started with replace them.
        merged = merged_with_yours(cluster, gateway.jvm.java.lang.System.getProperty, COMPILED_SOON)
        conf.setAll(list(at_start(merged, spec.settings).items()))
    else:
        compile_into(folder / "classes", gateway.jvm)
        # Over the gateway, since everybody can read command lines; executors get it in their environment.
        conf.set("spark.authenticate.secret", secrets.token_hex(32))
    conf.setAll(list(after_start(ours, spec.settings).items()))
    try:
        context = SparkContext(gateway=gateway, conf=conf)
    except Py4JError as error:
        if cluster:
            raise refused(str(error), cluster) from error
        raise
    bring((*spec.jars, *(connector if cluster else ())), spec.settings, context)
    context.setLogLevel("ERROR")
    return SparkSession(context)


def python_of(cluster: Cluster | None, folder: Path) -> str:
    """Return the Python interpreter that Spark starts, here for the source's plan and in the executors.

    A name without a path is this process's interpreter here, and what the name means there. So is that of an archive,
    for a JVM that is started in `folder`.
    """
    if cluster is not None and cluster.environment is not None:
        return stand_in(folder)
    if cluster is None or cluster.python is None:
        return sys.executable
    if "/" in cluster.python:
        if not Path(cluster.python).exists():
            raise WorkbenchError(
                f"The Python {cluster.python!r} does not exist on this machine, and Spark starts it here too, to plan "
                "the source's batches. Make a link of that path to this environment's Python, or give a name that is "
                "on the workers' PATH, such as python3.11.",
                settings=("python",),
            )
        return cluster.python
    place = folder / "bin"
    place.mkdir(exist_ok=True)
    (place / cluster.python).write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (place / cluster.python).chmod(0o755)
    os.environ["PATH"] = f"{place}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return cluster.python


def last_line(text: str) -> str:
    """Last line of a log that is not empty; "" if there is none."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def end_session(spark: "SparkSession", stopped: Callable[[Any], None] = lambda _: None) -> None:
    """Stop the session and end its JVM; in between, `stopped` may use the JVM, whose event log is complete."""
    from pyspark import SparkContext  # noqa: PLC0415

    spark.stop()
    gateway = SparkContext._gateway  # noqa: SLF001
    if gateway is not None:
        try:
            stopped(gateway.jvm)
        finally:
            gateway.shutdown()
            gateway.proc.stdin.close()
            gateway.proc.wait(30)


@contextmanager
def batch_session(jars: Sequence[str] = ()) -> "Iterator[SparkSession]":
    """Yield a session with `jars` in this process, on all cores, for data at rest; its output goes to a file."""
    from unittest.mock import patch  # noqa: PLC0415 - slow to import

    with (
        tempfile.TemporaryDirectory(prefix="workbench-batch-") as folder,
        patch.dict(
            os.environ,
            JAVA_HOME=find_java(Path(folder)).home,
            PYSPARK_PYTHON=sys.executable,
            SPARK_LOCAL_IP="127.0.0.1",
        ),
    ):
        from pyspark import SparkConf, SparkContext  # noqa: PLC0415 - importing the workbench must not import pyspark
        from pyspark.java_gateway import launch_gateway  # noqa: PLC0415
        from pyspark.sql import SparkSession  # noqa: PLC0415

        settings = {
            **_QUIET,
            **_ON_LOOPBACK,
            "spark.sql.warehouse.dir": str(Path(folder) / "warehouse"),
            "spark.local.dir": folder,
            **({"spark.driver.extraClassPath": os.pathsep.join(jars)} if jars else {}),
        }
        conf = SparkConf().setMaster("local[*]").setAppName("workbench").setAll(list(settings.items()))
        with (Path(folder) / "jvm.log").open("ab") as log:
            gateway = launch_gateway(conf, {"stdout": log, "stderr": log})  # type: ignore[no-untyped-call]
        context = SparkContext(gateway=gateway, conf=conf)
        context.setLogLevel("OFF")
        spark = SparkSession(context)
        try:
            yield spark
        finally:
            end_session(spark)
            # so that this process can start another session
            SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
