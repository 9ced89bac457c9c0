"""Where tasks go: the cost of a placement, its search, and what ordinary schedulers do instead."""

from workbench.placement._caps import ThresholdTable, caps, tune_range
from workbench.placement._compiled import must_compile
from workbench.placement._effort import stopping_when
from workbench.placement._odrp import ODRP_SETTINGS, OdrpWeights, Setting, odrp
from workbench.placement._search import SearchResult, preference, search
from workbench.placement.baselines import flink_default, flink_evenly, query_by_query, random_slots, round_robin
from workbench.placement.comparison import Compared, Comparison, compare
from workbench.placement.counting import count_plans, count_within
from workbench.placement.exact import OptimalPlan, optimal
from workbench.placement.given import PlacementInput
from workbench.placement.groups import (
    GroupAllocation,
    Job,
    best_allocation,
    naive,
    task_level,
    top_down,
)
from workbench.placement.inputs import placed_together, read_placement_input, shapes_of, thresholds_of
from workbench.placement.measured import BATCH, batch_query, measured_query
from workbench.placement.methods import DRAWN, METHODS, SEARCH_S, SEARCHED, Placed, check_methods, place
from workbench.placement.outcomes import ONE_GBIT, TEN_GBIT, Outcome, calibrated_worker, shared, simulated
from workbench.placement.plan import DIMENSIONS, CostVector, Plan, Subtask
from workbench.placement.problem import PlacementProblem
from workbench.placement.skew import placement_groups
from workbench.placement.throughput import PlacedRate, Spread, placed_rate, shape_spreads, spread
from workbench.placement.trace import SearchNode, trace_search
from workbench.placement.tuning import CEILINGS, Tuning, tune, tune_thresholds

__all__ = [
    "BATCH",
    "CEILINGS",
    "DIMENSIONS",
    "DRAWN",
    "METHODS",
    "ODRP_SETTINGS",
    "ONE_GBIT",
    "SEARCHED",
    "SEARCH_S",
    "TEN_GBIT",
    "Compared",
    "Comparison",
    "CostVector",
    "GroupAllocation",
    "Job",
    "OdrpWeights",
    "OptimalPlan",
    "Outcome",
    "Placed",
    "PlacedRate",
    "PlacementInput",
    "PlacementProblem",
    "Plan",
    "SearchNode",
    "SearchResult",
    "Setting",
    "Spread",
    "Subtask",
    "ThresholdTable",
    "Tuning",
    "batch_query",
    "best_allocation",
    "calibrated_worker",
    "caps",
    "check_methods",
    "compare",
    "count_plans",
    "count_within",
    "flink_default",
    "flink_evenly",
    "measured_query",
    "must_compile",
    "naive",
    "odrp",
    "optimal",
    "place",
    "placed_rate",
    "placed_together",
    "placement_groups",
    "preference",
    "query_by_query",
    "random_slots",
    "read_placement_input",
    "round_robin",
    "search",
    "shape_spreads",
    "shapes_of",
    "shared",
    "simulated",
    "spread",
    "stopping_when",
    "task_level",
    "thresholds_of",
    "top_down",
    "trace_search",
    "tune",
    "tune_range",
    "tune_thresholds",
]
