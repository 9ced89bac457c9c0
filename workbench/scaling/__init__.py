"""Scaling policies: functions from metrics to a configuration, and their replay on a load that changes."""

from workbench.scaling._justin import (
    BASE_MEMORY_MB,
    JustinDecision,
    JustinVariant,
    MemoryState,
    StateMetrics,
    justin,
    justin_decisions,
)
from workbench.scaling._replay import Fleet, WorkerShape, replay
from workbench.scaling.autoscaler import FLINK, JUSTIN, AutoscalerSettings
from workbench.scaling.controller import Controller, Strategy
from workbench.scaling.ds2_policy import Ds2Decision, Ds2Policy, JustinPolicy, ds2
from workbench.scaling.elastic import (
    Assignment,
    CoreAllocation,
    ShardPlan,
    advise_executors,
    allocate_cores,
    assign_cores,
    erlang_c,
    jackson_latency,
    rebalance_shards,
)
from workbench.scaling.in_practice import DynamicAllocation, KafkaLag
from workbench.scaling.policies import AnyPolicy, Decision, Static, Window
from workbench.scaling.timeline import Reconfiguration, Timeline
