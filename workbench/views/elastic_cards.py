"""Cards of elastic executors: which cores they get, and how many executors to have."""

from collections.abc import Sequence

from workbench import units
from workbench.scaling import Assignment, ExecutorAdvice
from workbench.views.cards import Card, Column, Table


def assignment_card(
    current: Sequence[Sequence[int]], greedy: Assignment, optimal: Assignment, executors: Sequence[str]
) -> Card:
    """Compare the present cores of every executor with those of the greedy and of the optimal assignment.

    Parameters
    ----------
    current
        Present cores, shape (nodes, executors), as `assign_cores` takes them.
    greedy, optimal
        The results of `assign_cores`.
    executors
        Names of the executors.
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
        f"The greedy assignment moves {units.size(greedy.migrated_bytes)} of state to another node, the optimal one "
        f"{units.size(optimal.migrated_bytes)}."
    )
    if greedy.threshold != optimal.threshold:
        finding += (
            f" Their thresholds differ: executors with at most {units.size(greedy.threshold)}/s per core may leave "
            f"their node in the greedy assignment, with at most {units.size(optimal.threshold)}/s in the optimal one."
        )
    return Card("cores-by-node", "Which cores?", finding, table=Table("Cores by node", columns, rows, opened=True))


def advice_card(advice: ExecutorAdvice) -> Card:
    """Show how many executors and shards to have, and why."""
    rows = tuple((reason,) for reason in advice.reasons)
    finding = f"{units.some(advice.executors, 'executor')} with {units.some(advice.shards, 'shard')} each."
    table = Table("Reasons", (Column("Reason"),), rows, opened=True)
    return Card("executors", "How many executors?", finding, table=table)
