"""StreamBed's capacity model: one of the paper's forms, fitted by ordinary least squares."""

import numpy as np

from workbench.arrays import Floats
from workbench.capacity.model.forms import TRANSFORMS, transform
from workbench.capacity.model.growth import Growth
from workbench.capacity.model.model import Model
from workbench.errors import WorkbenchError


class CapacityModel(Model):
    """Capacity as ``a g(memory) + b g(slots) + c``, by scikit-learn's least squares, as in the paper.

    Parameters
    ----------
    form
        g: ``"linear"``, ``"log"`` or ``"sqrt"`` as in the paper, or ``"log1p"``, the logarithm of the authors' code.
    stateful, growth
        See `ScalingModel`; only the interval depends on them.

    Attributes
    ----------
    coef_ : ndarray of shape (2,)
        a and b.
    intercept_ : float
        c.

    References
    ----------
    StreamBed, section VI, Equations 5-8.

    Examples
    --------
    >>> X = [[512, 2], [512, 8], [2048, 2], [2048, 8]]
    >>> model = CapacityModel("linear").fit(X, [2e5, 8e5, 2e5, 8e5])
    >>> model.slots_for(4e6, memory_mb=1024)
    44
    """

    def __init__(self, form: str = "linear", *, stateful: bool | None = None, growth: Growth | None = None) -> None:
        self.form = form
        self.stateful = stateful
        self.growth = growth

    def _fit(self, points: Floats, rates: Floats) -> None:
        if self.form not in TRANSFORMS:
            raise WorkbenchError(
                f"The form of a capacity model is {self.form!r}; use one of {', '.join(TRANSFORMS)}, or ScalingModel()."
            )
        from sklearn.linear_model import LinearRegression  # noqa: PLC0415  slow to import, and only a fit needs it
        from sklearn.preprocessing import StandardScaler  # noqa: PLC0415

        # of equally good coefficients the shortest vector in unit deviations, as `fit_least_squares`
        scaler = StandardScaler()
        line = LinearRegression().fit(scaler.fit_transform(transform(self.form, points)), rates)
        self.coef_ = np.asarray(line.coef_ / scaler.scale_)
        self.intercept_ = float(line.intercept_ - self.coef_ @ scaler.mean_)

    def _predict(self, points: Floats) -> Floats:
        return np.asarray(transform(self.form, points) @ self.coef_ + self.intercept_)

    def _growth(self) -> float:
        return float(self.coef_[1])
