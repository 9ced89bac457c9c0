"""``SparkTestbed``: deploys queries on Spark, each in a separate driver process."""

import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Literal

import cloudpickle
import pyarrow as pa

from workbench import units
from workbench.dataflow import Budget
from workbench.defaults import WARMUP_CAP_S
from workbench.errors import WorkbenchError
from workbench.reading import is_there
from workbench.records import JobSettings, is_uri, path_of
from workbench.testbed.spark.cluster import LOCAL, Cluster
from workbench.testbed.spark.driver.feed import TopicRows
from workbench.testbed.spark.driver.process import (
    ENDS_ON_CLUSTER_S,
    ENDS_S,
    DriverProcess,
    SparkRun,
    go_on,
    keeping,
    turn_of,
)
from workbench.testbed.spark.driver.session import DeploymentSpec, Writes, divide_memory, slot_cores
from workbench.testbed.spark.machine.broker import topic_next_to
from workbench.testbed.spark.machine.java import (
    connector_jars,
    connector_version,
    find_java,
    package_jars,
    sink_packages,
)
from workbench.testbed.spark.machine.quota import GROUPS, PREFIX, CpuQuota, describe, outer_limit, usable_cores
from workbench.workload import ENCODED, Dataset, Generator, Query, Replay, kafka, prepare, prepare_inputs, schema_of

# The driver needs CPU time too: at most this share of the machine's cores becomes slots.
SLOT_SHARE = 0.8
LEAST_INTERVAL_S = 0.1
LEAST_CORES = 0.05
_MEMORY_FOLDER = Path("/dev/shm")  # noqa: S108 - Linux's shared memory; mkdtemp makes a private folder in it
_MEMORY_NEEDED = 1 << 30


def cores_for_slots(cores: float, *, quota: bool) -> float:
    """Return how many cores of a machine can be slots, with a CPU quota or as whole cores; the driver has the rest."""
    return cores * SLOT_SHARE if quota else max(1.0, cores - 1)


@dataclass(frozen=True)
class SparkTestbed:
    """Deploys on Spark.

    Parameters
    ----------
    slot_cpus
        ``"auto"`` applies the budget's cpus as a CPU quota if this machine permits it, and otherwise refuses fractions
        of a core. ``"cores"`` requires whole cores and sets no quota. Without effect on a cluster.
    asked_rate
        Highest rate that will be tested, records/s, if no maximum is looked for: code that would sustain it is
        warm enough, and the source alone is measured only if a rate is not sustained. 0: a maximum is looked for.
    check_owner
        Called several times a second while Spark works; an exception that it raises ends the deployment.
    """

    cluster: Cluster | None = None  # where the executors run; None: one executor JVM on this machine
    slot_cpus: Literal["auto", "cores"] = "auto"
    warmup_cap_s: float = WARMUP_CAP_S  # longest time without a quota, in which the code is compiled
    asked_rate: float = 0.0
    settings: JobSettings = field(default_factory=JobSettings)  # what the job brings along
    progress: Callable[[str], None] = field(default=lambda _: None)  # gets a line of text at each step of a deployment
    check_owner: Callable[[], None] = field(default=go_on)
    kind = "spark"

    @property
    def identity(self) -> str:
        """See `workbench.testbed.Testbed`."""
        brought = f", {self.settings.identity}" * bool(self.settings)
        if self.cluster:
            return f"Spark {version('pyspark')}, master {self.cluster.identity}{brought}"
        with tempfile.TemporaryDirectory(prefix="java-") as folder:
            java = find_java(Path(folder)).version
        machine = describe()
        return (
            f"Spark {version('pyspark')}, master {LOCAL}, slots as {self.slot_cpus}, Java {java}, "
            f"{machine.processor} with {machine.cores:g} cores{brought}"
        )

    def operators(self, query: Query) -> tuple[str, ...]:  # noqa: ARG002 - the protocol's
        """Return an empty tuple: the stages of a micro-batch take turns at all slots."""
        return ()

    def check(self, budget: Budget) -> None:
        """Refuse a budget that cannot be had, or files of a job or cluster that are missing, before anything starts."""
        divide_memory(replace(budget, slots=self.cluster.executor_slots) if self.cluster else budget)
        self.settings.check_here()
        sink_packages(self.settings)
        if budget.interval_s < LEAST_INTERVAL_S:
            raise WorkbenchError(
                f"The trigger interval is {budget.interval_s:g} s; it must be at least {LEAST_INTERVAL_S:g} s.",
                settings=("interval_s",),
            )
        if self.cluster:
            self.cluster.executors(budget)
            self.cluster.check_here()
            self.cluster.check_place("sink", self.settings.places.get("sink"))
            return
        if budget.cpus < LEAST_CORES:
            raise WorkbenchError(
                f"The quota of {units.some(budget.slots, 'slot')} of {budget.profile.cpus:g} cores is {budget.cpus:g} "
                f"cores in total; it must be at least {LEAST_CORES:g} cores.",
                settings=("slot_cpus", "slots"),
            )
        cores, most = usable_cores(), self._most_cores()
        fit = self.most_slots(budget.profile.cpus)
        if budget.slots > fit:
            raise WorkbenchError(
                f"{budget.slots:,} slots of {budget.profile.cpus:g} cores need {budget.cpus:g} cores; of the {cores:g} "
                f"cores of this machine at most {most:g} can be slots (the driver needs the rest). "
                f"Use {units.some(fit, 'slot')} or fewer, or smaller slots."
                if fit
                else f"A slot of {budget.profile.cpus:g} cores is more than the {most:g} cores that can be slots on "
                f"this machine; use slots of at most {most:g} cores.",
                settings=("slots", "slot_cpus") if fit else ("slot_cpus",),
            )
        if self.slot_cpus == "cores" and budget.profile.cpus != int(budget.profile.cpus):
            raise WorkbenchError(
                f"Slots of {budget.profile.cpus:g} cores need a CPU quota; without one a slot is one whole core.",
                settings=("slot_cpus",),
            )

    def most_slots(self, cpus: float) -> int:
        """Return how many slots of `cpus` cores this machine can provide next to the driver."""
        return int(self._most_cores() / cpus + 1e-9)

    def _most_cores(self) -> float:
        return cores_for_slots(usable_cores(), quota=self.slot_cpus == "auto")

    @contextmanager
    def deploy(
        self,
        query: Query,
        budget: Budget,
        layout: Mapping[str, int] | None = None,
        *,
        repeat: int | None = None,  # noqa: ARG002 - the protocol's; a real machine needs no seed
    ) -> Iterator[SparkRun]:
        """Deploy `query` on `budget`; on exit the context removes every process, control group and folder.

        The `layout` has numbers of partitions: ``"source"`` of the source, ``"state"`` of all stateful operators. Each
        is the number of slots by default.
        """
        self.check(budget)
        if query.topic is not None and self.cluster:
            self.cluster.check_servers(kafka.Topic.parse(query.topic).servers)
        turn = turn_of(budget, layout)
        own = f"{PREFIX}{uuid.uuid4().hex[:12]}"
        places = self._places(own)
        with (
            self._writes(query, places.get("sink", ""), own) as writes,
            self._process(budget, places) as driver,
        ):
            folder, disk, *_ = driver.folders
            generator = _rows_of(query, disk)
            jars = [str(Path(jar).resolve()) for jar in self.settings.jars]
            uses_kafka = isinstance(generator, TopicRows) or writes.kind == "kafka"
            packages = (*sink_packages(self.settings), *self.settings.packages)
            spec = DeploymentSpec(
                **vars(turn),
                name=query.name,
                build=query.build,
                generator=generator,
                output_mode=query.output_mode,
                cluster=self.cluster,
                folder=folder,
                disk=disk,
                quota=driver.quota,
                warmup_cap_s=self.warmup_cap_s,
                asked_rate=self.asked_rate,
                settings=self.settings,
                jars=(*jars, *package_jars(packages, self.progress)),
                connector=connector_jars(self.progress) if uses_kafka else (),
                writes=writes,
                inputs=tuple(one.name for one in query.inputs),
                checkpoints=places.get("checkpoint", ""),
            )
            facts, source, expected, there = driver.ask(cloudpickle.dumps(spec))
            facts |= self._facts(query, generator, spec.connector, in_memory=folder.parent == _MEMORY_FOLDER)
            here = there or replace(describe(), slots=_slots_of(spec))
            machine = replace(here, facts={**here.facts, **facts})
            restarts = self.cluster is None and query.topic is None
            yield SparkRun(budget, machine, source, expected, driver, layout, restarts)

    def deploy_shared(self, query: Query, budgets: Sequence[Budget]) -> AbstractContextManager[SparkRun]:
        """Deploy `query` once for all of `budgets`: on the largest; each can take its turn (`SparkRun.turn`)."""
        for budget in budgets:
            self.check(budget)
        return self.deploy(query, max(budgets, key=lambda budget: budget.slots))

    def _process(self, budget: Budget, places: Mapping[str, str]) -> DriverProcess:
        """Start the driver process, with its quota and its folders, which end with it and `places`."""
        remove_stale_groups()
        with ExitStack() as ours:  # until the driver's reaper owns them
            quota = self._quota(budget)
            if quota:
                ours.callback(quota.remove)
            disk = folder = Path(tempfile.mkdtemp(prefix=PREFIX))
            ours.callback(shutil.rmtree, disk, ignore_errors=True)
            in_memory = False
            with suppress(OSError):
                free = shutil.disk_usage(_MEMORY_FOLDER).free
                in_memory = os.access(_MEMORY_FOLDER, os.W_OK) and free >= _MEMORY_NEEDED
            if in_memory:
                folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=_MEMORY_FOLDER))
                ours.callback(shutil.rmtree, folder, ignore_errors=True)
            else:
                (folder := disk / "run").mkdir()
            ends_s = ENDS_ON_CLUSTER_S if self.cluster else ENDS_S
            here = [Path(path_of(place)) for place in places.values() if not (self.cluster or is_uri(place))]
            made = [above for place in here for above in place.parents if not is_there(above)]
            process = DriverProcess((folder, disk, *here), quota, ends_s, self.progress, self.check_owner, above=made)
            ours.pop_all()
        return process

    def _facts(self, query: Query, generator: object, connector: tuple[str, ...], *, in_memory: bool) -> dict[str, str]:
        """Describe the deployment, in addition to its machine."""
        facts = {"output mode": query.output_mode, "event time": "due time and own lateness"}
        if isinstance(generator, TopicRows):
            facts["event time"] = "the records' own"
            facts["source"] = (
                f"Spark's Kafka source, connector {connector_version(connector)}, offered by maxOffsetsPerTrigger"
            )
        if self.settings.listed:
            facts["settings of the job"] = self.settings.listed
        facts["sink"] = self.settings.writes.words
        replayed = generator if isinstance(generator, tuple) else (generator,)
        if any(isinstance(one, Replay) and not one.complete for one in replayed):
            facts["data"] = "only the first GiB of the data is replayed"
        if isinstance(generator, tuple):
            named = zip(query.inputs, generator, strict=True)
            shares = [f"{one.name} {units.percent(of.rows / of.period)}" for one, of in named if of.period]
            facts["inputs"] = f"{', '.join(shares)} of the rate, released in the order of their event times"
        facts["checkpoint"] = "in memory" if in_memory else "on this machine's disk"
        if place := self.cluster.checkpoint if self.cluster else self.settings.checkpoint:  # which is not named
            facts["checkpoint"] = place.partition(":")[0] if self.cluster or is_uri(place) else "in a folder of the job"
        return facts

    def _places(self, own: str) -> dict[str, str]:
        """Name a folder for the deployment `own` in each place that the job writes into, by the study's key."""
        named = dict(self.settings.places)
        if self.cluster:
            named["checkpoint"] = self.cluster.checkpoint
        return {
            key: f"{place.rstrip('/') if self.cluster or is_uri(place) else Path(path_of(place)).resolve()}/{own}"
            for key, place in named.items()
        }

    @contextmanager
    def _writes(self, query: Query, folder: str, own: str) -> Iterator[Writes]:
        """Yield where the deployment `own` writes, in `folder` if anywhere; make a topic, and delete it at exit."""
        sink = self.settings.writes
        if sink.warning:
            keeping(self.progress)(sink.warning)
        if sink.kind != "kafka":
            yield Writes(sink.kind, folder, query.sink)
            return
        asked, settings = kafka.Topic.parse(sink.place), kafka.client_settings()
        with topic_next_to(asked, own, settings) as topic:
            options = {f"kafka.{name}": value for name, value in kafka.java_settings(settings).items()}
            options |= {"kafka.bootstrap.servers": topic.servers, "topic": topic.name}
            yield Writes(sink.kind, topic.url, options=options)

    def _quota(self, budget: Budget) -> CpuQuota | None:
        if self.cluster or self.slot_cpus == "cores":
            return None
        try:
            return CpuQuota.create(f"{PREFIX}{os.getpid()}-{uuid.uuid4().hex[:8]}")
        except OSError as error:
            if budget.profile.cpus == int(budget.profile.cpus):
                return None
            raise WorkbenchError(
                f"Slots of {budget.profile.cpus:g} cores need a CPU quota, and this machine does not permit control "
                f"groups ({error.strerror}). Use slots of one whole core.",
                settings=("slot_cpus",),
            ) from error


def _slots_of(spec: DeploymentSpec) -> str:
    """Describe a slot of the deployment on this machine."""
    if not spec.quota:
        return "whole cores, no quota"
    allowed = os.sched_getaffinity(0)
    cores = len(slot_cores(spec.budget, allowed))
    return (
        f"a CPU quota of {spec.budget.cpus:g} cores for {units.some(spec.budget.slots, 'slot')} on {cores} of the "
        f"machine's cores, the driver {'on others' if cores < len(allowed) else 'on the same cores'}"
        f"{', the compiler apart' * spec.quota.v1}"
    )


def _rows_of(query: Query, disk: Path) -> Generator | TopicRows | tuple[Replay, ...]:
    """Return what feeds `query`; a topic is read into the columns of its sample, which is the query's data set."""
    if query.topic is None:
        if isinstance(query.dataset, tuple):
            return prepare_inputs(query.dataset, disk)
        return prepare(query.dataset, query.event_time, disk) if isinstance(query.dataset, Dataset) else query.dataset
    if not isinstance(query.dataset, Dataset):
        raise WorkbenchError(
            f"Query {query.name!r} reads a topic, so its data set must be a sample of it, which gives the columns. "
            "Capture one (workbench capture)."
        )
    schema = schema_of(query.dataset, query.event_time)
    if (schema.metadata or {}).get(ENCODED) == b"avro":
        raise WorkbenchError(
            f"Query {query.name!r} reads a topic of Avro values, which Spark's Kafka source does not decode by itself. "
            "Give it a sample that was captured without a schema, and decode the column value in your query; or "
            "replay the sample (source: replay).",
            settings=("source",),
        )
    columns = [column for column in schema if column.name != kafka.HEADERS]
    return TopicRows(query.topic, pa.schema(columns, schema.metadata))


def remove_stale_groups(base: Path = GROUPS) -> None:
    """Remove empty control groups of deployments whose owner has ended."""
    for hierarchy in {base, base / "cpu", base / "cpuacct", outer_limit(base).folder}:
        for group in hierarchy.glob(f"{PREFIX}*"):
            owner = group.name.removeprefix(PREFIX).split("-")[0]
            if owner.isdigit() and not Path(f"/proc/{owner}").exists():
                with suppress(OSError):
                    group.rmdir()
