"""Elasticutor's paradigms compared on one load: throughput and latency over time, and what each moved."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench import units
from workbench.scaling.elastic import ParadigmRun
from workbench.views import theme
from workbench.views.figures import traces

_COLOURS = (theme.BLACK, theme.VERMILLION, theme.GREEN, theme.BLUE)
_DASHES = ("dot", "dash", "dashdot", "solid")
_AS_GOOD = 0.01  # of the throughput


@dataclass(frozen=True, eq=False)
class Paradigms:
    """What the figure shows: the runs in order, and the one with the least latency among those that keep up."""

    finding: str
    runs: tuple[ParadigmRun, ...]
    best: ParadigmRun | None


def paradigms(runs: Sequence[ParadigmRun]) -> Paradigms:
    """Find the run with the lowest p99 latency among those whose throughput is within a hundredth of the highest."""
    if not runs:
        return Paradigms("No paradigm was replayed", (), None)
    most = max(run.throughput_per_s for run in runs)
    able = [run for run in runs if run.throughput_per_s >= (1 - _AS_GOOD) * most]
    best = min(able, key=lambda run: run.p99_latency_s)
    worst = max(runs, key=lambda run: run.p99_latency_s)
    finding = (
        f"{best.paradigm} processes {units.rate(best.throughput_per_s)} with a p99 latency of "
        f"{units.seconds(best.p99_latency_s)}"
    )
    if worst is not best:
        finding += f", {worst.paradigm} with {units.seconds(worst.p99_latency_s)}"
    return Paradigms(finding, tuple(runs), best)


def draw_paradigms(data: Paradigms) -> go.Figure:
    """Draw throughput and mean latency of every second, one line per paradigm."""
    figure = theme.figure(data.finding, 520, "Two panels over time: throughput and mean latency, a line per paradigm.")
    if not data.runs:
        return theme.not_enough(figure, "no paradigm was replayed.")
    panels = make_subplots(rows=2, shared_xaxes=True, vertical_spacing=0.06, figure=figure)
    for run, colour, dash in zip(data.runs, _COLOURS, _DASHES, strict=False):
        latency_ms = [1e3 * value if math.isfinite(value) else None for value in run.latency_series.tolist()]
        rows = (
            (1, "throughput", run.throughput_series.tolist(), "%{y:.4~s} records/s"),
            (2, "latency", latency_ms, "mean latency %{y:.4~g} ms"),
        )
        for row, what, values, hover in rows:
            look = {"look": (colour, dash, 1.8), "hover": f"%{{x:.4~g}} s, {run.paradigm}: {hover}"}
            uid, where = f"paradigms-{what}-{run.paradigm}", {"showlegend": row == 1, "row": row, "col": 1}
            traces.lines(panels, uid, run.paradigm, run.time_s.tolist(), values, **look, **where)
    top = max(float(run.throughput_series.max(initial=0.0)) for run in data.runs)
    panels.update_yaxes(title_text="Throughput (records/s)", **theme.upright(top), row=1, col=1)
    panels.update_yaxes(title_text="Mean latency (ms)", type="log", tickformat="~g", row=2, col=1)
    panels.update_xaxes(title_text="Time (s)", row=2, col=1)
    return theme.room_for_legend(panels)
