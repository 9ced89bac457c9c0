"""The course of an exploration: its error, BIDS2's expectations and the measured rates, and the next budget."""

import math
from collections import Counter
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench import units
from workbench.capacity import Exploration
from workbench.capacity.explore import Question
from workbench.records import Measurement
from workbench.views import theme

_SHOWS = "Left: error of the best curve form after each run. Right: objective and measured maximum of each run."


def convergence(exploration: Exploration) -> str:
    """Describe how many runs were fitted, and why the exploration ended."""
    made, fitted = len(exploration.runs), len(exploration.fitted)
    runs = units.some(made, "run")
    which = f"{fitted} of {runs} were" if fitted < made else f"{runs} {'was' if fitted == 1 else 'were'}"
    return f"{which} fitted; the exploration ended because {exploration.reason}"


def draw_convergence(exploration: Exploration) -> go.Figure:
    """Draw the error of the best form on a run left out after each run, and BIDS2's objectives and the rates."""
    figure = theme.figure(convergence(exploration), 380, _SHOWS)
    if not any(map(math.isfinite, exploration.costs)):
        return theme.not_enough(figure, "the error is defined from four runs on.")
    make_subplots(cols=2, horizontal_spacing=0.12, figure=figure)
    runs = exploration.runs
    budgets = [f"{run.budget.slots:,} x {run.budget.profile.memory_mb:,} MB" for run in runs]
    rates = [run.estimate.middle or None if isinstance(run, Measurement) else None for run in runs]
    objectives = [run.predicted_rate for run in runs]
    costs = [cost if math.isfinite(cost) else None for cost in exploration.costs]
    every = list(range(len(costs)))
    left_out = [place for place in every if place not in exploration.fitted]
    series = (
        ("costs", "after each run", costs, every, "lines+markers", theme.BLUE, "circle", 9, 1),
        ("left-out", "after a run that is not fitted", costs, left_out, "markers", theme.VERMILLION, "x", 12, 1),
        ("objectives", "BIDS2's objective", objectives, every, "markers", theme.PURPLE, "diamond-open", 9, 2),
        ("rates", "its maximum", rates, every, "markers", theme.BLACK, "circle", 8, 2),
    )
    for uid, name, values, places, mode, colour, symbol, size, col in series:
        x, y = [place + 1 for place in places], [values[place] for place in places]
        look = {"mode": mode, "look": (colour, symbol, size), "line": {"color": theme.GREY}, "row": 1, "col": col}
        told = {"text": [budgets[place] for place in places], "showlegend": any(one is not None for one in y)}
        hover = "run %{x}, %{text}: %{y:.4~s} records/s"
        theme.marks(figure, f"convergence-{uid}", name, x, y, hover=hover, **told, **look)
    figure.update_xaxes(title_text="Run", dtick=1)
    for col, title in ((1, "Error of the best form (records/s)"), (2, "Rate (records/s)")):
        figure.update_yaxes(title_text=title, tickformat="~s", rangemode="tozero", row=1, col=col)
    return theme.room_for_legend(figure)


_BOTH = "Left: error the Gaussian process expects. Right: expected improvement. By slots and memory, runs marked."
_GRID = "The budgets of the space by slots and memory, runs marked."


def draw_acquisition(question: Question) -> go.Figure:
    """Draw the expected cost (Equation 9) and its expected improvement; without a Gaussian process, the grid alone."""
    found, space = question.why.acquired, question.space
    nothing = np.zeros((len(space.memory_mb), len(space.slots)))
    sides: tuple[tuple[str, str, Any, str, Any], ...] = (("space", "", nothing, theme.GREY, None),)
    if found is not None:
        sides = (
            ("mean", "expected error", found.mean.T, theme.VERMILLION, found.deviation.T.tolist()),
            ("improvement", "expected improvement", found.improvement.T, theme.BLUE, None),
        )
    runs = Counter((run.budget.slots, run.budget.profile.memory_mb) for run in question.runs)
    measured = [(*place, count) for place, count in runs.items()]
    asked = [(question.why.budget.slots, question.why.budget.profile.memory_mb, 0)]
    figure = theme.figure(question.sentence, 360, _GRID if found is None else _BOTH)
    panels = make_subplots(cols=len(sides), shared_yaxes=True, horizontal_spacing=0.08, figure=figure)

    def word(value: float) -> str:
        return units.scaled(value, "", 2) if value >= 1 else "< 1"

    slots, memories = ([f"{one:,}" for one in values] for values in (space.slots, space.memory_mb))
    for col, (uid, name, table, colour, doubt) in enumerate(sides, start=1):
        top = 1.6 * float(table.max()) or 1.0  # text stays readable on the darkest cell
        within = " ± %{customdata:.3~s}" * (doubt is not None)
        hover = "%{x} slots of %{y} MB" + f": {name} %{{z:.3~s}}{within} records/s" * bool(name)
        said = [[word(value) if name else "" for value in row] for row in table.tolist()]
        told = {"customdata": doubt, "text": said, "texttemplate": "%{text}", "hover": hover}
        look = {"colorscale": [[0, "#FFFFFF"], [1, colour]], "x": slots, "y": memories, "row": 1, "col": col}
        theme.heat(panels, f"acquisition-{uid}", name or "space", table.tolist(), top, **told, **look)
        marks = (
            ("runs", "measured, and how often", measured, "circle-open", theme.BLACK),
            ("asked", "asked for next", asked, "diamond-open", theme.PURPLE),
        )
        for mark, what, places, symbol, ink in marks:
            x, y, text = ([f"{place[column]:,}" for place in places] for column in range(3))
            shape = {"look": (ink, symbol, 30 if mark == "runs" else 38), "marker": {"line": {"width": 2}}}
            words = {"text": text, "hover": f"{what}: %{{text}}" if mark == "runs" else what, "showlegend": col == 1}
            theme.marks(panels, f"acquisition-{mark}-{uid}", what, x, y, row=1, col=col, **shape, **words)
        title = f"Slots<br>{name}<br>(records/s)" if name else "Slots"
        panels.update_xaxes(title_text=title, categoryorder="array", categoryarray=slots, row=1, col=col)
    panels.update_yaxes(categoryorder="array", categoryarray=memories)
    panels.update_layout(autotypenumbers="strict")  # a live chart's update of data loses an axis type that is set
    panels.update_yaxes(title_text="Memory per slot (MB)", col=1)
    return theme.room_for_legend(panels)
