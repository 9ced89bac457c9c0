"""Placements: where the tasks are, what a threshold prunes, and what random placement costs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike
from plotly.subplots import make_subplots

from workbench import units
from workbench.placement import CostVector, PlacementProblem, SearchResult, Spread
from workbench.views import theme

RESOURCES = ("CPU", "State access", "Network")
_TEXTS = 40  # with more columns, cells are too narrow for numbers


@dataclass(frozen=True)
class PlacementMap:
    """Data of the figure: tasks of every operator (a row) on every worker (a column), and loads of the workers."""

    finding: str
    operators: tuple[str, ...]
    workers: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    loads: tuple[tuple[float | None, ...], ...]  # by resource and speed, as multiples of the mean; None where all is 0


def placement_map(problem: PlacementProblem, counts: ArrayLike | None, name: str = "This plan") -> PlacementMap:
    """Collect a plan's counts and the loads that follow; None or an empty `counts`: there is no plan."""
    workers = tuple(f"w{number}" for number in range(problem.workers))
    if counts is None or np.size(counts) == 0:
        return PlacementMap("No plan has been chosen yet", problem.operators, workers, (), ())
    plan = problem.checked(counts)
    loads = problem.worker_loads(plan) / np.array(problem.speeds)
    means = loads.mean(axis=1, keepdims=True)
    shares = np.divide(loads, means, out=np.zeros_like(loads), where=means > 0)
    ratios = tuple(tuple(row) if any(row) else (None,) * problem.workers for row in shares.tolist())
    highest, (resource, worker) = float(shares.max()), divmod(int(shares.argmax()), problem.workers)
    if not highest:
        finding = f"{name} loads no worker"
    elif highest < 1.005:
        finding = f"{name} loads all workers evenly"
    else:
        what = ("CPU", "state access", "network")[resource]
        finding = f"{name} puts {units.number(highest)} times the mean {what} load on worker w{worker}"
    return PlacementMap(finding, problem.operators, workers, tuple(map(tuple, plan.tolist())), ratios)


def draw_placement_map(data: PlacementMap) -> go.Figure:
    """Draw the counts as a map, and under it the loads, 1 being the mean."""
    rows, extra = max(1, len(data.operators)), len(RESOURCES)
    height = 190 + 30 * (rows + extra)
    shows = "Map: tasks of every operator (rows) on every worker (columns); below, loads per worker."
    figure = theme.figure(data.finding, height, shows)
    if not data.counts:
        return theme.not_enough(figure, "no plan has been chosen yet.")
    panels = make_subplots(
        rows=2, shared_xaxes=True, vertical_spacing=30 / height, row_heights=[rows, extra], figure=figure
    )
    texts = len(data.workers) <= _TEXTS
    most = max(max(row) for row in data.counts)
    counts = [[count or None for count in row] for row in data.counts]  # no task: the page shows through
    tasks = [["" if count is None else str(count) for count in row] for row in counts]
    loads = [["" if load is None else f"{load:.2f}" for load in row] for row in data.loads]
    blues, reds = [[0, "#FFFFFF"], [1, theme.BLUE]], [[0, "#FFFFFF"], [0.5, "#FBE3D3"], [1, theme.VERMILLION]]
    operators, names = [theme.plain(name) for name in data.operators], list(RESOURCES)
    maps: tuple[tuple[Any, ...], ...] = (
        ("counts", "tasks", counts, operators, tasks, blues, max(1.0, 1.25 * most), "%{z:,} tasks of %{y} on %{x}"),
        ("loads", "loads", data.loads, names, loads, reds, 2, "%{y} of %{x}: %{z:.3f} times the mean"),
    )
    for row, (uid, name, values, y, words, scale, top, hover) in enumerate(maps, start=1):
        told = {"text": words, "texttemplate": "%{text}" if texts else None, "textfont": {"size": 14 - row}}
        look = {"colorscale": scale, "showlegend": False, "hover": hover}
        where = {"x": data.workers, "y": y, "row": row, "col": 1}
        theme.heat(panels, f"map-{uid}", name, values, top, **told, **look, **where)
    panels.update_yaxes(autorange="reversed", showgrid=False, showline=False, ticks="", type="category")
    panels.update_xaxes(showgrid=False, showline=False, ticks="", type="category", tickangle=0)
    panels.update_xaxes(title_text="Worker", row=2, col=1)
    panels.update_yaxes(title_text="Tasks", row=1, col=1)
    panels.update_yaxes(title_text="Load (x mean)", row=2, col=1)
    panels.update_layout(margin_t=52)
    return panels


Searches = Sequence[tuple[CostVector, SearchResult]]
"""Searches in order of their threshold of the CPU cost, the tightest first; a disabled one counts as 1, the worst."""


def pruning(searches: Searches) -> str:
    """Describe what is left by the tightest threshold that some plan meets."""
    limits, result = next(((limits, one) for limits, one in searches if one.count), searches[-1])
    tightest = min(1.0, limits.cpu)
    if not result.count:
        return f"No plan meets a threshold of the CPU cost up to {units.number(tightest)}"
    most = max(one.nodes for _, one in searches)
    share = result.nodes / most if most else 1.0
    widest = f"{units.share(share)} of the nodes of the widest search" if share < 1 else "as many nodes as the widest"
    left = f"{units.count(result.count)} of {units.count(max(one.count for _, one in searches))} plans"
    return f"A threshold of {units.number(tightest)} on the CPU cost leaves {left}, at {widest}"


def draw_pruning(searches: Searches) -> go.Figure:
    """Draw plans and nodes on a logarithmic axis, and shade where no plan is left."""
    shows = "Two lines over the threshold: plans that meet it and nodes searched."
    figure = theme.figure(pruning(searches), 400, shows)
    limits, found = [min(1.0, limits.cpu) for limits, _ in searches], [one for _, one in searches]
    series = (
        ("pruning-nodes", "nodes searched", [one.nodes for one in found], theme.VERMILLION, "square", "dash"),
        ("pruning-plans", "plans within the threshold", [one.count for one in found], theme.BLUE, "circle", "solid"),
    )
    for uid, name, values, colour, symbol, dash in series:
        counts = [value or None for value in values]  # a logarithmic axis has no zero
        late = ["" if one.exhausted else " (not finished: at least)" for one in found]
        look = {"mode": "lines+markers", "line": {"color": colour, "dash": dash}, "look": (colour, symbol, 8)}
        hover = "threshold %{x:.3f}: %{y:,} " + name.split()[0] + "%{customdata}"
        theme.marks(figure, uid, name, limits, counts, customdata=late, hover=hover, **look)
    right = limits[-1]
    end = next((limit for limit, one in zip(limits, found, strict=True) if one.count), right)
    if not found[0].count:
        words = {"text": "no plan", "font": {"size": 12, "color": theme.GREY}}
        shade = {"fillcolor": theme.GREY, "opacity": 0.1, "line_width": 0, "layer": "below"}
        figure.add_vrect(x0=0, x1=end, annotation=words, annotation_position="top left", **shade)
    figure.update_xaxes(title_text="Threshold of the CPU cost (0 ideal, 1 worst)", range=[0, 1.02 * right])
    figure.update_yaxes(title_text="Plans, nodes", type="log", dtick=1, exponentformat="none", tickformat=",")
    return theme.room_for_legend(figure)


def spreads(found: Sequence[Spread]) -> str:
    """Name the shape on which most random placements do well; shapes without a limit of the rate do not count."""
    kept = _limited(found)
    if not kept:
        return "Nothing limits the rate of any placement"
    safest = max(kept, key=lambda one: one.quantile(0.1))
    least = safest.quantile(0.1)
    lost = round(1 - least / safest.best, 3) if safest.best else 0.0
    below = f"{units.share(lost)} below the best plan" if lost else "as much as the best plan"
    return f"On {_label(safest)} slots nine of ten random placements sustain {units.rate(least)} or more, {below}"


def _limited(found: Sequence[Spread]) -> list[Spread]:
    return [one for one in found if len(one.rates) and math.isfinite(one.best) and np.isfinite(one.rates).all()]


def _label(one: Spread) -> str:
    return f"{one.workers:,} x {one.slots:,}"


def draw_spreads(found: Sequence[Spread]) -> go.Figure:
    """Draw one row per shape: whole range, the middle eight tenths, the median and the best plan."""
    kept = _limited(found)
    shows = "One row per worker shape: range of random placements and the best."
    figure = theme.figure(spreads(found), 190 + 46 * len(kept), shows)
    if not kept:
        return theme.not_enough(figure, "no placement has a limited rate.")
    labels = [_label(one) for one in kept]
    spans = (("spread-range", "all random placements", 0.0, 1.0, 3), ("spread-middle", "eight of ten", 0.1, 0.9, 15))
    for uid, name, low, high, width in spans:
        x, y = theme.broken([(one.quantile(end), _label(one)) for end in (low, high)] for one in kept)
        line = (theme.BLUE if width < 10 else "#8FBFDD", None, width)
        theme.lines(figure, uid, name, x, y, look=line, hover="%{x:.4~s} records/s")
    marks = (
        ("spread-median", "median", [one.quantile(0.5) for one in kept], theme.BLACK, "line-ns-open", 20),
        ("spread-best", "best plan found", [one.best for one in kept], theme.VERMILLION, "diamond", 12),
    )
    for uid, name, values, colour, symbol, size in marks:
        look = {"look": (colour, symbol, size), "hover": name + " on %{y}: %{x:.4~s} records/s", "cliponaxis": False}
        theme.marks(figure, uid, name, values, labels, **look)
    top = max(max(one.best, one.quantile(1.0)) for one in kept)
    figure.update_xaxes(title_text="Sustained rate (records/s)", tickformat="~s", range=[0, 1.06 * top])
    figure.update_yaxes(title_text="Workers x slots", type="category", autorange="reversed", showgrid=False)
    return theme.room_for_legend(figure)
