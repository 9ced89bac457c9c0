"""Which budgets to measure, and what the runs on them add up to."""

from workbench.capacity.explore.acquisition import Acquired, acquire, propose
from workbench.capacity.explore.exploration import LEAST_RUNS, Choice, Exploration, conclude, keeps_state, saw_operators
from workbench.capacity.explore.explorer import ResourceExplorer, Space
from workbench.capacity.explore.optimizer import ConfigurationOptimizer, minimal_first, overstatement
from workbench.capacity.explore.questions import Why, next_question, reasons
from workbench.capacity.explore.together import explore_together, groups_of

__all__ = [
    "LEAST_RUNS",
    "Acquired",
    "Choice",
    "ConfigurationOptimizer",
    "Exploration",
    "ResourceExplorer",
    "Space",
    "Why",
    "acquire",
    "conclude",
    "explore_together",
    "groups_of",
    "keeps_state",
    "minimal_first",
    "next_question",
    "overstatement",
    "propose",
    "reasons",
    "saw_operators",
]
