"""Spark's configuration on a cluster: a pure function of the cluster and the budget, by the kind of its manager."""

import math
import os
import sys
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path

from workbench.dataflow import Budget
from workbench.errors import WorkbenchError
from workbench.records import ENVIRONMENT_PYTHON, as_environment
from workbench.testbed.spark.cluster.settings import Cluster

SLOTS = {
    "standalone": "cores that a standalone cluster counts but does not limit",
    "kubernetes": "cores that Kubernetes limits (CPU limit equal to the request)",
    "yarn": "cores that YARN counts but does not limit",
}
"""What a slot's cores are, by the kind of cluster; Kubernetes alone has hard limits."""

_POD = "spark.kubernetes.driver.pod.name"


def cluster_conf(cluster: Cluster, budget: Budget, address: str | None) -> dict[str, str]:
    """Return the settings that differ from those of a deployment on this machine."""
    count, executor = cluster.executors(budget)
    bound = {"spark.driver.bindAddress": address} if address else {}
    host = {"spark.driver.host": cluster.driver_host or address or ""}
    managers: Mapping[str, Callable[[Cluster, Budget], dict[str, str]]] = {
        "standalone": _standalone, "kubernetes": kubernetes, "yarn": yarn,
    }  # fmt: skip
    settings = managers[cluster.kind](cluster, budget)
    if cluster.environment is not None:
        archives = "spark.yarn.dist.archives" if cluster.kind == "yarn" else "spark.archives"
        settings |= {
            archives: as_environment(str(Path(cluster.environment).resolve())),
            "spark.pyspark.python": ENVIRONMENT_PYTHON,
            "spark.pyspark.driver.python": sys.executable,
        }
    return {
        **bound,
        **(host if any(host.values()) else {}),
        "spark.executor.instances": str(count),
        "spark.executor.cores": str(executor.millicores // 1000),
        "spark.executor.memory": f"{executor.heap_mb}m",
        "spark.task.cpus": str(int(budget.profile.cpus)),
        "spark.dynamicAllocation.enabled": "false",
        "spark.speculation": "false",
        # A busy worker starts Python slowly; Spark reads whole seconds only.
        "spark.python.authenticate.socketTimeout": f"{math.ceil(cluster.allocation_s)}s",
        **settings,
    }


def _standalone(cluster: Cluster, budget: Budget) -> dict[str, str]:
    count, executor = cluster.executors(budget)
    return {"spark.cores.max": str(count * executor.millicores // 1000)}


def yarn(cluster: Cluster, budget: Budget, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return what YARN needs in addition; its default calculator counts memory only, so cores are counters."""
    if not {"HADOOP_CONF_DIR", "YARN_CONF_DIR"} & environment.keys():
        raise WorkbenchError(
            "The master is 'yarn', but neither HADOOP_CONF_DIR nor YARN_CONF_DIR is set. Set one of them to the folder "
            "of your cluster's client configuration."
        )
    _, executor = cluster.executors(budget)
    return {"spark.submit.deployMode": "client", "spark.executor.memoryOverhead": f"{executor.overhead_mb}m"}


def kubernetes(cluster: Cluster, budget: Budget) -> dict[str, str]:
    """Return what Kubernetes needs in addition: its pods are requested as a plan exports them."""
    _, executor = cluster.executors(budget)
    return {
        "spark.submit.deployMode": "client",
        "spark.executor.memoryOverhead": f"{executor.overhead_mb}m",
        "spark.kubernetes.executor.request.cores": f"{executor.millicores}m",
        "spark.kubernetes.executor.limit.cores": f"{executor.millicores}m",
        "spark.kubernetes.executor.podNamePrefix": f"workbench-{uuid.uuid4().hex[:8]}",
    }


def owner(
    given: Callable[[str], str | None],
    environment: Mapping[str, str] = os.environ,
    namespace: Path = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace"),
) -> dict[str, str]:
    """Return the setting by which Kubernetes collects the executors with the pod that this process runs in."""
    pod = environment.get("HOSTNAME") if "KUBERNETES_SERVICE_HOST" in environment else None
    if not pod or given(_POD) or not namespace.is_file():
        return {}
    here = namespace.read_text(encoding="utf-8").strip()
    return {_POD: pod} if here == (given("spark.kubernetes.namespace") or "default") else {}


def merged_with_yours(cluster: Cluster, given: Callable[[str], str | None], java_options: str) -> dict[str, str]:
    """Return the settings that depend on those of your ``spark-defaults.conf``."""
    options = "spark.executor.extraJavaOptions"
    return {
        options: " ".join(filter(None, (given(options), java_options))),
        **(owner(given) if cluster.kind == "kubernetes" else {}),
    }
