"""Batch time against rows per batch, of probes and of a log: a fixed part, a part per row, and the interval."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from workbench import units
from workbench.dataflow import Budget
from workbench.measuring import Line, batch_line, judged_batches
from workbench.metrics import Batch
from workbench.records import MstEstimate, Probe
from workbench.study import Observed
from workbench.views import theme

_MOST_POINTS = 2000  # of a log on a page, so that it is small enough to send

VERDICTS: Mapping[str, theme.Sign] = {
    "sustained": theme.Sign(theme.BLUE, "circle", "sustained"),
    "overloaded": theme.Sign(theme.VERMILLION, "x", "overloaded"),
    "lower load": theme.Sign(theme.GREEN, "circle-open", "at lower rates, for the costs"),
    "reading": theme.Sign(theme.BLUE, "circle", "in the log's largest batches"),
    "source-bound": theme.Sign(theme.PURPLE, "diamond", "source-bound (not counted)"),
    "disturbed": theme.Sign(theme.PURPLE, "square", "disturbed (not counted)"),
    "warming": theme.Sign(theme.PURPLE, "square-open", "code still compiled (not counted)"),
    "not-at-capacity": theme.Sign(theme.PURPLE, "circle-open", "slots not at capacity (not counted)"),
    "not-offered": theme.Sign(theme.BLACK, "triangle-up", "not offered (not counted)"),
    "warm-up": theme.Sign(theme.GREY, "diamond-open", "warm-up"),
}
"""Marks of the verdicts on probes: colour, shape and word."""
_SCATTER = 1.05  # times the rate at which the line meets the interval; more was not sustained if only rows count


@dataclass(frozen=True)
class BatchTimes:
    """Data of the figure: whole batches of the probes and of the observations at lower rates, and their line."""

    finding: str
    batches: tuple[tuple[Batch, str], ...]  # with the verdict on their probe
    interval_s: float
    line: Line | None  # fitted to the batches of valid probes; None if they are too few or too similar
    crossing: float | None  # rows per batch at which the line meets the interval
    marked: float | None  # rows per batch of the highest rate sustained


def outcome(probe: Probe) -> tuple[str, str]:
    """Return the verdict on a probe, or the phase of one that was not judged, with the reason."""
    judged = probe.judgement
    return (probe.phase, "The source offered all that fits.") if judged is None else (judged.verdict, judged.reason)


def batch_times(query: str, budget: Budget, estimate: MstEstimate, load_curve: Sequence[Probe] = ()) -> BatchTimes:
    """Collect the whole batches of the probes and of `load_curve`, and fit the line to the valid ones."""
    batches, line = judged_batches(estimate, load_curve), batch_line(estimate, load_curve)
    crossing = None
    if line is not None and line.slope > 0 and budget.interval_s > line.fixed:
        crossing = (budget.interval_s - line.fixed) / line.slope
    marked = None if estimate.rate is None else estimate.low * budget.interval_s
    finding = _finding(query, budget, line, crossing, estimate.low)
    return BatchTimes(finding, tuple(batches), budget.interval_s, line, crossing, marked)


def draw_batch_times(data: BatchTimes) -> go.Figure:
    """Draw the batches, the line, the interval and their crossing."""
    figure = theme.figure(data.finding, 460, "Points: batch time over records per batch, with the fitted line.")
    for verdict, sign in VERDICTS.items():
        chosen = [batch for batch, given in data.batches if given == verdict]
        x, y = [batch.records for batch in chosen], [batch.duration_s for batch in chosen]
        look = {"look": (sign.colour, sign.symbol, 7), "marker": {"opacity": 0.75}}
        if chosen:
            theme.marks(figure, f"batches-{verdict}", sign.word, x, y, hover="%{x:,} records in %{y:.3f} s", **look)
    right = 1.06 * max((*(batch.records for batch, _ in data.batches), data.crossing or 0.0, data.marked or 0.0, 1.0))
    if data.line is not None:
        ends = [data.line.fixed, data.line.fixed + data.line.slope * right]
        name = f"fit: {units.seconds(data.line.fixed)} + {units.seconds(data.line.slope)} per record"
        theme.lines(figure, "batches-fit", name, [0, right], ends, look=(theme.BLACK, None, 2))
    if data.crossing is not None:
        name = f"fit meets interval: {units.rate(data.crossing / data.interval_s)}"
        look = {"look": (theme.BLACK, "star-open", 16), "marker": {"line": {"width": 1.5}}}
        hover = "%{x:,.0f} records per batch fill the interval"
        theme.marks(figure, "batches-crossing", name, [data.crossing], [data.interval_s], hover=hover, **look)
    mark_interval(figure, data.interval_s)
    if data.marked is not None:
        name = f"highest sustained: {units.rate(data.marked / data.interval_s)}"
        mark_rows(figure, data.marked, name, theme.BLUE)
    figure.update_xaxes(title_text="Records per batch", range=[0, right], tickformat="~s")
    figure.update_yaxes(title_text="Batch time (s)", rangemode="tozero")
    return theme.room_for_legend(figure)


def mark_interval(figure: go.Figure, interval_s: float, **where: int) -> None:
    """Draw the trigger interval across a figure of batch times."""
    line = {"color": theme.BLACK, "width": 1, "dash": "dash"}
    words = {"text": f"interval {units.seconds(interval_s)}", "font": {"size": 12}}
    figure.add_hline(y=interval_s, line=line, annotation=words, annotation_position="top left", **where)


def mark_rows(figure: go.Figure, rows: float, text: str, colour: str) -> None:
    """Draw a number of rows per batch down a figure of batch times."""
    line = {"color": colour, "width": 1, "dash": "dot"}
    words = {"text": text, "font": {"size": 12, "color": theme.ink(colour)}, "y": 0.02, "yanchor": "bottom"}
    figure.add_vline(x=rows, line=line, annotation=words, annotation_position="bottom left")


def _finding(query: str, budget: Budget, line: Line | None, crossing: float | None, low: float) -> str:
    if line is None:
        return f"The batches of {query} are too alike to separate its fixed time from its time per record"
    text = f"A batch of {query} takes {units.seconds(line.fixed)} and {units.seconds(line.slope)} per record"
    if crossing is None:
        return f"{text}; the line does not meet the {units.seconds(budget.interval_s)} interval"
    full = crossing / budget.interval_s
    differ = f", though {units.rate(low)} were sustained: batches may differ by more than their rows" * (
        _SCATTER * full < low
    )
    return f"{text}: {units.rate(full)} fill the {units.seconds(budget.interval_s)} interval{differ}"


def draw_head_room(found: Observed, finding: str) -> go.Figure:
    """Draw batches of a log, or a sample of them, the line through them, the interval, and the rows that fill it."""
    room, running = found.headroom, found.running
    figure = theme.figure(finding, 440, "Points: batch time over rows per batch, with the line to the interval.")
    kept = [batch for batch in running.batches if batch.slots == running.slots]
    kept = kept[:: max(1, -(-len(kept) // _MOST_POINTS))]
    if not kept:
        return theme.not_enough(figure, "the log has no batch with rows.")
    rows, seconds = [batch.rows for batch in kept], [batch.batch_s for batch in kept]
    interval_s, peak = room.interval_s, room.peak_rate * room.interval_s
    right = 1.08 * max(*rows, peak, 0.0 if room.rate is None else room.high * interval_s)
    if room.rate is not None:
        low, high = room.low * interval_s, room.high * interval_s
        figure.add_vrect(x0=low, x1=high, fillcolor=theme.BLUE, opacity=0.12, line_width=0)
    grey = {"look": (theme.GREY, None, 5), "marker": {"opacity": 0.6}, "hover": "%{x:,} rows in %{y:.3f} s"}
    theme.marks(figure, "observed-batches", "batches seen", rows, seconds, **grey)
    if room.per_row_s > 0:
        ends = np.array([0.0, right])
        name = f"line through the batches: {units.seconds(room.fixed_s)} + {units.seconds(room.per_row_s)} a row"
        line = room.fixed_s + room.per_row_s * ends
        theme.lines(figure, "observed-line", name, ends, line, look=(theme.BLUE, None, 2))
    if room.rate is not None:
        look = {"look": (theme.BLUE, "diamond", 12), "hover": "%{x:,.0f} rows fill the interval"}
        name = f"what it sustains: {units.rate(room.rate, 2)}"
        theme.marks(figure, "observed-maximum", name, [room.rate * interval_s], [interval_s], **look)
    if interval_s:
        mark_interval(figure, interval_s)
        mark_rows(figure, peak, f"peak {units.rate(room.peak_rate, 2)}", theme.VERMILLION)
    figure.update_xaxes(title_text="Rows per batch", range=[0, right], tickformat="~s")
    figure.update_yaxes(title_text="Batch time (s)", range=[0, 1.1 * max(interval_s, *seconds)])
    return theme.room_for_legend(figure)
