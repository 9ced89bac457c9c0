"""What to deploy for a rate: slots, memory, layout, executors, price, trigger interval."""

from workbench.capacity.planning._hot_key import hot_key
from workbench.capacity.planning._plan import plan
from workbench.capacity.planning.at_interval import capacity_at, risks_at
from workbench.capacity.planning.checks import check_allocation, check_keys, check_layouts, check_source
from workbench.capacity.planning.cluster import Cluster, pack
from workbench.capacity.planning.compared import compare_forms, fitted_form
from workbench.capacity.planning.cores import on_cores
from workbench.capacity.planning.day import follow
from workbench.capacity.planning.executor import in_executors, kubernetes_reserve, slots_per_worker
from workbench.capacity.planning.intervals import (
    IntervalPoint,
    IntervalSpeedup,
    interval_points,
    interval_speedups,
    sweep,
)
from workbench.capacity.planning.margin import margin_of
from workbench.capacity.planning.prices import COLUMNS as PRICE_COLUMNS
from workbench.capacity.planning.prices import cheapest, prices, read_instances, room_for
from workbench.capacity.planning.stages import batch_of, in_turns, source_share, stages_of, unstaged_s
from workbench.capacity.planning.verdict import falls_short
from workbench.capacity.planning.what_if import Answer, Question, ask, common_range
from workbench.records import (
    HOURS_PER_MONTH,
    BatchLayout,
    CapacityPlan,
    Executor,
    InstanceType,
    Price,
    Stage,
)

__all__ = [
    "HOURS_PER_MONTH",
    "PRICE_COLUMNS",
    "Answer",
    "BatchLayout",
    "CapacityPlan",
    "Cluster",
    "Executor",
    "InstanceType",
    "IntervalPoint",
    "IntervalSpeedup",
    "Price",
    "Question",
    "Stage",
    "ask",
    "batch_of",
    "capacity_at",
    "cheapest",
    "check_allocation",
    "check_keys",
    "check_layouts",
    "check_source",
    "common_range",
    "compare_forms",
    "falls_short",
    "fitted_form",
    "follow",
    "hot_key",
    "in_executors",
    "in_turns",
    "interval_points",
    "interval_speedups",
    "kubernetes_reserve",
    "margin_of",
    "on_cores",
    "pack",
    "plan",
    "prices",
    "read_instances",
    "risks_at",
    "room_for",
    "slots_per_worker",
    "source_share",
    "stages_of",
    "sweep",
    "unstaged_s",
]
