"""A query's deployment as its log shows it: the trigger interval, by when its batches began, and a slot's memory."""

import cmath
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from statistics import median_high

LATE_S = 0.06
"""Longest time from a trigger, or from the end of a late batch, to the start of the next batch."""

_LATE_SHARE = 1 / 8  # of the interval
_IN_TIME = 0.9  # share of the batches that waited for a trigger which must begin on one
_END_IN_TIME, _FEWEST_ENDS = 0.8, 50  # the same of batches that end on one, and how many there must be
_FEWEST = 10  # batches that waited; fewer could fit by chance
_DIVISORS = range(1, 13)
_GRID_S, _LEAST_S = 0.05, 0.25
_TOLD_S = 10.0  # Spark logs a trigger that found nothing at this distance from the last one logged, or later
_UNITS = {"b": 2**-20, "k": 2**-10, "m": 1, "g": 2**10, "t": 2**20}
_MOST_MB = 2**24
_OVERHEAD, _OVERHEAD_PYTHON, _LEAST_OVERHEAD = 0.1, 0.4, "384m"  # Spark's memory outside an executor's heap


def trigger_interval(batches: Sequence[tuple[float, float]], idle: Sequence[float] = ()) -> float | None:
    """Find the trigger interval, seconds; None if no batch waited for a trigger, or no interval fits.

    `batches` are (start, duration) of each and `idle` when triggers that found nothing fired, seconds, in order. Spark
    fires at whole multiples of the interval since 1970. Batches that begin as soon as the one before ends say nothing;
    of the others nine in ten must begin on a multiple, and so must triggers that found nothing: where rows come once a
    minute, batches do too, whatever the interval is. The longest such interval is taken, and none where a shorter one
    would have left the same log.

    Progress may be stamped when it is stored, at a batch's end. Where no batch begins on a multiple, eight in ten that
    waited may instead end on one, or as long after it.
    """
    waited = [
        (after - start, after, after + lasts)
        for (start, duration), (after, lasts) in pairwise(batches)
        if after > start + duration + LATE_S
    ]
    if len(waited) < _FEWEST:
        return None
    groups, bases = [[start for _, start, _ in waited]], [median_high(gap for gap, *_ in waited)]
    if len(idle) >= _FEWEST:
        groups.append(list(idle))
        bases.append(median_high(after - before for before, after in pairwise(idle)))
    tried = {round(base / divisor / _GRID_S) * _GRID_S for base in bases for divisor in _DIVISORS}
    for interval in sorted((one for one in tried if one >= _LEAST_S), reverse=True):
        if all(_in_time(starts, interval) for starts in groups):
            rare = interval < bases[0] - _GRID_S  # only triggers that found nothing were so close to each other
            return None if rare and _may_be_shorter(interval) else round(interval, 6)
    stamped = round(bases[0] / _GRID_S) * _GRID_S
    ends = [end for *_, end in waited]
    return round(stamped, 6) if stamped >= _LEAST_S and _end_in_time(ends, stamped) else None


def _end_in_time(ends: Sequence[float], interval: float) -> bool:
    """Whether batches end on multiples of `interval`, or at the distance from them that most have."""
    if len(ends) < _FEWEST_ENDS:
        return False
    turns = [cmath.rect(1.0, math.tau * math.fmod(end, interval) / interval) for end in ends]
    after = cmath.phase(sum(turns)) / math.tau * interval
    allowed = max(LATE_S, interval / 50)
    return sum(_late(end - after, interval) <= allowed for end in ends) >= _END_IN_TIME * len(ends)


def _may_be_shorter(interval: float) -> bool:
    """Whether a shorter interval in whole seconds would be logged in the same way, as 3 s would look like 12 s."""
    shorter = (round(interval, 6) / divisor for divisor in _DIVISORS[1:])
    return interval > _TOLD_S and any(one.is_integer() and interval - one < _TOLD_S for one in shorter)


def _in_time(starts: Sequence[float], interval: float) -> bool:
    allowed = min(max(LATE_S, interval / 50), _LATE_SHARE * interval)
    return sum(_late(start, interval) <= allowed for start in starts) >= _IN_TIME * len(starts)


def _late(start: float, interval: float) -> float:
    """Seconds since the last multiple of `interval`; just before one counts as on it."""
    past = math.fmod(start, interval)
    return min(past, interval - past)


def slot_memory_mb(properties: Mapping[str, str], slots: int, *, local: bool) -> int:
    """MiB of a slot: an executor's heap and the rest of its container, over its slots.

    `properties` are Spark's; `local` says that the driver is the executor.
    """
    if local:
        return max(1, round(_megabytes(properties.get("spark.driver.memory", "1g")) / max(1, slots)))
    heap = _megabytes(properties.get("spark.executor.memory", "1g"))
    whole = heap + _overhead_mb(properties, heap)
    if "spark.executor.pyspark.memory" in properties:
        whole += _megabytes(properties["spark.executor.pyspark.memory"])
    if properties.get("spark.memory.offHeap.enabled", "").lower() == "true":
        whole += _megabytes(properties.get("spark.memory.offHeap.size", "0"), "b")
    return max(1, round(whole / max(1, slots)))


def _overhead_mb(properties: Mapping[str, str], heap_mb: float) -> float:
    if "spark.executor.memoryOverhead" in properties:
        return _megabytes(properties["spark.executor.memoryOverhead"])
    factor = _OVERHEAD_PYTHON if properties.get("spark.kubernetes.resource.type") == "python" else _OVERHEAD
    told = properties.get("spark.kubernetes.memoryOverheadFactor", "")
    told = properties.get("spark.executor.memoryOverheadFactor", told)
    with suppress(ValueError):
        factor = float(told) if 0 <= float(told) < _MOST_MB else factor
    least = properties.get("spark.executor.minMemoryOverhead", _LEAST_OVERHEAD)  # of Spark 4
    return max(_megabytes(least), factor * heap_mb)


def _megabytes(text: str, unit: str = "m") -> float:
    """Read a size as Spark writes it, MiB; `unit` is that of a bare number. Other texts are 1 GiB, Spark's default."""
    text = text.strip().lower()
    if text[:-1].strip() and text[-1:] == "b" and text[-2:-1] in _UNITS:
        text = text[:-1]
    unit = text[-1:] if text[-1:] in _UNITS else unit
    try:
        size = float(text.rstrip("".join(_UNITS))) * _UNITS[unit]
    except ValueError:
        return _UNITS["g"]
    return size if 0 <= size <= _MOST_MB else _UNITS["g"]
