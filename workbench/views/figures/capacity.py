"""Capacity over slots: what was measured, what the model says, and where the targets meet it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from workbench.capacity.explorer import Exploration
from workbench.capacity.plan import LEVEL, CapacityPlan
from workbench.views import theme, units

_POINTS = 60
_ROOM = 1.15


@dataclass(frozen=True)
class Curve:
    """Capacity against slots at one memory: the prediction and the ends of its interval, records/s."""

    memory_mb: int
    slots: tuple[float, ...]
    rate: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True)
class Capacity:
    """What the figure shows; `runs` are (memory MB, slots, records/s, fitted), `targets` (slots, rate, memory MB)."""

    finding: str
    curves: tuple[Curve, ...]
    runs: tuple[tuple[int, int, float, bool], ...]
    targets: tuple[tuple[int, float, int], ...]
    most_measured: int


def capacity(exploration: Exploration, plans: Sequence[CapacityPlan]) -> Capacity:
    """Collect the curves at the memories that were planned with, or at all measured ones if nothing was planned."""
    measured = sorted({run.budget.profile.memory_mb for run in exploration.measurements})
    memories = sorted({plan.budget.profile.memory_mb for plan in plans}) or measured
    most = int(exploration.model.slots_[-1])
    last = max([most, *(plan.budget.slots for plan in plans)]) * _ROOM
    grid = np.linspace(float(exploration.model.slots_[0]), last, _POINTS)
    curves = []
    for memory in memories:
        points = np.column_stack([np.full_like(grid, memory), grid])
        low, high = exploration.model.interval(points, LEVEL)
        rate = exploration.model.predict(points)
        curves.append(Curve(memory, *(tuple(map(float, line)) for line in (grid, rate, low, high))))
    fitted = set(exploration.fitted)
    runs = tuple(
        (run.budget.profile.memory_mb, run.budget.slots, run.estimate.rate, row in fitted)
        for row, run in enumerate(exploration.measurements)
        if run.estimate.rate
    )
    targets = tuple((plan.budget.slots, plan.rate, plan.budget.profile.memory_mb) for plan in plans)
    query = exploration.measurements[0].query
    if plans:
        largest = max(plans, key=lambda plan: plan.rate)
        finding = f"{units.rate(largest.rate)} of {query} take {largest.budget.slots} slots" + (
            f", {largest.extrapolation:.1f} times the most that was measured"
            if largest.extrapolation > 1
            else ", within what was measured"
        )
    else:
        finding = f"Capacity of {query} over {units.count(len(runs))} runs; no target could be planned"
    return Capacity(finding, tuple(curves), runs, targets, most)


def draw_capacity(data: Capacity) -> go.Figure:
    """Draw points, curves with their intervals, targets, and the extrapolated part shaded."""
    figure = theme.figure(data.finding, height=460)
    last = max((curve.slots[-1] for curve in data.curves), default=data.most_measured)
    if last > data.most_measured:
        figure.add_vrect(x0=data.most_measured, x1=last, fillcolor=theme.GREY, opacity=0.08, line_width=0)
        figure.add_annotation(
            x=data.most_measured, y=1, yref="paper", text="extrapolated", showarrow=False, xanchor="left", yanchor="top"
        )
    for number, curve in enumerate(data.curves):
        colour = theme.SEQUENCE[number % len(theme.SEQUENCE)]
        band = {"hoverinfo": "skip", "mode": "lines", "line": {"width": 0}, "legendgroup": str(curve.memory_mb)}
        figure.add_scatter(x=curve.slots, y=curve.high, showlegend=False, **band)
        figure.add_scatter(
            x=curve.slots, y=curve.low, fill="tonexty", fillcolor=theme.BAND, name=f"{LEVEL:.0%} interval",
            showlegend=number == 0, **band,
        )  # fmt: skip
        figure.add_scatter(
            x=curve.slots,
            y=curve.rate,
            mode="lines",
            line={"color": colour, "dash": "solid" if number == 0 else "dash"},
            name=f"model, {curve.memory_mb} MB per slot",
            hovertemplate="%{x:.0f} slots: %{y:.4~s} records/s<extra></extra>",
        )
    for fitted, symbol, word in ((True, "circle", "measured"), (False, "x", "measured, not fitted")):
        runs = [run for run in data.runs if run[3] == fitted]
        if runs:
            figure.add_scatter(
                x=[slots for _, slots, _, _ in runs],
                y=[rate for _, _, rate, _ in runs],
                customdata=[memory for memory, _, _, _ in runs],
                mode="markers",
                marker={"color": theme.BLACK, "symbol": symbol, "size": 9},
                name=word,
                hovertemplate="%{x} slots of %{customdata} MB: %{y:.4~s} records/s<extra></extra>",
            )
    if data.targets:
        figure.add_scatter(
            x=[slots for slots, _, _ in data.targets],
            y=[rate for _, rate, _ in data.targets],
            mode="markers+text",
            text=[f"{slots} slots" for slots, _, _ in data.targets],
            textposition="bottom right",
            marker={"color": theme.VERMILLION, "symbol": "diamond", "size": 12},
            name="planned for a target",
            hovertemplate="%{y:.4~s} records/s: %{x} slots<extra></extra>",
        )
    figure.update_xaxes(title_text="Slots", rangemode="tozero")
    figure.update_yaxes(title_text="Capacity (records/s)", tickformat="~s", rangemode="tozero")
    theme.room_for_legend(figure)
    return figure
