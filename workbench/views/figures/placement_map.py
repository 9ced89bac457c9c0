"""Where a plan puts the tasks: workers by operators, and the load of every worker against the mean."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike
from plotly.subplots import make_subplots

from workbench import units
from workbench.placement import PlacementProblem
from workbench.views import theme
from workbench.views.figures import traces

RESOURCES = ("CPU", "State access", "Network")
_TEXTS = 40  # columns above which cells are too narrow for numbers


@dataclass(frozen=True)
class PlacementMap:
    """What the figure shows: tasks of every operator (a row) on every worker (a column), and loads of the workers."""

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
    means = loads.mean(axis=1)
    ratios = tuple(
        tuple(float(load / mean) for load in row) if mean > 0 else (None,) * problem.workers
        for row, mean in zip(loads, means, strict=True)
    )
    fullest = max(
        ((ratio, resource, worker) for resource, row in enumerate(ratios) for worker, ratio in enumerate(row) if ratio),
        default=None,
        key=lambda one: one[0],
    )
    if fullest is None:
        finding = f"{name} loads no worker"
    elif fullest[0] < 1.005:
        finding = f"{name} loads all workers evenly"
    else:
        what = ("CPU", "state access", "network")[fullest[1]]
        finding = f"{name} puts {units.number(fullest[0])} times the mean {what} load on worker w{fullest[2]}"
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
        traces.heat(panels, f"map-{uid}", name, values, top, **told, **look, **where)
    panels.update_yaxes(autorange="reversed", showgrid=False, showline=False, ticks="", type="category")
    panels.update_xaxes(showgrid=False, showline=False, ticks="", type="category", tickangle=0)
    panels.update_xaxes(title_text="Worker", row=2, col=1)
    panels.update_yaxes(title_text="Tasks", row=1, col=1)
    panels.update_yaxes(title_text="Load (x mean)", row=2, col=1)
    panels.update_layout(margin_t=52)
    return panels
