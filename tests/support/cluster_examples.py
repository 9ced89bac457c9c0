"""Clusters of each kind that nobody answers for, and a budget that they could hold."""

from workbench.dataflow import Budget, SlotProfile
from workbench.testbed.spark import Cluster

MASTER, SHARED = "spark://m:7077", "hdfs://n/checkpoints"
STANDALONE = Cluster(MASTER, SHARED)
KUBERNETES = Cluster("k8s://https://api:6443", SHARED, executor_slots=2)
YARN = Cluster("yarn", SHARED, executor_slots=4)
FOUR = Budget(4, SlotProfile(1, 1024))
