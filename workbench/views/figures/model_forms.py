"""The forms of capacity model compared: their curves over slots, and their errors on a run left out."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench import units
from workbench.capacity import Exploration
from workbench.capacity.model import SCALING
from workbench.capacity.planning import fitted_form
from workbench.records import FormComparison, FormFit
from workbench.views import findings, theme
from workbench.views.figures.capacity import origin_of

_POINTS = 50
_BEYOND = 3.0  # factor over the most slots measured, to which forms are compared at least
_FAR = 4.0  # span from which axes are logarithmic
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash")


def draw_model_forms(exploration: Exploration, found: FormComparison) -> go.Figure:
    """Draw the forms at the largest target's memory, the law's interval, and the errors on a run left out."""
    shows = "Left: capacity over slots by every form. Right: mean error on a run left out, by form."
    figure = theme.figure(findings.forms(found).removesuffix("."), 420, shows)
    models = {fit.form: fitted_form(exploration, fit.form) for fit in found.fits}
    curves = [(fit, model) for fit in found.fits if (model := models[fit.form]) is not None]
    if len(curves) < 2:
        return theme.not_enough(figure, "forms are compared from two runs on.")
    points, rates = exploration.points, exploration.rates
    memory = found.targets[-1].memory_mb if found.targets else float(np.median(points[:, 0]))
    targets = [(one.slots, one.rate) for one in found.targets if one.slots is not None]
    least, most = float(points[:, 1].min()), float(points[:, 1].max())
    last = max(_BEYOND * most, *(1.1 * slots for slots, _ in targets), 0.0)
    far = last > _FAR * most
    at = np.geomspace(least, last, _POINTS) if far else np.linspace(least, last, _POINTS)
    where, slots = np.column_stack([np.full_like(at, memory), at]), at.tolist()
    marks = {found.chosen: [findings.CHOICES[found.rule]]} if found.chosen is not None else {}
    marks.setdefault(found.used, []).append("in use")
    panels = make_subplots(cols=2, column_widths=[0.66, 0.34], horizontal_spacing=0.14, figure=figure)
    left = {"row": 1, "col": 1}
    law = models.get(SCALING)
    low, high = (np.empty(0), np.empty(0)) if law is None else law.interval(where)
    x, y = [*slots, *reversed(slots)] if len(low) else [], [*high.tolist(), *reversed(low.tolist())]
    look = {"look": (None, None, 0), "fill": "toself", "fillcolor": theme.BAND, "showlegend": bool(x), **left}
    theme.lines(panels, "forms-band", "the law's 90 % interval", x, y, **look)
    for number, (fit, model) in enumerate(curves):
        said = f" ({', '.join(marks[fit.form])})" if fit.form in marks else ""
        colour, dash = theme.SEQUENCE[number % len(theme.SEQUENCE)], _DASHES[number % len(_DASHES)]
        look = {"look": (colour, dash, 3 if said else 1.5), **left}
        y = [rate if rate > 0 or not far else None for rate in model.predict(where).tolist()]  # 0 has no logarithm
        hover = f"{fit.form}, %{{x:.0f}} slots: %{{y:.4~s}} records/s"
        theme.lines(panels, f"forms-{fit.form}", f"{fit.form}{said}", slots, y, hover=hover, **look)
    origin, here = origin_of(exploration), points[:, 0] == memory
    elsewhere = f"{origin} at other memory"
    for uid, kept, symbol, word in (("here", here, "circle", origin), ("elsewhere", ~here, "circle-open", elsewhere)):
        x, y = points[kept, 1].tolist(), rates[kept].tolist()
        look = {"look": (theme.BLACK, symbol, 8), "hover": "%{x:,} slots: %{y:.4~s} records/s", **left}
        theme.marks(panels, f"forms-runs-{uid}", word, x, y, showlegend=bool(x), **look)
    x, y = [slots for slots, _ in targets], [rate for _, rate in targets]
    look = {"look": (theme.VERMILLION, "diamond", 11), "hover": "%{y:.4~s} records/s: %{x:,} slots", **left}
    theme.marks(panels, "forms-targets", "planned for a target", x, y, showlegend=bool(y), **look)
    shade = {"fillcolor": theme.GREY, "opacity": 0.1, "line_width": 0, "layer": "below"}
    words = {"annotation": {"text": "extrapolated"}, "annotation_position": "top left"}
    panels.add_vrect(most, last, **shade, **words, **left)  # an empty panel takes no axis
    across: dict[str, object] = {"range": [0, last]}
    up: dict[str, object] = {"rangemode": "tozero", "tickformat": "~s"}
    if far:
        ends = (0.85 * least, last)
        across = {"type": "log", "range": list(np.log10(ends)), **theme.log_ticks(*ends)}
        up = {"type": "log", "tickformat": "~s", "dtick": 1}
    panels.update_xaxes(title_text=f"Slots of {memory:,g} MB", **across, **left)
    panels.update_yaxes(title_text="Capacity (records/s)", **up, **left)
    _draw_errors(panels, [fit for fit, _ in curves])
    return theme.room_for_legend(panels)


def _draw_errors(panels: go.Figure, fits: Sequence[FormFit]) -> None:
    forms, errors, right = [fit.form for fit in fits], [fit.left_out for fit in fits], {"row": 1, "col": 2}
    told = ["not defined" if error is None else units.scaled(error, "") for error in errors]
    look = {"color": [theme.SEQUENCE[n % len(theme.SEQUENCE)] for n in range(len(errors))]}
    hover = "%{y}: %{x:.4~s} records/s"
    theme.bars(panels, "forms-errors", "errors", errors, told, y=forms, marker=look, hover=hover, **right)
    worst = max((error for error in errors if error is not None), default=1.0)
    title = "Error, one run<br>left out (records/s)"
    panels.update_xaxes(title_text=title, tickformat="~s", nticks=4, range=[0, 1.35 * worst], **right)
    panels.update_yaxes(autorange="reversed", ticks="", showgrid=False, type="category", **right)
