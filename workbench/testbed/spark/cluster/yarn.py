"""YARN: its default calculator counts memory only, so cores are counters."""

import os
from collections.abc import Mapping

from workbench.dataflow import Budget
from workbench.errors import WorkbenchError
from workbench.testbed.spark.cluster.settings import Cluster, asked

DEDICATED = False
SLOTS = "cores that YARN counts but does not limit"


def conf(cluster: Cluster, budget: Budget, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return what this kind of cluster needs in addition to the settings of every cluster."""
    if not {"HADOOP_CONF_DIR", "YARN_CONF_DIR"} & environment.keys():
        raise WorkbenchError(
            "The master is 'yarn', but neither HADOOP_CONF_DIR nor YARN_CONF_DIR is set. Set one of them to the folder "
            "of your cluster's client configuration."
        )
    _, executor = cluster.executors(budget)
    return {
        "spark.submit.deployMode": "client",
        "spark.executor.memoryOverhead": f"{executor.overhead_mb}m",
    }


def waiting(cluster: Cluster, budget: Budget, got: int) -> WorkbenchError:
    """Return the error for executors that were not given in time."""
    count, executor = cluster.executors(budget)
    return WorkbenchError(
        f"YARN started {got} of {asked(count, executor)} ({executor.memory_mb:,} MB per container) within "
        f"{cluster.allocation_s:g} s; nothing was measured. 'yarn application -list' shows whether the queue has room.",
        settings=("slots", "memory_mb", "allocation_s"),
    )
