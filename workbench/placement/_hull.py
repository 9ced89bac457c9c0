"""The point nearest to a given one in the hull of points that come one by one (Wolfe's algorithm [1]_).

References
----------
.. [1] P. Wolfe, Finding the nearest point in a polytope. Mathematical Programming 11, 1976.
"""

import numpy as np

from workbench.arrays import Floats, Ints

_EPS = 1e-9
_INSIDE = 1e-7


class Hull:
    """Columns whose averages hold `centre`, or come as near as possible."""

    def __init__(self, share: Floats, centre: Floats) -> None:
        self.share = share  # of the workers in every class
        self.centre = centre  # tasks of every operator per worker
        self.columns: list[Ints] = []  # those needed: one pattern per class each, shape (classes, operators)
        self.weights = np.zeros(0)  # how much of each; they add up to 1
        self._points = np.zeros((0, len(centre)))
        self._nearest = np.zeros(len(centre))

    @property
    def inside(self) -> bool:
        """Whether the centre is in the hull."""
        return len(self.columns) > 0 and float(np.linalg.norm(self._nearest)) <= _INSIDE

    @property
    def direction(self) -> Floats:
        """Unit vector from the nearest point to the centre; nowhere at first."""
        towards: Floats = -self._nearest / max(float(np.linalg.norm(self._nearest)), _EPS)
        return towards

    def add(self, column: Ints) -> bool:
        """Add one more column and find the nearest point; False if it is there already."""
        if any(np.array_equal(column, known) for known in self.columns):
            return False
        self._points = np.vstack([self._points, self.share @ column - self.centre])
        self.columns.append(column)
        self.weights = np.append(self.weights, 0.0 if len(self.weights) else 1.0)
        while True:
            affine = self._affine()
            leaving = affine <= _EPS * _EPS
            if not leaving.any():
                self.weights = affine
                break
            step = self.weights[leaving] / np.maximum(self.weights[leaving] - affine[leaving], _EPS**2)
            nearest = min(1.0, float(step.min()))
            weights = nearest * affine + (1 - nearest) * self.weights
            kept = weights > _EPS * _EPS
            if kept.all():  # rounding: the smallest goes
                kept[weights.argmin()] = False
            self.columns = [known for known, keep in zip(self.columns, kept, strict=True) if keep]
            self._points = self._points[kept]
            self.weights = weights[kept] / weights[kept].sum()
        self._nearest = self.weights @ self._points
        return True

    def _affine(self) -> Floats:
        """Weights of the point of the affine hull nearest to the centre."""
        size = len(self._points)
        system = np.ones((size + 1, size + 1))
        system[0, 0] = 0.0
        system[1:, 1:] = self._points @ self._points.T
        right = np.zeros(size + 1)
        right[0] = 1.0
        try:
            solved = np.linalg.solve(system, right)
        except np.linalg.LinAlgError:
            solved = np.linalg.lstsq(system, right, rcond=None)[0]
        return np.asarray(solved[1:], dtype=np.float64)
