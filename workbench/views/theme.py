"""One look for every figure: the plotly template ``"workbench"``, colours, symbols and quiet settings.

The colours are Okabe and Ito's; every one used for lines or marks has a contrast of at least 3 on white, and every one
of words at least 4.5 (see `ink`). Colour is never the only sign: a `Sign` also has a marker shape and a word. Traces
(`marks`, `lines`, `bars`, `heat`) are drawn alike in all figures.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from types import MappingProxyType
from typing import Any

import plotly.graph_objects as go
import plotly.io as pio
from plotly.subplots import make_subplots

from workbench import units
from workbench.escaping import for_plotly

BLUE = "#0072B2"
VERMILLION = "#D55E00"
GREEN = "#009E73"
PURPLE = "#CC79A7"
BLACK = "#000000"
GREY = "#6B6B6B"
SEQUENCE = (BLUE, VERMILLION, GREEN, PURPLE, BLACK)

_INKS = MappingProxyType({VERMILLION: "#B34700", GREEN: "#007355"})

BAND = "rgba(0, 114, 178, 0.14)"
"""Fill of a range of plausible values."""

FEW_RECORDS = 10.0
"""Backlogs up to this many records share one scale, so that fractions of a record do not fill a panel."""

_TITLE_WIDTH = 96  # characters per line
_THOUSAND = 1000
_ABOVE = 1.05  # axes end this much above the highest value
_LINE_ABOVE = 11  # pixels by which plotly moves a title up for each further line
_UNIT = re.compile(r"(?<=\d) (?=\S)")  # a number and its unit stay on one line
_MANY_DECADES = 1e4  # the ends of a logarithmic axis
_NARROW_PAGE, _KEY_WIDTH, _LETTER_WIDTH = 800, 45, 6.5  # pixels
_LEAST_ABOVE = 16  # pixels above a plot without a title
_SMALL_LETTER = 8.2  # pixels, of a title in a panel
_BELOW, _LEAST_PLOT = 44, 120  # pixels of a figure in a panel: below the plot, and of the plot

plain = for_plotly
"""Keeps plotly from reading a text as markup."""

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', Arial, sans-serif"

QUIET: Mapping[str, object] = MappingProxyType({"responsive": True, "displaylogo": False, "showSendToCloud": False})
"""Chart settings: fill the width, no logo, no upload button."""


@dataclass(frozen=True)
class Sign:
    """How one outcome is marked: colour, plotly marker symbol and word."""

    colour: str
    symbol: str
    word: str


def template() -> go.layout.Template:
    """Colours, fonts, margins and hover text of all figures."""
    axis = {
        "showline": True,
        "linecolor": GREY,
        "gridcolor": "#E3E3E3",
        "zeroline": False,
        "ticks": "outside",
        "tickcolor": GREY,
        "exponentformat": "SI",
        "separatethousands": True,
        "title": {"standoff": 8, "font": {"size": 13}},
        "automargin": True,
    }
    return go.layout.Template(
        layout={
            "autosize": True,
            "colorway": list(SEQUENCE),
            "font": {"family": FONT, "size": 13, "color": "#1F1F1F"},
            "title": {
                "x": 0,
                "xref": "container",
                "xanchor": "left",
                "pad": {"l": 14},
                "font": {"size": 16},
                "automargin": False,
            },
            "paper_bgcolor": "white",
            "plot_bgcolor": "white",
            "margin": {"l": 70, "r": 40, "t": 76, "b": 56},
            "modebar": {"orientation": "v"},  # in the right margin, not over the legend
            "hovermode": "closest",
            "hoverlabel": {"bgcolor": "white", "bordercolor": GREY, "font": {"color": "#1F1F1F", "family": FONT}},
            "legend": {
                "orientation": "h",
                "x": 0,
                "xanchor": "left",
                "y": 1,
                "yanchor": "bottom",
                "font": {"size": 12},
                "bgcolor": "rgba(0, 0, 0, 0)",
            },
            "xaxis": axis,
            "yaxis": axis,
        }
    )


def figure(title: str, height: int = 420, shows: str = "") -> go.Figure:
    """Return an empty figure in the workbench's look, `height` pixels high; its width follows the page.

    Its title is the finding; with what it `shows`, in words, that is the text alternative (both in ``layout.meta``).
    """
    if "workbench" not in pio.templates:
        pio.templates["workbench"] = template()
    return go.Figure().update_layout(
        template="workbench",
        title=_title(title, _TITLE_WIDTH),
        meta={"finding": title, "alternative": f"{title}. {shows}" if shows else title},
        height=height,
    )


def fit(drawn: go.Figure, width: int, height: int) -> go.Figure:
    """Fit a figure into a place of a panel, in pixels: a smaller title, in as many lines as needed.

    It becomes higher where title and legend would leave too little of `height` to the plot.
    """
    title = _title(str((drawn.layout.meta or {}).get("finding", "")), int(width // _SMALL_LETTER))
    drawn.update_layout(title={**title, "font": {"size": 14}}, margin_b=_BELOW)
    room_for_legend(drawn, width)
    return drawn.update_layout(height=max(height, drawn.layout.margin.t + _BELOW + _LEAST_PLOT))


def untitled(drawn: go.Figure) -> go.Figure:
    """Return the figure without its title, and lower by its height, for a place that has the finding above it."""
    bare = go.Figure(drawn)
    top = bare.layout.margin.t or bare.layout.template.layout.margin.t
    if bare.layout.title.text and top and bare.layout.height:  # as `figure` makes them; others keep their title
        room = min(top - _LEAST_ABOVE, _title_room(bare))
        bare.update_layout(title=None, margin_t=top - room, height=bare.layout.height - room)
    return bare


def _title_room(drawn: go.Figure) -> int:
    return 30 + 20 * (1 + (drawn.layout.title.text or "").count("<br>"))


def _title(text: str, letters: int) -> dict[str, object]:
    """Return a title at the top, in lines of at most that number of letters."""
    lines = wrap(_UNIT.sub("\u00a0", text), letters)
    above = {"t": 14 + _LINE_ABOVE * (len(lines) - 1)}
    return {"text": "<br>".join(map(plain, lines)), "yref": "container", "y": 1, "yanchor": "top", "pad": above}


def ticks(top: float) -> str:
    """Tick format of an axis up to `top`: prefixes from a thousand on only, for d3 writes a half as "500m"."""
    return "~s" if top >= _THOUSAND else "~g"


def upright(top: float) -> dict[str, object]:
    """Properties of an axis from 0 to a little above `top`, or above 1 where nothing is above 0."""
    return {"range": [0, _ABOVE * (top or 1.0)], "tickformat": ticks(top)}


def whole_ticks(low: float, high: float) -> dict[str, object]:
    """Ticks of an axis of whole numbers from `low` to `high`: at most about five, none between two numbers."""
    return {"tickformat": ",d", "tick0": 0, "dtick": max(1, math.ceil((high - low) / 5))}


def ink(colour: str) -> str:
    """Return the colour of text about a line or mark of `colour`, as text needs more contrast."""
    return _INKS.get(colour, colour)


def many_decades(low: float, high: float) -> bool:
    """Whether a logarithmic axis from `low` to `high` is too long for ticks between the powers of ten."""
    return high / low > _MANY_DECADES


def log_ticks(low: float, high: float) -> dict[str, object]:
    """Ticks of a logarithmic axis: 1, 2 and 5 times the powers of ten; over many decades the powers alone."""
    steps = (1,) if many_decades(low, high) else (1, 2, 5)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    at = [step * 10.0**power for power in powers for step in steps if low <= step * 10.0**power <= high]
    return {"tickvals": at, "ticktext": [units.number(value) for value in at]}


def room_for_legend(drawn: go.Figure, width: int = _NARROW_PAGE) -> go.Figure:
    """Set the top margin to what the title's lines and the legend's rows below them take at `width`, pixels."""
    names = [trace.name for trace in drawn.data if trace.name and trace.showlegend is not False]
    longest = max(map(len, names), default=0)
    columns = max(1, int(width // (_KEY_WIDTH + _LETTER_WIDTH * longest)))
    return drawn.update_layout(margin_t=6 + _title_room(drawn) + 20 * math.ceil(len(names) / columns))


def not_enough(drawn: go.Figure, reason: str) -> go.Figure:
    """Write in the middle of a figure without data what it waits for."""
    return blank(drawn, f"Not enough data: {reason}")


def blank(drawn: go.Figure, text: str) -> go.Figure:
    """Write a text in the middle of a figure in place of data."""
    drawn.add_annotation(
        text=plain(text),
        x=0.5,
        y=0.5,
        xref="paper",
        yref="paper",
        showarrow=False,
        font={"size": 14, "color": GREY},
    )
    drawn.update_xaxes(visible=False)
    drawn.update_yaxes(visible=False)
    return drawn.update_layout(height=220)


def marks(drawn: go.Figure, uid: str, name: str, x: Any, y: Any, **more: Any) -> None:  # noqa: ANN401 - plotly's
    """Add marks; `look` is their colour, symbol and size, and `hover` their hover text."""
    _scatter(drawn, "marker", ("color", "symbol", "size"), {"mode": "markers", **more}, uid=uid, name=name, x=x, y=y)


def lines(drawn: go.Figure, uid: str, name: str, x: Any, y: Any, **more: Any) -> None:  # noqa: ANN401
    """Add a line; `look` is its colour, dash and width, and `hover` its hover text, if any."""
    _scatter(drawn, "line", ("color", "dash", "width"), {"mode": "lines", **more}, uid=uid, name=name, x=x, y=y)


def _scatter(drawn: go.Figure, what: str, names: Sequence[str], more: dict[str, Any], **given: Any) -> None:  # noqa: ANN401
    look = {name: one for name, one in zip(names, more.pop("look"), strict=False) if one is not None}
    hover = more.pop("hover", None)
    said = {"hoverinfo": "skip"} if hover is None else {"hovertemplate": f"{hover}<extra></extra>"}
    drawn.add_scatter(**given, **said, **{**more, what: look | more.get(what, {})})


Measure = tuple[str, str, Sequence[Any], Sequence[str], float, Mapping[str, object]]
"""A panel of bars: uid, title, values, words at their ends, the axis' end over the highest value, and its ticks."""


def bars(drawn: go.Figure, uid: str, name: str, values: Sequence[Any], words: Sequence[str], **more: Any) -> None:  # noqa: ANN401
    """Add horizontal bars with text at their ends, one for each of the names `y`; `hover` as for `marks`."""
    more |= {"orientation": "h", "textposition": "outside", "cliponaxis": False, "showlegend": False}
    said = f"{more.pop('hover')}<extra></extra>"
    drawn.add_bar(uid=uid, name=name, x=values, text=words, hovertemplate=said, **more)


def bar_panels(drawn: go.Figure, y: Iterable[str], measures: Sequence[Measure], gap: float, **more: Any) -> go.Figure:  # noqa: ANN401
    """Add panels of horizontal bars next to each other, one for each of the `measures`; `more` as for `bars`."""
    panels = make_subplots(cols=len(measures), shared_yaxes=True, horizontal_spacing=gap, figure=drawn)
    names = list(map(plain, y))
    for column, (uid, title, values, words, stretch, axis) in enumerate(measures, start=1):
        bars(panels, uid, title, values, words, y=names, row=1, col=column, **more)
        top = max((value for value in values if value is not None), default=0.0) or 1.0
        panels.update_xaxes(title_text=title, range=[0, stretch * top], **axis, row=1, col=column)
    panels.update_yaxes(autorange="reversed", ticks="", showgrid=False, type="category")
    return panels.update_layout(bargap=0.35)


def heat(drawn: go.Figure, uid: str, name: str, cells: Any, top: float, **more: Any) -> None:  # noqa: ANN401
    """Add a heat map from 0 to `top`, without a scale, with gaps between its cells; `hover` as for `marks`."""
    more |= {"zmin": 0, "zmax": top, "showscale": False, "xgap": 2, "ygap": 2}
    drawn.add_heatmap(uid=uid, name=name, z=cells, hovertemplate=f"{more.pop('hover')}<extra></extra>", **more)


def box(x0: float, x1: float, y0: float, y1: float, **more: object) -> dict[str, object]:
    """Make a box below the traces, a shape of a layout."""
    return {"type": "rect", "layer": "below", "x0": x0, "x1": x1, "y0": y0, "y1": y1, **more}


def broken(pieces: Iterable[Sequence[tuple[Any, Any]]]) -> tuple[list[Any], list[Any]]:
    """Join lines of points (x, y), with gaps between them, into one trace."""
    points = [point for piece in pieces for point in (*piece, (None, None))]
    return [x for x, _ in points], [y for _, y in points]
