"""The trigger interval of a query, read from when its batches began."""

import math
from collections.abc import Sequence
from itertools import pairwise

_LATE_S, _LATE_SHARE = 0.06, 1 / 8  # a batch begins at most so long after its trigger; share of the interval
_IN_TIME = 0.9  # share of the batches that waited for a trigger which must begin on one
_FEWEST = 10  # of batches that waited: with fewer, chance would do
_DIVISORS = range(1, 13)
_GRID_S, _LEAST_S = 0.05, 0.25


def trigger_interval(batches: Sequence[tuple[float, float]]) -> float | None:
    """Find the trigger interval, seconds; None where no batch waited for a trigger, or none fits.

    Spark fires at whole multiples of the interval since 1970. Batches that begin as soon as the one before ends say
    nothing; of the others nine in ten must begin on a multiple. The longest such interval is taken.

    Parameters
    ----------
    batches
        (start, duration) of each, seconds, in order.
    """
    waited = [
        (after - start, after)
        for (start, duration), (after, _) in pairwise(batches)
        if after > start + duration + _LATE_S
    ]
    if len(waited) < _FEWEST:
        return None
    gaps = sorted(gap for gap, _ in waited)
    base = gaps[len(gaps) // 2]
    for divisor in _DIVISORS:
        interval = round(base / divisor / _GRID_S) * _GRID_S
        if interval < _LEAST_S:
            return None
        on_time = sum(
            _late(start, interval) <= min(max(_LATE_S, interval / 50), _LATE_SHARE * interval) for _, start in waited
        )
        if on_time >= _IN_TIME * len(waited):
            return round(interval, 6)
    return None


def _late(start: float, interval: float) -> float:
    """Seconds since the last multiple of `interval`; just before one counts as on it."""
    past = math.fmod(start, interval)
    return min(past, interval - past)
