"""One card for Justin's decisions on one operator: what was measured at each amount of memory, and what followed."""

from collections.abc import Sequence
from dataclasses import dataclass

from workbench.scaling import JustinExplanation, StateMetrics
from workbench.views import units
from workbench.views.cards import Card, Column, Table


@dataclass(frozen=True)
class MemoryWindow:
    """One measured window of one operator and Justin's decision on it.

    Parameters
    ----------
    memory_mb
        Managed memory of one task.
    state
        Hit rate and latency of the window.
    true_rate
        Records/s of one busy task.
    explanation
        The decision.
    """

    memory_mb: float
    state: StateMetrics
    true_rate: float
    explanation: JustinExplanation


def justin_card(operator: str, windows: Sequence[MemoryWindow]) -> Card:
    """Explain Justin's decisions on successive windows of an operator."""
    last = windows[-1].explanation
    columns = (
        Column("Tasks"),
        Column("Managed memory", "MB per task"),
        Column("Cache hit rate", "%"),
        Column("State latency", "ms"),
        Column("True rate", "records/s per task"),
        Column("DS2 proposes", "tasks"),
        Column("Justin decides"),
        Column("Because"),
    )
    rows = tuple(
        (
            one.explanation.previous.tasks,
            one.memory_mb,
            None if one.state.hit_rate is None else 100 * one.state.hit_rate,
            None if one.state.latency_s is None else 1e3 * one.state.latency_s,
            one.true_rate,
            one.explanation.proposed,
            _decided(one.explanation),
            "; ".join((*one.explanation.tests, one.explanation.reason)),
        )
        for one in windows
    )
    finding = f"{operator}: {_decided(last)}, for {last.reason}."
    if len(windows) > 1:
        gain = windows[-1].true_rate / windows[0].true_rate - 1
        finding += (
            f" From {units.number(windows[0].memory_mb)} to {units.number(windows[-1].memory_mb)} MB per task the true "
            f"rate changed by {gain:+.0%}."
        )
    return Card(
        "justin",
        "More memory or more tasks?",
        finding,
        table=Table("Windows measured, and the decision on each", columns, rows, opened=True),
    )


def _decided(explanation: JustinExplanation) -> str:
    decision, previous = explanation.decision, explanation.previous
    tasks = f"{decision.tasks} tasks" if decision.tasks != 1 else "1 task"
    if decision.level is None:
        return f"{tasks} without managed memory"
    change = (decision.level or 0) - (previous.level or 0)
    memory = {0: "the same memory each", 1: "twice the memory each", -1: "half the memory each"}[change]
    return f"{tasks} with {memory}"
