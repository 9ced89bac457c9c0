"""The batches of a running query: their times over their rows, the line, and where it meets the trigger interval."""

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from workbench import units
from workbench.study import Observed
from workbench.views import theme
from workbench.views.figures import traces
from workbench.views.figures.batch_times import mark_interval, mark_rows

_MOST_POINTS = 2000  # of a page, so that it is small enough to send


@dataclass(frozen=True)
class HeadRoom:
    """What the figure shows: batches, of a long log some, and rows of a batch at rates."""

    finding: str
    rows: tuple[int, ...]
    seconds: tuple[float, ...]
    interval_s: float
    line: tuple[float, float] | None  # fixed seconds, and seconds a row; None where they cannot be separated
    low: float | None  # at the ends of the rate's interval, and at the rate; None without one
    middle: float | None
    high: float | None
    peak: float  # at the peak of the load


def head_room(found: Observed, finding: str) -> HeadRoom:
    """Collect what the figure shows of a query."""
    room, running = found.headroom, found.running
    kept = [batch for batch in running.batches if batch.slots == running.slots]
    kept = kept[:: max(1, -(-len(kept) // _MOST_POINTS))]
    low, middle, high = (
        (None, None, None)
        if room.rate is None
        else tuple(rate * room.interval_s for rate in (room.low, room.rate, room.high))
    )
    return HeadRoom(
        finding,
        tuple(batch.rows for batch in kept),
        tuple(batch.batch_s for batch in kept),
        room.interval_s,
        (room.fixed_s, room.per_row_s) if room.per_row_s > 0 else None,
        low,
        middle,
        high,
        room.peak_rate * room.interval_s,
    )


def draw_head_room(data: HeadRoom) -> go.Figure:
    """Draw the batches, the line through them, the interval, and the rows at which they meet."""
    figure = theme.figure(data.finding, 440, "Points: batch time over rows per batch, with the line to the interval.")
    if not data.rows:
        return theme.not_enough(figure, "the log has no batch with rows.")
    right = 1.08 * max(*data.rows, data.peak, data.high or 0.0)
    if data.low is not None and data.high is not None:
        figure.add_vrect(x0=data.low, x1=data.high, fillcolor=theme.BLUE, opacity=0.12, line_width=0)
    grey = {"look": (theme.GREY, None, 5), "marker": {"opacity": 0.6}, "hover": "%{x:,} rows in %{y:.3f} s"}
    traces.marks(figure, "observed-batches", "batches seen", data.rows, data.seconds, **grey)
    if data.line is not None:
        fixed, per_row = data.line
        ends = np.array([0.0, right])
        name = f"line through the batches: {units.seconds(fixed)} + {units.seconds(per_row)} a row"
        traces.lines(figure, "observed-line", name, ends, fixed + per_row * ends, look=(theme.BLUE, None, 2))
    if data.middle is not None:
        name = f"what it sustains: {units.rate(data.middle / data.interval_s, 2)}"
        look = {"look": (theme.BLUE, "diamond", 12), "hover": "%{x:,.0f} rows fill the interval"}
        traces.marks(figure, "observed-maximum", name, [data.middle], [data.interval_s], **look)
    if data.interval_s:
        mark_interval(figure, data.interval_s)
    mark_rows(figure, data.peak, f"peak {units.rate(data.peak / data.interval_s, 2)}", theme.VERMILLION)
    figure.update_xaxes(title_text="Rows per batch", range=[0, right], tickformat="~s")
    figure.update_yaxes(title_text="Batch time (s)", range=[0, 1.1 * max(data.interval_s, *data.seconds)])
    return theme.room_for_legend(figure)
