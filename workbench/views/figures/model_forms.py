"""The forms of capacity model side by side: their curves over slots, and their errors on a run left out."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench import units
from workbench.capacity import Exploration
from workbench.capacity.model import SCALING
from workbench.capacity.planning import fitted_form
from workbench.records import FormComparison
from workbench.views import findings, theme
from workbench.views.figures import traces
from workbench.views.figures.capacity import origin_of

_POINTS = 50
_BEYOND = 3.0  # times the most slots measured to which forms are compared, at least
_FAR = 4.0  # from which on axes are logarithmic
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash")


@dataclass(frozen=True)
class FormCurve:
    """One form: capacity over the slots, and its mean error on a run left out (None: not defined), records/s."""

    form: str
    rates: tuple[float, ...]
    error: float | None


@dataclass(frozen=True)
class ModelForms:
    """What the figure shows, rates in records/s."""

    finding: str
    memory_mb: float  # where the curves are
    slots: tuple[float, ...]
    curves: tuple[FormCurve, ...]  # of the paper's forms, others in use, the scaling law
    marks: Mapping[str, str]  # what is said of a form in addition to its name: the paper's choice, in use
    band: tuple[tuple[float, ...], tuple[float, ...]]  # ends of the law's 90 % interval; empty where it has none
    runs: tuple[tuple[float, float, bool], ...]  # fitted: slots, rate, whether at `memory_mb`
    targets: tuple[tuple[int, float], ...]  # slots and rate of the plans
    most_measured: float  # slots of a fitted run
    origin: str = "measured"  # what the runs are: measured, simulated, recorded or observed

    @property
    def far(self) -> bool:
        """Whether only logarithmic axes show both what was measured and the last slots."""
        return self.slots[-1] > _FAR * self.most_measured


def model_forms(exploration: Exploration, found: FormComparison) -> ModelForms:
    """Collect the curves of the forms compared, at the memory of the largest target and up to its slots."""
    points, rates = exploration.points, exploration.rates
    memory = found.targets[-1].memory_mb if found.targets else float(np.median(points[:, 0]))
    targets = tuple((one.slots, one.rate) for one in found.targets if one.slots is not None)
    most = float(points[:, 1].max())
    least, last = float(points[:, 1].min()), max(_BEYOND * most, *(1.1 * slots for slots, _ in targets), 0.0)
    slots = np.geomspace(least, last, _POINTS) if last > _FAR * most else np.linspace(least, last, _POINTS)
    where = np.column_stack([np.full_like(slots, memory), slots])
    models = {fit.form: fitted_form(exploration, fit.form) for fit in found.fits}
    curves = tuple(
        FormCurve(fit.form, tuple(map(float, model.predict(where))), fit.left_out)
        for fit in found.fits
        if (model := models[fit.form]) is not None
    )
    law = models.get(SCALING)
    low, high = ((), ()) if law is None else (tuple(map(float, end)) for end in law.interval(where))
    words = {found.chosen: ["the paper's choice"]} if found.chosen is not None else {}
    words.setdefault(found.used, []).append("in use")
    return ModelForms(
        findings.forms(found).removesuffix("."),
        memory,
        tuple(slots.tolist()),
        curves,
        {form: ", ".join(said) for form, said in words.items()},
        (low, high),
        tuple((float(n), float(rate), bool(m == memory)) for (m, n), rate in zip(points, rates, strict=True)),
        targets,
        most,
        origin_of(exploration),
    )


def draw_model_forms(data: ModelForms) -> go.Figure:
    """Draw the curves through the runs on the left, over the law's interval, and the errors on the right."""
    shows = "Left: capacity over slots by every form. Right: mean error on a run left out, by form."
    figure = theme.figure(data.finding, 420, shows)
    if len(data.curves) < 2:
        return theme.not_enough(figure, "forms are compared from two runs on.")
    panels = make_subplots(cols=2, column_widths=[0.66, 0.34], horizontal_spacing=0.14, figure=figure)
    left = {"row": 1, "col": 1}
    low, high = data.band
    x, y = [*data.slots, *reversed(data.slots)] if low else [], [*high, *reversed(low)]
    look = {"look": (None, None, 0), "fill": "toself", "fillcolor": theme.BAND, "showlegend": bool(low), **left}
    traces.lines(panels, "forms-band", "the law's 90 % interval", x, y, **look)
    forms = [curve.form for curve in data.curves]
    names = [f"{form} ({data.marks[form]})" if form in data.marks else form for form in forms]
    for number, (curve, name) in enumerate(zip(data.curves, names, strict=True)):
        colour, dash = theme.SEQUENCE[number % len(theme.SEQUENCE)], _DASHES[number % len(_DASHES)]
        look = {"look": (colour, dash, 3 if curve.form in data.marks else 1.5), **left}
        rates = [rate if rate > 0 or not data.far else None for rate in curve.rates]  # none on a logarithmic axis
        hover = f"{curve.form}, %{{x:.0f}} slots: %{{y:.4~s}} records/s"
        traces.lines(panels, f"forms-{curve.form}", name, data.slots, rates, hover=hover, **look)
    for here, symbol, word in ((True, "circle", data.origin), (False, "circle-open", f"{data.origin} at other memory")):
        runs = [run for run in data.runs if run[2] == here]
        uid, x, y = f"forms-runs-{'here' if here else 'elsewhere'}", [run[0] for run in runs], [run[1] for run in runs]
        look = {"look": (theme.BLACK, symbol, 8), "hover": "%{x:,} slots: %{y:.4~s} records/s", **left}
        traces.marks(panels, uid, word, x, y, showlegend=bool(runs), **look)
    x, y = [slots for slots, _ in data.targets], [rate for _, rate in data.targets]
    look = {"look": (theme.VERMILLION, "diamond", 11), "hover": "%{y:.4~s} records/s: %{x:,} slots", **left}
    traces.marks(panels, "forms-targets", "planned for a target", x, y, showlegend=bool(y), **look)
    shade = {"fillcolor": theme.GREY, "opacity": 0.1, "line_width": 0, "layer": "below"}
    words = {"annotation": {"text": "extrapolated"}, "annotation_position": "top left"}
    panels.add_vrect(data.most_measured, data.slots[-1], **shade, **words, **left)  # an empty panel takes none
    errors = [curve.error for curve in data.curves]
    told = ["not defined" if error is None else units.scaled(error, "") for error in errors]
    look = {"color": [theme.SEQUENCE[n % len(theme.SEQUENCE)] for n in range(len(errors))]}
    right = {"row": 1, "col": 2}
    hover = "%{y}: %{x:.4~s} records/s"
    traces.bars(panels, "forms-errors", "errors", errors, told, y=forms, marker=look, hover=hover, **right)
    across: dict[str, object] = {"range": [0, data.slots[-1]]}
    up: dict[str, object] = {"rangemode": "tozero", "tickformat": "~s"}
    if data.far:
        ends = (0.85 * data.slots[0], data.slots[-1])
        across = {"type": "log", "range": list(np.log10(ends)), **theme.log_ticks(*ends)}
        up = {"type": "log", "tickformat": "~s", "dtick": 1}
    panels.update_xaxes(title_text=f"Slots of {data.memory_mb:,g} MB", **across, **left)
    panels.update_yaxes(title_text="Capacity (records/s)", **up, **left)
    most = max((error for error in errors if error is not None), default=1.0)
    title = "Error, one run<br>left out (records/s)"
    panels.update_xaxes(title_text=title, tickformat="~s", nticks=4, range=[0, 1.35 * most], **right)
    panels.update_yaxes(autorange="reversed", ticks="", showgrid=False, type="category", **right)
    return theme.room_for_legend(panels)
