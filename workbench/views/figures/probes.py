"""The probes of an estimate over time: what was offered and consumed, how the bracket closed and batches kept up."""

import math
from dataclasses import dataclass, replace

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench import units
from workbench.dataflow import Budget
from workbench.measuring import closing
from workbench.metrics import Batch
from workbench.records import MstEstimate, Probe
from workbench.views import findings, theme
from workbench.views.figures.batch_times import VERDICTS, mark_interval, outcome

_LEAST_SPAN = 0.2  # of the highest rate, on the axis of rates
_ROOM = 0.14  # of the span, above and below it
_BEYOND = 0.05  # of the time, for which the last bracket is drawn


@dataclass(frozen=True)
class Probes:
    """Data of the figure: the probes of an estimate on its clock."""

    query: str
    budget: Budget
    estimate: MstEstimate
    ran: bool = True  # False: simulated
    expected: float | None = None  # rate by an optimizer, records/s

    @property
    def finding(self) -> str:
        """The rate that the query sustains."""
        return findings.capacity(self.query, self.budget, self.estimate, ran=self.ran)


def draw_probes(data: Probes) -> go.Figure:
    """Draw three panels over one time axis: rates, batch times, backlog."""
    figure = theme.figure(data.finding, 680, "Three panels over time: rates of the probes, batch times, backlog.")
    if not data.estimate.probes:
        return theme.not_enough(figure, "no probe has ended.")
    heights = [0.5, 0.27, 0.23]
    panels = make_subplots(rows=3, shared_xaxes=True, vertical_spacing=0.05, row_heights=heights, figure=figure)
    _rates(panels, data)
    made = [(probe, batch) for probe in data.estimate.probes for batch in _whole(probe)]
    signs = [VERDICTS[outcome(probe)[0]] for probe, _ in made]
    backlogs = [batch.backlog for _, batch in made]
    most = max(backlogs, default=0.0)
    rows = (
        (2, "batch time", [batch.duration_s for _, batch in made], "a batch of %{y:.3f} s"),
        (3, "backlog", backlogs, f"backlog %{{y:.4{theme.ticks(most)}}} records"),
    )
    for row, name, values, hover in rows:
        look = {"look": ([sign.colour for sign in signs], [sign.symbol for sign in signs], 5), "cliponaxis": False}
        told = {"customdata": [probe.number for probe, _ in made], "hover": f"probe %{{customdata}}: {hover}"}
        times, where = [batch.start_s for _, batch in made], {"showlegend": False, "row": row, "col": 1}
        theme.marks(panels, f"probes-batches-{row}", name, times, values, **look, **told, **where)
    mark_interval(panels, data.budget.interval_s, row=2, col=1)
    panels.update_yaxes(title_text="Batch time (s)", rangemode="tozero", row=2, col=1)
    panels.update_yaxes(title_text="Backlog (records)", **theme.upright(max(most, theme.FEW_RECORDS)), row=3, col=1)
    panels.update_xaxes(title_text="Time since the estimate began (s)", row=3, col=1)
    return theme.room_for_legend(panels)


def draw_bracket(data: Probes) -> go.Figure:
    """Draw the rates alone: the probes, the bracket that they close, and the expected rate."""
    figure = theme.figure(data.finding, 360, "Over time: rates of the probes, and the bracket that they close.")
    if not data.estimate.probes:
        return theme.not_enough(figure, "no probe has ended.")
    panels = make_subplots(figure=figure)
    _rates(panels, data)
    panels.update_xaxes(title_text="Time since the estimate began (s)")
    return theme.room_for_legend(panels)


def _rates(panels: go.Figure, data: Probes) -> None:
    made = data.estimate.probes
    ends = _rate_range(made)
    _closing(panels, data.estimate, *ends)
    offered = [(one, one.observation.offered_rate) for one in made if math.isfinite(one.rate)]
    x, y = theme.broken([(_began(one), rate), (_ended(one), rate)] for one, rate in offered)
    look = {"look": (theme.BLACK, None, 2), "hover": "%{y:.4~s} records/s offered", "row": 1, "col": 1}
    theme.lines(panels, "probes-offered", "offered", x, y, **look)
    for verdict, sign in VERDICTS.items():
        chosen = [one for one in made if outcome(one)[0] == verdict]
        x, y = [(_began(one) + _ended(one)) / 2 for one in chosen], [one.observation.consumed_rate for one in chosen]
        told = {"customdata": [[one.number, theme.plain(outcome(one)[1])] for one in chosen], "cliponaxis": False}
        hover = "probe %{customdata[0]}: %{y:.4~s} records/s consumed<br>%{customdata[1]}"
        words = {"text": [str(one.number or "") for one in chosen], "textposition": "bottom center"}
        look = {"mode": "markers+text", "textfont": {"size": 11}, "look": (sign.colour, sign.symbol, 11)}
        if chosen:
            uid, name, where = f"probes-{verdict}", f"consumed: {sign.word}", {"row": 1, "col": 1}
            theme.marks(panels, uid, name, x, y, hover=hover, **told, **words, **look, **where)
    _marks(panels, data, *ends)
    panels.update_yaxes(title_text="Rate (records/s)", tickformat="~s", range=list(ends), row=1, col=1)


def _whole(probe: Probe) -> list[Batch]:
    """Return the whole batches of a probe on the estimate's clock: an observation ends with its probe."""
    batches = probe.observation.batches
    shift = _ended(probe) - (batches[-1].start_s + batches[-1].duration_s) if batches else 0.0
    return [replace(batch, start_s=batch.start_s + shift) for batch in batches[1:]]


def _began(probe: Probe) -> float:
    return next((batch.start_s for batch in _whole(probe)), probe.started_s)


def _ended(probe: Probe) -> float:
    return probe.started_s + probe.seconds


def _rate_range(made: tuple[Probe, ...]) -> tuple[float, float]:
    """Return a range of rates with room for labels below and above, even for nearly equal rates."""
    offered = filter(None, (one.observation.offered_rate for one in made if math.isfinite(one.rate)))
    rates = [*(one.observation.consumed_rate for one in made), *offered]
    low, high = min(rates, default=0.0), max(rates, default=1.0)
    span = max(high - low, _LEAST_SPAN * high) or 1.0
    middle, half = (low + high) / 2, (0.5 + _ROOM) * span
    return max(0.0, middle - half), middle + half


def _closing(panels: go.Figure, estimate: MstEstimate, bottom: float, top: float) -> None:
    """Draw the bracket after each probe until the next one ends; the last one, which is the estimate's, beyond it."""
    made = estimate.probes
    begun, ended = _began(made[0]), _ended(made[-1])
    after = [(_ended(one), *ends) for one, ends in zip(made, closing(made), strict=True)]
    known = [(at, low, high) for at, low, high in after[:-1] if low > 0 or math.isfinite(high)]
    if estimate.rate is not None and math.isfinite(estimate.high):
        known.append((ended if known else begun, estimate.low, estimate.high))
    ends = [*(at for at, _, _ in known[1:]), ended + _BEYOND * (ended - begun)]
    boxes = [(at, end, max(low, bottom), min(high, top)) for (at, low, high), end in zip(known, ends, strict=False)]
    x, y = theme.broken([(at, low), (at, high), (end, high), (end, low), (at, low)] for at, end, low, high in boxes)
    look = {"look": (None, None, 0), "fill": "toself", "fillcolor": theme.BAND, "row": 1, "col": 1}
    theme.lines(panels, "probes-closing", "bracket so far", x, y, showlegend=bool(x), **look)


def _marks(panels: go.Figure, data: Probes, bottom: float, top: float) -> None:
    """Draw a line at the highest sustained and at the expected rate; beyond the axis, only label it."""
    sustained = None if data.estimate.rate is None else data.estimate.low
    for rate, said, colour, dash, place in (
        (sustained, "highest sustained", theme.BLUE, "dot", "top left"),
        (data.expected, "BIDS2 expected", theme.GREY, "dash", "bottom right"),
    ):
        if rate is None:
            continue
        within = bottom <= rate <= top
        text = f"{said}: {units.rate(rate)}" + ("" if within else ", above" if rate > top else ", below")
        x = 0.005 if place == "top left" else 0.995
        words = {"text": text, "x": x, "font": {"size": 12, "color": colour}, "bgcolor": "rgba(255,255,255,0.8)"}
        where = {"annotation_position": place if rate >= bottom else place.replace("bottom", "top"), "row": 1, "col": 1}
        line = {"color": colour, "width": 1 if within else 0, "dash": dash}
        panels.add_hline(y=min(max(rate, bottom), top), line=line, annotation=words, **where)
