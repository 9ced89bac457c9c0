"""Spark's configuration on a cluster: a pure function of the cluster and the budget."""

import math
from collections.abc import Callable
from types import ModuleType

from workbench.dataflow import Budget
from workbench.testbed.spark.cluster import environment, kubernetes, standalone, yarn
from workbench.testbed.spark.cluster.settings import Cluster

_MODULES = {"standalone": standalone, "kubernetes": kubernetes, "yarn": yarn}


def manager(cluster: Cluster) -> ModuleType:
    """Return the module of the cluster's manager; each has ``DEDICATED``, ``SLOTS``, ``conf`` and ``waiting``."""
    return _MODULES[cluster.kind]


def cluster_conf(cluster: Cluster, budget: Budget, address: str | None) -> dict[str, str]:
    """Return the settings that differ from those of a deployment on this machine."""
    count, executor = cluster.executors(budget)
    bound = {"spark.driver.bindAddress": address} if address else {}
    host = {"spark.driver.host": cluster.driver_host or address or ""}
    settings: dict[str, str] = manager(cluster).conf(cluster, budget)
    if cluster.environment is not None:
        settings |= environment.conf(cluster.environment, cluster.kind)
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


def beside_yours(cluster: Cluster, given: Callable[[str], str | None], java_options: str) -> dict[str, str]:
    """Return the settings that depend on those of your ``spark-defaults.conf``."""
    options = "spark.executor.extraJavaOptions"
    return {
        options: " ".join(filter(None, (given(options), java_options))),
        **(kubernetes.owner(given) if cluster.kind == "kubernetes" else {}),
    }
