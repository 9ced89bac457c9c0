"""The probes of an estimate over time: what was offered and consumed, how the bracket closed and batches kept up."""

import math
from dataclasses import dataclass

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench import units
from workbench.dataflow import Budget
from workbench.measuring import closing
from workbench.records import MstEstimate, Probe
from workbench.views import findings, theme
from workbench.views.figures import traces
from workbench.views.figures.batch_times import VERDICTS, mark_interval

_LEAST_SPAN = 0.2  # of the highest rate, on the axis of rates
_ROOM = 0.14  # of the span, above and below it
_BEYOND = 0.05  # of the time, for which the last bracket is drawn


@dataclass(frozen=True)
class ProbePoint:
    """One probe: its observed time (seconds since the estimate began), rates (records/s) and verdict.

    `offered` is None for a warm-up, which offers as many records as fit.
    """

    number: int
    began_s: float
    ended_s: float
    offered: float | None
    consumed: float
    verdict: str
    reason: str


@dataclass(frozen=True)
class BatchPoint:
    """One whole micro-batch: when it began, seconds since the estimate began, and how it went."""

    probe: int
    time_s: float
    duration_s: float
    backlog: float


@dataclass(frozen=True)
class Probes:
    """What the figure shows."""

    finding: str
    points: tuple[ProbePoint, ...]
    batches: tuple[BatchPoint, ...]
    interval_s: float
    low: float | None  # of the bracket: the highest rate sustained
    high: float | None  # None where no rate was too much
    closing: tuple[tuple[float, float, float], ...] = ()  # when probes ended, the bracket after each: 0 and inf: open
    expected: float | None = None  # by an optimizer, records/s


def probes(
    query: str, budget: Budget, estimate: MstEstimate, *, ran: bool = True, expected: float | None = None
) -> Probes:
    """Place every probe, its whole batches and the bracket after it on the estimate's clock."""
    points, batches = [], []
    for probe in estimate.probes:
        shift = _shift(probe)
        whole = probe.observation.batches[1:]
        placed = [BatchPoint(probe.number, batch.start_s + shift, batch.duration_s, batch.backlog) for batch in whole]
        batches += placed
        points.append(
            ProbePoint(
                probe.number,
                placed[0].time_s if placed else probe.started_s,
                probe.started_s + probe.seconds,
                probe.observation.offered_rate if math.isfinite(probe.rate) else None,
                probe.observation.consumed_rate,
                probe.judgement.verdict if probe.judgement else probe.phase,
                probe.judgement.reason if probe.judgement else "The source offered all that fits.",
            )
        )
    return Probes(
        findings.capacity(query, budget, estimate, ran=ran),
        tuple(points),
        tuple(batches),
        budget.interval_s,
        estimate.low if estimate.rate is not None else None,
        estimate.high if math.isfinite(estimate.high) else None,
        tuple((point.ended_s, *ends) for point, ends in zip(points, closing(estimate.probes), strict=True)),
        expected,
    )


def draw_probes(data: Probes) -> go.Figure:
    """Draw three panels over one time axis: rates, batch times, backlog."""
    figure = theme.figure(data.finding, 680, "Three panels over time: rates of the probes, batch times, backlog.")
    if not data.points:
        return theme.not_enough(figure, "no probe has ended.")
    heights = [0.5, 0.27, 0.23]
    panels = make_subplots(rows=3, shared_xaxes=True, vertical_spacing=0.05, row_heights=heights, figure=figure)
    _rates(panels, data)
    _per_batch(panels, data)
    panels.update_yaxes(title_text="Batch time (s)", rangemode="tozero", row=2, col=1)
    most = max((batch.backlog for batch in data.batches), default=0.0)
    panels.update_yaxes(title_text="Backlog (records)", **theme.upright(max(most, theme.FEW_RECORDS)), row=3, col=1)
    panels.update_xaxes(title_text="Time since the estimate began (s)", row=3, col=1)
    return theme.room_for_legend(panels)


def draw_bracket(data: Probes) -> go.Figure:
    """Draw the rates alone: the probes, the bracket that they close, and what was expected."""
    figure = theme.figure(data.finding, 360, "Over time: rates of the probes, and the bracket that they close.")
    if not data.points:
        return theme.not_enough(figure, "no probe has ended.")
    panels = make_subplots(figure=figure)
    _rates(panels, data)
    panels.update_xaxes(title_text="Time since the estimate began (s)")
    return theme.room_for_legend(panels)


def _rates(panels: go.Figure, data: Probes) -> None:
    _closing(panels, data)
    _offered(panels, data)
    for verdict, sign in VERDICTS.items():
        chosen = [point for point in data.points if point.verdict == verdict]
        x, y = [(point.began_s + point.ended_s) / 2 for point in chosen], [point.consumed for point in chosen]
        told = {"customdata": [[point.number, theme.plain(point.reason)] for point in chosen], "cliponaxis": False}
        hover = "probe %{customdata[0]}: %{y:.4~s} records/s consumed<br>%{customdata[1]}"
        words = {"text": [str(point.number or "") for point in chosen], "textposition": "bottom center"}
        look = {"mode": "markers+text", "textfont": {"size": 11}, "look": (sign.colour, sign.symbol, 11)}
        if chosen:
            uid, name, where = f"probes-{verdict}", f"consumed: {sign.word}", {"row": 1, "col": 1}
            traces.marks(panels, uid, name, x, y, hover=hover, **told, **words, **look, **where)
    _marks(panels, data)
    panels.update_yaxes(title_text="Rate (records/s)", tickformat="~s", range=_rate_range(data), row=1, col=1)


def _shift(probe: Probe) -> float:
    """Return what to add to the testbed's clock: an observation ends with its probe."""
    if not probe.observation.batches:
        return 0.0
    last = probe.observation.batches[-1]
    return probe.started_s + probe.seconds - (last.start_s + last.duration_s)


def _rate_range(data: Probes) -> list[float]:
    """Leave room for the labels below and above the rates, and rates that are nearly the same close together."""
    rates = [point.consumed for point in data.points] + [point.offered or point.consumed for point in data.points]
    low, high = min(rates, default=0.0), max(rates, default=1.0)
    span = max(high - low, _LEAST_SPAN * high) or 1.0
    middle, half = (low + high) / 2, (0.5 + _ROOM) * span
    return [max(0.0, middle - half), middle + half]


def _closing(panels: go.Figure, data: Probes) -> None:
    """Draw the bracket after each probe until the next one ends; the last one, which is the estimate's, beyond it."""
    bottom, top = _rate_range(data)
    begun, ended = data.points[0].began_s, data.points[-1].ended_s
    known = [(at, low, high) for at, low, high in data.closing[:-1] if low > 0 or math.isfinite(high)]
    if data.low is not None and data.high is not None:
        known.append((ended if known else begun, data.low, data.high))
    ends = [*(at for at, _, _ in known[1:]), ended + _BEYOND * (ended - begun)]
    boxes = [(at, end, max(low, bottom), min(high, top)) for (at, low, high), end in zip(known, ends, strict=False)]
    x, y = traces.broken([(at, low), (at, high), (end, high), (end, low), (at, low)] for at, end, low, high in boxes)
    look = {"look": (None, None, 0), "fill": "toself", "fillcolor": theme.BAND, "row": 1, "col": 1}
    traces.lines(panels, "probes-closing", "bracket so far", x, y, showlegend=bool(x), **look)


def _marks(panels: go.Figure, data: Probes) -> None:
    """Draw a line at the highest rate sustained and at what was expected; beyond the axis, only say where it is."""
    bottom, top = _rate_range(data)
    for rate, said, colour, dash, place in (
        (data.low, "highest sustained", theme.BLUE, "dot", "top left"),
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


def _offered(panels: go.Figure, data: Probes) -> None:
    x, y = traces.broken(
        [(point.began_s, point.offered), (point.ended_s, point.offered)]
        for point in data.points
        if point.offered is not None
    )
    look = {"look": (theme.BLACK, None, 2), "hover": "%{y:.4~s} records/s offered", "row": 1, "col": 1}
    traces.lines(panels, "probes-offered", "offered", x, y, **look)


def _per_batch(panels: go.Figure, data: Probes) -> None:
    verdicts = {point.number: point.verdict for point in data.points}
    signs = [VERDICTS[verdicts[batch.probe]] for batch in data.batches]
    backlogs = [batch.backlog for batch in data.batches]
    rows = (
        (2, [batch.duration_s for batch in data.batches], "a batch of %{y:.3f} s"),
        (3, backlogs, f"backlog %{{y:.4{theme.ticks(max(backlogs, default=0.0))}}} records"),
    )
    for row, values, hover in rows:
        look = {"look": ([sign.colour for sign in signs], [sign.symbol for sign in signs], 5), "cliponaxis": False}
        told = {"customdata": [batch.probe for batch in data.batches], "hover": f"probe %{{customdata}}: {hover}"}
        times, name = [batch.time_s for batch in data.batches], "batch time" if row == 2 else "backlog"
        where = {"showlegend": False, "row": row, "col": 1}
        traces.marks(panels, f"probes-batches-{row}", name, times, values, **look, **told, **where)
    mark_interval(panels, data.interval_s, row=2, col=1)
