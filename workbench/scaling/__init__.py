"""Scaling policies: functions from metrics to a configuration."""

from workbench.scaling._ds2 import Ds2Decision, ds2
from workbench.scaling._justin import JustinVariant, MemoryState, StateMetrics, justin, managed_memory_mb
from workbench.scaling._replay import compare, replay
from workbench.scaling.autoscaler import (
    CAPSYS,
    FLINK,
    JUSTIN,
    AutoscalerSettings,
    LimitedProposal,
    PendingScaleDown,
    is_due,
    limit_parallelism,
    needs_scaling,
    planned_rates,
)
from workbench.scaling.controller import Controller, Strategy
from workbench.scaling.ds2_policy import Ds2Policy
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
from workbench.scaling.explain import JustinExplanation, explain_justin
from workbench.scaling.fleet import Fleet
from workbench.scaling.justin_policy import JustinPolicy
from workbench.scaling.packing import Packing, TaskDemand, WorkerShape, pack_tasks
from workbench.scaling.policies import Answer, Decision, Policy, Scheduled, Static, Window
from workbench.scaling.timeline import Reconfiguration, Timeline

__all__ = [
    "CAPSYS",
    "FLINK",
    "JUSTIN",
    "Answer",
    "Assignment",
    "AutoscalerSettings",
    "Controller",
    "CoreAllocation",
    "Decision",
    "Ds2Decision",
    "Ds2Policy",
    "ExecutorAdvice",
    "Fleet",
    "JustinExplanation",
    "JustinPolicy",
    "JustinVariant",
    "LimitedProposal",
    "MemoryState",
    "Packing",
    "PendingScaleDown",
    "Policy",
    "Reconfiguration",
    "Scheduled",
    "ShardPlan",
    "StateMetrics",
    "Static",
    "Strategy",
    "TaskDemand",
    "Timeline",
    "Window",
    "WorkerShape",
    "advise_executors",
    "allocate_cores",
    "assign_cores",
    "compare",
    "ds2",
    "erlang_c",
    "explain_justin",
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
    "replay",
    "shard_migration_bytes",
]
