"""Which budgets to measure, and what their runs add up to."""

from workbench.capacity.explore.exploration import LEAST_RUNS, Choice, Exploration, conclude, keeps_state
from workbench.capacity.explore.explorer import ResourceExplorer
from workbench.capacity.explore.optimizer import (
    ALONE,
    MANY_TASKS,
    ConfigurationOptimizer,
    Configured,
    best_layout,
    minimal_first,
    overstatement,
    settings_of,
)
from workbench.capacity.explore.questions import Acquired, Question, Space, Why, next_question, reasons
