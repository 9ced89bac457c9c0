"""One policy's replay in full, and the others' over it, on a clock."""

from collections.abc import Mapping
from dataclasses import replace

import plotly.graph_objects as go

from workbench import units
from workbench.views import theme
from workbench.views.figures import traces
from workbench.views.figures.timeline import TimelineSeries, Tops, draw_timeline

_MOST_TICKS = 9
_STEPS_S = (60, 300, 600, 900, 1800, 3600, 7200, 10_800, 14_400, 21_600, 43_200, 86_400)
_LOOKS = ((theme.VERMILLION, "dash"), (theme.GREEN, "dot"), (theme.PURPLE, "dashdot"), (theme.BLACK, "longdash"))


def same_axes(series: Mapping[str, TimelineSeries]) -> dict[str, TimelineSeries]:
    """Give the replays axes on which all of them fit."""
    tops = Tops(*(max(column) for column in zip(*(one.tops for one in series.values()), strict=True)))
    return {name: replace(one, tops=tops) for name, one in series.items()}


def draw_overlaid(series: Mapping[str, TimelineSeries], policy: str) -> go.Figure:
    """Draw the timeline of `policy`, with tasks, backlog and latency of the others as thin lines over it.

    All are replays of one load, on the same axes; their time 0 is midnight.
    """
    shown = series[policy]
    figure = draw_timeline(shown)
    if not shown.duration_s:
        return figure
    scale, _ = units.time_scale(shown.duration_s)
    waited, _ = units.time_scale(shown.tops.latency_s)
    for place, (name, other) in enumerate((n, one) for n, one in series.items() if n != policy):
        colour, dash = _LOOKS[place % len(_LOOKS)]
        columns = (other.tasks, other.backlog, [seconds / waited for seconds in other.latency_s])
        for row, values in enumerate(columns, start=2):
            look = {"look": (colour, dash, 1.1), "line": {"shape": "hv" if row == 2 else "linear"}}
            told = {"legendgroup": f"overlay-{place}", "showlegend": row == 2, "row": row, "col": 1}
            times, hover = [time / scale for time in other.times_s], f"{theme.plain(name)}: %{{y:.4~s}}"
            traces.lines(
                figure, f"overlay-{place}-{row}", theme.plain(name), times, values, hover=hover, **told, **look
            )
    step = next((one for one in _STEPS_S if shown.duration_s / one < _MOST_TICKS), _STEPS_S[-1])
    ticks = range(0, int(shown.duration_s) + 1, step)
    figure.update_xaxes(tickvals=[tick / scale for tick in ticks])
    figure.update_xaxes(ticktext=[units.clock(tick) for tick in ticks], title_text="Clock", row=4, col=1)
    figure.update_yaxes(title_font_size=11)
    figure.update_yaxes(title_text="GiB, dashed", row=2, col=1, secondary_y=True)
    return theme.room_for_legend(figure)
