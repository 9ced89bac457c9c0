"""How the exploration went: the model's error after each run, and what BIDS2 expected against what was measured."""

import math
from dataclasses import dataclass

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench import units
from workbench.capacity import Exploration
from workbench.records import Measurement
from workbench.views import theme
from workbench.views.figures import traces

_SHOWS = "Left: error of the best curve form after each run. Right: objective and measured maximum of each run."


@dataclass(frozen=True)
class Convergence:
    """What the figure shows, rates in records/s.

    `costs` are the errors after each run, on a run left out, of the form where that is lowest: with every run another
    may be the best one, and the error may rise. `fitted` are the places of the runs that the model was fitted to.
    `objectives` are what BIDS2 expects of the runs and `rates` what was measured; None without.
    """

    finding: str
    costs: tuple[float, ...]
    budgets: tuple[str, ...]
    fitted: tuple[int, ...]
    objectives: tuple[float | None, ...]
    rates: tuple[float | None, ...]


def convergence(exploration: Exploration) -> Convergence:
    """Collect the cost, the objective and the maximum of every run, in order."""
    budgets = tuple(f"{run.budget.slots:,} x {run.budget.profile.memory_mb:,} MB" for run in exploration.runs)
    fitted, runs = len(exploration.fitted), units.some(len(exploration.runs), "run")
    which = (
        f"{fitted} of {runs} were" if fitted < len(exploration.runs) else f"{runs} {'was' if fitted == 1 else 'were'}"
    )
    finding = f"{which} fitted; the exploration ended because {exploration.reason}"
    rates = tuple(run.estimate.middle or None if isinstance(run, Measurement) else None for run in exploration.runs)
    objectives = tuple(run.predicted_rate for run in exploration.runs)
    return Convergence(finding, exploration.costs, budgets, exploration.fitted, objectives, rates)


def draw_convergence(data: Convergence) -> go.Figure:
    """Draw the error after each run on the left, objectives and rates on the right."""
    if not any(math.isfinite(cost) for cost in data.costs):
        return theme.not_enough(theme.figure(data.finding, 380, _SHOWS), "the error is defined from four runs on.")
    figure = make_subplots(cols=2, horizontal_spacing=0.12, figure=theme.figure(data.finding, 380, _SHOWS))
    costs = [cost if math.isfinite(cost) else None for cost in data.costs]
    every = list(range(len(costs)))
    left_out = [place for place in every if place not in data.fitted]
    series = (
        ("costs", "after each run", costs, every, "lines+markers", theme.BLUE, "circle", 9, 1),
        ("left-out", "after a run that is not fitted", costs, left_out, "markers", theme.VERMILLION, "x", 12, 1),
        ("objectives", "BIDS2's objective", data.objectives, every, "markers", theme.PURPLE, "diamond-open", 9, 2),
        ("rates", "its maximum", data.rates, every, "markers", theme.BLACK, "circle", 8, 2),
    )
    for uid, name, values, places, mode, colour, symbol, size, col in series:
        x, y = [place + 1 for place in places], [values[place] for place in places]
        look = {"mode": mode, "look": (colour, symbol, size), "line": {"color": theme.GREY}, "row": 1, "col": col}
        told = {"text": [data.budgets[place] for place in places], "showlegend": any(one is not None for one in y)}
        hover = "run %{x}, %{text}: %{y:.4~s} records/s"
        traces.marks(figure, f"convergence-{uid}", name, x, y, hover=hover, **told, **look)
    figure.update_xaxes(title_text="Run", dtick=1)
    for col, title in ((1, "Error of the best form (records/s)"), (2, "Rate (records/s)")):
        figure.update_yaxes(title_text=title, tickformat="~s", rangemode="tozero", row=1, col=col)
    return theme.room_for_legend(figure)
