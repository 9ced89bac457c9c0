"""Cards of elastic executors: which cores they get, and how many executors to have."""

from collections.abc import Sequence

from workbench.scaling import Assignment, ExecutorAdvice
from workbench.views import units
from workbench.views.cards import Card, Column, Table


def assignment_card(
    current: Sequence[Sequence[int]], greedy: Assignment, optimal: Assignment, executors: Sequence[str]
) -> Card:
    """Compare the cores of every executor now, by the greedy choice and by the exact one.

    Parameters
    ----------
    current
        Cores now, shape (nodes, executors), as `assign_cores` takes them.
    greedy, optimal
        Its answers.
    executors
        Their names.
    """
    columns = (
        Column("Executor"),
        Column("Node"),
        Column("Now", "cores"),
        Column("Greedy", "cores"),
        Column("Optimal", "cores"),
    )
    rows = tuple(
        (executor, f"node {node}", cores[j], greedy.matrix[node][j], optimal.matrix[node][j])
        for j, executor in enumerate(executors)
        for node, cores in enumerate(current)
    )
    finding = (
        f"By the greedy choice {units.size(greedy.migrated_bytes)} of state move to another node, by the optimal one "
        f"{units.size(optimal.migrated_bytes)}."
    )
    if greedy.threshold != optimal.threshold:
        finding += (
            f" They are not alike: the greedy one lets executors of up to {units.size(greedy.threshold)}/s per core "
            f"leave their node, the optimal one of up to {units.size(optimal.threshold)}/s."
        )
    return Card("cores-by-node", "Which cores?", finding, table=Table("Cores by node", columns, rows, opened=True))


def advice_card(advice: ExecutorAdvice) -> Card:
    """Say how many executors and shards to have, and why."""
    rows = tuple((reason,) for reason in advice.reasons)
    finding = f"{units.count(advice.executors)} executors with {units.count(advice.shards)} shards each."
    table = Table("Why so many", (Column("Reason"),), rows, opened=True)
    return Card("executors", "How many executors?", finding, table=table)
