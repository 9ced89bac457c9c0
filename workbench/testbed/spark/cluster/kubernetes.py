"""Kubernetes: the one cluster manager whose limits on cores are hard. Its pods are requested as a plan exports them."""

import os
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path

from workbench.dataflow import Budget
from workbench.errors import WorkbenchError
from workbench.testbed.spark.cluster.settings import Cluster, asked

DEDICATED = True
_POD = "spark.kubernetes.driver.pod.name"
SLOTS = "cores that Kubernetes limits (CPU limit equal to the request)"


def conf(cluster: Cluster, budget: Budget) -> dict[str, str]:
    """Return what this kind of cluster needs in addition to the settings of every cluster."""
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


def waiting(cluster: Cluster, budget: Budget, got: int) -> WorkbenchError:
    """Return the error for executors that were not given in time."""
    count, executor = cluster.executors(budget)
    return WorkbenchError(
        f"Kubernetes started {got} of {asked(count, executor)} ({executor.memory_mb:,} MB per pod) within "
        f"{cluster.allocation_s:g} s; nothing was measured. 'kubectl get pods' and 'kubectl describe pod' show whether "
        "the pods wait for room, for their image or for a permission.",
        settings=("slots", "memory_mb", "allocation_s"),
    )
