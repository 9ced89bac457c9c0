"""What a running query would sustain, estimated from the batches of its actual load.

A batch takes a + b x rows seconds; the query sustains the rate at which a batch lasts as long as the trigger interval,
(T - a) / (b T). Where batches get longer over time, their times are those at the log's end, and where rows follow
from durations, the cost of a row is that between neighbours (`series`).

Batches that began late hold more rows than an interval brings, and show times beyond it: then nothing is extrapolated.
Batches that last about as long as the interval show what fills it, whatever a row costs. Where the load never moved, a
and b cannot be separated, and there is a bound: with a fixed part of at least 0, n rows in t seconds mean that at least
n T / t rows fill the interval.

Three things are in doubt:

- the coefficients: where the noise of a batch extends to the next one, batches are worth fewer readings;
- the bend: a line that holds up to the busiest batch need not hold beyond. This doubt grows with the logarithm of how
  far the line is carried, which is less far the less of a batch its rows take, and is less where the log shows how
  straight it is. Where rows are seen to cost less the more there are, the line is one over a power of the rows;
- the noise of the busiest batches: where another load slows several batches in a row, they are few readings.

Where these leave much open, what queries are like decides more: the fixed part takes some share of the busiest batches,
mostly less than half, and every share means a rate. The answer is the posterior over these shares. The constants were
set on simulated logs (``benchmarks/observed_intervals.py``), the usual bend and the shares on a few real queries
(``benchmarks/observing.py``): take the intervals of other kinds of query for a first estimate.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import beta

from workbench import units
from workbench.arrays import Floats
from workbench.checks import positive
from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.measuring import fit_costs
from workbench.observing.running_query import Block, RunningQuery, SeenBatch, load_of, usual_slots
from workbench.observing.series import BUSIEST, LEVEL_Z, Drift, Series, outlasts, series_of, shared_noise
from workbench.observing.state import DAY_S
from workbench.records import Machine, Measurement, MstEstimate, MstInterval, Phase, Probe

LEVEL = 0.9
_FEWEST = 20  # batches
_HELD = 0.9  # share of the batches that left rows behind; above it, a cap held them
_OF_EACH, _MOVED = 5, 1.3  # number of largest and of smallest batches; ratio of their rows where the load has moved
_IN_BLOCK = 8  # batches in a block, which count as one because they share disturbances
_LEAST_DOUBT, _BENT = 0.025, 0.22  # deviation of ln rate: at no distance, and for each unit of ln(distance)
_GROWN = 0.07  # the same, for each share of the rows' time that a drift took: it may not be a line
_SHARE_ALPHA, _SHARE_BETA = 1.5, 3.0  # of the Beta distribution of the fixed share of the busiest batches
_SHARES = 400  # of the grid
_BEYOND = 1.25  # of the rows that fill the interval; a batch of more does not show what fills it
_BURST = 0.5  # of the 99 % quantile of the rows of those below; a batch of at least as many belongs to a burst
_AT_IT = 0.1  # of the interval; batches that fill it differ from it by less
_FARTHEST = 16  # largest extrapolation, in rows of the largest batch, if rows take all of its time; less in proportion
_STRAIGHT = 2.0  # largest factor of that where a log shows a straight line
_COEFFICIENTS, _MOST_HIDDEN = 2, 0.79  # of the line; largest share of the noise's variance that they take up
_CLEAR = 2.0  # deviations by which the slope between neighbours is above 0
_AT_END, _WARMING = 20, 20  # batches, at the log's end and of each start


@dataclass(frozen=True)
class Headroom:
    """What a query sustains, from its log; rates are records/s."""

    rate: float | None = None  # at which a batch takes as long as the interval; None where it is not identifiable
    # low, high: of its 90 % interval
    low: float = 0.0
    high: float = math.inf
    why_not: str = ""  # reason why there is no rate; empty if there is one
    peak_rate: float = 0.0  # peak rate of its load: see `Load`
    # rows of a batch at `rate`, over those of the largest batches seen; at most 1: nothing is extrapolated
    reach: float = 0.0
    # fixed_s, per_row_s: a and b
    fixed_s: float = 0.0
    per_row_s: float = 0.0
    behind: float = 0.0  # share of the batches that took longer than the interval
    batches: int = 0  # number of batches behind the estimate
    interval_s: float = 0.0  # the trigger interval; 0 if there is none
    # rate that a cap on the rows of a batch admits (``maxOffsetsPerTrigger``); None if no cap shows
    admitted_rate: float | None = None
    left_out: int = 0  # batches on unusual numbers of slots, which show nothing of what the usual number sustains
    mean_rate: float = 0.0  # of the load
    at_least: float = 0.0  # lower bound of what it sustains, at the log's end; 0 if nothing is known
    drift: Drift | None = None  # how batches get longer whatever their rows; None if they do not
    overrun: SeenBatch | None = None  # the batch from which most take longer than the interval; None if there is none
    # neighbours_s, neighbours_error_s: seconds that a row costs between neighbouring batches, and their standard
    # deviation; None: too few
    neighbours_s: float | None = None
    neighbours_error_s: float | None = None
    agree: bool = True  # whether all batches show this cost as neighbours do; if not, rows follow something else
    keeps_up: bool = True  # whether it leaves no rows behind at the log's end, as far as its source reports
    # whether batches have equally many rows, and leave some behind or no source reports it: the load may be higher
    may_be_held: bool = False

    @property
    def capped(self) -> bool:
        """Whether the query's cap admits less than the slots sustain."""
        return self.rate is not None and self.admitted_rate is not None and self.admitted_rate < self.rate

    @property
    def left(self) -> float | None:
        """What the query carries as configured over its peak, less 1; None without a rate."""
        if self.rate is None or self.peak_rate <= 0:
            return None
        carried = self.rate if self.admitted_rate is None else min(self.rate, self.admitted_rate)
        return carried / self.peak_rate - 1


def unseen(with_rows: int, triggers: int, left_out: int) -> Headroom:
    """Return the result for a log without batches that count: few have rows, or all are among the first of a start.

    `left_out` are the first batches with rows of each start, which do not count: their code is not compiled yet.
    """
    hold = "holds" if with_rows == 1 else "hold"
    why = (
        f"{with_rows:,} of {units.count(triggers, 'batch' if triggers == 1 else 'batches')} {hold} rows, so no "
        f"capacity can be given: the first {left_out} of each start are left out as start-up, while code is not "
        f"compiled yet; give a log with at least {_FEWEST} more"
    )
    return Headroom(why_not=why)


def headroom(batches: Sequence[SeenBatch], interval_s: float | None) -> Headroom:
    """Estimate what a query sustains at a trigger interval, on the slots that most of its batches ran on.

    The other batches of its log count for the peak alone. Without an interval there is no rate, and no bound.
    """
    if interval_s is not None:
        positive("The trigger interval", interval_s, "seconds")
    if not batches:
        raise WorkbenchError("There are no batches with rows. Give the log of a query that has read something.")
    usual = usual_slots(batches)
    kept = _settled([batch for batch in batches if batch.slots == usual])
    as_seen = np.array([batch.batch_s for batch in kept])
    load = load_of(batches, interval_s or float(np.median(as_seen)))
    series = series_of(kept)
    local = series.local
    known = Headroom(
        peak_rate=load.peak_rate,
        batches=len(kept),
        interval_s=interval_s or 0.0,
        admitted_rate=load.admitted_rate,
        left_out=sum(batch.slots != usual for batch in batches),
        mean_rate=load.mean_rate,
        drift=series.drift,
        neighbours_s=None if local is None else local.s,
        neighbours_error_s=None if local is None else local.error,
        agree=series.agree,
        keeps_up=not any(batch.left_rows for batch in kept[-_AT_END:]),
    )
    if interval_s is None:
        why = (
            "it runs as fast as it can: there is no trigger interval, or one shorter than its batches of "
            f"{units.seconds(float(np.quantile(as_seen, 0.05)))}; give the longest batch that you accept as "
            "the interval"
        )
        return replace(known, why_not="; ".join(filter(None, (why, _few(len(kept), usual)))))
    rows = np.array([batch.rows for batch in kept], dtype=float)
    left = [batch.left_rows for batch in kept]
    busiest_s = float(np.median(series.now_s[rows >= np.quantile(rows, BUSIEST)]))
    known = replace(
        known,
        may_be_held=_may_be_held(rows, left),
        behind=float(np.mean(as_seen > interval_s)),
        at_least=_least(rows, series.now_s, interval_s) if len(kept) >= _FEWEST else 0.0,
        overrun=outlasts(kept, interval_s),
        drift=series.drift and _dated(series.drift, kept, busiest_s, interval_s),
    )
    why = _too_little(rows, left, usual)
    ended_s = float(np.median(series.now_s[-_AT_END:]))
    if why and series.drift is not None and ended_s >= interval_s:
        why = _too_long(ended_s, "at the log's end", interval_s)
    if why and len(kept) >= _FEWEST and abs(busiest_s / interval_s - 1) <= _AT_IT:  # these show what fills the interval
        most = float(rows.max())
        full = float(series.bent_rows(rows).max())
        known = replace(known, fixed_s=series.fixed_s, per_row_s=series.per_row_s * full / most)
        return _rated(known, rows, series, full, math.inf)
    return replace(known, why_not=why) if why else _costed(known, rows, series)


def _settled(batches: Sequence[SeenBatch]) -> Sequence[SeenBatch]:
    """Leave out the first batches of each start, slow by cold code or backlog; of a short log, those of restarts."""
    few = len(batches) < 10 * _WARMING
    places: Counter[int] = Counter()
    settled = []
    for batch in batches:
        places[batch.start] += 1
        if places[batch.start] > _WARMING or (few and batch.start == batches[0].start):
            settled.append(batch)
    return settled if len(settled) >= max(_FEWEST, len(batches) / 2) else batches


def _costed(known: Headroom, rows: Floats, series: Series) -> Headroom:
    """Find the rate from the cost of rows, for batches whose rows differ."""
    fixed, per_row, interval_s = series.fixed_s, series.per_row_s, known.interval_s
    known = replace(known, fixed_s=fixed, per_row_s=per_row)
    if fixed >= interval_s:
        return replace(known, why_not=_too_long(fixed, "whatever it holds", interval_s))
    if why := _unknown(series):
        return replace(known, why_not=why)
    full = (interval_s - fixed) / per_row
    known = replace(known, per_row_s=(interval_s - fixed) / series.straightened(full))
    slopes = np.array([1 / (interval_s - fixed), 1 / per_row])  # of ln rate, by what a batch and a row cost
    found = _rated(known, rows, series, full, math.sqrt(float(slopes @ series.covariance @ slopes)))
    rows_s = per_row * float(series.bent_rows(np.array(np.quantile(rows, 0.99))))
    of_rows = rows_s / (fixed + rows_s)
    straight = min(_STRAIGHT, max(1.0, _BENT / (2 * _bend(series.bent))))
    if found.reach > max(1.0, straight * _FARTHEST * of_rows):
        why = (
            f"a batch at the rate would hold {units.number(found.reach)} times the rows of the largest seen, of whose "
            f"time rows take {units.share(round(of_rows, 2))}, and that far no line can be trusted; give a log whose "
            "load comes closer"
        )
        return replace(known, why_not=why)
    return found


def _rated(known: Headroom, rows: Floats, series: Series, full: float, own: float) -> Headroom:
    """Add the rate, its interval and its distance from what was seen; `full` and `own` are those of `_posterior`."""
    low, rate, high = _posterior(series.bent_rows(rows), series, known.interval_s, full, own)
    reach = rate * known.interval_s / float(np.quantile(rows, 0.99))
    return replace(known, rate=rate, low=low, high=high, reach=reach, at_least=low)


def _unknown(series: Series) -> str:
    """Return why batches do not show the cost of a row; empty if they do."""
    cost, error = series.per_row_s, math.sqrt(float(series.covariance[1, 1]))
    if not series.agree and cost <= _CLEAR * error:
        return (
            f"over the log a row seems to cost {units.seconds(series.pooled_s)}, but between neighbouring batches "
            f"{units.seconds(cost)}, within its scatter: rows follow from how long the batch before took, so what a "
            "row costs is not identifiable from them; give a log whose load changes"
        )
    if series.agree and cost <= LEVEL_Z * error:
        return (
            "larger batches did not take longer than small ones, beyond their scatter: they hold too few rows to "
            "matter, or there are too few of them; give a log with more batches of both kinds"
        )
    return ""


def _too_long(batch_s: float, what: str, interval_s: float) -> str:
    return (
        f"a batch takes {units.seconds(batch_s)} {what}, longer than the trigger interval of "
        f"{units.seconds(interval_s)}, so no rate is sustained; set a longer interval"
    )


def _least(rows: Floats, seconds: Floats, interval_s: float) -> float:
    """Lower bound of the records/s that fill the interval, by the busiest batches; 0 if these take longer than it."""
    busiest = rows >= np.quantile(rows, BUSIEST)
    own = seconds[busiest]
    longest = float(own.mean() + LEVEL_Z * own.std() / math.sqrt(max(1.0, len(own) / _IN_BLOCK)))
    return float(rows[busiest].mean()) / longest if longest < interval_s else 0.0


def _dated(drift: Drift, batches: Sequence[SeenBatch], busiest_s: float, interval_s: float) -> Drift:
    """Add when growing batches will outlast the interval, and the least rate sustained when the growth began."""
    first = [batch for batch in batches if batch.number >= drift.since][: max(_FEWEST, len(batches) // 20)]
    began = _least(np.array([float(one.rows) for one in first]), np.array([one.batch_s for one in first]), interval_s)
    drift = replace(drift, at_first=began)
    if drift.ending_s <= 0:
        return drift
    days = (interval_s - busiest_s) / drift.per_day_s
    return replace(drift, overrun_s=max(drift.since_s, float(batches[-1].start_s + days * DAY_S)))


def _few(batches: int, slots: int) -> str:
    on = f" on {units.some(slots, 'slot')}" if slots else ""
    return f"it takes {_FEWEST} batches, and the log has {batches}{on}" if batches < _FEWEST else ""


def _may_be_held(rows: Floats, left: Sequence[bool | None]) -> bool:
    if left.count(True) >= _HELD * len(left):
        return float(np.mean(_MOVED * rows >= rows.max())) >= _HELD
    return None in left and float(np.mean(rows == rows.max())) >= _HELD


def _too_little(rows: Floats, left: Sequence[bool | None], slots: int) -> str:
    """Return why batches cannot show the cost of a row; empty if they can."""
    if few := _few(len(rows), slots):
        return few
    ordered = np.sort(rows)
    if ordered[-_OF_EACH] >= _MOVED * ordered[_OF_EACH - 1]:
        return ""
    least, most = np.quantile(rows, [0.05, 0.95])
    why, remedy = "the load hardly moved, or a cap held it", "give a log of a whole day, or of a load that was changed"
    if left.count(True) >= _HELD * len(left):
        why, remedy = "a cap held the batches (maxOffsetsPerTrigger)", "change the cap for an hour, then give that log"
    return (
        f"{why}: nine in ten batches hold {least:,.0f} to {most:,.0f} rows, so what a row costs cannot be separated "
        f"from what a batch costs; {remedy}"
    )


def _posterior(rows: Floats, series: Series, interval_s: float, full: float, own: float) -> tuple[float, float, float]:
    """Return the low end, the median and the high end of the rate, records/s, from rows on the scale of their cost.

    `full` of them fill the interval by the line; `own` is the deviation of its logarithm.

    The fixed share f of the busiest batches, of x rows and y seconds in the mean, means the rate
    (T - f y) / ((1 - f) y / x) / T.
    """
    by_line = math.log(full / interval_s)
    busiest = _near(rows, full)
    x, y = float(rows[busiest].mean()), float(series.now_s[busiest].mean())
    off = series.now_s - series.fixed_s - series.per_row_s * rows
    if math.isfinite(own):  # stalls hit few batches, so the mean over all of them, which the line has, is right
        y = series.fixed_s + series.per_row_s * x + float(np.median(off[busiest]) - np.median(off))
    shares = (np.arange(_SHARES) + 0.5) / _SHARES
    shares = shares[shares * y < interval_s]
    logs = np.log((interval_s - shares * y) / ((1 - shares) * y / x * interval_s))
    bend = _bend(series.bent) * math.log(max(1.0, interval_s / y))
    far = (logs - by_line) / math.sqrt(own**2 + (_LEAST_DOUBT / 2) ** 2 + bend**2)
    weights = beta.pdf(shares, _SHARE_ALPHA, _SHARE_BETA) * np.exp(-0.5 * far**2)
    if not weights.sum() > 0:  # the line is far from any share: use it alone
        logs, weights = np.array([by_line]), np.array([1.0])
    scale, alike = shared_noise(series.now_s / (series.fixed_s + series.per_row_s * rows) - 1)
    many = int(busiest.sum())
    hidden = min(_MOST_HIDDEN, _COEFFICIENTS * alike / len(rows))  # share of the variance absorbed by the line
    lasting = scale * math.sqrt(min(1.0, alike / many) / (1 - hidden))
    left_s = interval_s - min(series.fixed_s, interval_s / 2)
    grown = math.hypot(_GROWN * series.grown_s, series.form_s) / left_s
    stalls = math.sqrt(max(0.0, float(off.var()) - shared_noise(off)[0] ** 2) / len(rows)) / left_s
    spread = math.hypot(_LEAST_DOUBT, bend / 2, lasting, grown, stalls)
    at = np.linspace(logs.min() - 3, logs.max() + 3, 2000)
    below = (weights / weights.sum()) @ ndtr((at[None, :] - logs[:, None]) / spread)
    ends = np.interp([(1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2], below, at)
    low, middle, high = (series.straightened(float(one) * interval_s) / interval_s for one in np.exp(ends))
    return low, middle, high


def _near(rows: Floats, target: float) -> NDArray[np.bool_]:
    """Whether each batch has nearly as many rows as fill the interval: those of bursts, none with a backlog."""
    below = rows <= _BEYOND * target
    busiest = rows >= np.quantile(rows, BUSIEST)
    if (below & busiest).sum() < _FEWEST // 2:
        return busiest
    bursts = below & (rows >= _BURST * np.quantile(rows[below], 0.99))
    return bursts & busiest if (bursts & busiest).sum() >= _FEWEST // 2 else below & busiest


def _bend(bent: float) -> float:
    """Deviation of ln rate per unit of ln(distance): the usual one, or less where a log shows a straight line."""
    return bent * _BENT / math.hypot(bent, _BENT) if math.isfinite(bent) else _BENT


def not_identifiable(running: RunningQuery, found: Headroom) -> WorkbenchError:
    """Return the error that the log shows no rate that the query sustains."""
    return WorkbenchError(
        f"What {running.name} sustains is not identifiable from its log: {found.why_not}.",
        settings=() if found.interval_s else ("interval_s",),
    )


def as_measurement(running: RunningQuery, found: Headroom) -> Measurement:
    """Return what a log shows in the form of a measurement: the estimated rate, and its batches at all loads.

    Its blocks become observations at as many loads, the busiest the one at the maximum. Raises WorkbenchError when the
    rate is not identifiable, or the log has no tasks, so that the parts of a batch are unknown.
    """
    if found.rate is None:
        raise not_identifiable(running, found)
    blocks = running.usual_blocks
    if not running.slots or running.cpu_share is None:
        raise WorkbenchError(
            f"The log of {running.name} shows no tasks of its batches, so it can be planned only for the slots it has. "
            "Give the driver's event log (spark.eventLog.enabled=true)."
        )
    if not blocks:
        raise WorkbenchError(
            f"The log of {running.name} has no row of batches on {units.some(running.slots, 'slot')} that is long "
            "enough to show what they are made of. Give a longer log."
        )
    *others, busiest = sorted(blocks, key=lambda block: block.rows)
    begun = running.batches[0].start_s
    width = math.sqrt(found.high / found.low)  # of the rate, as an estimate states its middle
    estimate = MstEstimate(
        rate=found.rate,
        low=found.rate / width,
        high=found.rate * width,
        probes=(_probe(busiest, "reading"),),
        observation=busiest.observation,
        limit="query",
        seconds=running.batches[-1].start_s - begun,
    )
    return Measurement(
        query=running.name,
        budget=Budget(running.slots, SlotProfile(running.cpus, running.memory_mb), found.interval_s),
        estimate=estimate,
        costs=fit_costs(sample for block in blocks for sample in block.observation.samples),
        source=None,
        testbed=f"the event log of {running.application or 'an application'}, Spark {running.spark or 'unknown'}",
        started_at=datetime.fromtimestamp(begun, UTC).isoformat(timespec="seconds"),
        testbed_kind="observed",
        machine=Machine(slots="executor cores, as the cluster counts them", virtual=None, facts=running.facts),
        load_curve=tuple(_probe(block, "probe") for block in others),
        interval=MstInterval(found.low, found.high, LEVEL, 0.0, repeats=1),
    )


def _probe(block: Block, phase: Phase) -> Probe:
    seen = block.observation
    return Probe(1, phase, seen.commanded_rate, 1, seen, seconds=seen.elapsed_s, partitions=block.partitions)
