"""Elasticutor (SIGMOD 2019), section 5, drawn from recorded runs (``benchmarks/elasticutor_runs.py``).

The paper prints its figures without numbers, so most comparisons are with what its text says.
"""

import dataclasses
import math
import statistics

from workbench.papers.figure import Panel, Paper, PaperFigure, Reproduction
from workbench.papers.headline import LESS, MORE, Headline, Reader, at, change, mean, ratio
from workbench.papers.recorded import redrawn
from workbench.scaling.elastic import ElasticCluster, ElasticSettings, KeyedOperator

NAME = "elasticutor"
_REASSIGNED = ("RC", "Elasticutor")
_WORKLOADS = ("default", "data-intensive", "highly dynamic")

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


_RATES_3 = tuple(_TABLE_3.values())
_PUBLISHED_3 = tuple(
    panel.series("paper", _TABLE_3, rates, published=True)
    for panel, rates in zip(_NODES, (_RATES_3, [100 * rate / _TABLE_3[8] for rate in _RATES_3]), strict=True)
)


_OFTEN, _CHEAP, _BASE, _MUCH = "16 shuffles per minute", "0.01 ms per record", "1 ms, 128 B", (2.0, math.inf)
_FALL = ratio(
    ratio(at("static", 8192, _CHEAP), at("static", 128, _CHEAP)),
    ratio(at("Elasticutor", 8192, _CHEAP), at("Elasticutor", 128, _CHEAP)),
)
_LARGE = change(at("32 KB", 256, _OFTEN), at("32 MB", 256, _OFTEN))
_SHARD = ratio(at("synchronisation", "RC in the node"), at("synchronisation", "Elasticutor in the node"))
_SYNC, _BOTH_SYNCS = ratio(at("RC", 32), at("Elasticutor", 32)), "both synchronisations"
_GROWN = at("one executor per node", 32, "Growth")
_TAILS = ratio(at("ours", "static", P99.title), at("ours", "Elasticutor", P99.title))


def _sustained_of(other: str) -> Reader:
    return ratio(at("ours", "Elasticutor", SUSTAINED.title), at("ours", other, SUSTAINED.title))


def _shuffled(name: str, published: tuple[float, float], words: str) -> Headline:
    read = change(at(name, 0, THROUGHPUT.title), at(name, 16, THROUGHPUT.title))
    return Headline(f"{name} from 0 to 16 shuffles per minute", "change", published, read, words=words)


def _compared(
    name: str, other: str, x: float, published: float | tuple[float, float], *, where: str = "", only: str = ""
) -> Headline:
    read = ratio(at(name, x, THROUGHPUT.title), at(other, x, THROUGHPUT.title))
    return Headline(f"{name}, of {other}'s throughput {where}".rstrip(), "times", published, read, only)


def _naive(what: str, published: float) -> Headline:
    read = ratio(at("ours", "naive executor-centric", what), at("ours", "Elasticutor", what))
    return Headline(f"{what} of the naive scheduler, of the optimised one's", "times", published, read)


def _transient(name: str, published: tuple[float, float]) -> Headline:
    """Seconds after the shuffle at 30 s in which the throughput is not within a tenth of its median."""

    def read(made: Reproduction) -> float:
        series = made.named(name, THROUGHPUT.title)
        period = [y or 0.0 for x, y in zip(series.x, series.y, strict=True) if 30 <= float(x) < 60]
        return float(sum(rate < 0.9 * statistics.median(period) for rate in period))

    return Headline(f"Transient under {name}", "s", published, read, "default")


_NO_NUMBERS = "Recorded; the paper prints no numbers."
_FIGURES = (
    PaperFigure(
        "Figure 5",
        "Topology of the micro-benchmarks",
        "A generator and a calculator (section 5.1).",
        "it is a drawing; the operator of all runs is its calculator.",
        headlines=(Headline("Operators", "", 2.0),),
        status="not here, because",
    ),
    PaperFigure(
        "Figure 6",
        "Throughput and latency over shuffles of the keys per minute",
        "Static is poor but stable. RC and Elasticutor are far better at few shuffles; Elasticutor degrades "
        "marginally, RC by 2 to 3 orders of magnitude more, and is useless at 16 (section 5.1).",
        f"{_NO_NUMBERS} The signs are the paper's. With one synchronisation per repartitioning RC falls only to "
        "static at 16 shuffles; with one for every 8 shards it becomes useless. A core holds 128 records: with "
        "1,024 its queue of a second evens out keys that are shuffled every four, and the throughput rises.",
        redrawn(NAME, "Figure 6", _over("Shuffles per minute", THROUGHPUT, LATENCY)),
        headlines=(
            _shuffled("Elasticutor", (-10.0, 0.0), "a marginal fall"),
            _shuffled("static", (-10.0, 10.0), "stable"),
            _shuffled("RC", (-100.0, -99.0), "a fall of two to three orders of magnitude"),
        ),
    ),
    PaperFigure(
        "Figure 7",
        "Throughput of every second around shuffles",
        "The transient takes 10 to 20 s under RC, 1 to 3 s under Elasticutor (section 5.1, default workload).",
        f"{_NO_NUMBERS} RC repartitions again and again until the imbalance is below 1.2, so it dips between "
        "shuffles too.",
        redrawn(NAME, "Figure 7", _over("Time (s)", THROUGHPUT)),
        _WORKLOADS,
        headlines=(_transient("Elasticutor", (1.0, 3.0)), _transient("RC", (10.0, 20.0))),
    ),
    PaperFigure(
        "Figure 8",
        "Throughput by size of the records and CPU time per record",
        "Larger records and less CPU time lower all three; Elasticutor is the most sensitive at 0.01 ms (section 5.1).",
        _NO_NUMBERS,
        redrawn(NAME, "Figure 8", _by(tuple(f"{ms:g} ms per record" for ms in (10, 1, 0.1, 0.01)), "Record (bytes)")),
        headlines=(Headline(f"Fall of Elasticutor from 128 B to 8 KB at {_CHEAP}, of static's", "times", MORE, _FALL),),
    ),
    PaperFigure(
        "Figure 9",
        "Throughput and latency by state of a shard",
        "Both fall as it grows, at 32 MB below static; Elasticutor is above RC at the same size (section 5.1).",
        f"{_NO_NUMBERS} At 32 MB RC stays above static here: it moves ten shards at once over idle network cards, "
        "whereas a core that changes its executor makes an eighth of that executor's 8 GB move, so that "
        "Elasticutor falls below RC too, other than published.",
        redrawn(NAME, "Figure 9", _over("State of a shard (KB)", THROUGHPUT, LATENCY, log=True)),
        headlines=(
            _compared("Elasticutor", "static", 32768, LESS, where="at 32 MB per shard"),
            _compared("RC", "static", 32768, LESS, where="at 32 MB per shard"),
            _compared("Elasticutor", "RC", 32768, MORE, where="at 32 MB per shard"),
        ),
    ),
    PaperFigure(
        "Figure 10",
        "Throughput and latency by skew of the keys",
        "Static suffers; Elasticutor is above RC up to 0.6 and below it from 0.7 on, because of congested networks "
        "(section 5.1).",
        f"{_NO_NUMBERS} From 0.7 on RC and Elasticutor are equal here, at the bound of the most frequent key: its "
        "records of 128 B take a fraction of the network.",
        redrawn(NAME, "Figure 10", _over("Skew of the keys (exponent of Zipf's law)", THROUGHPUT, LATENCY)),
        headlines=(
            _compared("Elasticutor", "RC", 0.5, MORE, where="at a skew of 0.5"),
            _compared("Elasticutor", "RC", 0.7, LESS, where="at a skew of 0.7"),
        ),
    ),
    PaperFigure(
        "Figure 11",
        "Time to reassign a shard",
        "Synchronisation dominates, and takes RC far longer (section 5.1).",
        "The paper prints no numbers. Synchronisation is what the simulation is given, fitted to the text of "
        "Figure 12: 2 ms inside an executor, 20 ms per upstream executor. State takes its bytes over an idle "
        "network of 1 Gbit/s.",
        _figure_11,
        headlines=(
            Headline("Reassignment of a shard under RC, of Elasticutor's", "times", MORE, _SHARD, fitted=_BOTH_SYNCS),
        ),
    ),
    PaperFigure(
        "Figure 12",
        "Synchronisation by upstream executors, migration by state size",
        "About 2 ms in Elasticutor; 2 to 3 orders of magnitude more in RC (section 5.1).",
        "The paper prints no numbers. Synchronisation is fitted to its text; the time of migration follows from "
        "the network alone, so RC and Elasticutor are equal, where the paper has Elasticutor slightly ahead.",
        _figure_12,
        headlines=(
            Headline("Synchronisation under Elasticutor", "ms", 2.0, at("Elasticutor", 32), fitted="its 2 ms"),
            Headline("under RC, of Elasticutor's", "times", (100.0, 1000.0), _SYNC, fitted=_BOTH_SYNCS),
        ),
    ),
    PaperFigure(
        "Figure 13",
        "One executor on more and more cores",
        "It scales to 256 cores, but not beyond 16 with 8 KB records or 0.01 ms per record (section 5.2).",
        "Recorded. The sources stay outside the executor, so that all records reach it through its network card. "
        "The most frequent key, which one core takes, bounds the speed-up at 198.",
        redrawn(NAME, "Figure 13", (_SPEED_UP,), (_MOST,)),
        headlines=(
            Headline("Speed-up on 256 cores", "times", (128.0, 256.0), at(_BASE, 256), words="efficient"),
            Headline("with records of 8 KB", "times", (1.0, 16.0), at("8 KB", 256)),
            Headline("at 0.01 ms", "times", (1.0, 16.0), at("0.01 ms", 256)),
        ),
    ),
    PaperFigure(
        "Figure 14",
        "Tail latency of one executor on more and more cores",
        "It does not increase noticeably, except where the network is the bottleneck: at 0.1 ms per record and "
        "less, or 2 KB and more, it increases greatly (section 5.2).",
        f"{_NO_NUMBERS} The runs of Figure 13. Sources are saturated, so this is the latency of full queues. With "
        "records of 2 KB and more it rises by less than a half.",
        redrawn(NAME, "Figure 13", (_TAIL,)),
        headlines=(
            Headline("p99 latency on 256 cores, of one's", "times", (0.5, 2.0), at(_BASE, 256), words="about the same"),
            Headline("with records of 8 KB", "times", _MUCH, at("8 KB", 256), words="much more"),
            Headline("at 0.01 ms", "times", _MUCH, at("0.01 ms", 256), words="much more"),
        ),
    ),
    PaperFigure(
        "Figure 15",
        "One executor by state of a shard and shuffles",
        "It scales under all state sizes but 32 MB, and worse at 16 shuffles per minute (section 5.2).",
        f"{_NO_NUMBERS} 32 KB and 32 MB of the paper's sizes.",
        redrawn(NAME, "Figure 15", _by(("2 shuffles per minute", _OFTEN), "Cores of one executor")),
        headlines=(
            Headline(
                "32 MB per shard at 16 shuffles, from 32 KB", "change", (-100.0, -10.0), _LARGE, words="clearly less"
            ),
        ),
    ),
    PaperFigure(
        "Figure 16",
        "Throughput by number of executors and shards",
        "64 shards and fewer balance badly, more than 1024 add nothing; 256 executors are static; 1 and 8 fall "
        "behind with large records and frequent shuffles (section 5.3).",
        f"{_NO_NUMBERS} With frequent shuffles one executor falls behind static up to 256 shards, and 8 do not.",
        redrawn(NAME, "Figure 16", _over("Shards per executor (z)", THROUGHPUT, log=True)),
        _WORKLOADS,
        headlines=(
            _compared("y = 256", "static", 256, 1.0, only="default"),
            _compared("y = 1", "static", 256, LESS, only="highly dynamic"),
            _compared("y = 1", "static", 256, LESS, only="data-intensive"),
        ),
    ),
    PaperFigure(
        "Figure 17",
        "Topology of the stock exchange's application",
        "A transactor, 6 operators for statistics and 5 for events (section 5.4).",
        "it is a drawing; one operator of it is simulated.",
        headlines=(Headline("Operators", "", 12.0),),
        status="not here, because",
    ),
    PaperFigure(
        "Figure 18",
        "Arrival rates of the five most popular stocks",
        "They fluctuate greatly (section 5.4).",
        "the orders of the Shanghai Stock Exchange are private.",
        headlines=(
            Headline(
                "Highest arrival rate of a stock, compared with its lowest", "times", (1.0, math.inf), words="far more"
            ),
        ),
        status="not here, because",
    ),
    PaperFigure(
        "Figure 19",
        "Throughput and tail latency on the stock exchange's orders",
        "Both executor-centric variants have about twice the throughput of static and RC, and 1 to 2 orders of "
        "magnitude less latency (section 5.4).",
        "Recorded. The orders are private: Zipf's keys, shuffled 16 times per minute as in the highly dynamic "
        "workload of section 5.3, on the published cluster, costs and sizes. Throughput is that of sources "
        "always ahead, latency that of a load between 1.2 and 1.6 million records/s. The gain is smaller than "
        "published; the skew of the orders is not known.",
        redrawn(NAME, "Figure 19", (*_over("Time (s)", THROUGHPUT), SUSTAINED, P99)),
        headlines=(
            Headline("Elasticutor's throughput, of static's", "times", 2.0, _sustained_of("static")),
            Headline("of RC's", "times", 2.0, _sustained_of("RC")),
            Headline("Static's p99 latency, of Elasticutor's", "times", (10.0, 100.0), _TAILS),
        ),
    ),
    PaperFigure(
        "Figure 20",
        "Mean latency on the stock exchange's orders",
        "Elasticutor outperforms the other three (appendix A).",
        "Recorded. The runs of Figure 19. The naive scheduler differs in what it moves (Table 2).",
        redrawn(NAME, "Figure 19", _over("Time (s)", LATENCY)),
        headlines=tuple(
            Headline(f"Elasticutor's mean latency, of {name}'s", "times", LESS, ratio(mean("Elasticutor"), mean(name)))
            for name in ("naive executor-centric", "RC", "static")
        ),
    ),
    PaperFigure(
        "Table 2",
        "State and records that the schedulers move between nodes",
        "Migration 13.9 and 2.4 MB/s, remote transfer 235.3 and 21.6 MB/s (section 5.4).",
        "Recorded. The moving load of Figure 19. The optimised scheduler keeps almost all records on their node "
        "here, so that ratio is larger than published; the naive one moves less state.",
        redrawn(NAME, "Figure 19", tuple(_MOVED), _PUBLISHED_2),
        headlines=tuple(_naive(panel.title, naive / optimised) for panel, (naive, optimised) in _MOVED.items()),
    ),
    PaperFigure(
        "Table 3",
        "Throughput by number of nodes",
        "66,600, 121,300 and 218,600 records/s on 8, 16 and 32 nodes; scheduling takes 4.1 to 5.7 ms (section 5.4).",
        "Recorded, saturated, as growth: the published records pass 12 operators. With 32 executors on every "
        "cluster it grows faster than the cores, because on 8 nodes four executors share each node's cores and "
        "have two each; section 5.3 advises one per node. python benchmarks/scaling.py times the scheduler.",
        redrawn(NAME, "Table 3", _NODES, _PUBLISHED_3),
        headlines=(Headline("Throughput on 32 nodes, of that on 8", "%", 100 * 218.6 / 66.6, _GROWN),),
    ),
)
PAPER = Paper(NAME, "Elasticutor: Rapid Elasticity for Realtime Stateful Stream Processing (SIGMOD 2019)", _FIGURES)
