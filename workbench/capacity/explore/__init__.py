"""Which budgets to measure, and what the runs on them add up to."""

from workbench.capacity.explore.acquisition import propose
from workbench.capacity.explore.exploration import LEAST_RUNS, Choice, Exploration, conclude, keeps_state, saw_operators
from workbench.capacity.explore.explorer import ResourceExplorer, Space
from workbench.capacity.explore.optimizer import ConfigurationOptimizer, minimal_first, overstatement
from workbench.capacity.explore.together import explore_together, groups_of

__all__ = [
    "LEAST_RUNS",
    "Choice",
    "ConfigurationOptimizer",
    "Exploration",
    "ResourceExplorer",
    "Space",
    "conclude",
    "explore_together",
    "groups_of",
    "keeps_state",
    "minimal_first",
    "overstatement",
    "propose",
    "saw_operators",
]
