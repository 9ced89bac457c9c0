"""How many rows the next batch, or the first ones of a turn, get, so that batches soon last one trigger interval.

While the code is cold, or the query is light, a batch takes its time whatever it holds: rows hardly matter, and the
size leaps. Where rows matter, the line through the last batches says how many fill the interval.
"""

import math
from collections.abc import Mapping, Sequence
from statistics import median

from workbench.testbed.spark.driver.spec import Turn
from workbench.testbed.spark.log.operators import line

LEAST_BATCH_ROWS = 10
MEMORY = 6
"""Batches behind the fitted line."""

LEAP, GROWTH, DAMPED = 8.0, 2.0, 1.25
"""Largest growth from one batch to the next: while rows hardly matter, where they matter, and after a full batch."""

_CLEARLY = 1.2  # batch sizes that differ by this factor show the cost of a row
_HARDLY = 0.25  # share of a batch's seconds for its rows, up to which they hardly matter
_NEARLY = 0.8  # of the interval; a batch that takes more is almost long enough
_SMALLER = 2 / 3  # of a first size that overran the interval: the next batch shows the cost of its rows


def fitting_rows(seen: Sequence[tuple[int, float]], interval_s: float) -> int:
    """Return the number of rows with which the next batch lasts one interval.

    The size leaps eightfold while the rows of the last batch took at most a quarter of it. Once a batch of about this
    size has filled the interval it grows in small steps, because what a leap adds to the state makes the query slow
    when it leaves again.
    """
    records, seconds = seen[-1]
    filled = any(took >= interval_s and records / GROWTH <= rows <= GROWTH * records for rows, took in seen)
    last = seen[-MEMORY:]
    smallest, largest = min(rows for rows, _ in last), max(rows for rows, _ in last)
    if largest <= _CLEARLY * smallest:  # one size: its rows may take all of its seconds, or none
        factor = interval_s / max(seconds, 1e-3)
        if filled:
            return _bounded(records * min(DAMPED, max(_SMALLER, factor) if len(seen) == 1 else factor))
        return _bounded(records * min(LEAP, 2 * factor if factor > DAMPED else factor))
    cost = line(last)
    rows_s = cost.per_record_s * records
    fewer = [took for rows, took in last if _CLEARLY * rows < records]
    more = [took for rows, took in last if rows > records]
    free = seconds < _NEARLY * interval_s and max(more, default=0.0) < interval_s
    if free and fewer and seconds <= median(fewer):  # rows cost less than the scatter of batches
        return _bounded(LEAP * records)
    if rows_s <= _HARDLY * seconds and (seconds < _NEARLY * interval_s or cost.fixed_s >= interval_s):
        # Rows for at most one further interval, by a line whose slope may be too small by the scatter of batches.
        most = records + interval_s / max(cost.per_record_s, 1e-12)
        return _bounded(min(LEAP * records, most))
    if cost.fixed_s < interval_s:
        wanted = (interval_s - cost.fixed_s) / cost.per_record_s
    else:
        wanted = records * interval_s / seconds
    growth = DAMPED if filled else max(GROWTH, interval_s / seconds)  # as if rows took all of the seconds
    return _bounded(min(growth * records, max(records / GROWTH, wanted)))


def _bounded(rows: float) -> int:
    return max(LEAST_BATCH_ROWS, int(rows))


def first_rows(turn: Turn, fitted: Mapping[Turn, int]) -> int:
    """Return how many rows the first batches of a turn have, so that it need not grow from nothing.

    They are those `fitted` at its end the last time; else those of the nearest turn, in proportion, and never more.
    """
    if turn in fitted:
        return fitted[turn]

    def share(other: Turn) -> float:
        budget, known = turn.budget, other.budget
        return budget.cpus * budget.interval_s / (known.cpus * known.interval_s)

    nearest = min(fitted, key=lambda other: abs(math.log(share(other))))
    return _bounded(fitted[nearest] * min(1.0, share(nearest)))
