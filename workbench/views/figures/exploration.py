"""How the exploration went: the model's error after each run, and how the forms compare."""

import math
from dataclasses import dataclass

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench import units
from workbench.capacity import Exploration, leave_one_out_error
from workbench.capacity.model import STREAMBED_FORMS
from workbench.views import theme

_SHOWS = "Left: error of the best curve form after each run. Right: error of each curve form on a run left out."


@dataclass(frozen=True)
class Convergence:
    """What the figure shows, errors in records/s.

    `costs` are the errors after each run, on a run left out, of the form where that is lowest: with every run another
    may be the best one, and the error may rise. `fitted` are the places of the runs that the model was fitted to.
    """

    finding: str
    costs: tuple[float, ...]
    budgets: tuple[str, ...]
    fitted: tuple[int, ...]
    errors: tuple[tuple[str, float], ...]


def convergence(exploration: Exploration) -> Convergence:
    """Collect the costs and the leave-one-out error of every curve form over the fitted runs; `model_forms` has all."""
    errors = tuple(
        (form, error)
        for form in (*STREAMBED_FORMS, "log1p")
        if len(exploration.fitted) > 1  # of one run no other is left out
        and math.isfinite(error := leave_one_out_error(exploration.points, exploration.rates, form))
    )
    budgets = tuple(f"{run.budget.slots:,} x {run.budget.profile.memory_mb:,} MB" for run in exploration.runs)
    fitted, runs = len(exploration.fitted), units.some(len(exploration.runs), "run")
    which = (
        f"{fitted} of {runs} were" if fitted < len(exploration.runs) else f"{runs} {'was' if fitted == 1 else 'were'}"
    )
    finding = f"{which} fitted; the exploration ended because {exploration.reason}"
    return Convergence(finding, exploration.costs, budgets, exploration.fitted, errors)


def draw_convergence(data: Convergence) -> go.Figure:
    """Draw the error after each run on the left, those of the forms on the right."""
    if not any(math.isfinite(cost) for cost in data.costs):
        return theme.not_enough(theme.figure(data.finding, 380, _SHOWS), "the error is defined from four runs on.")
    figure = make_subplots(cols=2, column_widths=[0.62, 0.38], figure=theme.figure(data.finding, 380, _SHOWS))
    shown = [cost if math.isfinite(cost) else None for cost in data.costs]
    left_out = [place for place in range(len(shown)) if place not in data.fitted]
    series = (
        ("convergence-costs", "after each run", list(range(len(shown))), "lines+markers", theme.BLUE, "circle", 9),
        ("convergence-left-out", "after a run that is not fitted", left_out, "markers", theme.VERMILLION, "x", 12),
    )
    for uid, name, places, mode, colour, symbol, size in series:
        figure.add_scatter(
            uid=uid,
            name=name,
            x=[place + 1 for place in places],
            y=[shown[place] for place in places],
            mode=mode,
            text=[data.budgets[place] for place in places],
            marker={"color": colour, "symbol": symbol, "size": size},
            line={"color": theme.GREY},
            hovertemplate="run %{x}, %{text}: %{y:.4~s} records/s<extra></extra>",
            showlegend=any(shown[place] is not None for place in places),
            row=1,
            col=1,
        )
    figure.add_bar(
        uid="convergence-forms",
        name="error by form",
        x=[error for _, error in data.errors],
        y=[form for form, _ in data.errors],
        orientation="h",
        marker={"color": theme.BLUE},
        hovertemplate="%{y}: %{x:.4~s} records/s<extra></extra>",
        showlegend=False,
        row=1,
        col=2,
    )
    figure.update_xaxes(title_text="Run", dtick=1, row=1, col=1)
    figure.update_yaxes(
        title_text="Error of the best form (records/s)", tickformat="~s", rangemode="tozero", row=1, col=1
    )
    figure.update_xaxes(title_text="Error on a run left out (records/s)", tickformat="~s", row=1, col=2)
    figure.update_yaxes(autorange="reversed", row=1, col=2)
    theme.room_for_legend(figure)
    return figure
