"""Scaling policies: functions from metrics to a configuration."""

from workbench.scaling._ds2 import (
    Ds2Decision,
    ds2,
)
from workbench.scaling._justin import (
    JustinVariant,
    MemoryState,
    StateMetrics,
    justin,
    managed_memory_mb,
)
from workbench.scaling.autoscaler import (
    AutoscalerSettings,
    LimitedProposal,
    PendingScaleDown,
    is_due,
    limit_parallelism,
    needs_scaling,
    planned_rates,
)
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
from workbench.scaling.packing import (
    Packing,
    TaskDemand,
    WorkerShape,
    pack_tasks,
)

__all__ = [
    "Assignment",
    "AutoscalerSettings",
    "CoreAllocation",
    "Ds2Decision",
    "ExecutorAdvice",
    "JustinVariant",
    "LimitedProposal",
    "MemoryState",
    "Packing",
    "PendingScaleDown",
    "ShardPlan",
    "StateMetrics",
    "TaskDemand",
    "WorkerShape",
    "advise_executors",
    "allocate_cores",
    "assign_cores",
    "ds2",
    "erlang_c",
    "is_due",
    "jackson_latency",
    "justin",
    "limit_parallelism",
    "managed_memory_mb",
    "migrated_bytes",
    "needs_scaling",
    "pack_tasks",
    "planned_rates",
    "rebalance_shards",
    "remote_transfer_rate",
    "shard_migration_bytes",
]
