"""Elastic executors (Elasticutor): how many cores, which ones, and how shards spread over them."""

from workbench.scaling.elastic.advice import ExecutorAdvice, advise_executors
from workbench.scaling.elastic.assignment import Assignment, assign_cores
from workbench.scaling.elastic.jackson import CoreAllocation, allocate_cores, erlang_c, jackson_latency
from workbench.scaling.elastic.shards import ShardPlan, rebalance_shards
from workbench.scaling.elastic.traffic import migrated_bytes, remote_transfer_rate, shard_migration_bytes

__all__ = [
    "Assignment",
    "CoreAllocation",
    "ExecutorAdvice",
    "ShardPlan",
    "advise_executors",
    "allocate_cores",
    "assign_cores",
    "erlang_c",
    "jackson_latency",
    "migrated_bytes",
    "rebalance_shards",
    "remote_transfer_rate",
    "shard_migration_bytes",
]
