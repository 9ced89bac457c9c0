"""Which budget to measure next, on the grid of a space: a point is the index of its slots and of its memory."""

import math
import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from workbench.arrays import Floats

Point = tuple[int, int]

_HAS_MIDDLE = 3
_SEEDS = 2**32  # NumPy's random states end here; a date and time is larger


def edge(shape: Point, number: int) -> Point:
    """Return point `number` (from 0) after the corners: the middle slots, then the most, at both memory ends."""
    ends = tuple(dict.fromkeys((0, shape[1] - 1)))
    middle = number < len(ends) and shape[0] >= _HAS_MIDDLE
    return shape[0] // 2 if middle else shape[0] - 1, ends[number % len(ends)]


def farthest(points: Collection[Point], shape: Point, allowed: Collection[Point]) -> Point:
    """Return the point of `allowed` farthest from the nearest of `points`; among equals, the one of most slots."""

    def distance(one: Point, other: Point) -> float:
        return math.hypot(*((a - b) / max(1, size - 1) for a, b, size in zip(one, other, shape, strict=True)))

    return max(allowed, key=lambda one: (round(min((distance(one, other) for other in points), default=0.0), 9), *one))


def nearest(point: Point, allowed: Collection[Point]) -> Point:
    """Return the point of `allowed` with the fewest steps from `point`; among equals, the first."""
    return min(allowed, key=lambda one: (abs(one[0] - point[0]) + abs(one[1] - point[1]), *one))


@dataclass(frozen=True)
class Acquired:
    """What a Gaussian process over the grid predicts for the cost of a next run, and the point it would measure."""

    point: Point  # the point that scikit-optimize asks for
    mean: Floats  # of the posterior of the cost, in the unit of the costs, shape (slots, memories)
    deviation: Floats  # likewise
    # expected improvement on the lowest cost seen, in the unit of the costs, shape (slots, memories)
    improvement: Floats


def acquire(points: Sequence[Point], costs: Sequence[float], shape: Point, seed: int) -> Acquired:
    """Fit a Gaussian process to `points` and their `costs`; return it with its expected improvement and its next point.

    The grid has `shape` points, and the point asked for has the highest expected improvement of them. A dimension of
    one point does not enter the process.
    """
    from skopt import Optimizer  # noqa: PLC0415  takes seconds to import, and only explorations need it
    from skopt.acquisition import gaussian_ei  # noqa: PLC0415
    from skopt.space import Integer  # noqa: PLC0415

    free = [axis for axis in range(len(shape)) if shape[axis] > 1]
    scale = max(abs(cost) for cost in costs) or 1.0
    search = Optimizer(
        [Integer(0, shape[axis] - 1) for axis in free],
        base_estimator="GP",
        acq_func="EI",
        n_initial_points=1,
        acq_optimizer="sampling",  # of the grid: a gradient method would stop between its points
        random_state=(seed + len(points)) % _SEEDS,
        avoid_duplicates=False,
    )
    scaled = [cost / scale for cost in costs]
    grid = [[place[axis] for axis in free] for place in np.ndindex(shape)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a length scale at its bound, or a repeated point, needs no warning
        search.tell([[point[axis] for axis in free] for point in points], scaled)
        asked = search.ask()
        model, where = search.models[-1], search.space.transform(grid)
        mean, deviation = model.predict(where, return_std=True)
        improvement = gaussian_ei(where, model, min(scaled))
    found = dict(zip(free, asked, strict=True))
    tables = (np.reshape(table, shape) * scale for table in (mean, deviation, improvement))
    return Acquired((int(found.get(0, 0)), int(found.get(1, 0))), *tables)
