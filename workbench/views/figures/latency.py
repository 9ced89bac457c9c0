"""Latency over cores: the effect of each further core of elastic executors (Elasticutor, section 4.1)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from workbench import units
from workbench.scaling import CoreAllocation, allocate_cores
from workbench.views import theme
from workbench.views.figures import traces

_POINTS = 200


@dataclass(frozen=True)
class LatencyCores:
    """What the figure shows."""

    finding: str
    followed: tuple[CoreAllocation, ...]  # the best of each number of cores, from the least stable number on
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
    traces.marks(figure, "latency-curve", "best allocation", totals, waits, **look, **told)
    found = [data.chosen] if data.chosen is not None and data.chosen.status == "ok" else []
    cores, latencies = [sum(best.cores) for best in found], [1000 * best.latency for best in found]
    words = {"mode": "markers+text", "text": [units.some(count, "core") for count in cores]}
    look = {"look": (theme.VERMILLION, "diamond", 13), "textposition": "bottom left"}
    name, hover = "fewest cores for the target", "%{x:,} cores: %{y:.4~g} ms"
    traces.marks(figure, "latency-chosen", name, cores, latencies, hover=hover, showlegend=bool(found), **words, **look)
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
