"""Arrays of numbers, as type checkers know them, and what each of several columns of them contributes to another."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def contributions(columns: Sequence[Floats], wanted: Floats, weight: Floats | float = 1.0) -> tuple[Floats, Floats]:
    """Fit `wanted` = the sum of `columns`, each times a number of at least 0, by least squares weighted by `weight`.

    Returns these numbers and their standard errors.
    """
    from scipy.optimize import nnls  # noqa: PLC0415 - slow to import

    design = np.column_stack(columns) * np.reshape(weight, (-1, 1))
    scale = np.maximum(np.abs(design).max(axis=0), 1e-300)
    found, left = nnls(design / scale, np.asarray(wanted, dtype=float) * weight)
    inverse = np.linalg.pinv((design / scale).T @ (design / scale)).diagonal()
    errors = left * np.sqrt(np.maximum(inverse, 0.0) / max(1, len(design) - len(scale)))
    return found / scale, errors / scale
