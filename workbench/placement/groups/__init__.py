"""Allocation of groups of equal tasks to nodes, so that little communication crosses the network (CIKM '14)."""

from workbench.placement.groups._best import best_allocation
from workbench.placement.groups._by_task import naive, task_level
from workbench.placement.groups._top_down import top_down
from workbench.placement.groups.job import GroupAllocation, Job
