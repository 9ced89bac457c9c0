"""Where tasks go: the cost of a placement, its search, and what ordinary schedulers do instead."""

from workbench.placement.caps import SearchResult, search
from workbench.placement.counting import count_plans, count_within
from workbench.placement.exact import OptimalPlan, optimal
from workbench.placement.groups import (
    GroupAllocation,
    Job,
    Reallocation,
    SkewedJob,
    balanced_capacity,
    best_allocation,
    finest_tasks,
    naive,
    optimal_allocation,
    reallocate,
    relative_capacity,
    split_skewed,
    task_level,
    top_down,
)
from workbench.placement.problem import CostVector, Link, PlacementProblem, Plan, Subtask

__all__ = [
    "CostVector",
    "GroupAllocation",
    "Job",
    "Link",
    "OptimalPlan",
    "PlacementProblem",
    "Plan",
    "Reallocation",
    "SearchResult",
    "SkewedJob",
    "Subtask",
    "balanced_capacity",
    "best_allocation",
    "count_plans",
    "count_within",
    "finest_tasks",
    "naive",
    "optimal",
    "optimal_allocation",
    "reallocate",
    "relative_capacity",
    "search",
    "split_skewed",
    "task_level",
    "top_down",
]
