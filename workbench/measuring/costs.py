"""Fixed and per-record costs, fitted by least squares: seconds = a + b x records.

Every task of every micro-batch pays a fixed part. Only batches of several sizes, at least three, separate it.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from workbench.metrics import TaskSample
from workbench.records import OperatorCost

MIN_LEVELS = 3
_SAME_LEVEL = 1.02


@dataclass(frozen=True)
class Line:
    """``y = fixed + slope x``, both at least 0, with the standard error of the slope (None below three points)."""

    fixed: float
    slope: float
    slope_error: float | None


def fit_line(points: Iterable[tuple[float, float]]) -> Line | None:
    """Fit ``(x, y)`` by least squares under ``fixed >= 0`` and ``slope >= 0``; None without a point of ``x > 0``."""
    pairs = list(points)
    count = len(pairs)
    total = sum(x for x, _ in pairs)
    if total <= 0:
        return None
    mean_x, mean_y = total / count, sum(y for _, y in pairs) / count
    spread = sum((x - mean_x) ** 2 for x, _ in pairs)
    if spread > 0:
        slope = sum((x - mean_x) * (y - mean_y) for x, y in pairs) / spread
        fixed = mean_y - slope * mean_x
        if slope < 0:  # on the edge slope = 0 the best fixed part is the mean
            fixed, slope = max(0.0, mean_y), 0.0
        if fixed >= 0:
            return Line(fixed, slope, _error(pairs, fixed, slope, count - 2, spread))
    squares = sum(x * x for x, _ in pairs)  # on the edge fixed = 0, or with one size only: through the origin
    slope = max(0.0, sum(x * y for x, y in pairs) / squares)
    return Line(0.0, slope, _error(pairs, 0.0, slope, count - 1, squares))


def _error(
    pairs: Sequence[tuple[float, float]], fixed: float, slope: float, freedom: int, spread: float
) -> float | None:
    if freedom < 1:
        return None
    return math.sqrt(sum((y - fixed - slope * x) ** 2 for x, y in pairs) / freedom / spread)


def fit_costs(samples: Iterable[TaskSample]) -> tuple[OperatorCost, ...]:
    """Fit every operator of `samples`, in order of appearance."""
    grouped: dict[str, list[tuple[float, float]]] = {}
    for sample in samples:
        grouped.setdefault(sample.operator, []).append((sample.records, sample.seconds))
    return tuple(_fit(operator, points) for operator, points in grouped.items())


def _fit(operator: str, points: list[tuple[float, float]]) -> OperatorCost:
    records = sorted(x for x, _ in points)
    levels = count_levels(records)
    line = fit_line(points) if levels >= MIN_LEVELS else None
    fixed, slope, error = (line.fixed, line.slope, line.slope_error) if line else (None, None, None)
    return OperatorCost(operator, fixed, slope, error, records[0], records[-1], len(points), levels)


def count_levels(ordered: Sequence[float]) -> int:
    """Count the levels of ascending values; one level spans at most 2 %."""
    levels, start = 0, -math.inf
    for value in ordered:
        if levels == 0 or value > start * _SAME_LEVEL:
            levels, start = levels + 1, value
    return levels
