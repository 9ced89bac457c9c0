"""Elasticutor (SIGMOD 2019), section 5, drawn from recorded runs (``benchmarks/elasticutor_runs.py``).

The paper prints its figures without numbers, so most comparisons are with what its text says.
"""

import statistics

from workbench.papers.figure import Panel, Paper, Reproduction, read_figures
from workbench.scaling.elastic import ElasticCluster, ElasticSettings, KeyedOperator

NAME = "elasticutor"
_REASSIGNED = ("RC", "Elasticutor")


def _sync_ms(name: str, upstream: int = KeyedOperator.upstream) -> float:
    """Return how long the synchronisation of a shard takes that moves alone, as the simulation is given it."""
    return 1e3 * (ElasticSettings.upstream_sync_s * upstream if name == "RC" else ElasticSettings.sync_s)


def _migration_ms(shard_bytes: float = KeyedOperator.shard_bytes) -> float:
    """Return how long the state of a shard takes to another node, over a network that nothing else uses."""
    return 1e3 * shard_bytes / ElasticCluster.network_bytes_per_s


def _figure_11(_: str) -> Reproduction:
    panel = Panel("Reassignment", "Paradigm and target", "Time per shard (ms)", "bars", log_y=True)
    cells = tuple(f"{name} {where}" for name in _REASSIGNED for where in ("in the node", "to another node"))
    sync = panel.series("synchronisation", cells, (_sync_ms(cell.split()[0]) for cell in cells))
    return Reproduction((panel,), (sync, panel.series("state migration", cells, (None, _migration_ms()) * 2)))


def _figure_12(_: str) -> Reproduction:
    sync = Panel("Synchronisation", "Upstream executors", "Time per shard (ms)", log_x=True, log_y=True)
    migration = Panel("State migration between nodes", "State of a shard (KB)", "Time (ms)", log_x=True, log_y=True)
    upstream, sizes = (1, 8, 32, 128), (32, 256, 2048, 32768)
    synced = (sync.series(name, upstream, (_sync_ms(name, count) for count in upstream)) for name in _REASSIGNED)
    moves = migration.series("RC and Elasticutor", sizes, (_migration_ms(1024.0 * size) for size in sizes))
    return Reproduction((sync, migration), (*synced, moves))


def _transient(made: Reproduction, name: str) -> float:
    """Seconds after the shuffle at 30 s in which the throughput is not within a tenth of its median."""
    series = made.named(name, "Throughput")
    period = [y or 0.0 for x, y in zip(series.x, series.y, strict=True) if 30 <= float(x) < 60]
    return float(sum(rate < 0.9 * statistics.median(period) for rate in period))


PAPER = Paper(
    NAME,
    "Elasticutor: Rapid Elasticity for Realtime Stateful Stream Processing (SIGMOD 2019)",
    read_figures(NAME, {"Figure 11": _figure_11, "Figure 12": _figure_12}, {"transient": _transient}),
)
