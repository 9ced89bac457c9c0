"""Policies compared on one load: time at target, latency, cost, and number of reconfigurations."""

import math

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench import units
from workbench.study import Policies
from workbench.views import theme
from workbench.views.figures import traces

_PANEL, _LETTER, _LEAST_ROOM = 160.0, 7.5, 0.24  # pixels of a panel on a narrow page, of a letter; share of a panel


def draw_policies(data: Policies) -> go.Figure:
    """Draw one row of bars per policy, one panel per measure."""
    shows = "Bars per policy: time at target, latency, cost, changes."
    figure = theme.figure(data.finding, 170 + 42 * len(data.rows), shows)
    if not data.rows:
        return theme.not_enough(figure, "no policy was replayed.")
    columns = {
        "at_target": "Keeps up (% of time)",
        "latency_p99_s": "Latency, 99 % (s)",
        data.money: f"{data.price_unit or 'Core-hours'}, with driver",
        "reconfigurations": "Changes",
    }
    panels = make_subplots(cols=len(columns), shared_yaxes=True, horizontal_spacing=0.035, figure=figure)
    names = [theme.plain(name) for name in data.rows]
    colours = [theme.VERMILLION if name == data.best else theme.BLUE for name in data.rows]
    shapes = ["/" if name == data.best else "" for name in data.rows]
    for column, (field, title) in enumerate(columns.items(), start=1):
        values = [round(100 * row[field], 1) if field == "at_target" else row[field] for row in data.rows.values()]
        labels = [units.seconds(value) if field.endswith("_s") else units.number(value) for value in values]
        pattern = {"shape": shapes, "bgcolor": colours, "fgcolor": "white", "size": 6}
        look = {"marker": {"color": colours, "pattern": pattern}, "hover": "%{y}: %{x:.4~g}", "row": 1, "col": column}
        finite = [value if math.isfinite(value) else None for value in values]
        traces.bars(panels, f"policies-{field}", title, finite, labels, y=names, **look)
        top = max((value for value in values if math.isfinite(value)), default=0.0) or 1.0
        room = max(_LEAST_ROOM, _LETTER * max(map(len, labels)) / _PANEL)
        axis = {"title_text": title, "range": [0, top / (1 - room)], "tickformat": theme.ticks(top), "nticks": 4}
        panels.update_xaxes(**axis, row=1, col=column)
    panels.update_yaxes(autorange="reversed", ticks="", showgrid=False, type="category")
    panels.update_layout(bargap=0.35)
    return theme.room_for_legend(panels)
