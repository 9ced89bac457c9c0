"""StreamBed's capacity model, the workbench's own, and the choice of one by the name of its form."""

import numpy as np

from workbench.arrays import Floats
from workbench.capacity.model.forms import TRANSFORMS, transform
from workbench.capacity.model.growth import Growth
from workbench.capacity.model.model import Model
from workbench.errors import WorkbenchError

SCALING = "scaling"
FORMS = (*TRANSFORMS, SCALING)  # names that `model_of_form` knows


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
    coef_, intercept_
        a and b, shape (2,); c.

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

        # of equally good coefficients, the shortest vector in unit deviations, as in `fit_least_squares`
        scaler = StandardScaler()
        line = LinearRegression().fit(scaler.fit_transform(transform(self.form, points)), rates)
        self.coef_ = np.asarray(line.coef_ / scaler.scale_)
        self.intercept_ = float(line.intercept_ - self.coef_ @ scaler.mean_)

    def _predict(self, points: Floats) -> Floats:
        return np.asarray(transform(self.form, points) @ self.coef_ + self.intercept_)

    def _growth(self) -> float:
        return float(self.coef_[1])


class ScalingModel(Model):
    """Capacity by the `ScalingLaw`; for micro-batches, by the parts of a batch where these explain the runs.

    A prediction is the median.

    Parameters
    ----------
    stateful
        Whether the query has a stateful operator; None: unknown. Where slots are tasks, its capacity may level off,
        because the records of one key meet on one task, and the interval allows for it.
    growth
        What more slots are, where you know more than the runs say: ``"workers"``, ``"cores"`` of one machine, or
        ``"tasks"`` of a pipelined engine. None: the law decides, see `workbench.capacity.model.growth`.

    Examples
    --------
    >>> X = [[512, 2], [512, 8], [2048, 2], [2048, 8]]
    >>> model = ScalingModel().fit(X, [2e5, 8e5, 2e5, 8e5])
    >>> low, high = model.interval([[1024, 40]])
    >>> bool(low[0] < 4e6 < high[0])
    True
    """

    form = SCALING
    _by_law = True

    def __init__(self, *, stateful: bool | None = None, growth: Growth | None = None) -> None:
        self.stateful = stateful
        self.growth = growth

    def _fit(self, points: Floats, rates: Floats) -> None:  # noqa: ARG002  the law is all there is to fit
        if self.law_ is None:
            raise WorkbenchError(
                "The scaling law needs positive memory, slots and rates; leave out the runs that sustained nothing."
            )

    def _predict(self, points: Floats) -> Floats:
        return self._law(points).quantile(points, 0.5)

    def _growth(self) -> float:
        return 0.0 if self.law_ is None else self.law_.expected_exponents[1]


def model_of_form(form: str, *, stateful: bool | None = None, growth: Growth | None = None) -> Model:
    """Return an unfitted model of `form`, one of `FORMS`; raise `WorkbenchError` for another."""
    if form not in FORMS:
        raise WorkbenchError(f"The form of a capacity model is {form!r}; use one of {', '.join(FORMS)}.")
    if form == SCALING:
        return ScalingModel(stateful=stateful, growth=growth)
    return CapacityModel(form, stateful=stateful, growth=growth)
