"""Where tasks go: the cost of a placement, its search, and the placements of ordinary schedulers."""

from workbench.placement._caps import CEILINGS, ThresholdTable, Tuning, caps, tune, tune_range, tune_thresholds
from workbench.placement._compiled import must_compile
from workbench.placement._effort import stopping_when
from workbench.placement._odrp import ODRP_SETTINGS, OdrpWeights, Setting, odrp
from workbench.placement._search import SearchNode, SearchResult, preference, search, trace_search
from workbench.placement.baselines import flink_default, flink_evenly, query_by_query, random_slots, round_robin
from workbench.placement.counting import count_plans, count_within
from workbench.placement.exact import OptimalPlan, optimal
from workbench.placement.groups import GroupAllocation, Job, best_allocation, naive, task_level, top_down
from workbench.placement.inputs import placed_together, read_placement_input, shapes_of, thresholds_of
from workbench.placement.methods import (
    DRAWN,
    METHODS,
    SEARCH_S,
    SEARCHED,
    Comparison,
    MethodRow,
    Placed,
    check_methods,
    compare,
    place,
)
from workbench.placement.problem import DIMENSIONS, CostVector, PlacementProblem, Plan, Subtask
from workbench.placement.request import PlacementInput
from workbench.placement.skew import placement_groups
from workbench.placement.throughput import (
    ONE_GBIT,
    TEN_GBIT,
    Outcome,
    PlacedRate,
    Spread,
    calibrated_worker,
    placed_rate,
    shape_spreads,
    shared,
    simulated,
    spread,
)
from workbench.placement.unit_costs import BATCH, batch_query, measured_query
