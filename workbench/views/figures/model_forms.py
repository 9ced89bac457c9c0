"""The forms of capacity model side by side: their curves over slots, and their errors on a run left out."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench import units
from workbench.capacity import Exploration, Model, leave_one_out_error, model_of_form
from workbench.capacity.model import SCALING, STREAMBED_FORMS
from workbench.errors import WorkbenchError
from workbench.records import Measurement
from workbench.views import theme
from workbench.views.figures.capacity import origin_of

_POINTS = 50
_BEYOND = 3.0
_LEAST_RUNS = 4
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash")


@dataclass(frozen=True)
class FormCurve:
    """One form: capacity over the slots, and its mean error on a run left out (None: not defined), records/s."""

    form: str
    rates: tuple[float, ...]
    error: float | None


@dataclass(frozen=True)
class ModelForms:
    """What the figure shows.

    Parameters
    ----------
    memory_mb, slots
        Where the curves are.
    curves
        The forms, the model's own first.
    runs
        (slots, records/s, whether at `memory_mb`) of the fitted runs.
    most_measured
        Most slots of a fitted run.
    origin
        What the runs are: measured, simulated, recorded or observed.
    """

    finding: str
    memory_mb: float
    slots: tuple[float, ...]
    curves: tuple[FormCurve, ...]
    runs: tuple[tuple[float, float, bool], ...]
    most_measured: float
    origin: str = "measured"


def model_forms(exploration: Exploration, memory_mb: float | None = None, *, beyond: float = _BEYOND) -> ModelForms:
    """Fit every form to the fitted runs; the curves reach `beyond` times the most slots measured.

    The error of the scaling law is found by fitting it again without each run; of the others it has a closed form.
    """
    points, rates, model = exploration.points, exploration.rates, exploration.model
    runs = exploration.fitted_runs
    memory = float(memory_mb if memory_mb is not None else np.median(points[:, 0]) if len(points) else 0.0)
    if len(points) < _LEAST_RUNS:
        return ModelForms("Too few runs to compare forms", memory, (), (), (), 0.0)
    if memory_mb is None:
        memory = float(points[np.abs(points[:, 0] - memory).argmin(), 0])
    most = float(points[:, 1].max())
    slots = np.linspace(float(points[:, 1].min()), beyond * most, _POINTS)
    where = np.column_stack([np.full_like(slots, memory), slots])
    names = dict.fromkeys((model.form, *STREAMBED_FORMS, SCALING))
    curves = []
    for form in names:
        fitted = model if form == model.form else _fitted(form, points, rates, runs, model)
        if fitted is None:
            continue
        error = _error(form, points, rates, runs, model)
        curves.append(FormCurve(form, tuple(map(float, fitted.predict(where))), error))
    measured = tuple((float(n), float(rate), bool(m == memory)) for (m, n), rate in zip(points, rates, strict=True))
    finding, origin = _finding(curves, most, beyond), origin_of(exploration)
    return ModelForms(finding, memory, tuple(slots.tolist()), tuple(curves), measured, most, origin)


def draw_model_forms(data: ModelForms) -> go.Figure:
    """Draw the curves on the left, the errors on the right."""
    figure = theme.figure(
        data.finding, 420, "Left: capacity over slots by every form. Right: mean error on a run left out, by form."
    )
    if not data.curves:
        return theme.not_enough(figure, f"forms are compared from {_LEAST_RUNS} runs on.")
    panels = make_subplots(cols=2, column_widths=[0.66, 0.34], horizontal_spacing=0.11, figure=figure)
    for number, curve in enumerate(data.curves):
        panels.add_scatter(
            uid=f"forms-{curve.form}",
            name=f"{curve.form} (in use)" if number == 0 else curve.form,
            x=data.slots,
            y=curve.rates,
            mode="lines",
            line={
                "color": theme.SEQUENCE[number % len(theme.SEQUENCE)],
                "dash": _DASHES[number % len(_DASHES)],
                "width": 3 if number == 0 else 1.8,
            },
            hovertemplate=f"{curve.form}, %{{x:.0f}} slots: %{{y:.4~s}} records/s<extra></extra>",
            row=1,
            col=1,
        )
    for here, symbol, word in ((True, "circle", data.origin), (False, "circle-open", f"{data.origin} at other memory")):
        runs = [run for run in data.runs if run[2] == here]
        panels.add_scatter(
            uid=f"forms-runs-{'here' if here else 'elsewhere'}",
            name=word,
            x=[run[0] for run in runs],
            y=[run[1] for run in runs],
            mode="markers",
            marker={"color": theme.BLACK, "symbol": symbol, "size": 8},
            hovertemplate="%{x:,} slots: %{y:.4~s} records/s<extra></extra>",
            showlegend=bool(runs),
            row=1,
            col=1,
        )
    panels.add_vrect(  # after the curves: an empty panel takes none
        x0=data.most_measured,
        x1=data.slots[-1],
        fillcolor=theme.GREY,
        opacity=0.1,
        line_width=0,
        layer="below",
        annotation={"text": "extrapolated"},
        annotation_position="top left",
        row=1,
        col=1,
    )
    panels.add_bar(
        uid="forms-errors",
        name="errors",
        x=[curve.error for curve in data.curves],
        y=[curve.form for curve in data.curves],
        orientation="h",
        text=["not defined" if curve.error is None else units.scaled(curve.error, "") for curve in data.curves],
        textposition="outside",
        cliponaxis=False,
        marker={"color": [theme.SEQUENCE[n % len(theme.SEQUENCE)] for n in range(len(data.curves))]},
        hovertemplate="%{y}: %{x:.4~s} records/s<extra></extra>",
        showlegend=False,
        row=1,
        col=2,
    )
    panels.update_xaxes(title_text=f"Slots of {data.memory_mb:,g} MB", range=[0, data.slots[-1]], row=1, col=1)
    panels.update_yaxes(title_text="Capacity (records/s)", tickformat="~s", rangemode="tozero", row=1, col=1)
    most = max((curve.error for curve in data.curves if curve.error is not None), default=1.0)
    panels.update_xaxes(
        title_text="Error, one run left out (records/s)",
        tickformat="~s",
        nticks=4,
        range=[0, 1.35 * most],
        row=1,
        col=2,
    )
    panels.update_yaxes(autorange="reversed", ticks="", showgrid=False, type="category", row=1, col=2)
    theme.room_for_legend(panels)
    return panels


def _fitted(form: str, points: np.ndarray, rates: np.ndarray, runs: Sequence[Measurement], like: Model) -> Model | None:
    try:
        return model_of_form(form, stateful=like.stateful, growth=like.growth).fit(points, rates, runs)
    except WorkbenchError:  # a form need not be defined at every run
        return None


def _error(form: str, points: np.ndarray, rates: np.ndarray, runs: Sequence[Measurement], like: Model) -> float | None:
    """Mean absolute error on a run left out, records/s; None where it is not defined."""
    if form != SCALING:
        error = leave_one_out_error(points, rates, form)
        return error if math.isfinite(error) else None
    errors = []
    for row in range(len(rates)):
        rest = np.arange(len(rates)) != row
        others = [run for place, run in enumerate(runs) if place != row]
        fitted = _fitted(form, points[rest], rates[rest], others, like)
        if fitted is None:
            return None
        errors.append(abs(float(fitted.predict(points[[row]])[0]) - float(rates[row])))
    return float(np.mean(errors))


def _finding(curves: list[FormCurve], most: float, beyond: float) -> str:
    errors = {curve.form: curve.error for curve in curves if curve.error is not None}
    ends = [curve.rates[-1] for curve in curves if curve.rates[-1] > 0]
    apart = max(ends) / min(ends) if ends else 1.0
    differ = f"At {units.number(beyond * most)} slots the forms differ by a factor of {units.number(apart, 2)}"
    if not errors:
        return f"No form has a defined error on a run left out. {differ}"
    best = min(errors, key=lambda form: errors[form])
    name = form_name(best)
    return (
        f"{name[0].upper()}{name[1:]} predicts a run it has not seen best: it misses by {units.rate(errors[best])} on "
        f"average. {differ}"
    )


def form_name(form: str) -> str:
    """Name a form of the model in a sentence."""
    return "the scaling law" if form == SCALING else f"the {form} form"
