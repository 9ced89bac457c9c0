"""How the exploration went: the model's error after each run, and what BIDS2 expected against what was measured."""

import math

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench import units
from workbench.capacity import Exploration
from workbench.records import Measurement
from workbench.views import theme
from workbench.views.figures import traces

_SHOWS = "Left: error of the best curve form after each run. Right: objective and measured maximum of each run."


def convergence(exploration: Exploration) -> str:
    """Say how many runs were fitted, and why the exploration ended."""
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
        traces.marks(figure, f"convergence-{uid}", name, x, y, hover=hover, **told, **look)
    figure.update_xaxes(title_text="Run", dtick=1)
    for col, title in ((1, "Error of the best form (records/s)"), (2, "Rate (records/s)")):
        figure.update_yaxes(title_text=title, tickformat="~s", rangemode="tozero", row=1, col=col)
    return theme.room_for_legend(figure)
