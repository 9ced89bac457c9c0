"""One card for Justin's decisions in a replay: what it measured, what it decided, and why."""

from workbench import units
from workbench.scaling import JustinDecision, Timeline
from workbench.views.cards import Card, Column, Table

QUIET = frozenset({"stateless", "unchanged"})
"""Cases that need no explanation."""


def justin_card(policy: str, line: Timeline) -> Card | None:
    """Explain each decision between memory and tasks; None if the policy gave no reasons.

    Operators without state, and operators that keep their tasks, are left out.
    """
    found = [
        (change.at_s, operator, one)
        for change in line.reconfigurations
        for operator, one in change.reasons.items()
        if one.case not in QUIET
    ]
    if not found:
        return None
    columns = (
        Column("At", "s"),
        Column("Operator"),
        Column("Tasks"),
        Column("Cache hit rate", "%"),
        Column("State latency", "ms"),
        Column("DS2 proposes", "tasks"),
        Column("Justin decides"),
        Column("Because"),
    )
    rows = tuple(
        (
            at_s,
            operator,
            one.previous.tasks,
            None if one.seen is None or one.seen.hit_rate is None else 100 * one.seen.hit_rate,
            None if one.seen is None or one.seen.latency_s is None else 1e3 * one.seen.latency_s,
            one.proposed,
            decided(one),
            "; ".join((*one.tests, one.reason)),
        )
        for at_s, operator, one in found
    )
    raised = sum(one.state.scaled_up for _, _, one in found)
    at_s, operator, last = found[-1]
    finding = (
        f"{units.some(len(found), 'decision')} on operators with state: {units.count(raised)} for more memory, "
        f"{units.count(len(found) - raised)} for other tasks. The last, at {units.seconds(at_s)}, gives {operator} "
        f"{decided(last)}: {last.reason}."
    )
    return Card(
        f"reasons-{policy}", f"Why does {policy} add memory or tasks?", finding, table=Table("Decisions", columns, rows)
    )


def decided(decision: JustinDecision) -> str:
    """Return a decision in words."""
    state, previous = decision.state, decision.previous
    tasks = units.some(state.tasks, "task")
    if state.level is None:
        return f"{tasks} without managed memory"
    change = state.level - (previous.level or 0)
    memory = {0: "the same memory each", 1: "twice the memory each", -1: "half the memory each"}[change]
    return f"{tasks} with {memory}"
