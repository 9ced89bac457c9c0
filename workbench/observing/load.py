"""What the load of a running query demanded, and what its cap admitted.

The rows of a batch arrived since the trigger before it. Spark logs few of the triggers that found nothing: a query that
has waited for longer than its interval had one just before.

A source that releases rows in grains (files, versions of a table, Spark's rate source, whose rows come once a second)
makes batches of one grain or two, whatever its load is. So rates are counted over windows of many grains: of several
sources, of the one that takes longest to bring a grain.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.arrays import Floats
from workbench.observing.running_query import SeenBatch

_PEAK = 0.99  # quantile of the rates
_WHOLE = 0.97  # of an interval, over which rows are counted at least
_ALIKE, _RUN = 0.005, 4  # of full batches: share by which they differ, number that follow each other
_GRAINS = 20  # of a window
_SMALLEST, _WHOLES, _FEWEST = 0.02, 0.95, 20  # quantile of the rows that is one grain; share of whole ones; batches
_ADMITTED = 0.9  # quantile of the rates of full batches


@dataclass(frozen=True)
class Load:
    """The load of a query, records/s."""

    peak_rate: float  # the 99 % quantile over at least an interval; of batches under their cap, if others are full
    admitted_rate: float | None  # rate of batches as full as they may be; None if no cap shows
    mean_rate: float  # over all of the log


def load_of(batches: Sequence[SeenBatch], interval_s: float) -> Load:
    """Read the load from all batches of a query, whatever number of slots they ran on."""
    rows = np.array([batch.rows for batch in batches], dtype=float)
    left = np.array([batch.left_rows for batch in batches], dtype=bool)
    since = np.array([interval_s if batch.idle_s >= interval_s else batch.since_s for batch in batches])
    begun = np.array([batch.start_s for batch in batches])
    same = np.diff([batch.start for batch in batches], prepend=0) == 0
    scraped = np.array([batch.scraped for batch in batches])
    whole = np.where(same & ~scraped, np.diff(begun, prepend=begun[0]), since)  # with triggers that found nothing
    passed_s = float(whole[same].sum())
    mean = float(rows[same].sum()) / passed_s if passed_s > 0 else 0.0
    sources = np.array([*zip(*(batch.by_source or (batch.rows,) for batch in batches), strict=False)], dtype=float)
    window_s = max(interval_s, _GRAINS * max(_grain_s(source, same, passed_s) for source in sources))
    rates, full = _arriving(whole if window_s > interval_s else since, rows, window_s), _at_a_cap(rows, left)
    admitted = float(np.quantile(rates[full], _ADMITTED)) if full.any() else None
    return Load(float(np.quantile(rates[~full], _PEAK)), admitted, mean)


def _grain_s(rows: Floats, same: NDArray[np.bool_], passed_s: float) -> float:
    """Seconds in which a source brings a grain, rows that it releases together; 0 if it has no grains.

    Almost all batches hold a multiple of a grain. Batches that are the `same` start's took `passed_s`.
    """
    positive = rows[rows > 0]
    if len(positive) < _FEWEST or not rows[same].any():
        return 0.0
    grain = float(np.quantile(positive, _SMALLEST))
    multiples = np.round(positive / grain)
    whole = np.abs(positive / grain - multiples) <= _ALIKE
    return grain * passed_s / float(rows[same].sum()) if whole.mean() >= _WHOLES else 0.0


def _arriving(since: Floats, rows: Floats, window_s: float) -> Floats:
    """Rate of the load up to each batch, records/s, over as many batches as took a window."""
    until, brought = np.cumsum(since), np.cumsum(rows)
    first = np.searchsorted(until, until - _WHOLE * window_s, side="right")  # the first within
    before = np.maximum(0, np.minimum(first, np.arange(len(rows))))
    passed = until - until[before] + since[before]
    return np.asarray((brought - brought[before] + rows[before]) / passed)


def _at_a_cap(rows: Floats, left: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether each batch is at a cap: several in a row, equally full, none larger, which leave rows behind.

    A load that does not move gives such batches, too, but they leave nothing.
    """
    full = (rows >= rows.max() * (1 - _ALIKE)) & left
    runs = np.split(np.arange(len(rows)), np.flatnonzero(np.diff(full.astype(int))) + 1)
    longest = max((len(run) for run in runs if full[run[0]]), default=0)
    return full if longest >= _RUN and not full.all() else np.zeros_like(full)
