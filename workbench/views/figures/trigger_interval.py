"""Capacity against the trigger interval: what more latency gains."""

from collections.abc import Sequence
from math import isfinite

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench import units
from workbench.capacity.planning import IntervalPoint, interval_points
from workbench.records import Measurement
from workbench.views import theme
from workbench.views.figures import traces


def _deployments(measurements: Sequence[Measurement]) -> list[tuple[str, tuple[IntervalPoint, ...]]]:
    """Group measurements of one query by slots and profile; leave out those that sustained no rate."""
    groups: dict[str, list[Measurement]] = {}
    for run in measurements:
        slots = units.some(run.budget.slots, "slot")
        label = f"{slots} of {units.number(run.budget.profile.cpus)} cores, {run.budget.profile.memory_mb:,} MB"
        groups.setdefault(label, []).append(run)
    found = ((label, interval_points(runs)) for label, runs in groups.items())
    return [(label, points) for label, points in found if points]


def trigger_intervals(measurements: Sequence[Measurement]) -> str:
    """Describe how capacity and latency grow from the shortest to the longest interval of the widest deployment."""
    deployments = _deployments(measurements)
    widest = max(deployments, key=lambda one: one[1][-1].interval_s / one[1][0].interval_s, default=None)
    if widest is None:
        return "No trigger interval was measured"
    query, (_, points) = measurements[0].query, widest
    first, last = points[0], points[-1]
    if first.interval_s == last.interval_s:
        return f"{query} was measured at one trigger interval only, {units.seconds(first.interval_s)}"
    more, waits = last.rate / first.rate, last.mean_latency_s / first.mean_latency_s
    return (
        f"From {units.seconds(first.interval_s)} to {units.seconds(last.interval_s)} the capacity of {query} grows "
        f"{units.number(more, 2)} times, from {units.rate(first.rate)} to {units.rate(last.rate)}, and the latency "
        f"{units.number(waits, 2)} times"
    )


def draw_trigger_intervals(measurements: Sequence[Measurement]) -> go.Figure:
    """Draw capacity over the interval on the left, over the mean latency on the right, by deployment."""
    deployments = _deployments(measurements)
    shows = "Left: capacity over the trigger interval. Right: capacity over the mean latency."
    figure = theme.figure(trigger_intervals(measurements), 400, shows)
    if not deployments:
        return theme.not_enough(figure, "no interval sustained a rate.")
    panels = make_subplots(cols=2, shared_yaxes=True, horizontal_spacing=0.05, figure=figure)
    for number, (label, points) in enumerate(deployments):
        colour = theme.SEQUENCE[number % len(theme.SEQUENCE)]
        symbol = ("circle", "square", "diamond", "triangle-up", "star")[number % 5]
        above = [max(0.0, point.high - point.rate) if isfinite(point.high) else 0.0 for point in points]
        below = [max(0.0, point.rate - point.low) for point in points]
        error = {"type": "data", "symmetric": False, "array": above, "arrayminus": below, "thickness": 1.2}
        times = [(point.interval_s, point.mean_latency_s) for point in points]
        told = {"customdata": [list(map(units.seconds, pair)) for pair in times], "legendgroup": label}
        look = {"mode": "lines+markers", "line": {"color": colour}, "look": (colour, symbol, 9), "error_y": error}
        hover = "interval %{customdata[0]}, latency %{customdata[1]}: %{y:.4~s} records/s"
        for column, x in enumerate(zip(*times, strict=True), start=1):
            uid, where = f"interval-{number}-{column}", {"showlegend": column == 1, "row": 1, "col": column}
            rates = [point.rate for point in points]
            traces.marks(panels, uid, label, x, rates, hover=hover, **told, **look, **where)
    every = sorted({point.interval_s for _, points in deployments for point in points})
    ticks = {"tickvals": every, "ticktext": [f"{value:g}" for value in every]}
    panels.update_xaxes(title_text="Trigger interval (s)", type="log", **ticks, row=1, col=1)
    panels.update_xaxes(title_text="Mean latency of a record (s)", rangemode="tozero", row=1, col=2)
    panels.update_yaxes(rangemode="tozero", tickformat="~s")
    panels.update_yaxes(title_text="Capacity (records/s)", row=1, col=1)
    return theme.room_for_legend(panels)
