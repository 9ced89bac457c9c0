"""A plan for other platforms: Kubernetes' Spark operator, a Databricks job, an EMR Serverless job.

Each is what the platform's own command reads as JSON. You fill in the names in capitals, and put `job` of the plan, or
your script, and the files of the study where they say. A platform that decides on a setting itself is not given it.
"""

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from workbench import units
from workbench.records.job_settings import JobSettings
from workbench.records.plan_parts import (
    DRIVER_CORES,
    DRIVER_HEAP_MB,
    ENVIRONMENT_PYTHON,
    Executor,
    InstanceType,
    as_environment,
)
from workbench.records.skeleton import module_file, script_of
from workbench.redaction import VARIABLE

if TYPE_CHECKING:
    from workbench.records.plan import CapacityPlan

DATABRICKS, EMR_SERVERLESS = "Databricks", "EMR Serverless"
"""Providers of a price list whose workers hold one executor each, and whose slots are whole virtual cores."""

EMR_WORKERS: Mapping[int, tuple[int, int, int]] = {
    1: (2, 8, 1),
    2: (4, 16, 1),
    4: (8, 30, 1),
    8: (16, 60, 4),
    16: (32, 120, 8),
}
"""Virtual cores of a worker of EMR Serverless; least and most memory with them and its step, GB. (EMR Serverless User
Guide, "Supported worker configurations".)"""

_MEMORY = "spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB"
_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_DATABRICKS_PROVIDER = "com.databricks.sql.streaming.state.RocksDBStateStoreProvider"
_OF_KUBERNETES = "spark.kubernetes."
_IN_FIELDS = (
    "spark.driver.cores",
    "spark.driver.memory",
    "spark.executor.cores",
    "spark.executor.instances",
    "spark.executor.memory",
    "spark.executor.memoryOverhead",
    "spark.kubernetes.executor.request.cores",
    "spark.kubernetes.executor.limit.cores",
)
_LONGEST = 50  # longest name in Kubernetes, to which pods add their own


def platforms(plan: "CapacityPlan") -> dict[str, dict[str, Any]]:
    """Return a plan in each platform's form, by platform; empty for a script that is not Python."""
    if not _application(plan)[0].endswith(".py"):
        return {}
    return {
        "spark_application": spark_application(plan),
        "databricks_job": databricks_job(plan),
        "emr_serverless_job": emr_serverless_job(plan),
    }


def spark_application(plan: "CapacityPlan") -> dict[str, Any]:
    """Return a ``SparkApplication`` for the Spark operator of Kubernetes, ``sparkoperator.k8s.io/v1beta2``."""
    conf, executor, settings = plan.spark_conf(), plan.executor, plan.settings or JobSettings()
    file, *arguments = _application(plan)
    deps = {
        "packages": [*plan.needed, *settings.packages],
        "jars": _in("FOLDER", settings.jars),
        "pyFiles": _in("FOLDER", (*_modules(plan), *settings.py_files)),
        "files": _in("FOLDER", settings.files),
    }
    if plan.environment is not None:
        deps["archives"] = [as_environment(f"FOLDER/{PurePath(plan.environment).name}")]
        conf["spark.pyspark.python"] = ENVIRONMENT_PYTHON
    cores = f"{executor.millicores}m"
    name = re.sub(r"[^a-z0-9]+", "-", f"{plan.query}-{plan.rate:.0f}".lower()).strip("-")[-_LONGEST:].strip("-")
    return {
        "apiVersion": "sparkoperator.k8s.io/v1beta2",
        "kind": "SparkApplication",
        "metadata": {"name": name or "query"},
        "spec": {
            "type": "Python",
            "pythonVersion": "3",
            "mode": "cluster",
            "sparkVersion": "SPARK-VERSION",
            "image": "CONTAINER-IMAGE",
            "mainApplicationFile": f"FOLDER/{file}",
            **({"arguments": arguments} if arguments else {}),
            "sparkConf": {key: value for key, value in conf.items() if key not in _IN_FIELDS},
            "deps": {key: value for key, value in deps.items() if value},
            "restartPolicy": {"type": "Never" if plan.run is not None else "Always"},
            "driver": {
                "cores": math.ceil(DRIVER_CORES),
                "memory": conf["spark.driver.memory"],
                "serviceAccount": "SERVICE-ACCOUNT",
            },
            "executor": {
                "instances": plan.executors,
                "cores": int(conf["spark.executor.cores"]),
                "coreRequest": cores,
                "coreLimit": cores,
                "memory": conf["spark.executor.memory"],
                "memoryOverhead": conf["spark.executor.memoryOverhead"],
            },
        },
    }


def databricks_job(plan: "CapacityPlan") -> dict[str, Any]:
    """Return a job with a cluster of its own, as Databricks' jobs API creates it.

    A worker holds one executor, whose slots are whole virtual cores. Secrets come from a secret scope.
    """
    settings, priced = plan.settings or JobSettings(), _priced(plan, DATABRICKS)
    whole = math.ceil(plan.budget.profile.cpus)
    cores = {"spark.executor.cores": str(plan.executor.slots * whole), "spark.task.cpus": str(whole)}
    file, *arguments = _application(plan)
    theirs = {"spark.driver.cores", "spark.driver.memory", "spark.executor.instances", "spark.executor.memoryOverhead"}
    conf = {
        key: VARIABLE.sub(r"{{secrets/SCOPE/\1}}", value)
        for key, value in (plan.spark_conf() | cores).items()
        if key not in theirs and not key.startswith(_OF_KUBERNETES)
    }
    if _PROVIDER in conf:
        conf[_PROVIDER] = _DATABRICKS_PROVIDER
    if settings.files:
        conf["spark.files"] = ",".join(_in("/Volumes/FOLDER", settings.files))
    node = "NODE-TYPE" if priced is None else priced.name
    libraries = [
        *({"maven": {"coordinates": one}} for one in settings.packages),
        *({"jar": one} for one in _in("/Volumes/FOLDER", settings.jars)),
    ]
    return {
        "name": f"{plan.query} at {units.rate(plan.rate)}",
        "max_concurrent_runs": 1,
        **({} if plan.run is not None else {"continuous": {"pause_status": "UNPAUSED"}}),
        "job_clusters": [
            {
                "job_cluster_key": "planned",
                "new_cluster": {
                    "spark_version": "RUNTIME-VERSION",
                    "node_type_id": node,
                    "driver_node_type_id": node,
                    "num_workers": plan.executors,
                    "spark_conf": conf,
                },
            }
        ],
        "tasks": [
            {
                "task_key": "query",
                "job_cluster_key": "planned",
                "spark_python_task": {
                    "python_file": f"/Workspace/FOLDER/{file}",
                    **({"parameters": arguments} if arguments else {}),
                },
                **({"libraries": libraries} if libraries else {}),
            }
        ],
    }


def emr_serverless_job(plan: "CapacityPlan") -> dict[str, Any]:
    """Return the request that starts a job on an application of EMR Serverless (``StartJobRun``).

    Its workers have 1, 2, 4, 8 or 16 virtual cores, all of which run tasks: where the plan's slots are fewer, each
    takes several, and where they are not a power of two, there are more of them.
    """
    settings = plan.settings or JobSettings()
    slots, vcpus, memory_gb = _emr_worker(plan)
    file, *arguments = _application(plan)
    executor = Executor(slots, plan.budget.profile)
    conf = {key: value for key, value in plan.spark_conf().items() if not key.startswith(_OF_KUBERNETES)} | {
        "spark.driver.memoryOverhead": f"{EMR_WORKERS[1][0] * 1024 - DRIVER_HEAP_MB}m",
        "spark.executor.cores": str(vcpus),
        "spark.task.cpus": str(vcpus // slots),
        "spark.executor.instances": str(math.ceil(plan.budget.slots / slots)),
        "spark.executor.memory": f"{executor.heap_mb}m",
        "spark.executor.memoryOverhead": f"{1024 * memory_gb - executor.heap_mb}m",
    }
    if packages := (*plan.needed, *settings.packages):
        conf["spark.jars.packages"] = ",".join(packages)
    if modules := (*_modules(plan), *settings.py_files):
        conf["spark.submit.pyFiles"] = ",".join(_in("s3://BUCKET", modules))
    if _MEMORY in conf:
        conf[_MEMORY] = str(executor.rocksdb_mb)
    for key, paths in (("spark.jars", settings.jars), ("spark.files", settings.files)):
        if paths:
            conf[key] = ",".join(_in("s3://BUCKET", paths))
    if plan.environment is not None:
        conf["spark.archives"] = as_environment(f"s3://BUCKET/{PurePath(plan.environment).name}")
        for name in ("spark.emr-serverless.driverEnv.PYSPARK_PYTHON", "spark.executorEnv.PYSPARK_PYTHON"):
            conf[name] = ENVIRONMENT_PYTHON
    return {
        "applicationId": "APPLICATION-ID",
        "executionRoleArn": "EXECUTION-ROLE-ARN",
        "name": f"{plan.query} at {units.rate(plan.rate)}"[:256],
        "mode": "STREAMING" if plan.run is None else "BATCH",
        "jobDriver": {
            "sparkSubmit": {
                "entryPoint": f"s3://BUCKET/{file}",
                **({"entryPointArguments": arguments} if arguments else {}),
            }
        },
        "configurationOverrides": {
            "applicationConfiguration": [{"classification": "spark-defaults", "properties": conf}]
        },
    }


def _emr_worker(plan: "CapacityPlan") -> tuple[int, int, int]:
    """Return the slots, virtual cores and GB of a worker: the priced one, or the smallest that holds them."""
    priced = _priced(plan, EMR_SERVERLESS)
    if priced is not None and plan.price is not None:
        return plan.price.slots_per_worker, round(priced.vcpus), round(priced.memory_mb / 1024)
    whole = math.ceil(plan.budget.profile.cpus)
    slots: int = 2 ** math.ceil(math.log2(plan.executor.slots))
    while slots > 1:
        if (found := _emr_size(slots, whole, plan)) is not None:
            return slots, *found
        slots //= 2
    return 1, *(_emr_size(1, whole, plan) or (max(EMR_WORKERS), EMR_WORKERS[max(EMR_WORKERS)][1]))


def _emr_size(slots: int, whole: int, plan: "CapacityPlan") -> tuple[int, int] | None:
    """Return the virtual cores and GB of the smallest worker that holds `slots`; None if none does."""
    needed_mb = Executor(slots, plan.budget.profile).memory_mb
    for vcpus, (least, most, step) in EMR_WORKERS.items():
        memory_gb = max(least, step * math.ceil(needed_mb / 1024 / step))
        if vcpus >= slots * whole and memory_gb <= most:
            return vcpus, memory_gb
    return None


def _priced(plan: "CapacityPlan", provider: str) -> InstanceType | None:
    """Return the worker type of the plan if it is that provider's."""
    return plan.price.instance if plan.price is not None and plan.price.instance.provider == provider else None


def _application(plan: "CapacityPlan") -> tuple[str, ...]:
    """Return the file to start, with its arguments: the skeleton, or the script."""
    file, *arguments = script_of(plan.query) or ("job.py",)
    return PurePath(file).name, *arguments


def _modules(plan: "CapacityPlan") -> tuple[str, ...]:
    """Return the file of the query's own module, which the job imports; empty for a script."""
    return () if script_of(plan.query) else (module_file(plan.query),)


def _in(folder: str, paths: Sequence[str]) -> list[str]:
    """Return the paths of the files at `paths` in `folder` of a platform."""
    return [f"{folder}/{PurePath(path).name}" for path in paths]
