"""Policies compared on one load: time at target, latency, cost, and number of reconfigurations."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench import units
from workbench.scaling import Timeline
from workbench.views import theme
from workbench.views.figures import traces

KEEPS_UP = 0.99
"""Share of the time at the target from which a policy keeps up."""

_AS_GOOD = 0.01
_OF_USE = 0.5  # share of the time at the target; below it, nobody chooses a policy for its price
_PANEL, _LETTER, _LEAST_ROOM = 160.0, 7.5, 0.24  # pixels of a panel on a narrow page, of a letter; share of a panel


@dataclass(frozen=True)
class Policies:
    """Data of the figure: `Timeline.with_driver` by policy, the `leading` one first, then by the time at the target.

    They are compared by their cost in `price_unit`; by core-hours where it is empty.
    """

    finding: str
    rows: Mapping[str, Mapping[str, float]]
    leading: str | None
    price_unit: str = ""

    @property
    def money(self) -> str:
        """The field by which policies are compared as cheap or expensive."""
        return "cost" if self.price_unit else "core_hours"

    @property
    def best(self) -> str | None:
        """The leading policy if it keeps up; None where no policy does."""
        return None if self.leading is None or self.rows[self.leading]["at_target"] < KEEPS_UP else self.leading


def policies(compared: Mapping[str, Timeline | Mapping[str, float]], price_unit: str = "") -> Policies:
    """Collect replays of one trace by policy, or their summaries with the driver.

    The cheapest of those that keep up leads; where none does, of those within a hundredth of the longest time at the
    target. Without a `price_unit`, or where a policy has no cost, cheap is by core-hours.
    """
    rows = {name: row.with_driver() if isinstance(row, Timeline) else row for name, row in compared.items()}
    if not rows:
        return Policies("No policy was replayed", {}, None)
    unit = price_unit if all("cost" in row for row in rows.values()) else ""
    money = "cost" if unit else "core_hours"
    most = max(row["at_target"] for row in rows.values())
    enough = KEEPS_UP if most >= KEEPS_UP else most - _AS_GOOD
    able = [name for name, row in rows.items() if row["at_target"] >= enough]
    best = min(able, key=lambda name: rows[name][money])
    kept, cost = rows[best]["at_target"], units.number(rows[best][money])
    keeps = f"{best} keeps up" if kept >= KEEPS_UP else f"No policy keeps up; {best} does so"
    paid = f"at {cost} {unit}" if unit else f"for {cost} core-hours"
    finding = f"{keeps} {units.share(kept)} of the time {paid}, driver included{_compared(rows, best, money)}"
    names = sorted(rows, key=lambda name: (name != best, -rows[name]["at_target"]))
    return Policies(finding, {name: rows[name] for name in names}, best, unit)


def _compared(rows: Mapping[str, Mapping[str, float]], best: str, money: str) -> str:
    """Compare the best with the most expensive policy; if they are the same, with the best of the cheaper policies."""
    needs, fewer = ("costs", "less") if money == "cost" else ("needs", "fewer")
    cost = rows[best][money]
    most = max(rows, key=lambda name: rows[name][money])
    if rows[most][money] > cost:
        return f", {units.percent(1 - cost / rows[most][money])} {fewer} than {most}"
    cheaper = [name for name, row in rows.items() if row[money] < cost and row["at_target"] >= _OF_USE]
    if not cheaper:
        return ""
    next_best = max(cheaper, key=lambda name: (rows[name]["at_target"], -rows[name][money]))
    row = rows[next_best]
    saved = units.percent(1 - row[money] / cost)
    return f"; {next_best} {needs} {saved} {fewer}, but keeps up only {units.share(row['at_target'])} of the time"


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
