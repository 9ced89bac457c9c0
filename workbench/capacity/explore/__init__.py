"""Which budgets to measure, and what the runs on them add up to."""

from workbench.capacity.explore.exploration import LEAST_RUNS, Choice, Exploration, conclude, keeps_state, saw_operators
from workbench.capacity.explore.explorer import ResourceExplorer, Space
from workbench.capacity.explore.optimizer import (
    ALONE,
    MANY_TASKS,
    ConfigurationOptimizer,
    Configured,
    minimal_first,
    overstatement,
)
from workbench.capacity.explore.questions import Question, reasons

__all__ = [
    "ALONE",
    "LEAST_RUNS",
    "MANY_TASKS",
    "Choice",
    "ConfigurationOptimizer",
    "Configured",
    "Exploration",
    "Question",
    "ResourceExplorer",
    "Space",
    "conclude",
    "keeps_state",
    "minimal_first",
    "overstatement",
    "reasons",
    "saw_operators",
]
