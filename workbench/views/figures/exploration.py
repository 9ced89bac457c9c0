"""The course of an exploration: its error, BIDS2's objectives, the measured rates, the next budget, fitted forms."""

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench import units
from workbench.capacity import Exploration
from workbench.capacity.explore import Question
from workbench.capacity.model import SCALING
from workbench.capacity.planning import fitted_form
from workbench.records import FormComparison, Measurement
from workbench.views import findings, theme
from workbench.views.figures.capacity import origin_of

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
        empty = "#FFFFFF" if name else "rgba(255, 255, 255, 0)"  # white stays white on a dark page
        look = {"colorscale": [[0, empty], [1, colour]], "x": slots, "y": memories, "row": 1, "col": col}
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


_POINTS = 50
_BEYOND = 3.0  # factor over the most slots measured, to which forms are compared at least
_FAR = 4.0  # span from which axes are logarithmic
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash")


def draw_model_forms(exploration: Exploration, found: FormComparison) -> go.Figure:
    """Draw the forms at the largest target's memory, the law's interval, and the errors on a run left out."""
    shows = "Left: capacity over slots by every form. Right: mean error on a run left out, by form."
    figure = theme.figure(findings.forms(found).removesuffix("."), 420, shows)
    fitted = {fit.form: fitted_form(exploration, fit.form) for fit in found.fits}
    models = {form: model for form, model in fitted.items() if model is not None}
    if len(models) < 2:
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
    for number, (form, model) in enumerate(models.items()):
        said = f" ({', '.join(marks[form])})" if form in marks else ""
        colour, dash = theme.SEQUENCE[number % len(theme.SEQUENCE)], _DASHES[number % len(_DASHES)]
        look = {"look": (colour, dash, 3 if said else 1.5), **left}
        y = [rate if rate > 0 or not far else None for rate in model.predict(where).tolist()]  # 0 has no logarithm
        hover = f"{form}, %{{x:.0f}} slots: %{{y:.4~s}} records/s"
        theme.lines(panels, f"forms-{form}", f"{form}{said}", slots, y, hover=hover, **look)
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
    _draw_errors(panels, {fit.form: fit.left_out for fit in found.fits if fit.form in models})
    return theme.room_for_legend(panels)


def _draw_errors(panels: go.Figure, left_out: Mapping[str, float | None]) -> None:
    forms, errors, right = list(left_out), list(left_out.values()), {"row": 1, "col": 2}
    told = ["not defined" if error is None else units.scaled(error, "") for error in errors]
    look = {"color": [theme.SEQUENCE[n % len(theme.SEQUENCE)] for n in range(len(errors))]}
    hover = "%{y}: %{x:.4~s} records/s"
    theme.bars(panels, "forms-errors", "errors", errors, told, y=forms, marker=look, hover=hover, **right)
    worst = max((error for error in errors if error is not None), default=1.0)
    title = "Error, one run<br>left out (records/s)"
    panels.update_xaxes(title_text=title, tickformat="~s", nticks=4, range=[0, 1.35 * worst], **right)
    panels.update_yaxes(autorange="reversed", ticks="", showgrid=False, type="category", **right)
