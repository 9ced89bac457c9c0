"""What a running query would sustain, from the batches that its load happened to ask for.

A batch takes a + b x rows seconds; the query sustains the rate at which a batch lasts as long as the trigger interval:

    rate = (T - a) / (b T)

Batches that began late, because the one before them took longer than the interval, hold more rows than the interval
brings, so they show times beyond it: where there are any, nothing is extrapolated. Where the load never moved, a and b
cannot be separated, and no rate is given.

Three things are in doubt. The line's own coefficients: it is fitted again to blocks of batches drawn with
replacement, so that neighbouring batches, which share their weather, count as one (a block bootstrap). The bend: a
line that holds up to the busiest batch need not hold beyond, so the doubt grows with the logarithm of how far it is
carried. And the weather of the busiest batches: where another load slows one batch after the other, they are few
readings. What stays for half of a log is beyond what that log can show. Where these leave much open, what queries are
like in general decides more: the fixed part takes some share of the busiest batches, mostly less than half of them,
and every share means a rate. The answer is the posterior over these shares. The constants were set on logs of three
queries of known capacity and then tried on a fourth (``benchmarks/observing.py``): that is few, so take the intervals
of other kinds of query for a first estimate. ``benchmarks/observed_intervals.py`` tries them on simulated logs of
many shapes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from scipy.stats import beta

from workbench import units
from workbench.checks import positive
from workbench.errors import WorkbenchError
from workbench.observing.load import load_of
from workbench.observing.running_query import SeenBatch, usual_slots

Floats = NDArray[np.float64]

LEVEL = 0.9
_FEWEST = 20  # batches
_HELD = 0.9  # share of the batches that left rows, from which it was a cap that held them
_MOVED = 1.3  # 95 % over 5 % quantile of the rows, from which the load has moved
_IN_BLOCK, _DRAWS = 8, 200
_LEAST_DOUBT, _BENT = 0.06, 0.25  # deviation of ln rate: at no distance, and for each unit of ln(distance)
_SHARE_ALPHA, _SHARE_BETA = 1.5, 3.0  # of the Beta distribution of the fixed share of the busiest batches
_SHARES = 400  # of the grid
_BUSIEST = 0.7  # quantile of the rows from which batches are the busiest
_MOST_NOISE, _FARTHEST = 0.05, 20  # share of lines without a slope; rows over the largest batch's
_ROUNDS = 10  # of reweighting
_COEFFICIENTS, _MOST_HIDDEN = 2, 0.7  # of the line; share of the noise's variance that they take up at most
_FAR, _MOST_KEPT = 3.0, 0.98  # deviations at which a batch is cut; part of its weather that a batch leaves to the next
_OUTLYING = 1.5  # deviations from which a batch counts less (Huber)


@dataclass(frozen=True)
class Headroom:
    """What a query sustains, from its log.

    Parameters
    ----------
    rate
        Records/s at which a batch takes as long as the interval; None where it is not identifiable.
    low, high
        Of its 90 % interval, records/s.
    why_not
        Why there is no rate; empty if there is one.
    peak_rate
        What its load asked for at the peak, records/s: see `Load`.
    reach
        Rows of a batch at `rate` over those of the largest batches seen; at most 1: nothing is extrapolated.
    fixed_s, per_row_s
        a and b.
    behind
        Share of the batches that took longer than the interval.
    batches
        How many it rests on.
    interval_s
        The trigger interval.
    admitted_rate
        Records/s that a cap on the rows of a batch lets in (``maxOffsetsPerTrigger``); None where no cap shows.
    left_out
        Batches on other numbers of slots than most, which show nothing of what these slots sustain.
    """

    rate: float | None
    low: float
    high: float
    why_not: str
    peak_rate: float
    reach: float
    fixed_s: float
    per_row_s: float
    behind: float
    batches: int
    interval_s: float
    admitted_rate: float | None = None
    left_out: int = 0

    @property
    def capped(self) -> bool:
        """Whether its cap admits less than the slots sustain."""
        return self.rate is not None and self.admitted_rate is not None and self.admitted_rate < self.rate

    @property
    def carried_rate(self) -> float | None:
        """What it carries as configured: its rate, or what its cap admits if that is less; None without a rate."""
        return self.rate if self.rate is None or self.admitted_rate is None else min(self.rate, self.admitted_rate)

    @property
    def left(self) -> float | None:
        """What it carries over its peak, less 1; None without a rate."""
        carried = self.carried_rate
        return None if carried is None or self.peak_rate <= 0 else carried / self.peak_rate - 1


def headroom(batches: Sequence[SeenBatch], interval_s: float, seed: int = 0) -> Headroom:
    """Estimate what a query sustains at a trigger interval, on the slots that most of its batches ran on.

    Parameters
    ----------
    batches
        Of a log; those on other numbers of slots than most count for the peak alone.
    interval_s
        Trigger interval, seconds.
    seed
        Of the bootstrap.

    Raises
    ------
    WorkbenchError
        When there is no batch, or the interval is not above 0.
    """
    positive("The trigger interval", interval_s, "seconds")
    if not batches:
        raise WorkbenchError("There are no batches with rows. Give the log of a query that has read something.")
    usual = usual_slots(batches)
    kept = [batch for batch in batches if batch.slots == usual]
    rows = np.array([batch.rows for batch in kept], dtype=float)
    seconds = np.array([batch.batch_s for batch in kept])
    load = load_of(batches, interval_s)
    behind = float(np.mean(seconds > interval_s))
    largest = float(np.quantile(rows, 0.99))

    known = Headroom(None, 0.0, math.inf, "", load.peak_rate, 0.0, 0.0, 0.0, behind, len(kept), interval_s,
                     load.admitted_rate, len(batches) - len(kept))  # fmt: skip
    why = _too_little(rows, np.array([batch.left_rows for batch in kept]), usual)
    if why:
        return replace(known, why_not=why)
    fixed, per_row = _line(rows, seconds)
    known = replace(known, fixed_s=fixed, per_row_s=per_row)
    if fixed >= interval_s:
        why = (
            f"a batch takes {units.seconds(fixed)} whatever it holds, longer than the trigger interval of "
            f"{units.seconds(interval_s)}, so no rate is sustained; set a longer interval"
        )
        return replace(known, why_not=why)
    own, noise = _bootstrapped(rows, seconds, interval_s, seed)
    if per_row <= 0 or noise > _MOST_NOISE:
        why = (
            "larger batches did not take longer than small ones, beyond their scatter: they hold too few rows to "
            "matter, or there are too few of them; give a log with more batches of both kinds"
        )
        return replace(known, why_not=why)
    by_line = math.log((interval_s - fixed) / (per_row * interval_s))
    low, rate, high = _posterior(rows, seconds, interval_s, by_line, own)
    if rate * interval_s > _FARTHEST * largest:
        why = (
            f"a batch at the rate would hold more than {_FARTHEST} times the rows of the largest seen, and that far no "
            "line can be trusted; give a log whose load comes closer"
        )
        return replace(known, why_not=why)
    return replace(known, rate=rate, low=low, high=high, reach=rate * interval_s / largest)


def _too_little(rows: Floats, left: NDArray[np.bool_], slots: int) -> str:
    """Say why batches cannot show what a row costs; empty if they can."""
    if len(rows) < _FEWEST:
        on = f" on {units.some(slots, 'slot')}" if slots else ""
        return f"it takes {_FEWEST} batches, and the log has {len(rows)}{on}"
    least, most = np.quantile(rows, [0.05, 0.95])
    if most >= _MOVED * least:
        return ""
    why, remedy = "the load hardly moved, or a cap held it", "give a log of a whole day, or of a load that was changed"
    if left.mean() >= _HELD:
        why, remedy = "a cap held the batches (maxOffsetsPerTrigger)", "change the cap for an hour, then give that log"
    return (
        f"{why}: nine in ten batches hold {least:,.0f} to {most:,.0f} rows, so what a row costs cannot be separated "
        f"from what a batch costs; {remedy}"
    )


def _posterior(
    rows: Floats, seconds: Floats, interval_s: float, by_line: float, own: float
) -> tuple[float, float, float]:
    """Give the ends and the median of the rate, records/s; `by_line` is the line's ln rate, `own` its deviation.

    The fixed share f of the busiest batches, of x rows and y seconds in the mean, means the rate
    (T - f y) / ((1 - f) y / x) / T.
    """
    busiest = rows >= np.quantile(rows, _BUSIEST)
    x, y = float(rows[busiest].mean()), float(seconds[busiest].mean())
    shares = (np.arange(_SHARES) + 0.5) / _SHARES
    shares = shares[shares * y < interval_s]
    logs = np.log((interval_s - shares * y) / ((1 - shares) * y / x * interval_s))
    distance = math.log(max(1.0, interval_s / y))
    bend, weather = _BENT * distance, _weather(rows, seconds, int(busiest.sum()))
    off = (logs - by_line) / math.sqrt(own**2 + _LEAST_DOUBT**2 + bend**2)
    weights = beta.pdf(shares, _SHARE_ALPHA, _SHARE_BETA) * np.exp(-0.5 * off**2)
    if not weights.sum() > 0:  # the line is far from any share: it alone is left
        logs, weights = np.array([by_line]), np.array([1.0])
    spread = math.hypot(_LEAST_DOUBT, bend / 2, weather)
    at = np.linspace(logs.min() - 3, logs.max() + 3, 2000)
    below = (weights / weights.sum()) @ ndtr((at[None, :] - logs[:, None]) / spread)
    ends = np.interp([(1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2], below, at)
    low, middle, high = (float(one) for one in np.exp(ends))
    return low, middle, high


def _weather(rows: Floats, seconds: Floats, many: int) -> float:
    """Deviation of the mean ln seconds of `many` batches that follow each other, and share what slowed them.

    What the line leaves of a batch is taken to leave a part of itself to the next (first-order autoregression). What a
    fit hides of that in a short log is put back.
    """
    fixed, per_row = _line(rows, seconds)
    off = seconds / (fixed + per_row * rows) - 1
    scale = 1.4826 * float(np.median(np.abs(off)))
    off = np.clip(off, -_FAR * scale, _FAR * scale)
    whole = float((off**2).sum())
    if whole <= 0:
        return 0.0
    kept = float((off[1:] * off[:-1]).sum()) / whole
    kept = min(_MOST_KEPT, kept + (1 + 4 * kept) / len(off)) if kept > 2 / math.sqrt(len(off)) else 0.0
    alike = (1 + kept) / (1 - kept)  # batches that are worth one reading
    hidden = min(_MOST_HIDDEN, _COEFFICIENTS * alike / len(off))  # share of the variance that went into the line
    return scale * math.sqrt(min(1.0, alike / many) / (1 - hidden))


def _line(rows: Floats, seconds: Floats) -> tuple[float, float]:
    """Fit seconds = a + b rows with a, b at least 0, batches far off counting less (Huber)."""
    weights = np.ones_like(rows)
    fixed = per_row = 0.0
    for _ in range(_ROUNDS):
        total = weights.sum()
        x, y = (weights * rows).sum() / total, (weights * seconds).sum() / total
        spread = (weights * (rows - x) ** 2).sum()
        per_row = max(0.0, float((weights * (rows - x) * (seconds - y)).sum() / spread)) if spread > 0 else 0.0
        fixed = float(y - per_row * x)
        if fixed < 0:
            fixed, per_row = 0.0, float((weights * rows * seconds).sum() / (weights * rows**2).sum())
        off = seconds - fixed - per_row * rows
        scale = 1.4826 * float(np.median(np.abs(off)))
        if scale <= 0:
            break
        weights = 1 / np.maximum(1.0, np.abs(off) / (_OUTLYING * scale))
    return fixed, per_row


def _bootstrapped(rows: Floats, seconds: Floats, interval_s: float, seed: int) -> tuple[float, float]:
    """Deviation of ln rate over lines fitted to blocks drawn with replacement; the share that have no slope."""
    rng = np.random.default_rng(seed)
    blocks = np.array_split(np.arange(len(rows)), max(2, len(rows) // _IN_BLOCK))
    found = []
    for _ in range(_DRAWS):
        drawn = np.concatenate([blocks[one] for one in rng.integers(len(blocks), size=len(blocks))])
        fixed, per_row = _line(rows[drawn], seconds[drawn])
        if per_row > 0 and fixed < interval_s:
            found.append(math.log((interval_s - fixed) / (per_row * interval_s)))
    flat = 1 - len(found) / _DRAWS
    if flat > _MOST_NOISE:
        return math.inf, flat
    low, high = np.quantile(found, [0.05, 0.95])
    return float(high - low) / (2 * float(ndtri((1 + LEVEL) / 2))), flat
