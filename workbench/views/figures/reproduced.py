"""A figure of a paper next to ours: any number of panels of lines, points or bars."""

import math
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench.views import theme

if TYPE_CHECKING:  # papers load their simulators
    from workbench.papers import Panel, Reproduction, Series

_HEIGHT, _SUBTITLE = 330, 26  # pixels of a row of panels, and of the titles above them
_GAP, _TURNED = 100, 65  # pixels between rows, and more where names are so long that they are turned
_CHARACTER, _WIDTH, _HALF = 7, 700, 310  # pixels: of a character, of the names under a panel on a narrow page
_DASHES = ("solid", "dash", "dot", "dashdot")
_SYMBOLS = ("circle", "square", "triangle-up", "x", "pentagon", "star")
_PUBLISHED = ("diamond-open", "square-open", "circle-open")
_FEW_TICKS, _FEW_POINTS, _DECADES = 8, 12, 3.0
_MOST_BARS = 6  # of a series in half the width
_HATCHED = {"shape": "/", "fillmode": "overlay", "fgcolor": "white", "fgopacity": 1.0}


def draw_reproduced(data: "Reproduction", finding: str) -> go.Figure:
    """Draw the panels under their finding, two in a row; the paper's values are grey, hatched or open."""
    bars = {panel.title for panel in data.panels if panel.shape == "bars"}
    crowded = any(one.panel in bars and len(one.x) > _MOST_BARS for one in data.series)
    columns = 1 if crowded else min(2, len(data.panels))
    rows = math.ceil(len(data.panels) / columns)
    widths = [_CHARACTER * sum(len(name) + 2 for name in one.x if isinstance(name, str)) for one in data.series]
    turned = _TURNED if max(widths, default=0) > (_WIDTH if columns == 1 else _HALF) else 0
    row_height = _HEIGHT + turned
    shown = "; ".join(f"{one.title}, {one.y} over {one.x}" for one in data.panels)
    shows = f"{len(data.panels)} panels: {shown}. Values of the paper are grey, hatched or open."
    drawn = theme.figure(finding, row_height * rows + 60, shows)
    gaps = {"horizontal_spacing": 0.12, "vertical_spacing": (_GAP + turned) / (row_height * rows)}
    titles = [theme.plain(one.title) for one in data.panels]
    make_subplots(rows=rows, cols=columns, subplot_titles=titles, figure=drawn, **gaps)
    drawn.update_annotations(font_size=13)
    names = [list(dict.fromkeys(one.name for one in data.series if one.published == side)) for side in (False, True)]
    seen: set[str] = set()
    for place, panel in enumerate(data.panels):
        row, column = place // columns + 1, place % columns + 1
        inside = [one for one in data.series if one.panel == panel.title]
        for one in inside:
            style = names[one.published].index(one.name)
            trace = _trace(one, panel, style)
            # plotly finds a hatching by the trace's uid, which may hold no blanks: else the bar is painted black
            uid = re.sub(r"[^A-Za-z0-9]+", "-", f"{panel.title}-{one.name}")
            trace.update(uid=uid, legendgroup=one.name, showlegend=one.name not in seen)
            seen.add(one.name)
            drawn.add_trace(trace, row=row, col=column)
        drawn.update_xaxes(_x_axis(panel, inside), row=row, col=column)
        drawn.update_yaxes(_y_axis(panel, inside), row=row, col=column)
    drawn.update_layout(barmode="group")
    theme.room_for_legend(drawn)
    margin = drawn.layout.margin.t + _SUBTITLE  # the legend is above the titles
    inner = drawn.layout.height - margin - theme.template().layout.margin.b
    drawn.update_layout(margin_t=margin, legend_y=1 + _SUBTITLE / inner)
    return drawn


def _trace(one: "Series", panel: "Panel", style: int) -> go.Bar | go.Scatter:
    colour = theme.GREY if one.published else theme.SEQUENCE[style % len(theme.SEQUENCE)]
    bars = panel.shape == "bars"
    y = [None if value is None or (panel.log_y and value <= 0 and not bars) else value for value in one.y]
    hover = f"%{{x}}, {theme.plain(one.name)}: %{{y:.4~s}}<extra></extra>"
    drawn = {"name": one.name, "x": list(one.x), "y": y, "error_y": _range(one), "hovertemplate": hover}
    if bars:
        return go.Bar(marker={"color": colour, "pattern": _HATCHED if one.published else {}}, **drawn)
    symbol = _PUBLISHED[style % len(_PUBLISHED)] if one.published else _SYMBOLS[style % len(_SYMBOLS)]
    few = len(one.x) <= _FEW_POINTS
    lines = panel.shape == "line" and len(one.x) > 1
    return go.Scatter(
        mode="lines+markers" if lines and few else "lines" if lines else "markers",
        line={"color": colour, "width": 1.8, "dash": "dash" if one.published else _DASHES[style % len(_DASHES)]},
        marker={"color": colour, "symbol": symbol, "size": 11 if one.published else 7},
        cliponaxis=False,
        **drawn,
    )


def _range(one: "Series") -> dict[str, object] | None:
    if not one.low:
        return None
    above = [0.0 if value is None or end is None else end - value for value, end in zip(one.y, one.high, strict=True)]
    below = [0.0 if value is None or end is None else value - end for value, end in zip(one.y, one.low, strict=True)]
    return {"array": above, "arrayminus": below, "thickness": 1.2, "width": 4, "color": theme.GREY}


def _x_axis(panel: "Panel", inside: "Iterable[Series]") -> dict[str, object]:
    values = list(dict.fromkeys(x for one in inside for x in one.x))
    axis: dict[str, object] = {"title_text": theme.plain(panel.x)}
    if any(isinstance(x, str) for x in values):
        return axis | {"type": "category", "categoryorder": "array", "categoryarray": values}
    numbers = [float(x) for x in values]
    if not panel.log_x and all(number.is_integer() for number in numbers) and len(numbers) <= _FEW_POINTS:
        axis |= theme.whole_ticks(min(numbers), max(numbers))
    if panel.log_x:
        axis["type"] = "log"
    if panel.log_x and len(values) <= _FEW_TICKS:
        axis |= {"tickvals": values, "ticktext": [f"{x:,g}" for x in values]}
    return axis


def _y_axis(panel: "Panel", inside: "Iterable[Series]") -> dict[str, object]:
    ends = [end for one in inside for end in (*one.y, *one.high) if end is not None]
    top = max(ends, default=1.0)
    axis: dict[str, object] = {"title_text": theme.plain(panel.y)}
    if not panel.log_y:
        return axis | theme.upright(top)
    low = min((end for end in ends if end > 0), default=1.0)
    axis["type"] = "log"
    if math.log10(top / low) > _DECADES:
        return axis | {"dtick": 1, "tickformat": theme.ticks(top)}
    return axis | theme.log_ticks(low / 2, top * 2)
