"""Justin's decisions in words."""

from workbench import units
from workbench.scaling import JustinDecision

QUIET = frozenset({"stateless", "unchanged"})
"""Cases that need no explanation."""


def decided(decision: JustinDecision) -> str:
    """Return a decision in words."""
    state, previous = decision.state, decision.previous
    tasks = units.some(state.tasks, "task")
    if state.level is None:
        return f"{tasks} without managed memory"
    change = state.level - (previous.level or 0)
    memory = {0: "the same memory each", 1: "twice the memory each", -1: "half the memory each"}[change]
    return f"{tasks} with {memory}"
