"""Capacity over slots and memory: what was measured, what the model says, and where the targets meet it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench.capacity import CapacityModel
from workbench.capacity.explorer import Exploration
from workbench.capacity.plan import LEVEL, CapacityPlan
from workbench.views import theme, units

_POINTS = 60
_ROOM = 1.15
_SYMBOLS = ("circle", "square", "triangle-up", "star", "hexagon")
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash")


@dataclass(frozen=True)
class Curve:
    """Capacity against slots at one memory: the prediction and the ends of its interval, records/s."""

    memory_mb: int
    slots: tuple[float, ...]
    rate: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True)
class MemoryCurve:
    """Capacity against memory per slot at one number of slots: the prediction and the ends of its interval."""

    slots: int
    memory_mb: tuple[float, ...]
    rate: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True)
class Capacity:
    """What the figure shows; `runs` are (memory MB, slots, records/s, fitted), `targets` (slots, rate, memory MB).

    `memory_curves` are there where more than one memory was measured.
    """

    finding: str
    curves: tuple[Curve, ...]
    runs: tuple[tuple[int, int, float, bool], ...]
    targets: tuple[tuple[int, float, int], ...]
    most_measured: int
    memory_curves: tuple[MemoryCurve, ...] = ()


def capacity(exploration: Exploration, plans: Sequence[CapacityPlan]) -> Capacity:
    """Collect the curves at the memories that were planned with, or at all measured ones if nothing was planned."""
    measured = sorted({run.budget.profile.memory_mb for run in exploration.measurements})
    memories = sorted({plan.budget.profile.memory_mb for plan in plans}) or measured
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
    return capacity_of(exploration.model, runs, targets, memories, finding)


def capacity_of(
    model: CapacityModel,
    runs: Sequence[tuple[int, int, float, bool]],
    targets: Sequence[tuple[int, float, int]],
    memories: Sequence[int],
    finding: str,
) -> Capacity:
    """Collect the curves of a fitted model; runs and targets are as in `Capacity`. What what-if questions call."""
    most = int(model.slots_[-1])
    last = max([most, *(slots for slots, _, _ in targets)]) * _ROOM
    grid = np.linspace(float(model.slots_[0]), last, _POINTS)
    curves = []
    for memory in memories:
        rate, low, high = _predicted(model, np.column_stack([np.full_like(grid, memory), grid]))
        curves.append(Curve(memory, tuple(grid.tolist()), rate, low, high))
    memory_curves = []
    if len(model.memory_) > 1:
        memory_grid = np.geomspace(float(model.memory_[0]), float(model.memory_[-1]), _POINTS // 2)
        measured = [int(slots) for slots in model.slots_]
        for slots in sorted({measured[0], measured[len(measured) // 2], most}):
            rate, low, high = _predicted(model, np.column_stack([memory_grid, np.full_like(memory_grid, slots)]))
            memory_curves.append(MemoryCurve(slots, tuple(memory_grid.tolist()), rate, low, high))
    return Capacity(finding, tuple(curves), tuple(runs), tuple(targets), most, tuple(memory_curves))


def draw_capacity(data: Capacity) -> go.Figure:
    """Draw points, curves with their intervals, target lines, and the extrapolated part shaded; memory on the right."""
    figure = theme.figure(
        data.finding, 470, "Capacity over slots: measured points, model with its interval, targets; and over memory."
    )
    if not data.curves:
        return theme.not_enough(figure, "no model was fitted.")
    two = bool(data.memory_curves)
    panels = make_subplots(
        cols=2 if two else 1,
        column_widths=[0.64, 0.36] if two else None,
        shared_yaxes=True,
        horizontal_spacing=0.04,
        figure=figure,
    )
    for number, curve in enumerate(data.curves):
        label = f"model, {curve.memory_mb} MB per slot"
        _curve(
            panels,
            f"memory-{curve.memory_mb}",
            label,
            number,
            (curve.slots, curve.rate, curve.low, curve.high),
            column=1,
        )
    for number, across in enumerate(data.memory_curves):
        label = f"model, {units.count(across.slots)} slots"
        lines = (across.memory_mb, across.rate, across.low, across.high)
        _curve(panels, f"slots-{number}", label, number + len(data.curves), lines, column=2)
    _runs(panels, data, two=two)
    _targets(panels, data)
    last = max(curve.slots[-1] for curve in data.curves)
    if last > data.most_measured:
        where = {"row": 1, "col": 1}
        panels.add_vrect(
            x0=data.most_measured, x1=last, fillcolor=theme.GREY, opacity=0.1, line_width=0, layer="below", **where
        )
        panels.add_annotation(
            x=data.most_measured, y=1, yref="paper", text="extrapolated", showarrow=False, xanchor="left", yanchor="top"
        )
    panels.update_xaxes(title_text="Slots", rangemode="tozero", row=1, col=1)
    panels.update_yaxes(tickformat="~s", rangemode="tozero")
    panels.update_yaxes(title_text="Capacity (records/s)", row=1, col=1)
    if two:
        ticks = sorted({memory for memory, _, _, _ in data.runs})
        panels.update_xaxes(
            title_text="Memory per slot (MB)",
            type="log",
            tickvals=ticks,
            ticktext=[f"{t:g}" for t in ticks],
            row=1,
            col=2,
        )
    panels.update_layout(legend_traceorder="normal")
    theme.room_for_legend(panels)
    return panels


def _predicted(model: CapacityModel, points: np.ndarray) -> tuple[tuple[float, ...], ...]:
    """Prediction and ends of the interval, records/s."""
    low, high = model.interval(points, LEVEL)
    return tuple(tuple(map(float, line)) for line in (model.predict(points), low, high))


def _curve(
    panels: go.Figure, uid: str, label: str, number: int, lines: tuple[tuple[float, ...], ...], *, column: int
) -> None:
    """Draw one curve with its interval: x, prediction, low, high."""
    x, rate, low, high = lines
    colour = theme.SEQUENCE[number % len(theme.SEQUENCE)]
    band = {"hoverinfo": "skip", "mode": "lines", "line": {"width": 0}, "row": 1, "col": column}
    first = number == 0 and column == 1
    panels.add_scatter(uid=f"capacity-high-{uid}", name="interval's high end", x=x, y=high, showlegend=False, **band)
    panels.add_scatter(
        uid=f"capacity-low-{uid}",
        name=f"{LEVEL:.0%} interval",
        x=x,
        y=low,
        fill="tonexty",
        fillcolor=theme.BAND,
        showlegend=first,
        **band,
    )
    what = "slots" if column == 1 else "MB"
    panels.add_scatter(
        uid=f"capacity-model-{uid}",
        name=label,
        x=x,
        y=rate,
        mode="lines",
        line={"color": colour, "dash": _DASHES[number % len(_DASHES)]},
        hovertemplate=f"{label}, %{{x:.0f}} {what}: %{{y:.4~s}} records/s<extra></extra>",
        row=1,
        col=column,
    )


def _runs(panels: go.Figure, data: Capacity, *, two: bool) -> None:
    """Draw the runs: a shape for each memory, crosses for those that were not fitted."""
    memories = sorted({memory for memory, _, _, _ in data.runs})
    across = {curve.slots for curve in data.memory_curves}
    for fitted in (True, False):
        word = "measured" if fitted else "measured, not fitted"
        for column in (1, 2) if two else (1,):
            runs = [run for run in data.runs if run[3] == fitted and (column == 1 or run[1] in across)]
            symbols = [_SYMBOLS[memories.index(run[0]) % len(_SYMBOLS)] if fitted else "x" for run in runs]
            panels.add_scatter(
                uid=f"capacity-runs-{'fitted' if fitted else 'left-out'}-{column}",
                name=word,
                x=[run[1] if column == 1 else run[0] for run in runs],
                y=[rate for _, _, rate, _ in runs],
                customdata=[[memory, slots] for memory, slots, _, _ in runs],
                mode="markers",
                marker={"color": theme.BLACK, "symbol": symbols, "size": 8},
                hovertemplate="%{customdata[1]} slots of %{customdata[0]} MB: %{y:.4~s} records/s<extra></extra>",
                showlegend=bool(runs) and column == 1,
                row=1,
                col=column,
            )


def _targets(panels: go.Figure, data: Capacity) -> None:
    panels.add_scatter(
        uid="capacity-targets",
        name="planned for a target",
        x=[slots for slots, _, _ in data.targets],
        y=[rate for _, rate, _ in data.targets],
        mode="markers+text",
        text=[f"{slots} slots" for slots, _, _ in data.targets],
        textposition="bottom center",
        marker={"color": theme.VERMILLION, "symbol": "diamond", "size": 12},
        hovertemplate="%{y:.4~s} records/s: %{x} slots<extra></extra>",
        showlegend=bool(data.targets),
        row=1,
        col=1,
    )
    for rate in sorted({rate for _, rate, _ in data.targets}):
        panels.add_hline(
            y=rate,
            line={"color": theme.VERMILLION, "width": 1, "dash": "dash"},
            annotation={
                "text": f"target {units.rate(rate)}",
                "font": {"size": 12, "color": theme.VERMILLION},
                "bgcolor": "rgba(255,255,255,0.8)",
            },
            annotation_position="top right",
            row=1,
            col=1,
        )
