"""A capacity plan: what to deploy for a rate, and its document."""

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.checks import shown
from workbench.dataflow import Budget
from workbench.errors import WorkbenchError
from workbench.reading import parse_json
from workbench.records.documents import check_version, structure, unstructure
from workbench.records.job_settings import JobSettings, shell_setting
from workbench.records.measurement import Measurement
from workbench.records.plan_parts import (
    DRIVER_CORES,
    DRIVER_HEAP_MB,
    ENVIRONMENT_PYTHON,
    MEASURED,
    Allocation,
    BatchLayout,
    CountedCores,
    Day,
    EndingRun,
    Executor,
    ModelFinding,
    Outage,
    PlanVerdict,
    Price,
    as_environment,
    state_settings,
)
from workbench.records.platforms import platforms
from workbench.records.skeleton import NEEDED, ScriptFacts, module_file, script_of, skeleton

VERSION = 2
_DERIVED = ("version", "spark_conf", "kubernetes", "spark_submit", "job", "platforms")
_PROGRAMS: Mapping[str, tuple[str, str]] = {
    ".py": ("spark-submit", ""),
    ".sql": ("spark-sql", "-f "),
    ".yml": ("spark-pipelines run", "--spec "),
    ".yaml": ("spark-pipelines run", "--spec "),
}
"""The command that starts a script, by the end of its name, and the option that names it."""


@dataclass(frozen=True)
class CapacityPlan:
    """What to deploy for a rate."""

    query: str
    rate: float
    margin: float  # capacity must be this many times the rate
    budget: Budget
    expected_rate: float  # predicted capacity, records/s; `low` and `high`: the ends of its 90 % interval
    low: float
    high: float
    form: str
    testbed: str  # where its runs were made, and its kind: ``"spark"``, ``"fluid"``, ``"recorded"`` or ``"observed"``
    testbed_kind: str
    runs: int
    extrapolation: float
    executors: int = 1
    allocation: Allocation | None = None  # tasks by operator, for an engine whose operators run in parallel
    layout: BatchLayout | None = None
    price: Price | None = None
    # median of measured / predicted rate of the optimizer's objective in the runs; None without
    overstatement: float | None = None
    # share of the slots' busy time that the measuring source took, for which the plan has slots, too; None where
    # sources are not among the slots
    source_share: float | None = None
    cards: tuple[ModelFinding, ...] = ()
    # slots that carry the lowest load, where one was given, with the state's partition count in `layout`, which the
    # checkpoint freezes; and partitions by stage to restart with on them
    low_slots: int | None = None
    low_layout: BatchLayout | None = None
    stateful: bool = False
    outage: Outage | None = None
    batch_parts: Mapping[str, float] | None = None  # seconds of a batch at `rate` by their cause, if known
    # fewest slots that carry the rate with its margin, in whole executors where their size was measured; `budget` may
    # have more of those that are paid for anyway
    least_slots: int | None = None
    verdict: PlanVerdict | None = None
    day: Day | None = None  # the load whose peak is the rate, and the slots that follow it
    environment: str | None = None  # name of the archive of packages that the executors were and are given
    executor_slots: int | None = None  # slots of each executor, as in the runs; None: one executor for each worker
    cores: CountedCores | None = None  # the plan's cores; None if those measured were not timed
    run: EndingRun | None = None  # the run that ends in time at `rate`; None: the query runs continuously
    settings: JobSettings | None = None  # what your job brings along, and was measured with; None: nothing
    inputs: Mapping[str, float] | None = None  # shares of the rate by input, where the query has several
    script: ScriptFacts | None = None  # facts about the script that it starts, if any

    def catch_up_s(self, outage_s: float, capacity: float | None = None) -> float:
        """Seconds until the backlog of an outage is gone at `capacity`, or the expected; inf without spare capacity."""
        spare = (self.expected_rate if capacity is None else capacity) - self.rate
        return outage_s * self.rate / spare if spare > 0 else math.inf

    def latency_s(self, share: float) -> float:
        """Seconds from a record's arrival to the end of its batch that `share` of the records do not exceed, at `rate`.

        A record waits for the next trigger, evenly up to one interval, and then for its batch to end; inf above the
        capacity, where the wait grows without end.
        """
        interval, used = self.budget.interval_s, self.rate / self.expected_rate
        if used > 1:
            return math.inf
        laid_out = 0.0 if self.layout is None else self.layout.batch_s.get(self.budget.slots, 0.0)
        batch_s = sum(self.batch_parts.values()) if self.batch_parts else max(used * interval, laid_out)
        return share * interval + batch_s

    @property
    def executor(self) -> Executor:
        """One of the executors; slots are distributed evenly, so some may be unused."""
        return Executor(self.executor_slots or math.ceil(self.budget.slots / self.executors), self.budget.profile)

    def spark_conf(self) -> dict[str, str]:
        """Spark's configuration for the plan: executors, memory, state store, partitions.

        Source partitions and ``repartition`` counts are not configuration: see ``layout``. Nor is the trigger interval,
        which the query's ``writeStream.trigger`` takes.
        """
        executor = self.executor
        cores = self.budget.profile.cpus
        whole = int(cores) if cores == int(cores) else 1  # a fraction of a core belongs to the container, not to Spark
        conf = {
            "spark.driver.cores": f"{DRIVER_CORES:g}",
            "spark.driver.memory": f"{DRIVER_HEAP_MB // 1024}g",
            "spark.executor.instances": str(self.executors),
            "spark.executor.cores": str(executor.slots * whole),
            "spark.task.cpus": str(whole),
            "spark.executor.memory": f"{executor.heap_mb}m",
            "spark.executor.memoryOverhead": f"{executor.overhead_mb}m",
            "spark.kubernetes.executor.request.cores": f"{executor.millicores}m",
            "spark.kubernetes.executor.limit.cores": f"{executor.millicores}m",
            "spark.dynamicAllocation.enabled": "false",
            "spark.sql.shuffle.partitions": str(self.budget.slots),
        }
        if self.layout is not None:
            conf |= self.layout.spark_conf()
        if self.has_interval:
            conf |= MEASURED
        if self.stateful:
            conf |= state_settings(executor.rocksdb_mb)
        return conf if self.settings is None else self.settings.conf(conf)

    def job(self) -> str:
        """Return the skeleton of the job in Python: trigger, source partitions, checkpoint, and the admission cap.

        The cap is what the capacity admits in one interval, so that after an outage batches last no longer than that.
        You fill in the names in capitals. For a script, it is a text on what the script must set.
        """
        return skeleton(self)

    @property
    def watched(self) -> str:
        """Name under which the query runs: a script's own, else the plan's."""
        return (self.script.name if self.script is not None else "") or self.query

    @property
    def needed(self) -> tuple[str, ...]:
        """The packages that its sources and its sink need."""
        writes = (self.settings or JobSettings()).writes.kind  # measured with noop, its own sink may be a topic
        reads = () if self.script is None else self.script.reads
        return () if reads and "kafka" not in reads and writes not in {"kafka", "noop"} else (NEEDED,)

    def command(self) -> str:
        """Return the shell command that starts the skeleton `job`, or the script, with what source and query need."""
        if (script := script_of(self.query)) is not None:
            program, option = next((one for end, one in _PROGRAMS.items() if script[0].endswith(end)), _PROGRAMS[".py"])
            application = f"{option}{shlex.join(script)}"
            return self.spark_submit(application, packages=self.needed, program=program)
        return self.spark_submit(packages=(NEEDED,), py_files=(module_file(self.query),))

    def spark_submit(
        self,
        application: str = "job.py",
        master: str = "k8s://https://API-SERVER",
        *,
        packages: Sequence[str] = (),
        py_files: Sequence[str] = (),
        program: str = "spark-submit",
    ) -> str:
        """Return the shell command that starts `application`, with its arguments, as planned.

        `packages` and `py_files` are what it needs in addition to what your job brings along. You fill in the names in
        capitals: your cluster's address and, on Kubernetes, the image. The shell replaces variables that settings name.
        """
        conf, mode = self.spark_conf(), []
        if master.startswith("k8s://"):
            conf["spark.kubernetes.container.image"] = "CONTAINER-IMAGE"
            mode = ["--deploy-mode cluster"] * (program == "spark-submit")  # other drivers stay where they start
        if self.environment is not None:
            conf["spark.pyspark.python"] = ENVIRONMENT_PYTHON
            if not mode:  # the driver has nothing unpacked
                conf["spark.pyspark.driver.python"] = "python3"
            mode.append(f"--archives {shlex.quote(as_environment(self.environment))}")
        needs = (self.settings or JobSettings()).options(packages, py_files)
        options = [shell_setting(key, value) for key, value in sorted(conf.items())]
        return " \\\n  ".join([program, f"--master {shlex.quote(master)}", *mode, *needs, *options, application])

    def kubernetes(self) -> dict[str, dict[str, dict[str, str]]]:
        """Resource requests and limits of one executor's container, as `spark_submit` has Spark request them."""
        both = {"cpu": f"{self.executor.millicores}m", "memory": f"{self.executor.memory_mb}Mi"}
        return {"resources": {"requests": dict(both), "limits": dict(both)}}

    @property
    def on_other_cores(self) -> bool:
        """Whether the plan uses other cores than those measured, which the model does not cover."""
        return self.cores is not None and self.cores.other

    @property
    def simulated(self) -> bool:
        """Whether the runs behind it were simulated."""
        return self.testbed_kind == "fluid"

    @property
    def has_interval(self) -> bool:
        """Whether a trigger interval is part of the plan: a simulated engine has none, and a table names none."""
        return self.testbed_kind not in {"fluid", "recorded"}

    def to_json(self) -> str:
        """Write the plan as JSON text, with Spark's settings for it."""
        return json.dumps(plan_to_dict(self), allow_nan=False, indent=1)

    @classmethod
    def from_json(cls, text: str) -> "CapacityPlan":
        """Read what `to_json` wrote."""
        try:
            data = parse_json(text)
        except ValueError as error:
            raise WorkbenchError(f"The plan is not JSON: {error}. Plan again with workbench plan.") from error
        return plan_from_dict(data)


def deployed(measured: Measurement, rate: float | None = None) -> CapacityPlan:
    """Return a measured deployment as a plan: for the rate that it sustained, or for `rate`, records/s.

    Its state's partitions are not frozen: the measurement has left no checkpoint. Raises `WorkbenchError` when it
    sustained no rate.
    """
    estimate, seen = measured.estimate, measured.estimate.observation
    if estimate.rate is None or seen is None or not seen.operators:
        raise WorkbenchError(
            f"The measurement of {measured.query!r} sustained no rate, so its operators' costs are unknown; measure "
            "again."
        )
    allocation = None if measured.tasks is None else Allocation(dict(measured.tasks), estimate.middle)
    return CapacityPlan(
        measured.query,
        estimate.low if rate is None else rate,
        1.0,
        measured.budget,
        estimate.middle,
        estimate.low,
        estimate.high,
        "measured",
        measured.testbed,
        measured.testbed_kind,
        1,
        1.0,
        allocation=allocation,
        stateful=any(one.keeps_state for one in seen.operators),
    )


def plan_to_dict(plan: CapacityPlan) -> dict[str, Any]:
    """Plain JSON values of `plan`, with Spark's settings for it."""
    return {
        **unstructure(plan),
        "version": VERSION,
        "spark_conf": plan.spark_conf(),
        "kubernetes": plan.kubernetes(),
        "spark_submit": plan.command(),
        **({"job": plan.job(), "platforms": platforms(plan)} if not plan.simulated else {}),
    }


def plan_from_dict(data: object, what: str = "The plan") -> CapacityPlan:
    """Build a plan from plain JSON values; `what` names it in errors."""
    if not isinstance(data, Mapping):
        raise WorkbenchError(f"{what} is {shown(data)}, not an object with a rate and a budget; plan again.")
    check_version(data.get("version"), VERSION, f"{what} has", "Plan again with workbench plan.")
    return structure({name: value for name, value in data.items() if name not in _DERIVED}, CapacityPlan, what)
