"""Batches as a time series: what a row costs, distinguished from what grows by itself.

Rows and seconds of batches cause each other once a batch outlasts the trigger interval: the next one holds what arrived
meanwhile, so a line through all batches returns the reciprocal of the arrival rate. And where batches get longer while
the load moves, part of that growth passes for the cost of rows. So three slopes are fitted (robustly, after Huber):

- pooled: seconds = a + b rows;
- with a drift: seconds = a + b rows + d max(0, batch - k), where k is when it began;
- local: each batch against the few after it, with its rows against the few before it as the instrument. These are
  forward orthogonal deviations (Arellano and Bover, 1995, Journal of Econometrics 68): what slowed a batch is in the
  rows of later ones and not of earlier ones, so rows that follow from durations do no harm, nor does a slow trend.

A drift counts where it is clear of the weather that batches share and not small. The slope with it, or the pooled
one without a drift, holds where the local one agrees; else rows follow something else, and only the local one is left.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.observing.running_query import SeenBatch
from workbench.observing.state import DAY_S

Floats = NDArray[np.float64]

_ROUNDS, _OUTLYING = 10, 1.5  # of reweighting; deviations from which a batch counts less (Huber)
_MAD = 1.4826  # median absolute deviation to standard deviation
_NEAR = 3  # neighbours on each side
_GAP = 20  # usual pauses, from which batches are no neighbours
_BEGINS = (0.0, 0.2, 0.4, 0.6, 0.8)  # shares of the log at which a drift may begin
_AT_ONCE = 0.98  # of the loss, in favour of a drift from the beginning
_FEWEST, _CLEAR, _LARGE = 40, 4.0, 0.1  # batches with drift; deviations; of a batch's time, from which one counts
_APART, _MATTERS = 3.0, 0.15  # deviations between two slopes; of a batch's time over the rows' spread
_MOST_KEPT = 0.98  # part of its weather that a batch leaves to the next
_AT_END = 20  # batches
LEVEL_Z = 1.645  # deviations on each side of a 90 % interval


@dataclass(frozen=True)
class Drift:
    """Batches that take longer and longer, whatever they hold.

    Parameters
    ----------
    per_batch_s, low_s, high_s
        What each batch adds to the next ones' time, with the ends of its 90 % interval, seconds.
    since, since_s
        Number of the batch from which it is seen, and when that began, seconds since 1970.
    batches
        Over which it is seen.
    per_day_s
        What a day adds, seconds.
    overrun_s
        When the batches of the peak outlast the interval, seconds since 1970, past or to come; None if they will not.
    at_first
        Records/s that were sustained at least when it began: rows cannot cost more than the whole batch.
    """

    per_batch_s: float
    low_s: float
    high_s: float
    since: int
    since_s: float
    batches: int
    per_day_s: float
    overrun_s: float | None = None
    at_first: float = 0.0


@dataclass(frozen=True)
class Slope:
    """Seconds of a row, and their standard deviation."""

    s: float
    error: float


@dataclass(frozen=True)
class Series:
    """What batches show over time.

    Parameters
    ----------
    now_s
        Seconds of each as it would take at the log's end.
    drift
        None where none is clear.
    drift_error_s
        Standard deviation of what the drift adds until the end to the mean batch.
    pooled, local
        Seconds of a row over all batches (with a drift, if there is one), and between neighbours; None: too few.
    agree
        Whether they agree. If not, rows follow something else, and the local slope holds.
    """

    now_s: Floats
    drift: Drift | None
    drift_error_s: float
    pooled: float
    local: Slope | None
    agree: bool


def series_of(batches: Sequence[SeenBatch]) -> Series:
    """Distinguish what rows cost from what grows by itself; for at least two batches."""
    rows = np.array([batch.rows for batch in batches], dtype=float)
    seconds = np.array([batch.batch_s for batch in batches])
    place = np.arange(len(rows), dtype=float)
    spread = float(np.subtract(*np.quantile(rows, [0.95, 0.05])))
    matters = _MATTERS * float(np.median(seconds)) / spread if spread > 0 else np.inf
    local = _local(rows, seconds, _stretches(batches))
    slope = float(_fit(np.stack([np.ones_like(rows), rows]), seconds)[0][1])
    column, values, errors, clear = _drifting(rows, seconds, place)
    slope = float(values[1]) if clear else slope
    agree = local is None or abs(slope - local.s) <= max(_APART * local.error, matters)
    if local is not None and not agree:
        own = seconds - max(0.0, local.s) * rows
        column, values, errors, clear = _drifting(None, own, place)
    if not clear:
        return Series(seconds, None, 0.0, slope, local, agree)
    each, error, seen = float(values[-1]), float(errors[-1]), batches[int(np.argmax(column > 0)) :]
    per_day = (len(seen) - 1) / max(1e-9, seen[-1].start_s - seen[0].start_s) * DAY_S
    drift = Drift(each, each - LEVEL_Z * error, each + LEVEL_Z * error, seen[0].number, seen[0].start_s, len(seen),
                  each * per_day)  # fmt: skip
    now = seconds + each * (column[-1] - column)
    return Series(now, drift, error * float(column[-1] - column.mean()), slope, local, agree)


def outlasts(batches: Sequence[SeenBatch], interval_s: float) -> SeenBatch | None:
    """Give the batch from which most outlast the interval (a median of 21 does, and of the rest); None if none."""
    seconds = np.array([batch.batch_s for batch in batches])
    if len(seconds) <= _AT_END:
        return None
    over = np.median(np.lib.stride_tricks.sliding_window_view(seconds, _AT_END + 1), axis=1) > interval_s
    rest = np.cumsum(over[::-1])[::-1] / np.arange(len(over), 0, -1)
    there = np.flatnonzero(over & (rest > 0.9))
    return batches[int(there[0]) + _AT_END // 2] if len(there) else None


def _stretches(batches: Sequence[SeenBatch]) -> NDArray[np.int_]:
    """Give each batch the number of its stretch, which a restart or a gap ends."""
    since = np.array([batch.since_s for batch in batches])
    usual = float(np.median(since[np.isfinite(since)])) if np.isfinite(since).any() else np.inf
    starts = np.array([batch.start for batch in batches])
    slots = np.array([batch.slots for batch in batches])
    cut = (since > _GAP * usual) | (np.diff(starts, prepend=starts[0]) != 0) | (np.diff(slots, prepend=slots[0]) != 0)
    return np.cumsum(cut)


def _local(rows: Floats, seconds: Floats, stretches: NDArray[np.int_]) -> Slope | None:
    """Fit the slope between neighbours; None where there are too few."""
    many = len(rows) - 2 * _NEAR
    if many < _FEWEST:
        return None
    middle = slice(_NEAR, _NEAR + many)
    inside = stretches[:many] == stretches[2 * _NEAR :]

    def near(values: Floats, first: int) -> Floats:
        sums = np.concatenate([[0.0], np.cumsum(values)])
        at = np.arange(many) + first
        return np.asarray((sums[at + _NEAR] - sums[at]) / _NEAR)

    tool = (rows[middle] - near(rows, 0))[inside]
    x = (rows[middle] - near(rows, _NEAR + 1))[inside]
    y = (seconds[middle] - near(seconds, _NEAR + 1))[inside]
    if len(y) < _FEWEST or not np.ptp(tool) > 0:
        return None
    weights = np.ones_like(y)
    slope, off = 0.0, y
    for _ in range(_ROUNDS):
        total = weights.sum()
        tool_off, x_off, y_off = (one - (weights * one).sum() / total for one in (tool, x, y))
        shared = float((weights * tool_off * x_off).sum())
        if not shared:
            return None
        slope = float((weights * tool_off * y_off).sum()) / shared
        off = y_off - slope * x_off
        scale = _MAD * float(np.median(np.abs(off)))
        if scale <= 0:
            break
        weights = 1 / np.maximum(1.0, np.abs(off) / (_OUTLYING * scale))
    pulls = weights * tool_off * off
    blocks = np.add.reduceat(pulls, np.arange(0, len(pulls), 2 * _NEAR))
    return Slope(slope, float(np.sqrt((blocks**2).sum()) / abs(shared)))


def _drifting(rows: Floats | None, seconds: Floats, place: Floats) -> tuple[Floats, Floats, Floats, bool]:
    """Fit the drift that begins where it explains most; whether it is clear of the weather, and not small."""
    known = [np.ones_like(place)] + ([] if rows is None else [rows])
    columns: list[Floats] = [np.maximum(0.0, place - round(share * len(place))) for share in _BEGINS]
    fitted = [_fit(np.stack([*known, column]), seconds) for column in columns]
    losses = [loss * (1.0 if number else _AT_ONCE) for number, (*_, loss) in enumerate(fitted)]
    chosen = int(np.argmin(losses))
    column, (values, errors, _) = columns[chosen], fitted[chosen]
    grown, batches = values[-1] * column[-1], int((column > 0).sum())
    clear = bool(values[-1] > _CLEAR * errors[-1] and grown > _LARGE * np.median(seconds) and batches >= _FEWEST)
    return column, values, errors, clear


def _fit(columns: Floats, seconds: Floats) -> tuple[Floats, Floats, float]:
    """Regress robustly: coefficients, their deviations with the weather that batches share, and the loss."""
    weights = np.ones_like(seconds)
    values: Floats = np.zeros(len(columns))
    off, scale = seconds, 0.0
    for _ in range(_ROUNDS):
        root = np.sqrt(weights)
        values = np.asarray(np.linalg.lstsq((columns * root).T, seconds * root, rcond=None)[0])
        off = seconds - values @ columns
        scale = _MAD * float(np.median(np.abs(off)))
        if scale <= 0:
            break
        weights = 1 / np.maximum(1.0, np.abs(off) / (_OUTLYING * scale))
    small = np.clip(off, -3 * scale, 3 * scale)
    whole = float((small**2).sum())
    kept = float((small[1:] * small[:-1]).sum()) / whole if whole > 0 else 0.0
    kept = min(_MOST_KEPT, max(0.0, kept + (1 + 4 * kept) / len(off)))
    spread = np.linalg.pinv((columns * weights) @ columns.T)
    errors = scale * np.sqrt(np.maximum(0.0, np.diag(spread)) * (1 + kept) / (1 - kept))
    return values, errors, float((weights * off**2).sum())
