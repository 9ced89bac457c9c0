"""Kubernetes: the one cluster manager whose limits on cores are hard. Its pods are requested as a plan exports them."""

import os
import uuid
from collections.abc import Mapping

from workbench.dataflow import Budget
from workbench.errors import WorkbenchError
from workbench.testbed.spark.cluster.settings import Cluster, asked

DEDICATED = True
SLOTS = "cores that Kubernetes limits (CPU limit equal to the request)"


def conf(cluster: Cluster, budget: Budget, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return what this kind of cluster needs in addition to the settings of every cluster.

    If this process runs in a pod, executors are owned by that pod, so that Kubernetes collects them with it.

    Parameters
    ----------
    environment
        Environment variables of the driver.
    """
    _, executor = cluster.executors(budget)
    pod = environment.get("HOSTNAME") if "KUBERNETES_SERVICE_HOST" in environment else None
    return {
        "spark.submit.deployMode": "client",
        "spark.executor.memoryOverhead": f"{executor.overhead_mb}m",
        "spark.kubernetes.executor.request.cores": f"{executor.millicores}m",
        "spark.kubernetes.executor.limit.cores": f"{executor.millicores}m",
        "spark.kubernetes.executor.podNamePrefix": f"workbench-{uuid.uuid4().hex[:8]}",
        **({"spark.kubernetes.driver.pod.name": pod} if pod else {}),
    }


def waiting(cluster: Cluster, budget: Budget, got: int) -> WorkbenchError:
    """Return the error for executors that were not given in time."""
    count, executor = cluster.executors(budget)
    return WorkbenchError(
        f"Kubernetes started {got} of {asked(count, executor)} ({executor.memory_mb} MB per pod) within "
        f"{cluster.allocation_s:g} s; nothing was measured. 'kubectl get pods' and 'kubectl describe pod' show whether "
        "the pods wait for room, for their image or for a permission.",
        settings=("slots", "memory_mb", "allocation_s"),
    )
