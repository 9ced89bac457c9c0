"""Elastic executors (Elasticutor): latency over cores, shard balance, and paradigms compared on one load."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench import units
from workbench.scaling import CoreAllocation, ShardPlan, allocate_cores
from workbench.scaling.elastic import ParadigmRun
from workbench.views import theme

_POINTS = 200


@dataclass(frozen=True)
class LatencyCores:
    """Data of the figure."""

    finding: str
    followed: tuple[CoreAllocation, ...]  # the best latency of each number of cores, from the least stable number on
    executors: tuple[str, ...]
    service_s: float  # the service times alone: no number of cores is faster
    target_s: float
    chosen: CoreAllocation | None  # the fewest cores that meet the target, or the reason why no number does


def latency_cores(
    arrivals: Sequence[float],
    service_rates: Sequence[float],
    source_rate: float,
    target_latency: float,
    cores: int,
    *,
    names: Sequence[str] | None = None,
) -> LatencyCores:
    """Follow the greedy allocation core by core, up to `cores`; see `allocate_cores`. No executors: an empty figure."""
    executors = tuple(names or (f"executor {number}" for number in range(len(arrivals))))
    if not len(arrivals):
        return LatencyCores("There are no executors", (), (), 0.0, target_latency, None)
    chosen = allocate_cores(arrivals, service_rates, source_rate, target_latency, cores)
    service_s = sum(a / s for a, s in zip(arrivals, service_rates, strict=True)) / source_rate
    least = sum(allocate_cores(arrivals, service_rates, source_rate, target_latency, 0).cores)
    # For a target that is never met, the greedy choice passes through the best allocation of every number of cores.
    near = max(service_s * (1 + 1e-7), math.ulp(0.0))
    step = max(1, math.ceil((cores - least + 1) / _POINTS))
    followed = [
        allocate_cores(arrivals, service_rates, source_rate, near, supply)
        for supply in sorted({*range(least, cores + 1, step), max(least, cores), sum(chosen.cores)})
    ]
    best = {sum(one.cores): one for one in followed}
    steps, finding = tuple(best[number] for number in sorted(best)), _finding(chosen, target_latency, service_s, cores)
    return LatencyCores(finding, steps, executors, service_s, target_latency, chosen)


def draw_latency_cores(data: LatencyCores) -> go.Figure:
    """Draw latency over cores on a logarithmic axis, with the target, the lower bound and the chosen number."""
    figure = theme.figure(data.finding, 420, "Line: mean latency over cores, with the target and the service time.")
    if not data.followed:
        return theme.not_enough(figure, "there are no executors.")
    shares = [
        ", ".join(f"{theme.plain(name)} {cores}" for name, cores in zip(data.executors, one.cores, strict=True))
        for one in data.followed
    ]
    totals, waits = [sum(one.cores) for one in data.followed], [1000 * one.latency for one in data.followed]
    look = {"mode": "lines+markers", "line": {"color": theme.BLUE}, "look": (theme.BLUE, None, 5)}
    told = {"text": shares if len(data.executors) <= 12 else None, "hover": "%{x:,} cores: %{y:.4~g} ms<br>%{text}"}
    theme.marks(figure, "latency-curve", "best allocation", totals, waits, **look, **told)
    found = [data.chosen] if data.chosen is not None and data.chosen.status == "ok" else []
    cores, latencies = [sum(best.cores) for best in found], [1000 * best.latency for best in found]
    words = {"mode": "markers+text", "text": [units.some(count, "core") for count in cores]}
    look = {"look": (theme.VERMILLION, "diamond", 13), "textposition": "bottom left"}
    name, hover = "fewest cores for the target", "%{x:,} cores: %{y:.4~g} ms"
    theme.marks(figure, "latency-chosen", name, cores, latencies, hover=hover, showlegend=bool(found), **words, **look)
    lines = ((data.target_s, "target", "dash", theme.BLACK), (data.service_s, "service times alone", "dot", theme.GREY))
    for level, word, dash, colour in lines:
        if level > 0:
            figure.add_hline(y=1000 * level, line={"color": colour, "width": 1, "dash": dash})
            # annotations on a logarithmic axis take the logarithm
            where = {"x": 1, "xref": "paper", "xanchor": "right", "y": math.log10(1000 * level), "showarrow": False}
            look = {"font": {"size": 12, "color": colour}, "yanchor": "bottom" if word == "target" else "top"}
            figure.add_annotation(text=f"{word}: {units.seconds(level)}", **where, **look)
    levels = [value for value in (*waits, 1000 * data.target_s, 1000 * data.service_s) if value > 0]
    low, high = math.log10(min(levels)), math.log10(max(levels))
    room = 0.14 * max(high - low, 0.2)
    figure.update_xaxes(title_text="Cores", rangemode="normal", tickformat=",d")
    figure.update_yaxes(title_text="Mean latency (ms)", type="log", range=[low - room, high + room], tickformat="~g")
    return theme.room_for_legend(figure)


def _finding(chosen: CoreAllocation, target_s: float, service_s: float, cores: int) -> str:
    target, needed = units.seconds(target_s), sum(chosen.cores)
    if chosen.status == "ok":
        keeps = f"{units.some(needed, 'core')} keep{'s' * (needed == 1)}"
        return f"{keeps} the mean latency at {units.seconds(chosen.latency)}, under {target}"
    if chosen.status == "exhausted":
        gives = f"{units.some(cores, 'core')} give{'s' * (cores == 1)}"
        return f"{gives} {units.seconds(chosen.latency)}; the target of {target} needs more"
    if chosen.status == "insufficient":
        return f"{units.some(cores, 'core')} cannot keep up: a stable queue needs at least {units.count(needed)}"
    return f"No number of cores reaches {target}: the service times alone take {units.seconds(service_s)}"


@dataclass(frozen=True)
class ShardBalance:
    """Data of the figure: loads of the tasks as multiples of the mean, and shards per task, before and after."""

    finding: str
    before: tuple[float, ...]
    after: tuple[float, ...]
    shards_before: tuple[int, ...]
    shards_after: tuple[int, ...]
    threshold: float


def shard_balance(
    loads: Sequence[float], assignment: Sequence[int], plan: ShardPlan, tasks: int, threshold: float = 1.2
) -> ShardBalance:
    """Add up the loads of the shards of every task; takes the arguments and the result of `rebalance_shards`."""
    if not len(loads) or sum(loads) <= 0:
        return ShardBalance("The shards have no load", (), (), (), (), threshold)
    mean = sum(loads) / tasks

    def per_task(owners: Sequence[int]) -> tuple[tuple[float, ...], tuple[int, ...]]:
        sums = np.bincount(np.asarray(owners), weights=np.asarray(loads, dtype=float), minlength=tasks) / mean
        return tuple(sums.tolist()), tuple(np.bincount(np.asarray(owners), minlength=tasks).tolist())

    before, shards_before = per_task(assignment)
    after, shards_after = per_task(plan.assignment)
    if not plan.moves:
        finding = f"No shard needs to move: the fullest task has {units.number(max(before))} times the mean load"
    else:
        finding = (
            f"Moving {units.count(len(plan.moves))} of {units.count(len(loads))} shards lowers the fullest task from "
            f"{units.number(max(before))} to {units.number(max(after))} times the mean load"
        )
    return ShardBalance(finding, before, after, shards_before, shards_after, threshold)


def draw_shard_balance(data: ShardBalance) -> go.Figure:
    """Draw two bars per task, the mean and the threshold."""
    figure = theme.figure(data.finding, 400, "Bars: load of every task before and after, as a multiple of the mean.")
    if not data.before:
        return theme.not_enough(figure, "the shards have no load.")
    tasks = list(range(len(data.before)))
    series = (
        ("shards-before", "before", data.before, data.shards_before, "#B9B9B9", "/"),
        ("shards-after", "after", data.after, data.shards_after, theme.BLUE, ""),
    )
    hatching = {"fgcolor": theme.GREY, "size": 5, "fillmode": "overlay"}
    for uid, name, loads, shards, colour, shape in series:
        hover = "task %{x} " + name + ": %{y:.3f} times the mean, %{customdata} shards<extra></extra>"
        look = {"marker": {"color": colour, "pattern": {**hatching, "shape": shape}}, "hovertemplate": hover}
        figure.add_bar(uid=uid, name=name, x=tasks, y=loads, customdata=shards, **look)
    beside = {"font": {"size": 12}, "x": 1, "xanchor": "left", "yanchor": "middle", "xshift": 4}
    limit = f"threshold {units.number(data.threshold)}"
    for level, word, dash in ((1.0, "mean", "dot"), (data.threshold, limit, "dash")):
        line = {"color": theme.BLACK, "width": 1, "dash": dash}
        figure.add_hline(y=level, line=line, annotation={"text": word, **beside})
    ticks = {"tickformat": ",d", "dtick": 1 if len(tasks) <= 24 else None, "showgrid": False}
    figure.update_xaxes(title_text="Task", range=[-0.6, len(tasks) - 0.4], **ticks)
    figure.update_yaxes(title_text="Load (x mean)", rangemode="tozero")
    figure.update_layout(bargap=0.25, bargroupgap=0.05, margin_r=96)
    return theme.room_for_legend(figure)


_COLOURS = (theme.BLACK, theme.VERMILLION, theme.GREEN, theme.BLUE)
_DASHES = ("dot", "dash", "dashdot", "solid")
_AS_GOOD = 0.01  # of the throughput


def best_paradigm(runs: Sequence[ParadigmRun]) -> ParadigmRun:
    """Find the run with the lowest p99 latency among those whose throughput is within a hundredth of the highest."""
    most = max(run.throughput_per_s for run in runs)
    able = [run for run in runs if run.throughput_per_s >= (1 - _AS_GOOD) * most]
    return min(able, key=lambda run: run.p99_latency_s)


def paradigms(runs: Sequence[ParadigmRun]) -> str:
    """Compare the best run with that of the highest latency."""
    best, worst = best_paradigm(runs), max(runs, key=lambda run: run.p99_latency_s)
    finding = (
        f"{best.paradigm} processes {units.rate(best.throughput_per_s)} with a p99 latency of "
        f"{units.seconds(best.p99_latency_s)}"
    )
    return finding if worst is best else f"{finding}, {worst.paradigm} with {units.seconds(worst.p99_latency_s)}"


def draw_paradigms(runs: Sequence[ParadigmRun]) -> go.Figure:
    """Draw throughput and mean latency of every second, one line per paradigm."""
    figure = theme.figure(
        paradigms(runs), 520, "Two panels over time: throughput and mean latency, a line per paradigm."
    )
    panels = make_subplots(rows=2, shared_xaxes=True, vertical_spacing=0.06, figure=figure)
    for run, colour, dash in zip(runs, _COLOURS, _DASHES, strict=False):
        latency_ms = [1e3 * value if math.isfinite(value) else None for value in run.latency_series.tolist()]
        rows = (
            (1, "throughput", run.throughput_series.tolist(), "%{y:.4~s} records/s"),
            (2, "latency", latency_ms, "mean latency %{y:.4~g} ms"),
        )
        for row, what, values, hover in rows:
            look = {"look": (colour, dash, 1.8), "hover": f"%{{x:.4~g}} s, {run.paradigm}: {hover}"}
            uid, where = f"paradigms-{what}-{run.paradigm}", {"showlegend": row == 1, "row": row, "col": 1}
            theme.lines(panels, uid, run.paradigm, run.time_s.tolist(), values, **look, **where)
    top = max(float(run.throughput_series.max(initial=0.0)) for run in runs)
    panels.update_yaxes(title_text="Throughput (records/s)", **theme.upright(top), row=1, col=1)
    panels.update_yaxes(title_text="Mean latency (ms)", type="log", tickformat="~g", row=2, col=1)
    panels.update_xaxes(title_text="Time (s)", row=2, col=1)
    return theme.room_for_legend(panels)
