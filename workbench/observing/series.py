"""Batches as a time series: the cost of a row, separated from what grows whatever the rows.

Rows and seconds of batches cause each other once a batch outlasts the trigger interval: the next one holds what arrived
meanwhile, so a line through all batches returns the reciprocal of the arrival rate. And where batches get longer while
the load moves, part of that growth passes for the cost of rows. So three slopes are fitted (robustly, after Huber):

- pooled: seconds = a + b rows;
- with a drift: seconds = a + b rows + d max(0, batch - k), where k is when it began; where the drift itself is seen to
  slow down, to end or to speed up, it follows a parabola, or a line with a kink;
- local: each batch against the few after it, with its rows against the few before it as the instrument. These are
  forward orthogonal deviations (Arellano and Bover, 1995, Journal of Econometrics 68): what slowed a batch is in the
  rows of later ones and not of earlier ones, so rows that follow from durations do no harm, nor does a slow trend.

A drift counts where it is clear of the noise that batches share, and not small. The slope with it as a line, or the
pooled one without a drift, holds where the local one agrees; else rows follow something else, and only the local one is
left.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from workbench.arrays import Floats
from workbench.observing.running_query import SeenBatch
from workbench.observing.state import DAY_S

_ROUNDS, _OUTLYING = 10, 1.5  # of reweighting; deviations from which a batch counts less (Huber)
_MAD = 1.4826  # median absolute deviation to standard deviation
_NEAR = 3  # neighbours on each side
_GAP = 20  # usual pauses; after a longer one, batches are not neighbours
_BEGINS = (0.0, 0.2, 0.4, 0.6, 0.8)  # shares of the log at which a drift may begin
_AT_ONCE = 0.98  # of the loss, in favour of a drift from the beginning
_FEWEST, _CLEAR, _LARGE = 40, 4.0, 0.1  # fewest batches; least drift in deviations, and as share of a batch's time
_KINKS = (0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875)  # shares of a drift at which its line may have a kink
_FORMS = 2.0  # coefficients that a bent drift takes more: its size, and where it is bent
_SAGS = 0.05  # of a batch's time: least distance of a bent drift from the line through its ends
_APART, _MATTERS = 3.0, 0.15  # deviations between two slopes; of a batch's time over the rows' spread
_FAR, _MOST_KEPT = 3.0, 0.98  # deviations at which a batch is cut; part of its noise that a batch leaves to the next
_SINGULAR = 1e12  # condition number from which columns are equal
_AT_END = 20  # batches
_EVIDENT = 1.0  # deviations; a power that is below 1 by more counts
_USUAL_POWER, _MOST_BENT = 0.2, 0.5  # deviation of the power among queries; most by which it is below 1
_POWER_DOUBT = 3.0  # of its own deviations: the cost may not follow a power
BUSIEST = 0.7  # quantile of the rows; batches above are the busiest
LEVEL_Z = 1.645  # deviations on each side of a 90 % interval


@dataclass(frozen=True)
class Drift:
    """Batches that take longer and longer, whatever their rows."""

    # per_batch_s, low_s, high_s: seconds that each batch adds to the next ones' time, in the mean of the drift, and the
    # ends of its 90 % interval
    per_batch_s: float
    low_s: float
    high_s: float
    # since, since_s: number of the batch from which it is seen, and when that began, seconds since 1970
    since: int
    since_s: float
    batches: int  # batches over which it is seen
    # ending_s, per_day_s: seconds that each batch and that a day adds at the log's end; at most 0 if growth has ended
    ending_s: float
    per_day_s: float
    # when the batches of the peak outlast the interval, seconds since 1970, past or to come, by the growth at the
    # log's end; None if they will not, or growth has ended
    overrun_s: float | None = None
    # least records/s sustained when it began: rows cannot cost more than the whole batch
    at_first: float = 0.0


@dataclass(frozen=True)
class Fit:
    """A robust regression of seconds."""

    # values, covariance: coefficients; their covariance, with the noise that batches share
    values: Floats
    covariance: Floats
    # off, weights, loss: what is left of each batch, how much it counts, and the sum of their squares
    off: Floats
    weights: Floats
    loss: float
    sound: bool  # whether the columns are distinct

    def deviation(self, place: int) -> float:
        """Return the standard deviation of a coefficient."""
        return float(np.sqrt(self.covariance[place, place]))


@dataclass(frozen=True)
class Slope:
    """Seconds of a row, and their standard deviation."""

    s: float
    error: float


@dataclass(frozen=True)
class Series:
    """What batches show over time."""

    now_s: Floats  # seconds that each would take at the log's end
    drift: Drift | None  # None if none is clear
    # fixed_s, per_row_s: seconds of a batch and of a row at the log's end, as far as all batches show them
    fixed_s: float
    per_row_s: float
    covariance: Floats  # of these two
    bent: float  # how far the power of the rows may be from `power`; inf where that was not looked at
    local: Slope | None  # seconds of a row between neighbours; None: too few
    # whether all batches show the same as neighbours do; if not, rows follow something else, and neighbours are right
    agree: bool
    pooled_s: float = 0.0  # apparent cost of a row over all batches
    grown_s: float = 0.0  # by how much batches got longer; 0 without a drift
    # deviation of a batch's seconds at the log's end, because the drift may follow another form; 0 without a drift
    form_s: float = 0.0
    # power, typical: power of the rows that their cost goes with, 1 unless it is seen to be less; rows at which it
    # changes nothing
    power: float = 1.0
    typical: float = 1.0

    def bent_rows(self, rows: Floats) -> Floats:
        """Return rows on the scale of their cost: seconds are a line over these."""
        return np.asarray(self.typical * (rows / self.typical) ** self.power)

    def straightened(self, rows: float) -> float:
        """Return the rows that `bent_rows` turns into these."""
        return float(self.typical * (rows / self.typical) ** (1 / self.power))


def series_of(batches: Sequence[SeenBatch]) -> Series:
    """Separate the cost of rows from what grows whatever they are; for at least two batches."""
    rows = np.array([batch.rows for batch in batches], dtype=float)
    seconds = np.array([batch.batch_s for batch in batches])
    spread = float(np.subtract(*np.quantile(rows, [0.95, 0.05])))
    matters = _MATTERS * float(np.median(seconds)) / spread if spread > 0 else np.inf
    local = _local(rows, seconds, _stretches(batches))
    costs = [np.ones_like(rows), rows]
    columns, found = _drifting(costs, seconds)
    pooled = float(found.values[1])
    agree = local is None or abs(pooled - local.s) <= max(_APART * local.error, matters)
    own = seconds
    if local is not None and not agree:
        costs, own = costs[:1], seconds - max(0.0, local.s) * rows
        columns, found = _drifting(costs, own)
    drift, now, grown, form_s = None, seconds, 0.0, 0.0
    if columns:
        columns, found, form_s = _bending(columns, found, costs, own)
        sizes, place = found.values[-len(columns) :], len(found.values) - len(columns)
        each, error = float(sizes[0]), found.deviation(place)
        steps = np.array([column[-1] - column[-2] for column in columns])
        ending = float(sizes @ steps)
        if len(columns) > 1 and ending < _CLEAR * math.sqrt(steps @ found.covariance[place:, place:] @ steps):
            ending = min(0.0, ending)
        seen = batches[int(np.argmax(columns[0] > 0)) :]
        in_a_day = (len(seen) - 1) / max(1e-9, seen[-1].start_s - seen[0].start_s) * DAY_S
        drift = Drift(each, each - LEVEL_Z * error, each + LEVEL_Z * error, seen[0].number, seen[0].start_s, len(seen),
                      ending, ending * in_a_day)  # fmt: skip
        grown = each * float(columns[0][-1])
        now = seconds + grown - sizes @ np.stack(columns)
    known = Series(now, drift, 0.0, 0.0, np.zeros((2, 2)), np.inf, local, agree, pooled, grown, form_s)
    if local is None or agree:
        return _costs(rows, seconds, columns, known)
    per_row = max(0.0, local.s)
    own = now - per_row * rows
    fixed = max(0.0, float(np.median(own[-_AT_END:]) + max(0.0, own.mean() - np.median(own))))  # with its stalls
    return replace(known, fixed_s=fixed, per_row_s=per_row, covariance=np.diag([0.0, local.error**2]))


def _costs(rows: Floats, seconds: Floats, columns: Sequence[Floats], known: Series) -> Series:
    """Find the cost of a batch and of a row at the log's end, neither below 0, and how bent the line is."""
    grown = [column - column[-1] for column in columns]  # so that the first coefficient is that at the end
    known = _bent(rows, seconds, grown, known)
    rows = known.bent_rows(rows)
    found = fit(np.stack([np.ones_like(rows), rows, *grown]), seconds)
    fixed, per_row = (float(one) for one in found.values[:2])
    covariance = found.covariance[:2, :2]
    if fixed < 0:
        through = fit(np.stack([rows, *grown]), seconds)
        fixed, per_row = 0.0, float(through.values[0])
    # A sustained rate is a mean, which includes stalls that the fit ignores.
    _, alike = shared_noise(found.off)
    fixed += max(0.0, float(found.off.mean()))
    covariance = covariance + np.diag([float(found.off.var()) * alike / len(rows), 0.0])
    return replace(known, fixed_s=fixed, per_row_s=max(0.0, per_row), covariance=covariance)


def _bent(rows: Floats, seconds: Floats, grown: Sequence[Floats], known: Series) -> Series:
    """Find the power of the rows that their cost follows, between the usual one (1) and what the log shows.

    Only a cost that bends down is followed: backlogs and cold code make large batches slow, and pose as one that
    bends up.
    """
    if len(rows) < _FEWEST:
        return known
    typical = _busy(rows)
    curved = rows * np.log(np.maximum(rows, 1.0) / typical)
    curve = fit(np.stack([np.ones_like(rows), rows, curved, *grown]), seconds)
    if not curve.sound or curve.values[1] <= 0:
        return known
    by, error = (float(one / curve.values[1]) for one in (curve.values[2], curve.deviation(2)))
    if by > -_EVIDENT * error:
        return replace(known, bent=math.hypot(by, error))
    by = max(-_MOST_BENT, by * _USUAL_POWER**2 / (_USUAL_POWER**2 + error**2))
    return replace(known, power=1 + by, typical=typical, bent=_POWER_DOUBT * error)


def outlasts(batches: Sequence[SeenBatch], interval_s: float) -> SeenBatch | None:
    """Return the batch from which on most outlast the interval (in the median of 21 and of the rest); None if none."""
    seconds = np.array([batch.batch_s for batch in batches])
    if len(seconds) <= _AT_END:
        return None
    over = np.median(np.lib.stride_tricks.sliding_window_view(seconds, _AT_END + 1), axis=1) > interval_s
    rest = np.cumsum(over[::-1])[::-1] / np.arange(len(over), 0, -1)
    there = np.flatnonzero(over & (rest > 0.9))
    return batches[int(there[0]) + _AT_END // 2] if len(there) else None


def _stretches(batches: Sequence[SeenBatch]) -> NDArray[np.int_]:
    """Return the number of each batch's stretch, which a restart or a gap ends."""
    since = np.array([batch.since_s for batch in batches])
    usual = float(np.median(since[np.isfinite(since)])) if np.isfinite(since).any() else np.inf
    starts = np.array([batch.start for batch in batches])
    slots = np.array([batch.slots for batch in batches])
    cut = (since > _GAP * usual) | (np.diff(starts, prepend=starts[0]) != 0) | (np.diff(slots, prepend=slots[0]) != 0)
    return np.cumsum(cut)


def _local(rows: Floats, seconds: Floats, stretches: NDArray[np.int_]) -> Slope | None:
    """Fit the slope between neighbours; None if there are too few."""
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
    if len(y) < _FEWEST or not np.ptp(tool) > 0 or not np.ptp(x) > 0:
        return None
    ones = np.ones_like(y)
    found = fit(np.stack([ones, x]), y, np.stack([ones, tool]))
    tool_off = tool - np.average(tool, weights=found.weights)
    pulls = found.weights * tool_off * found.off
    blocks = np.add.reduceat(pulls, np.arange(0, len(pulls), 2 * _NEAR))
    shared = abs(float((found.weights * tool_off * x).sum()))
    return Slope(float(found.values[1]), float(np.sqrt((blocks**2).sum()) / shared)) if shared else None


def _drifting(known: Sequence[Floats], seconds: Floats) -> tuple[tuple[Floats, ...], Fit]:
    """Fit the drift that begins where it explains most; no column where it is small or mere noise."""
    found, line = _best([(column,) for column in _since_each(len(seconds))], known, seconds)
    each, batches = float(found.values[-1]), int((line[0] > 0).sum())
    large = each * line[0][-1] > _LARGE * np.median(seconds)
    if large and each > _CLEAR * found.deviation(-1) and batches >= _FEWEST:
        return line, found
    return (), fit(np.stack(known), seconds)


def _bending(
    line: tuple[Floats, ...], straight: Fit, known: Sequence[Floats], seconds: Floats
) -> tuple[tuple[Floats, ...], Fit, float]:
    """Let a drift along a `line` follow a parabola, or a line with a kink, where it clearly does.

    It has to be clear next to a bend of the rows' cost, which looks alike where the load follows the clock; to explain
    more than a line that begins at another time; and to grow as a whole. Returns the deviation, too, of the seconds at
    the log's end, as the form not taken may be right: its probability by what both explain (after Schwarz' criterion),
    and the distance between the two.
    """
    choices = []
    for passed in (one for one in _since_each(len(seconds)) if (one > 0).sum() >= _FEWEST):
        whole = passed[-1]
        kinks = [np.maximum(0.0, passed - share * whole) - (1 - share) * passed for share in _KINKS]
        choices += [(passed, away) for away in (passed * (passed / whole - 1), *kinks)]
    curved = [rows * np.log(np.maximum(rows, 1.0) / _busy(rows)) for rows in known[1:]]
    found, bent = _best(choices, [*known, *curved], seconds)
    lines = [fit(np.stack([*known, *curved, passed]), seconds).loss for passed in _since_each(len(seconds))]
    (scale, alike), place, by = shared_noise(found.off), len(found.values) - 2, abs(float(found.values[-1]))
    clear = (
        by > _CLEAR * found.deviation(place + 1)
        and found.values[place] > _CLEAR * found.deviation(place)
        and min(lines) - found.loss > (_CLEAR * scale) ** 2 * alike
    )
    large = by * np.abs(bent[1]).max() > _SAGS * np.median(seconds)
    alone = fit(np.stack([*known, *bent]), seconds)
    apart = abs(float(np.mean(_missing(line, straight) - _missing(bent, alone))))
    explained = (min(lines) - found.loss) / (scale**2 * alike) if scale > 0 else np.inf
    likely = float(expit((explained - _FORMS * math.log(max(2.0, len(seconds) / alike))) / 2))
    if clear and large:
        return bent, alone, apart * math.sqrt(1 - likely)
    return line, straight, apart * math.sqrt(likely)


def _missing(columns: Sequence[Floats], found: Fit) -> Floats:
    """Return the seconds by which each batch would be longer at the log's end."""
    sizes = found.values[-len(columns) :]
    return np.asarray(sum(size * (column[-1] - column) for size, column in zip(sizes, columns, strict=True)))


def _busy(rows: Floats) -> float:
    """Rows above which batches are among the busiest."""
    return max(1.0, float(np.quantile(rows, BUSIEST)))


def _since_each(batches: int) -> Sequence[Floats]:
    """Return how many batches have passed since each moment at which a drift may begin."""
    place = np.arange(batches, dtype=float)
    return [np.maximum(0.0, place - round(share * batches)) for share in _BEGINS]


def _best(
    choices: Sequence[tuple[Floats, ...]], known: Sequence[Floats], seconds: Floats
) -> tuple[Fit, tuple[Floats, ...]]:
    """Fit each choice of columns next to those known; return what explains most."""
    fitted = [fit(np.stack([*known, *columns]), seconds) for columns in choices]
    losses = [
        one.loss * (_AT_ONCE if columns[0] is choices[0][0] else 1.0)
        for one, columns in zip(fitted, choices, strict=True)
    ]
    chosen = int(np.argmin(losses))
    return fitted[chosen], choices[chosen]


def fit(columns: Floats, seconds: Floats, tools: Floats | None = None) -> Fit:
    """Regress robustly, with less weight for distant batches (Huber); with `tools`, by these instruments."""
    sizes = np.maximum(np.abs(columns).max(axis=1), 1e-100)
    own = columns / sizes[:, None]
    by = own if tools is None else tools
    weights, off = np.ones_like(seconds), seconds
    values: Floats = np.zeros(len(own))
    for _ in range(_ROUNDS):
        pulled = by * weights
        values = np.asarray(np.linalg.lstsq(pulled @ own.T, pulled @ seconds, rcond=None)[0])
        off = seconds - values @ own
        scale = _MAD * float(np.median(np.abs(off)))
        if scale <= 0:
            break
        weights = 1 / np.maximum(1.0, np.abs(off) / (_OUTLYING * scale))
    scale, alike = shared_noise(off)
    shared = (own * weights) @ own.T
    covariance = scale**2 * alike * np.linalg.pinv(shared) / np.outer(sizes, sizes)
    sound = bool(np.linalg.cond(shared) < _SINGULAR)
    return Fit(values / sizes, covariance, off, weights, float((weights * off**2).sum()), sound)


def shared_noise(off: Floats) -> tuple[float, float]:
    """Deviation of the batches' residuals, and how many consecutive ones are worth one reading.

    What is left of a batch is taken to leave a part of itself to the next (first-order autoregression). What a fit
    hides of that in a short log is put back.
    """
    scale = _MAD * float(np.median(np.abs(off)))
    small = np.clip(off, -_FAR * scale, _FAR * scale)
    whole = float((small**2).sum())
    kept = float((small[1:] * small[:-1]).sum()) / whole if whole > 0 else 0.0
    kept = min(_MOST_KEPT, max(0.0, kept + (1 + 4 * kept) / len(off)))
    return scale, (1 + kept) / (1 - kept)
