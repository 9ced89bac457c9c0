"""What to deploy for a rate: slots, memory, layout, executors, price, trigger interval."""

from workbench.capacity.planning._plan import Answer, Question, ask, common_range, plan
from workbench.capacity.planning.checks import check_keys, fixed_time, goes_by, hot_key
from workbench.capacity.planning.compared import compare_forms, fitted_form
from workbench.capacity.planning.intervals import (
    IntervalPoint,
    IntervalSpeedup,
    interval_points,
    interval_speedups,
    sweep,
)
from workbench.capacity.planning.judged import capacity_at, falls_short, margin_of, on_cores
from workbench.capacity.planning.stages import batch_of, follow, in_turns
from workbench.capacity.planning.workers import COLUMNS as PRICE_COLUMNS
from workbench.capacity.planning.workers import (
    Cluster,
    cheapest,
    in_executors,
    pack,
    read_instances,
    room_for,
    slots_per_worker,
)
from workbench.records import BatchLayout, CapacityPlan, InstanceType, Stage
