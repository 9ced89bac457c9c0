"""Allocation of groups of equal tasks to nodes, so that little communication crosses the network (CIKM '14)."""

from workbench.placement.groups.algorithms import best_allocation, naive, task_level, top_down
from workbench.placement.groups.job import GroupAllocation, Job
