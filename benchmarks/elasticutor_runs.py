"""The runs behind the figures of Elasticutor (SIGMOD 2019), section 5, in the simulation of its paradigms.

Each function gives the series of one figure or table; ``papers.py`` records them, and ``data/papers/elasticutor.toml``
says how they are drawn. The assumptions beyond the paper are in `ElasticSettings` and `KeyedOperator`. Two matter most.
A key is never split, so the most frequent key bounds the throughput of every paradigm. And one synchronisation of the
upstream executors serves all shards of a repartitioning, which favours the resource-centric paradigm (RC); "RC, 8 per
sync" has one for every 8 shards.
"""

import dataclasses
import math

from workbench.papers import Panel, Series
from workbench.scaling.elastic import ElasticCluster, ElasticSettings, KeyedOperator, simulate_paradigm
from workbench.simulation import KeyTrace, RateTrace

THROUGHPUT, LATENCY, GROWTH, *TOTALS = (
    Panel(title, "", "")
    for title in (
        "Throughput",
        "Mean latency",
        "Growth",
        "Sustained",
        "99th percentile of latency",
        "State migration",
        "Remote data transfer",
    )
)
_CLUSTER, _OPERATOR = ElasticCluster(), KeyedOperator()
_KEYS, _SKEW, _SHUFFLES, _SECONDS = 10_000, 0.5, 2.0, 70.0  # two shuffles after the warm-up of 10 s
_PARADIGMS = {
    "static": ("static", ElasticSettings()),
    "RC": ("resource-centric", ElasticSettings()),
    "Elasticutor": ("executor-centric", ElasticSettings()),
    "RC, 8 per sync": ("resource-centric", ElasticSettings(moves_per_sync=8)),
    "naive executor-centric": ("naive-executor-centric", ElasticSettings()),
}
_THREE = ("static", "RC", "Elasticutor")
_FOUR = (*_THREE, "RC, 8 per sync")

WORKLOADS = {
    "default": (128.0, 2.0),
    "data-intensive": (8192.0, 2.0),
    "highly dynamic": (128.0, 16.0),
}
"""Bytes of a record and shuffles per minute of the workloads of section 5.3."""


def _run(name, operator=_OPERATOR, *, skew=_SKEW, shuffles=_SHUFFLES, **how):
    """Run a paradigm once, seeded, in the paper's set-up."""
    paradigm, settings = _PARADIGMS[name]
    given = {"seconds": _SECONDS, "cluster": _CLUSTER, **how}
    keys = KeyTrace.zipf(_KEYS, skew, shuffles, seed=1)
    return simulate_paradigm(paradigm, operator, keys=keys, settings=settings, seed=1, **given)


def _changed(**fields):
    return dataclasses.replace(_OPERATOR, **fields)


def _totals(name, xs, runs, *panels):
    done = list(runs)
    values = {THROUGHPUT: [run.throughput_per_s for run in done], LATENCY: [1e3 * run.mean_latency_s for run in done]}
    return [panel.series(name, xs, map(_finite, values[panel])) for panel in panels]


def _over_time(name, run, first, last, *panels):
    """Series of the seconds `first` to `last` of a run."""
    values = {THROUGHPUT: run.throughput_series, LATENCY: 1e3 * run.latency_series}
    seconds = [float(second) for second in run.time_s[first:last]]
    return [panel.series(name, seconds, map(_finite, values[panel][first:last])) for panel in panels]


def _finite(value):
    return value if math.isfinite(value) else None


def figure_6(_):
    """Throughput and latency over shuffles of the keys per minute."""
    shuffles = (0, 2, 4, 8, 16)
    for name in _FOUR:
        yield from _totals(name, shuffles, (_run(name, shuffles=each) for each in shuffles), THROUGHPUT, LATENCY)


def figure_7(workload):
    """Throughput of every second around shuffles, for one of `WORKLOADS`."""
    size, shuffles = WORKLOADS[workload]
    for name in _FOUR:
        run = _run(name, _changed(record_bytes=size), shuffles=shuffles, seconds=60.0)
        yield from _over_time(name, run, 25, 60, THROUGHPUT)


def figure_8(_):
    """Throughput over the size of a record, at four CPU times per record."""
    sizes = (128, 2048, 8192)
    for cpu_s in (1e-2, 1e-3, 1e-4, 1e-5):
        for name in _THREE:
            runs = [_run(name, _changed(cpu_s=cpu_s, record_bytes=size)) for size in sizes]
            (series,) = _totals(name, sizes, runs, THROUGHPUT)
            yield dataclasses.replace(series, panel=f"{1e3 * cpu_s:g} ms per record")


def figure_9(_):
    """Throughput and latency over the size of a shard, KB."""
    sizes = (32, 2048, 32768)
    for name in _THREE:
        runs = [_run(name, _changed(shard_bytes=size * 1024.0)) for size in sizes]
        yield from _totals(name, sizes, runs, THROUGHPUT, LATENCY)


def figure_10(_):
    """Throughput and latency over the skew of the keys, and the bound of the most frequent key."""
    skews = (0.0, 0.3, 0.5, 0.7, 0.9)
    for name in _THREE:
        yield from _totals(name, skews, (_run(name, skew=skew) for skew in skews), THROUGHPUT, LATENCY)
    yield THROUGHPUT.series("bound of the most frequent key", skews, map(_key_bound, skews))


def _key_bound(skew):
    """Records/s at which the core of the most frequent key is full, or all cores are."""
    share = KeyTrace.zipf(_KEYS, skew).shares[0]
    return float(min(1 / (_OPERATOR.cpu_s * share), _CLUSTER.cores / _OPERATOR.cpu_s))


def _one_executor(cores, **fields):
    """Run one executor on that number of cores; the sources stay outside, so its network card carries all records."""
    cluster = ElasticCluster(nodes=max(1, cores // 8), node_cores=min(8, cores))
    shuffles = fields.pop("shuffles", _SHUFFLES)
    operator = _changed(executors=1, shards=8192, **fields)
    return _run("Elasticutor", operator, cluster=cluster, shuffles=shuffles)


_CORES = (1, 8, 16, 64, 256)
_CASES = {
    "1 ms, 128 B": {},
    "0.1 ms": {"cpu_s": 1e-4},
    "0.01 ms": {"cpu_s": 1e-5},
    "2 KB": {"record_bytes": 2048.0},
    "8 KB": {"record_bytes": 8192.0},
}


def figure_13(_):
    """Speed-up and tail latency of one executor over its cores, for five operators."""
    for name, fields in _CASES.items():
        runs = [_one_executor(cores, **fields) for cores in _CORES]
        one, first = runs[0].throughput_per_s, runs[0].p99_latency_s
        yield Series("Speed-up", name, _CORES, tuple(run.throughput_per_s / one for run in runs))
        yield Series("Latency", name, _CORES, tuple(run.p99_latency_s / first for run in runs))


def figure_15(_):
    """Throughput of one executor over its cores, by size of a shard and shuffles per minute."""
    cores = (1, 16, 256)
    for shuffles in (2.0, 16.0):
        for label, size in (("32 KB", 32 * 1024.0), ("32 MB", 32768 * 1024.0)):
            runs = [_one_executor(count, shard_bytes=size, shuffles=shuffles) for count in cores]
            (series,) = _totals(label, cores, runs, THROUGHPUT)
            yield dataclasses.replace(series, panel=f"{shuffles:g} shuffles per minute")


_SHARDS, _EXECUTORS = (64, 256, 1024), (1, 8, 32, 256)


def figure_16(workload):
    """Throughput over shards per executor and executors, for one of `WORKLOADS`."""
    size, shuffles = WORKLOADS[workload]
    for executors in _EXECUTORS:
        operators = [  # whose state stays 256 MB
            _changed(executors=executors, shards=z, shard_bytes=2**28 / (executors * z), record_bytes=size)
            for z in _SHARDS
        ]
        runs = [_run("Elasticutor", one, shuffles=shuffles) for one in operators]
        yield from _totals(f"y = {executors}", _SHARDS, runs, THROUGHPUT)
    for name in ("static", "RC"):
        run = _run(name, _changed(record_bytes=size), shuffles=shuffles)
        yield from _totals(name, _SHARDS, [run] * len(_SHARDS), THROUGHPUT)


_EXCHANGE = ("static", "RC", "naive executor-centric", "Elasticutor")
_ORDERS = _changed(cpu_s=1e-4, record_bytes=160.0, shard_bytes=300e6 / 8192)
"""Table 3 has 218,600 orders/s through 12 operators on 256 cores: about 0.1 ms each; records of 160 B, 300 MB state."""
_MOVING = RateTrace.steps([(15.0, rate) for rate in (1.2e6, 1.6e6, 1.3e6)])


def figure_19(_):
    """Throughput, latency and bytes moved of the stock exchange's operator, whose orders are private.

    Their popularity changes as in section 5.3's highly dynamic workload. The throughput is that of sources that are
    always ahead; latencies and bytes are those of a load that moves, which static and RC fall behind.
    """
    shuffles = WORKLOADS["highly dynamic"][1]
    sustained, p99, migrated, remote = ([] for _ in range(4))
    for name in _EXCHANGE:
        saturated = _run(name, _ORDERS, shuffles=shuffles)
        yield from _over_time(name, saturated, 10, 55, THROUGHPUT)
        run = _run(name, _ORDERS, shuffles=shuffles, rate=_MOVING, seconds=None)
        yield from _over_time(name, run, 0, 45, LATENCY)
        sustained.append(saturated.throughput_per_s)
        p99.append(1e3 * run.p99_latency_s)
        migrated.append(run.migrated_bytes_per_s / 1e6)
        remote.append(run.remote_bytes_per_s / 1e6)
    for panel, values in zip(TOTALS, (sustained, p99, migrated, remote), strict=True):
        yield panel.series("ours", _EXCHANGE, values)


def table_3(_):
    """Throughput of the exchange's operator over nodes, records/s, and as % of that on 8 nodes."""
    nodes = (8, 16, 32)
    for name, executors in (("32 executors", lambda _: 32), ("one executor per node", lambda count: count)):
        runs = []
        for count in nodes:
            operator = dataclasses.replace(_ORDERS, executors=executors(count), shards=8192 // executors(count))
            runs.append(_run("Elasticutor", operator, cluster=ElasticCluster(nodes=count)))
        rates = [run.throughput_per_s for run in runs]
        yield THROUGHPUT.series(name, nodes, rates)
        yield GROWTH.series(name, nodes, (100 * rate / rates[0] for rate in rates))


RUNS = {
    "Figure 6": figure_6,
    "Figure 7": figure_7,
    "Figure 8": figure_8,
    "Figure 9": figure_9,
    "Figure 10": figure_10,
    "Figure 13": figure_13,
    "Figure 15": figure_15,
    "Figure 16": figure_16,
    "Figure 19": figure_19,
    "Table 3": table_3,
}
"""What makes each recorded result, from the chosen input."""
