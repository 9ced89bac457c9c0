"""Elasticutor (SIGMOD 2019), section 5, drawn from the recorded runs of `workbench.papers.elasticutor_runs`.

The paper prints its figures without numbers, so most comparisons are with what its text says.
"""

import dataclasses
import math
import statistics
from collections.abc import Iterable

from workbench.papers import elasticutor_runs as runs
from workbench.papers.elasticutor_runs import LATENCY, P99, SUSTAINED, THROUGHPUT, WORKLOADS
from workbench.papers.figure import Panel, Paper, PaperFigure, Reproduction, Series
from workbench.papers.headline import LESS, MORE, Headline, Reader, at, change, mean, ratio
from workbench.papers.recorded import recorded
from workbench.scaling.elastic import KeyedOperator

NAME = "elasticutor"


def _drawn(number: str, finding: str, *panels: Panel, chosen: str = "", more: Iterable[Series] = ()) -> Reproduction:
    """Draw what is recorded of a figure in the panels that it has."""
    series = recorded(NAME, number, chosen)
    titles = {one.panel for one in series}
    extra = [panel for panel in panels if panel.title not in titles]
    return Reproduction(finding, tuple(one for one in panels if one not in extra), (*series, *more))


def _with_x(panel: Panel, x: str, *, log: bool = False, shape: str = "line") -> Panel:
    return dataclasses.replace(panel, x=x, log_x=log, shape=shape)  # type: ignore[arg-type]


def _named(number: str, panel: Panel, chosen: str = "") -> dict[str, Series]:
    return {one.name: one for one in recorded(NAME, number, chosen) if one.panel == panel.title}


def _thousands(rate: float) -> str:
    return f"{rate / 1e3:.0f}k"


def _change(before: float, after: float) -> str:
    """Write a change with its sign."""
    return f"{100 * (after / before - 1):+.0f} %"


def _make_6(_: str) -> Reproduction:
    rates = _named("Figure 6", THROUGHPUT)
    x = "Shuffles per minute"
    return _drawn(
        "Figure 6",
        "From 0 to 16 shuffles per minute the throughput changes by "
        + ", ".join(
            f"{_change(one.at(0), one.at(16))} under {name} (to {_thousands(one.at(16))} records/s)"
            for name, one in rates.items()
        ),
        _with_x(THROUGHPUT, x),
        _with_x(LATENCY, x),
    )


def _make_7(workload: str) -> Reproduction:
    rates = _named("Figure 7", THROUGHPUT, workload)

    def low(name: str) -> str:
        known = [value for value in rates[name].y if value is not None]
        dips = sum(value < 0.8 * max(known) for value in known)
        return f"{dips} under {name} (lowest {_thousands(min(known))} records/s)"

    return _drawn(
        "Figure 7",
        f"In the {workload} workload the throughput is below four fifths of its best in this many of "
        f"{len(rates['static'].y)} seconds: {', '.join(low(name) for name in rates)}",
        _with_x(THROUGHPUT, "Time (s)"),
        chosen=workload,
    )


def _make_8(_: str) -> Reproduction:
    series = recorded(NAME, "Figure 8")
    panels = tuple(
        Panel(title, "Record (bytes)", "Throughput (records/s)", log_x=True, log_y=True)
        for title in dict.fromkeys(one.panel for one in series)
    )

    def ratio(panel: Panel) -> float:
        by_name = _named("Figure 8", panel)
        return by_name["Elasticutor"].at(8192) / by_name["static"].at(8192)

    return _drawn(
        "Figure 8",
        f"With records of 8 KB Elasticutor has {ratio(panels[0]):.2g} times the throughput of static at "
        f"{panels[0].title}, and {ratio(panels[-1]):.2g} times at {panels[-1].title}",
        *panels,
    )


def _make_9(_: str) -> Reproduction:
    rates = _named("Figure 9", THROUGHPUT)
    x = "State of a shard (KB)"
    return _drawn(
        "Figure 9",
        f"From 32 KB to 32 MB per shard Elasticutor goes from {_thousands(rates['Elasticutor'].at(32))} to "
        f"{_thousands(rates['Elasticutor'].at(32768))} records/s, RC from {_thousands(rates['RC'].at(32))} to "
        f"{_thousands(rates['RC'].at(32768))}; static has {_thousands(rates['static'].at(32768))}",
        _with_x(THROUGHPUT, x, log=True),
        _with_x(LATENCY, x, log=True),
    )


def _make_10(_: str) -> Reproduction:
    rates = _named("Figure 10", THROUGHPUT)
    x = "Skew of the keys (exponent of Zipf's law)"
    return _drawn(
        "Figure 10",
        f"At a skew of 0.5 Elasticutor sustains {_thousands(rates['Elasticutor'].at(0.5))} records/s, RC "
        f"{_thousands(rates['RC'].at(0.5))} and static {_thousands(rates['static'].at(0.5))}; at 0.7 RC "
        f"has {_thousands(rates['RC'].at(0.7))} and Elasticutor {_thousands(rates['Elasticutor'].at(0.7))}, the "
        "bound of the most frequent key",
        _with_x(THROUGHPUT, x),
        _with_x(LATENCY, x),
    )


_REASSIGNED = ("RC", "Elasticutor")


def _make_11(_: str) -> Reproduction:
    panel = Panel("Reassignment", "Paradigm and target", "Time per shard (ms)", "bars", log_y=True)
    cells = tuple((name, where) for name in _REASSIGNED for where in ("in the node", "to another node"))
    times = [runs.reassignment_ms(name, moves_node=where != "in the node") for name, where in cells]
    named = tuple(" ".join(cell) for cell in cells)
    sync, migration = ({cell: time[part] for cell, time in zip(named, times, strict=True)} for part in (0, 1))
    (far, elastic), moved = (sync[f"{name} to another node"] for name in _REASSIGNED), migration["RC to another node"]
    return Reproduction(
        f"RC synchronises for {far:.0f} ms per shard and Elasticutor for {elastic:.0f} ms; the state takes either "
        f"{moved:.2g} ms to another node",
        (panel,),
        (
            Series(panel.title, "synchronisation", named, tuple(sync.values())),
            Series(panel.title, "state migration", named, tuple(value or None for value in migration.values())),
        ),
    )


def _make_12(_: str) -> Reproduction:
    sync = Panel("Synchronisation", "Upstream executors", "Time per shard (ms)", log_x=True, log_y=True)
    migration = Panel("State migration between nodes", "State of a shard (KB)", "Time (ms)", log_x=True, log_y=True)
    upstream, sizes = (1, 8, 32, 128), (32, 256, 2048, 32768)
    operator = KeyedOperator()
    syncs = {
        name: tuple(runs.reassignment_ms(name, dataclasses.replace(operator, upstream=count))[0] for count in upstream)
        for name in _REASSIGNED
    }
    moved = tuple(
        runs.reassignment_ms("RC", dataclasses.replace(operator, shard_bytes=1024.0 * size))[1] for size in sizes
    )
    return Reproduction(
        f"From 1 to 128 upstream executors RC synchronises for {syncs['RC'][0]:,.0f} to {syncs['RC'][-1]:,.0f} ms and "
        f"Elasticutor for {syncs['Elasticutor'][0]:.0f} ms; 32 KB of state take {moved[0]:.2g} ms to another node, 32 "
        f"MB {moved[-1]:.0f} ms",
        (sync, migration),
        (
            *(Series(sync.title, name, upstream, values) for name, values in syncs.items()),
            Series(migration.title, "RC and Elasticutor", sizes, moved),
        ),
    )


_SPEED_UP = Panel("Speed-up", "Cores of one executor", "Throughput (x that of one core)", log_x=True, log_y=True)
_TAIL = Panel("Latency", "Cores of one executor", "p99 latency (x that on one core)", log_x=True, log_y=True)


def _make_13(_: str) -> Reproduction:
    gains = _named("Figure 13", _SPEED_UP)
    series = [one for one in recorded(NAME, "Figure 13") if one.panel == _SPEED_UP.title]
    return Reproduction(
        f"On 256 cores one executor is {gains['1 ms, 128 B'].at(256):.0f} times as fast as on one; with records of 8 "
        f"KB {gains['8 KB'].at(256):.0f} times, with 0.01 ms per record {gains['0.01 ms'].at(256):.0f} times",
        (_SPEED_UP,),
        (*series, Series(_SPEED_UP.title, "paper, 8 KB or 0.01 ms: at most", (1, 256), (16.0, 16.0), published=True)),
    )


def _make_14(_: str) -> Reproduction:
    tails = _named("Figure 13", _TAIL)
    series = [one for one in recorded(NAME, "Figure 13") if one.panel == _TAIL.title]
    return Reproduction(
        f"From 1 to 256 cores the p99 latency changes by a factor of {tails['1 ms, 128 B'].at(256):.2g} at 1 ms and "
        f"128 B, of {tails['0.01 ms'].at(256):.2g} at 0.01 ms, and of {tails['8 KB'].at(256):.2g} with records of 8 KB",
        (_TAIL,),
        tuple(series),
    )


def _make_15(_: str) -> Reproduction:
    panels = tuple(
        Panel(title, "Cores of one executor", "Throughput (records/s)", log_x=True, log_y=True)
        for title in ("2 shuffles per minute", "16 shuffles per minute")
    )
    few, many = (_named("Figure 15", panel) for panel in panels)

    def kept(by_size: dict[str, Series]) -> str:
        return f"{100 * by_size['32 MB'].at(256) / by_size['32 KB'].at(256):.0f} %"

    return _drawn(
        "Figure 15",
        f"With 32 MB per shard one executor on 256 cores reaches {kept(few)} of the throughput with 32 KB at 2 "
        f"shuffles per minute, and {kept(many)} at 16",
        *panels,
    )


def _make_16(workload: str) -> Reproduction:
    rates = _named("Figure 16", THROUGHPUT, workload)
    return _drawn(
        "Figure 16",
        f"In the {workload} workload 32 executors of 256 shards sustain {_thousands(rates['y = 32'].at(256))} "
        f"records/s, one executor {_thousands(rates['y = 1'].at(256))}, 256 executors "
        f"{_thousands(rates['y = 256'].at(256))}; static has {_thousands(rates['static'].at(256))}",
        _with_x(THROUGHPUT, "Shards per executor (z)", log=True),
        chosen=workload,
    )


_MOVED = Panel("Moved", "Paradigm", "Over the network (MB/s)", "bars", log_y=True)


def _make_19(_: str) -> Reproduction:
    sustained = {name: series.at("whole run") for name, series in _named("Figure 19", SUSTAINED).items()}
    tails = {name: series.at("whole run") for name, series in _named("Figure 19", P99).items()}
    series = [one for one in recorded(NAME, "Figure 19") if one.panel == THROUGHPUT.title]
    bars = [
        Series(panel.title, "ours", tuple(values), tuple(values.values()))
        for panel, values in ((SUSTAINED, sustained), (P99, tails))
    ]
    gains = (
        f"{sustained['Elasticutor'] / sustained[name]:.2f} times the throughput of {name} and "
        f"1/{tails[name] / tails['Elasticutor']:.0f} of its p99 latency"
        for name in ("static", "RC")
    )
    return Reproduction(
        f"Elasticutor has {', '.join(gains)} (published: about twice, and 1/10 to 1/100); the naive scheduler "
        f"sustains {sustained['naive executor-centric'] / sustained['Elasticutor']:.2f} times as much",
        (_with_x(THROUGHPUT, "Time (s)"), SUSTAINED, _with_x(P99, "Paradigm", shape="bars")),
        (*series, *bars),
    )


def _make_20(_: str) -> Reproduction:
    means = _named("Figure 19", LATENCY)
    series = tuple(means.values())

    def mean(name: str) -> float:
        known = [value for value in means[name].y if value is not None]
        return sum(known) / len(known)

    return Reproduction(
        f"The mean latency, averaged over the seconds, is {mean('Elasticutor'):.3g} ms with Elasticutor, "
        f"{mean('naive executor-centric'):.3g} ms with the naive scheduler, {mean('RC'):,.0f} ms with RC and "
        f"{mean('static'):,.0f} ms with static",
        (_with_x(LATENCY, "Time (s)"),),
        series,
    )


def _make_table_2(_: str) -> Reproduction:
    moved = _named("Figure 19", _MOVED)
    chosen = ("naive executor-centric", "Elasticutor")
    published = {"State migration": (13.9, 2.4), "Remote data transfer": (235.3, 21.6)}
    series, ratios = [], []
    for what, values in published.items():
        ours = tuple(moved[what].at(name) for name in chosen)
        ratios.append(f"{ours[0] / ours[1]:.1f} times the {what.lower()} ({values[0] / values[1]:.1f} published)")
        series += [
            Series(what, "paper", chosen, values, published=True),
            Series(what, "ours", chosen, ours),
        ]
    return Reproduction(
        f"The naive scheduler makes {' and '.join(ratios)} of the optimised one",
        tuple(dataclasses.replace(_MOVED, title=what, y=f"{what} (MB/s)") for what in published),
        tuple(series),
    )


_TABLE_3 = {8: 66.6, 16: 121.3, 32: 218.6}  # thousands of records/s by nodes


def _make_table_3(_: str) -> Reproduction:
    panel = Panel("Growth", "Nodes of 8 cores", "Throughput (% of that on 8 nodes)")
    ours = {one.name: one for one in recorded(NAME, "Table 3")}
    growth = {name: one.at(32) / one.at(8) for name, one in ours.items()}
    return Reproduction(
        "From 8 to 32 nodes the throughput grows "
        + " and ".join(f"{times:.1f} times with {name}" for name, times in growth.items())
        + f"; published are {_TABLE_3[32] / _TABLE_3[8]:.1f}",
        (panel,),
        (
            Series(
                panel.title,
                "paper",
                tuple(_TABLE_3),
                tuple(100 * rate / _TABLE_3[8] for rate in _TABLE_3.values()),
                published=True,
            ),
            *(
                Series(panel.title, name, one.x, tuple(100 * (value or 0.0) / one.at(8) for value in one.y))
                for name, one in ours.items()
            ),
        ),
    )


_OFTEN, _CHEAP, _USUAL, _MUCH = "16 shuffles per minute", "0.01 ms per record", "1 ms, 128 B", (2.0, math.inf)
_FALL = ratio(
    ratio(at("static", 8192, _CHEAP), at("static", 128, _CHEAP)),
    ratio(at("Elasticutor", 8192, _CHEAP), at("Elasticutor", 128, _CHEAP)),
)
_LARGE = change(at("32 KB", 256, _OFTEN), at("32 MB", 256, _OFTEN))
_TAILS = ratio(at("ours", "static", P99.title), at("ours", "Elasticutor", P99.title))
_LATENCIES = ratio(mean("Elasticutor"), mean("naive executor-centric"))


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
PAPER = Paper(
    NAME,
    "Elasticutor: Rapid Elasticity for Realtime Stateful Stream Processing (SIGMOD 2019)",
    (
        PaperFigure(
            "Figure 5",
            "Topology of the micro-benchmarks",
            "A generator and a calculator (section 5.1).",
            "not here, because",
            "it is a drawing; the operator of all runs is its calculator.",
            headlines=(Headline("Operators", "", 2.0),),
        ),
        PaperFigure(
            "Figure 6",
            "Throughput and latency over shuffles of the keys per minute",
            "Static is poor but stable. RC and Elasticutor are far better at few shuffles; Elasticutor degrades "
            "marginally, RC by 2 to 3 orders of magnitude more, and is useless at 16 (section 5.1).",
            "simulated",
            f"{_NO_NUMBERS} The signs are the paper's. With one synchronisation per repartitioning RC falls only to "
            "static at 16 shuffles; with one for every 8 shards it becomes useless. A core holds 128 records: with "
            "1,024 its queue of a second evens out keys that are shuffled every four, and the throughput rises.",
            _make_6,
            slow=runs.figure_6,
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
            "simulated",
            f"{_NO_NUMBERS} RC repartitions again and again until the imbalance is below 1.2, so it dips between "
            "shuffles too.",
            _make_7,
            tuple(WORKLOADS),
            runs.figure_7,
            headlines=(
                _transient("Elasticutor", (1.0, 3.0)),
                _transient("RC", (10.0, 20.0)),
            ),
        ),
        PaperFigure(
            "Figure 8",
            "Throughput by size of the records and CPU time per record",
            "Larger records and less CPU time lower all three; Elasticutor is the most sensitive at 0.01 ms (section "
            "5.1).",
            "simulated",
            _NO_NUMBERS,
            _make_8,
            slow=runs.figure_8,
            headlines=(
                Headline(f"Fall of Elasticutor from 128 B to 8 KB at {_CHEAP}, of static's", "times", MORE, _FALL),
            ),
        ),
        PaperFigure(
            "Figure 9",
            "Throughput and latency by state of a shard",
            "Both fall as it grows, at 32 MB below static; Elasticutor is above RC at the same size (section 5.1).",
            "simulated",
            f"{_NO_NUMBERS} At 32 MB RC stays above static here: it moves ten shards at once over idle network cards, "
            "whereas a core that changes its executor makes an eighth of that executor's 8 GB move, so that "
            "Elasticutor falls below RC too, other than published.",
            _make_9,
            slow=runs.figure_9,
            headlines=(
                _compared("Elasticutor", "static", 32768, LESS, where="at 32 MB per shard"),
                _compared("RC", "static", 32768, LESS, where="at 32 MB per shard"),
            ),
        ),
        PaperFigure(
            "Figure 10",
            "Throughput and latency by skew of the keys",
            "Static suffers; Elasticutor is above RC up to 0.6 and below it from 0.7 on, because of congested networks "
            "(section 5.1).",
            "simulated",
            f"{_NO_NUMBERS} From 0.7 on RC and Elasticutor are equal here, at the bound of the most frequent key: its "
            "records of 128 B take a fraction of the network.",
            _make_10,
            slow=runs.figure_10,
            headlines=(
                _compared("Elasticutor", "RC", 0.5, MORE, where="at a skew of 0.5"),
                _compared("Elasticutor", "RC", 0.7, LESS, where="at a skew of 0.7"),
            ),
        ),
        PaperFigure(
            "Figure 11",
            "Time to reassign a shard",
            "Synchronisation dominates, and takes RC far longer (section 5.1).",
            "simulated",
            "The paper prints no numbers. Synchronisation is what the simulation is given, fitted to the text of "
            "Figure 12: 2 ms inside an executor, 20 ms per upstream executor. State takes its bytes over an idle "
            "network of 1 Gbit/s.",
            _make_11,
            headlines=(
                Headline(
                    "Reassignment of a shard under RC, of Elasticutor's",
                    "times",
                    MORE,
                    ratio(at("synchronisation", "RC in the node"), at("synchronisation", "Elasticutor in the node")),
                    fitted="both synchronisations",
                ),
            ),
        ),
        PaperFigure(
            "Figure 12",
            "Synchronisation by upstream executors, migration by state size",
            "About 2 ms in Elasticutor; 2 to 3 orders of magnitude more in RC (section 5.1).",
            "simulated",
            "The paper prints no numbers. Synchronisation is fitted to its text; the time of migration follows from "
            "the network alone, so RC and Elasticutor are equal, where the paper has Elasticutor slightly ahead.",
            _make_12,
            headlines=(
                Headline("Synchronisation under Elasticutor", "ms", 2.0, at("Elasticutor", 32), fitted="its 2 ms"),
                Headline(
                    "under RC, of Elasticutor's",
                    "times",
                    (100.0, 1000.0),
                    ratio(at("RC", 32), at("Elasticutor", 32)),
                    fitted="both synchronisations",
                ),
            ),
        ),
        PaperFigure(
            "Figure 13",
            "One executor on more and more cores",
            "It scales to 256 cores, but not beyond 16 with 8 KB records or 0.01 ms per record (section 5.2).",
            "simulated",
            "Recorded. The sources stay outside the executor, so that all records reach it through its network card. "
            "The most frequent key, which one core takes, bounds the speed-up at 198.",
            _make_13,
            slow=runs.figure_13,
            headlines=(
                Headline("Speed-up on 256 cores", "times", (128.0, 256.0), at(_USUAL, 256), words="efficient"),
                Headline("with records of 8 KB", "times", (1.0, 16.0), at("8 KB", 256)),
                Headline("at 0.01 ms", "times", (1.0, 16.0), at("0.01 ms", 256)),
            ),
        ),
        PaperFigure(
            "Figure 14",
            "Tail latency of one executor on more and more cores",
            "It does not increase noticeably, except where the network is the bottleneck: at 0.1 ms per record and "
            "less, or 2 KB and more, it increases greatly (section 5.2).",
            "simulated",
            f"{_NO_NUMBERS} The runs of Figure 13. Sources are saturated, so this is the latency of full queues. With "
            "records of 2 KB and more it rises by less than a half.",
            _make_14,
            headlines=(
                Headline(
                    "p99 latency on 256 cores, of one's", "times", (0.5, 2.0), at(_USUAL, 256), words="about the same"
                ),
                Headline("with records of 8 KB", "times", _MUCH, at("8 KB", 256), words="much more"),
                Headline("at 0.01 ms", "times", _MUCH, at("0.01 ms", 256), words="much more"),
            ),
        ),
        PaperFigure(
            "Figure 15",
            "One executor by state of a shard and shuffles",
            "It scales under all state sizes but 32 MB, and worse at 16 shuffles per minute (section 5.2).",
            "simulated",
            f"{_NO_NUMBERS} 32 KB and 32 MB of the paper's sizes.",
            _make_15,
            slow=runs.figure_15,
            headlines=(
                Headline(
                    "32 MB per shard at 16 shuffles, from 32 KB",
                    "change",
                    (-100.0, -10.0),
                    _LARGE,
                    words="clearly less",
                ),
            ),
        ),
        PaperFigure(
            "Figure 16",
            "Throughput by number of executors and shards",
            "64 shards and fewer balance badly, more than 1024 add nothing; 256 executors are static; 1 and 8 fall "
            "behind with large records and frequent shuffles (section 5.3).",
            "simulated",
            f"{_NO_NUMBERS} With frequent shuffles one executor falls behind static up to 256 shards, and 8 do not.",
            _make_16,
            tuple(WORKLOADS),
            runs.figure_16,
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
            "not here, because",
            "it is a drawing; one operator of it is simulated.",
            headlines=(Headline("Operators", "", 12.0),),
        ),
        PaperFigure(
            "Figure 18",
            "Arrival rates of the five most popular stocks",
            "They fluctuate greatly (section 5.4).",
            "not here, because",
            "the orders of the Shanghai Stock Exchange are private.",
            headlines=(
                Headline(
                    "Highest arrival rate of a stock, compared with its lowest",
                    "times",
                    (1.0, math.inf),
                    words="far more",
                ),
            ),
        ),
        PaperFigure(
            "Figure 19",
            "Throughput and tail latency on the stock exchange's orders",
            "Both executor-centric variants have about twice the throughput of static and RC, and 1 to 2 orders of "
            "magnitude less latency (section 5.4).",
            "simulated",
            "Recorded. The orders are private: Zipf's keys, shuffled 16 times per minute as in the highly dynamic "
            "workload of section 5.3, on the published cluster, costs and sizes. Throughput is that of sources "
            "always ahead, latency that of a load between 1.2 and 1.6 million records/s. The gain is smaller than "
            "published; the skew of the orders is not known.",
            _make_19,
            slow=runs.figure_19,
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
            "simulated",
            "Recorded. The runs of Figure 19. The naive scheduler is as fast here; it differs in what it moves "
            "(Table 2).",
            _make_20,
            headlines=(Headline("Elasticutor's mean latency, of the naive scheduler's", "times", LESS, _LATENCIES),),
        ),
        PaperFigure(
            "Table 2",
            "State and records that the schedulers move between nodes",
            "Migration 13.9 and 2.4 MB/s, remote transfer 235.3 and 21.6 MB/s (section 5.4).",
            "simulated",
            "Recorded. The moving load of Figure 19. The optimised scheduler keeps almost all records on their node "
            "here, so that ratio is larger than published; the naive one moves less state.",
            _make_table_2,
            headlines=(
                _naive("State migration", 13.9 / 2.4),
                _naive("Remote data transfer", 235.3 / 21.6),
            ),
        ),
        PaperFigure(
            "Table 3",
            "Throughput by number of nodes",
            "66,600, 121,300 and 218,600 records/s on 8, 16 and 32 nodes; scheduling takes 4.1 to 5.7 ms (section "
            "5.4).",
            "simulated",
            "Recorded, saturated, as growth: the published records pass 12 operators. With 32 executors on every "
            "cluster it grows faster than the cores, because on 8 nodes four executors share each node's cores and "
            "have two each; section 5.3 advises one per node. python benchmarks/scaling.py times the scheduler.",
            _make_table_3,
            slow=runs.table_3,
            headlines=(
                Headline(
                    "Throughput on 32 nodes, of that on 8", "%", 100 * 218.6 / 66.6, at("one executor per node", 32)
                ),
            ),
        ),
    ),
)
