"""The forms of StreamBed's capacity models and their least-squares fits.

A form g models capacity as ``a g(memory) + b g(slots) + c``. StreamBed (section VI, Equations 6-8) has linear, log and
sqrt. The authors' code takes ``log1p`` where the paper prints ln; Table IV's q5 row needs that form too.

Leave-one-out errors come from one fit: row i's is residual_i / (1 - leverage_i).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from workbench.arrays import Floats
from workbench.errors import WorkbenchError

COLUMNS = ("memory_mb", "slots")

TRANSFORMS: Mapping[str, Callable[[Floats], Floats]] = {
    "linear": np.positive,
    "sqrt": np.sqrt,
    "log": np.log,
    "log1p": np.log1p,
}

STREAMBED_FORMS = ("linear", "sqrt", "log")
"""The paper's three; of equally good ones the first is taken, so their order matters."""

_RANK_TOLERANCE = 1e-10
_DETERMINED = 1 - 1e-9  # a row of this leverage alone determines a coefficient


@dataclass(frozen=True)
class LeastSquares:
    """Ordinary least squares of one form."""

    form: str
    slopes: Floats  # a and b, shape (2,)
    constant: float  # c
    # by run, rate minus what the fit to the others predicts, in the unit of the rates; empty if such a fit does not
    # determine all coefficients
    misses: tuple[float, ...]

    @property
    def leave_one_out(self) -> float:
        """Mean absolute leave-one-out error (the paper's RMSE), in the unit of the rates; inf where there is none."""
        return float(np.abs(self.misses).mean()) if self.misses else math.inf

    def predict(self, points: Floats) -> Floats:
        """Capacity at `points`, shape (rows, 2)."""
        return np.asarray(transform(self.form, points) @ self.slopes + self.constant)


def fit_least_squares(form: str, points: Floats, rates: Floats) -> LeastSquares:
    """Fit `form` to `rates` at `points`, shape (rows, 2).

    The coefficient of a constant column is 0 and is not counted as one to be determined; of equally good coefficients
    the shortest vector is taken (columns scaled to unit deviation).
    """
    columns = transform(form, points)
    means = columns.mean(axis=0)
    centred = columns - means
    spread = np.sqrt((centred**2).mean(axis=0))
    varies = spread > _RANK_TOLERANCE * np.abs(means)
    scaled = np.divide(centred, spread, out=np.zeros_like(centred), where=varies)
    left, sizes, right = np.linalg.svd(scaled, full_matrices=False)
    kept = sizes > _RANK_TOLERANCE * math.sqrt(len(rates))
    left, sizes, right = left[:, kept], sizes[kept], right[kept]
    mean = rates.mean()
    along = left.T @ (rates - mean)
    slopes = np.divide(right.T @ (along / sizes), spread, out=np.zeros(2), where=varies)
    residuals = rates - mean - left @ along
    leverages = 1 / len(rates) + (left**2).sum(axis=1)
    determined = len(sizes) == varies.sum() and bool((leverages < _DETERMINED).all())
    misses = tuple((residuals / (1 - leverages)).tolist()) if determined else ()
    return LeastSquares(form, slopes, float(mean - slopes @ means), misses)


def determines(form: str, points: Floats, rows: Sequence[int]) -> bool:
    """Whether `rows` of `points` determine as many coefficients as all rows do."""
    return _rank(transform(form, points[list(rows)])) == _rank(transform(form, points))


def _rank(columns: Floats) -> int:
    scale = np.abs(columns).max(axis=0)
    scaled = columns / np.where(scale > 0, scale, 1.0)
    return int(np.linalg.matrix_rank(np.column_stack([np.ones(len(columns)), scaled]), rtol=_RANK_TOLERANCE))


def transform(form: str, points: Floats) -> Floats:
    """Apply the form's function to `points`; refuse an unknown form, and a point where it is not defined."""
    if form not in TRANSFORMS:
        raise WorkbenchError(f"The form is {form!r}; least squares knows {', '.join(TRANSFORMS)}. Use one of these.")
    with np.errstate(divide="ignore", invalid="ignore"):
        columns = TRANSFORMS[form](points)
    bad = np.flatnonzero(~np.isfinite(columns).all(axis=1))
    if len(bad):
        memory, slots = points[bad[0]]
        raise WorkbenchError(
            f"The form {form!r} is not defined at memory_mb = {memory:g}, slots = {slots:g}; both must be positive. "
            "Correct the row, or use the linear form."
        )
    return columns


def as_points(points: ArrayLike) -> Floats:
    """Read a finite table of memory_mb and slots; a data frame with these names may have them in any order."""
    named = getattr(points, "columns", None)
    if named is not None and set(COLUMNS) <= set(named):
        points = points[list(COLUMNS)]  # type: ignore[call-overload, index]
    try:
        table = np.asarray(points, dtype=float)
    except (TypeError, ValueError) as error:
        raise WorkbenchError(f"X is not a table of numbers ({error}); give rows of memory_mb and slots.") from error
    if table.ndim != len(COLUMNS) or table.shape[1] != len(COLUMNS):
        raise WorkbenchError(
            f"X has the shape {table.shape}; it must have two columns, {' and '.join(COLUMNS)}, one row per run."
        )
    if not np.isfinite(table).all():
        raise WorkbenchError("X holds a number that is not finite; leave out such rows.")
    return table


def as_runs(points: ArrayLike, rates: ArrayLike, fewest: int = 2) -> tuple[Floats, Floats]:
    """Read runs: points as `as_points`, and a finite rate for each, `fewest` at least."""
    table = as_points(points)
    try:
        values = np.asarray(rates, dtype=float)
    except (TypeError, ValueError) as error:
        raise WorkbenchError(f"y is not a list of numbers ({error}); give one rate per row of X.") from error
    if values.shape != table.shape[:1]:
        raise WorkbenchError(f"y has the shape {values.shape}; X has {len(table)} rows, so give {len(table)} rates.")
    if not np.isfinite(values).all():
        raise WorkbenchError("y holds a rate that is not finite; leave out runs without a result.")
    if len(values) < fewest:
        raise WorkbenchError(f"{len(values)} run(s) cannot make a model; measure at least two budgets.")
    return table, values


def as_objectives(objectives: ArrayLike | None, count: int) -> Floats:
    """Read BIDS2's objectives of `count` runs, nan where there is none."""
    values = np.full(count, math.nan) if objectives is None else np.asarray(objectives, dtype=float)
    if values.shape != (count,):
        raise WorkbenchError(
            f"The objectives have the shape {values.shape}; X has {count} rows, so give {count} objectives, nan where "
            "there is none."
        )
    return values
