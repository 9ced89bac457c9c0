"""Allocation of groups of equal tasks to nodes, so that little communication crosses the network (CIKM '14)."""

from workbench.placement.groups._best import best_allocation
from workbench.placement.groups._by_task import naive, task_level
from workbench.placement.groups._optimum import optimal_allocation
from workbench.placement.groups._top_down import top_down
from workbench.placement.groups.job import GroupAllocation, Job
from workbench.placement.groups.random_jobs import CAPACITY, random_job
from workbench.placement.groups.reallocation import Reallocation, reallocate
from workbench.placement.groups.relaxations import (
    SkewedJob,
    balanced_capacity,
    finest_tasks,
    relative_capacity,
    split_skewed,
)

__all__ = [
    "CAPACITY",
    "GroupAllocation",
    "Job",
    "Reallocation",
    "SkewedJob",
    "balanced_capacity",
    "best_allocation",
    "finest_tasks",
    "naive",
    "optimal_allocation",
    "random_job",
    "reallocate",
    "relative_capacity",
    "split_skewed",
    "task_level",
    "top_down",
]
