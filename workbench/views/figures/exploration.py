"""How the exploration went: the model's error after each run, and how the forms compare."""

import math
from dataclasses import dataclass

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench.capacity.explorer import Exploration
from workbench.capacity.forms import STREAMBED_FORMS
from workbench.capacity.selection import leave_one_out_error
from workbench.views import theme, units

_SHOWS = "Left: lowest error of a form after each run. Right: error of each form on a run left out."


@dataclass(frozen=True)
class Convergence:
    """What the figure shows: cost after each run, whether it was fitted, and error by form, all in records/s."""

    finding: str
    costs: tuple[float, ...]
    budgets: tuple[str, ...]
    kept: int
    errors: tuple[tuple[str, float], ...]


def convergence(exploration: Exploration) -> Convergence:
    """Collect the costs and the leave-one-out error of every form over the fitted runs."""
    errors = tuple(
        (form, error)
        for form in (*STREAMBED_FORMS, "log1p")
        if math.isfinite(error := leave_one_out_error(exploration.points, exploration.rates, form))
    )
    kept = max(exploration.fitted, default=-1) + 1
    budgets = tuple(f"{run.budget.slots} x {run.budget.profile.memory_mb} MB" for run in exploration.measurements)
    best = min((error for _, error in errors), default=math.nan)
    finding = (
        f"{units.count(len(exploration.fitted))} of {units.count(len(exploration.measurements))} runs were fitted; "
        f"the exploration ended because {exploration.reason}. The lowest mean error on a run left out is "
        f"{units.rate(best)}"
    )
    return Convergence(finding, exploration.costs, budgets, kept, errors)


def draw_convergence(data: Convergence) -> go.Figure:
    """Draw the cost after each run on the left, the errors of the forms on the right."""
    if not any(math.isfinite(cost) for cost in data.costs):
        return theme.not_enough(theme.figure(data.finding, 380, _SHOWS), "the error is defined from four runs on.")
    figure = make_subplots(cols=2, column_widths=[0.62, 0.38], figure=theme.figure(data.finding, 380, _SHOWS))
    numbers = list(range(1, len(data.costs) + 1))
    shown = [cost if math.isfinite(cost) else None for cost in data.costs]
    figure.add_scatter(
        uid="convergence-costs",
        name="lowest error so far",
        x=numbers,
        y=shown,
        mode="lines+markers",
        text=data.budgets,
        marker={
            "color": [theme.BLUE if number <= data.kept else theme.VERMILLION for number in numbers],
            "symbol": ["circle" if number <= data.kept else "x" for number in numbers],
            "size": 9,
        },
        line={"color": theme.GREY},
        hovertemplate="run %{x}, %{text}: %{y:.4~s} records/s<extra></extra>",
        showlegend=False,
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
    figure.update_yaxes(title_text="Lowest error so far (records/s)", tickformat="~s", rangemode="tozero", row=1, col=1)
    figure.update_xaxes(title_text="Error on a run left out (records/s)", tickformat="~s", row=1, col=2)
    figure.update_yaxes(autorange="reversed", row=1, col=2)
    return figure
