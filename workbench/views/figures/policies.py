"""Policies compared on one load: how often they keep up, how long records wait, what they cost, how often they act."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench.scaling import Timeline
from workbench.views import theme, units

COLUMNS = (
    ("at_target", "At target (% of time)"),
    ("latency_p99_s", "Latency, p99 (s)"),
    ("core_hours", "Cost (core-hours)"),
    ("reconfigurations", "Reconfigurations"),
)
"""Fields of `Timeline.summary` that are drawn, and their axes."""

_AS_GOOD = 0.01


@dataclass(frozen=True)
class Policies:
    """What the figure shows: a row of `Timeline.summary` by policy; `best` is the cheapest that keeps up as well."""

    finding: str
    names: tuple[str, ...]
    rows: tuple[Mapping[str, float], ...]
    best: str | None


def policies(compared: Mapping[str, Timeline | Mapping[str, float]]) -> Policies:
    """Collect replays of one trace by policy, or the rows that `compare` returns.

    The best is the one of the fewest core-hours among those at the target within a hundredth of the time of the best;
    ties to the first.
    """
    rows = {name: row.summary() if isinstance(row, Timeline) else row for name, row in compared.items()}
    if not rows:
        return Policies("No policy was replayed", (), (), None)
    most = max(row["at_target"] for row in rows.values())
    able = [name for name, row in rows.items() if row["at_target"] >= most - _AS_GOOD]
    best = min(able, key=lambda name: rows[name]["core_hours"])
    kept, cost = rows[best]["at_target"], rows[best]["core_hours"]
    dearest = max(rows, key=lambda name: rows[name]["core_hours"])
    saved = "" if dearest == best or rows[dearest]["core_hours"] <= cost else (
        f", {units.share(1 - cost / rows[dearest]['core_hours'])} fewer than {dearest}"
    )  # fmt: skip
    finding = f"{best} keeps up {units.share(kept)} of the time for {units.number(cost)} core-hours{saved}"
    return Policies(finding, tuple(rows), tuple(rows.values()), best)


def draw_policies(data: Policies) -> go.Figure:
    """Draw one row of bars per policy, one panel per measure."""
    figure = theme.figure(
        data.finding, 170 + 42 * len(data.names), "Bars per policy: time at target, latency, core-hours, changes."
    )
    if not data.names:
        return theme.not_enough(figure, "no policy was replayed.")
    panels = make_subplots(cols=len(COLUMNS), shared_yaxes=True, horizontal_spacing=0.035, figure=figure)
    names = [theme.plain(name) for name in data.names]
    colours = [theme.VERMILLION if name == data.best else theme.BLUE for name in data.names]
    shapes = ["/" if name == data.best else "" for name in data.names]
    for column, (field, title) in enumerate(COLUMNS, start=1):
        values = [100 * row[field] if field == "at_target" else row[field] for row in data.rows]
        panels.add_bar(
            uid=f"policies-{field}",
            name=title,
            x=[value if math.isfinite(value) else None for value in values],
            y=names,
            orientation="h",
            text=[units.seconds(value) if field.endswith("_s") else units.number(value) for value in values],
            textposition="outside",
            cliponaxis=False,
            marker={
                "color": colours,
                "pattern": {"shape": shapes, "bgcolor": colours, "fgcolor": "white", "size": 6},
            },
            hovertemplate="%{y}: %{x:.4~g}<extra></extra>",
            showlegend=False,
            row=1,
            col=column,
        )
        top = max((value for value in values if math.isfinite(value)), default=0.0) or 1.0
        panels.update_xaxes(title_text=title, range=[0, 1.32 * top], tickformat="~s", nticks=4, row=1, col=column)
    panels.update_yaxes(autorange="reversed", ticks="", showgrid=False, type="category")
    panels.update_layout(bargap=0.35, margin_t=52)
    return panels
