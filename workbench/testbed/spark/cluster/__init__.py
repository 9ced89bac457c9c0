"""A cluster as a testbed: what is requested of it, what it offers, and how code and state get there."""

from workbench.testbed.spark.cluster.executors import (
    await_executors,
    check_room,
    compilers,
    describe_workers,
    refused,
    registered,
)
from workbench.testbed.spark.cluster.settings import LOCAL, Cluster, cluster_conf, merged_with_yours
from workbench.testbed.spark.cluster.storage import (
    cause_of,
    check_log_folder,
    check_shared,
    copy_into,
    names_in,
    pack,
    remove,
    stand_in,
)
