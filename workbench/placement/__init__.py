"""Where tasks go: the cost of a placement, its search, and what ordinary schedulers do instead."""

from workbench.placement.caps import SearchResult, search
from workbench.placement.counting import count_plans, count_within
from workbench.placement.problem import CostVector, Link, PlacementProblem, Plan, Subtask

__all__ = [
    "CostVector",
    "Link",
    "PlacementProblem",
    "Plan",
    "SearchResult",
    "Subtask",
    "count_plans",
    "count_within",
    "search",
]
