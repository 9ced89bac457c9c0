"""Batch time against rows per batch: a fixed part, a part per row, and where the line meets the interval."""

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from workbench import units
from workbench.dataflow import Budget
from workbench.measuring import MIN_LEVELS, Line, count_levels, fit_line
from workbench.metrics import Batch
from workbench.records import MstEstimate, Probe
from workbench.views import findings, theme
from workbench.views.figures import traces
from workbench.views.figures.signs import COUNTED, VERDICTS


@dataclass(frozen=True)
class BatchTimes:
    """What the figure shows: whole batches of the probes and of the observations at lower rates, and their line."""

    finding: str
    rows: tuple[int, ...]
    seconds: tuple[float, ...]
    verdicts: tuple[str, ...]
    interval_s: float
    line: Line | None  # fitted to the batches of valid probes; None where they are too few or too alike
    crossing: float | None  # rows per batch at which the line meets the interval
    marked: float | None  # rows per batch of the rate found
    mark: str  # what that rate is


def rows_within(line: Line, seconds: float) -> float | None:
    """Rows whose batch takes `seconds`; None where the line never gets there."""
    return (seconds - line.fixed) / line.slope if line.slope > 0 and seconds > line.fixed else None


def batch_times(query: str, budget: Budget, estimate: MstEstimate, load_curve: Sequence[Probe] = ()) -> BatchTimes:
    """Collect the whole batches of the probes and of `load_curve`, and fit the line to the valid ones."""
    batches: list[tuple[Batch, str]] = [
        (batch, probe.judgement.verdict if probe.judgement is not None else probe.phase)
        for probe in estimate.probes
        if probe.phase != "warm-up"
        for batch in probe.observation.batches[1:]
    ]
    batches += [(batch, "lower load") for probe in load_curve for batch in probe.observation.batches[1:]]
    rows = tuple(batch.records for batch, _ in batches)
    seconds = tuple(batch.duration_s for batch, _ in batches)
    counted = [(batch.records, batch.duration_s) for batch, verdict in batches if verdict in COUNTED]
    told_apart = count_levels(sorted(records for records, _ in counted)) >= MIN_LEVELS
    line = fit_line(counted) if told_apart else None
    crossing = rows_within(line, budget.interval_s) if line else None
    rate, mark = findings.marked(estimate)
    return BatchTimes(
        _finding(query, budget, line, crossing),
        rows,
        seconds,
        tuple(verdict for _, verdict in batches),
        budget.interval_s,
        line,
        crossing,
        None if rate is None else rate * budget.interval_s,
        mark,
    )


def draw_batch_times(data: BatchTimes) -> go.Figure:
    """Draw the batches, the line, the interval and their crossing."""
    figure = theme.figure(data.finding, 460, "Points: batch time over records per batch, with the fitted line.")
    if not data.rows:
        return theme.not_enough(figure, "no batch was completed.")
    for verdict, sign in VERDICTS.items():
        chosen = [place for place, value in enumerate(data.verdicts) if value == verdict]
        x, y = ([values[place] for place in chosen] for values in (data.rows, data.seconds))
        look = {"look": (sign.colour, sign.symbol, 7), "marker": {"opacity": 0.75}}
        if chosen:
            traces.marks(figure, f"batches-{verdict}", sign.word, x, y, hover="%{x:,} records in %{y:.3f} s", **look)
    right = 1.06 * max((*data.rows, data.crossing or 0.0, data.marked or 0.0, 1.0))
    if data.line is not None:
        ends = [data.line.fixed, data.line.fixed + data.line.slope * right]
        name = f"fit: {units.seconds(data.line.fixed)} + {units.seconds(data.line.slope)} per record"
        traces.lines(figure, "batches-fit", name, [0, right], ends, look=(theme.BLACK, None, 2))
    if data.crossing is not None:
        name = f"fit meets interval: {units.rate(data.crossing / data.interval_s)}"
        look = {"look": (theme.BLACK, "star-open", 16), "marker": {"line": {"width": 1.5}}}
        hover = "%{x:,.0f} records per batch fill the interval"
        traces.marks(figure, "batches-crossing", name, [data.crossing], [data.interval_s], hover=hover, **look)
    mark_interval(figure, data.interval_s)
    if data.marked is not None:
        mark_rows(figure, data.marked, f"{data.mark}: {units.rate(data.marked / data.interval_s)}", theme.BLUE)
    figure.update_xaxes(title_text="Records per batch", range=[0, right], tickformat="~s")
    figure.update_yaxes(title_text="Batch time (s)", rangemode="tozero")
    return theme.room_for_legend(figure)


def mark_interval(figure: go.Figure, interval_s: float, **where: int) -> None:
    """Draw the trigger interval across a figure of batch times."""
    figure.add_hline(
        y=interval_s,
        line={"color": theme.BLACK, "width": 1, "dash": "dash"},
        annotation={"text": f"interval {units.seconds(interval_s)}", "font": {"size": 12}},
        annotation_position="top left",
        **where,
    )


def mark_rows(figure: go.Figure, rows: float, text: str, colour: str) -> None:
    """Draw a number of rows per batch down a figure of batch times."""
    figure.add_vline(
        x=rows,
        line={"color": colour, "width": 1, "dash": "dot"},
        annotation={"text": text, "font": {"size": 12, "color": theme.ink(colour)}, "y": 0.02, "yanchor": "bottom"},
        annotation_position="bottom left",
    )


def _finding(query: str, budget: Budget, line: Line | None, crossing: float | None) -> str:
    if line is None:
        return f"The batches of {query} are too alike to separate its fixed time from its time per record"
    text = f"A batch of {query} takes {units.seconds(line.fixed)} and {units.seconds(line.slope)} per record"
    if crossing is None:
        return f"{text}; the line does not meet the {units.seconds(budget.interval_s)} interval"
    return f"{text}: {units.rate(crossing / budget.interval_s)} fill the {units.seconds(budget.interval_s)} interval"
