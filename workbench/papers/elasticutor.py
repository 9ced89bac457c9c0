"""Elasticutor (SIGMOD 2019), section 5, drawn from recorded runs (``benchmarks/elasticutor_runs.py``).

The paper prints its figures without numbers, so most comparisons are with what its text says.
"""

import dataclasses
import statistics
from collections.abc import Mapping

from workbench.papers.figure import Panel, Paper, Reproduction
from workbench.papers.recorded import read_figures, redrawn
from workbench.scaling.elastic import ElasticCluster, ElasticSettings, KeyedOperator

NAME = "elasticutor"
_REASSIGNED = ("RC", "Elasticutor")

THROUGHPUT = Panel("Throughput", "", "Throughput (records/s)")
SUSTAINED = Panel("Sustained", "Paradigm", "Throughput, mean of the run (records/s)", "bars")
LATENCY = Panel("Mean latency", "", "Mean latency (ms)", log_y=True)
P99 = Panel("99th percentile of latency", "Paradigm", "p99 latency (ms)", "bars", log_y=True)
MIGRATED = Panel("State migration", "Paradigm", "State migration (MB/s)", "bars", log_y=True)
REMOTE = Panel("Remote data transfer", "Paradigm", "Remote data transfer (MB/s)", "bars", log_y=True)
GROWTH = Panel("Growth", "Nodes of 8 cores", "Throughput (% of that on 8 nodes)")


def _over(x: str, *panels: Panel, log: bool = False) -> tuple[Panel, ...]:
    """Return the panels over an x axis."""
    return tuple(dataclasses.replace(panel, x=x, log_x=log) for panel in panels)


def _by(titles: tuple[str, ...], x: str) -> tuple[Panel, ...]:
    return tuple(Panel(title, x, THROUGHPUT.y, log_x=True, log_y=True) for title in titles)


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


_SPEED_UP = Panel("Speed-up", "Cores of one executor", "Throughput (x that of one core)", log_x=True, log_y=True)
_TAIL = Panel("Latency", "Cores of one executor", "p99 latency (x that on one core)", log_x=True, log_y=True)
_MOST = _SPEED_UP.series("paper, 8 KB or 0.01 ms: at most", (1, 256), (16.0, 16.0), published=True)
_MOVED = {MIGRATED: (13.9, 2.4), REMOTE: (235.3, 21.6)}  # MB/s: naive, optimised
_BOTH = ("naive executor-centric", "Elasticutor")
_PUBLISHED_2 = [panel.series("paper", _BOTH, rates, published=True) for panel, rates in _MOVED.items()]
_TABLE_3 = {8: 66.6e3, 16: 121.3e3, 32: 218.6e3}  # records/s by nodes
_NODES = (*_over(GROWTH.x, THROUGHPUT), GROWTH)
_PUBLISHED_3 = (
    _NODES[0].series("paper", _TABLE_3, _TABLE_3.values(), published=True),
    GROWTH.series("paper", _TABLE_3, (100 * rate / _TABLE_3[8] for rate in _TABLE_3.values()), published=True),
)


def _transient(made: Reproduction, name: str) -> float:
    """Seconds after the shuffle at 30 s in which the throughput is not within a tenth of its median."""
    series = made.named(name, THROUGHPUT.title)
    period = [y or 0.0 for x, y in zip(series.x, series.y, strict=True) if 30 <= float(x) < 60]
    return float(sum(rate < 0.9 * statistics.median(period) for rate in period))


_RECORDED: Mapping[str, tuple[Panel, ...]] = {
    "Figure 6": _over("Shuffles per minute", THROUGHPUT, LATENCY),
    "Figure 7": _over("Time (s)", THROUGHPUT),
    "Figure 8": _by(tuple(f"{ms:g} ms per record" for ms in (10, 1, 0.1, 0.01)), "Record (bytes)"),
    "Figure 9": _over("State of a shard (KB)", THROUGHPUT, LATENCY, log=True),
    "Figure 10": _over("Skew of the keys (exponent of Zipf's law)", THROUGHPUT, LATENCY),
    "Figure 15": _by(("2 shuffles per minute", "16 shuffles per minute"), "Cores of one executor"),
    "Figure 16": _over("Shards per executor (z)", THROUGHPUT, log=True),
    "Figure 19": (*_over("Time (s)", THROUGHPUT), SUSTAINED, P99),
}
_MAKERS = {number: redrawn(NAME, number, panels) for number, panels in _RECORDED.items()} | {
    "Figure 11": _figure_11,
    "Figure 12": _figure_12,
    "Figure 13": redrawn(NAME, "Figure 13", (_SPEED_UP,), (_MOST,)),
    "Figure 14": redrawn(NAME, "Figure 13", (_TAIL,)),
    "Figure 20": redrawn(NAME, "Figure 19", _over("Time (s)", LATENCY)),
    "Table 2": redrawn(NAME, "Figure 19", tuple(_MOVED), _PUBLISHED_2),
    "Table 3": redrawn(NAME, "Table 3", _NODES, _PUBLISHED_3),
}
PAPER = Paper(
    NAME,
    "Elasticutor: Rapid Elasticity for Realtime Stateful Stream Processing (SIGMOD 2019)",
    read_figures(NAME, _MAKERS, {"transient": _transient}),
)
