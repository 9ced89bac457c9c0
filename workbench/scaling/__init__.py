"""Scaling policies: functions from metrics to a configuration."""

from workbench.scaling.elastic import (
    Assignment,
    CoreAllocation,
    ExecutorAdvice,
    ShardPlan,
    advise_executors,
    allocate_cores,
    assign_cores,
    erlang_c,
    jackson_latency,
    migrated_bytes,
    rebalance_shards,
    remote_transfer_rate,
    shard_migration_bytes,
)

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
