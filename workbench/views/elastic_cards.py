"""Cards of elastic executors: which cores they get, how many executors to have, and how the paradigms compare."""

from collections.abc import Mapping, Sequence

from workbench import units
from workbench.scaling import Assignment, ExecutorAdvice
from workbench.study import ReplayedParadigms
from workbench.views.cards import Card, Column, Table
from workbench.views.elastic_front import front_html
from workbench.views.figures import draw_paradigms, paradigms
from workbench.views.scaling_front import UNKNOWN


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


def paradigm_cards(replayed: ReplayedParadigms, asked: Mapping[str, object] = UNKNOWN) -> list[Card]:
    """Compare Elasticutor's paradigms on one load; `asked` as for `scaling_cards.cards`."""
    data = paradigms(replayed.runs)
    columns = (
        Column("Paradigm"),
        Column("Throughput", "records/s"),
        Column("Latency, mean", "ms"),
        Column("Latency, 99 %", "ms"),
        Column("Cores"),
        Column("Shards moved"),
        Column("Cores moved"),
        Column("Repartitions"),
        Column("State to other nodes", "bytes/s"),
        Column("Records to remote cores", "bytes/s"),
        Column("Records waiting at the end"),
    )
    rows = tuple(
        (
            run.paradigm,
            run.throughput_per_s,
            1e3 * run.mean_latency_s,
            1e3 * run.p99_latency_s,
            run.cores,
            run.shard_moves,
            run.core_moves,
            run.repartitions,
            run.migrated_bytes_per_s,
            run.remote_bytes_per_s,
            run.waiting,
        )
        for run in data.runs
    )
    operator, cluster, trace = replayed.operator, replayed.cluster, replayed.trace
    finding = (
        f"{data.finding}. Simulated: {units.rate(trace.mean_per_s)} on average, "
        f"{units.some(cluster.nodes, 'node')} of {units.some(cluster.node_cores, 'core')}, "
        f"{units.seconds(operator.cpu_s)} per record."
    )
    table = Table("Paradigms on the same load", columns, rows)
    title = "Which paradigm copes with changing keys?"
    return [Card("paradigms", title, finding, draw_paradigms(data), table, html=front_html(replayed, data, asked))]
