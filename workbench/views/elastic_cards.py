"""The card of elastic executors: the cores that each gets."""

from collections.abc import Sequence

from workbench import units
from workbench.scaling import Assignment
from workbench.views.cards import Card, Table, headings


def assignment_card(
    current: Sequence[Sequence[int]], greedy: Assignment, optimal: Assignment, executors: Sequence[str]
) -> Card:
    """Compare the `current` cores, nodes by executors, with the greedy and the optimal ones of `assign_cores`."""
    columns = headings(("Executor", "Node", "Now (cores)", "Greedy (cores)", "Optimal (cores)"))
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
