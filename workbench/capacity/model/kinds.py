"""StreamBed's capacity model, the workbench's own, and the choice of one: by name, by halves, by leave-one-out errors.

StreamBed's rules judge a form within the runs at hand and say little about many more slots: on its published q1 both
take sqrt, which predicts a third of what was then measured. ``"robust"``, the workbench's, selects nothing and returns
the scaling law. Over 300 simulated explorations, 2 to 5 times beyond the most slots measured, the median error is
12.7 % by halves, 9.8 % by leave-one-out and 4.4 % by the law (``benchmarks/model.py``).
"""

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from workbench.arrays import Floats
from workbench.capacity.model.forms import (
    STREAMBED_FORMS,
    TRANSFORMS,
    as_runs,
    determines,
    fit_least_squares,
    transform,
)
from workbench.capacity.model.growth import Growth
from workbench.capacity.model.model import Model
from workbench.checks import SLACK, one_of
from workbench.errors import WorkbenchError

SCALING = "scaling"
FORMS = (*TRANSFORMS, SCALING)  # names that `model_of_form` knows


class CapacityModel(Model):
    """Capacity as ``a g(memory) + b g(slots) + c`` by least squares (StreamBed, section VI, Equations 5-8).

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
        line = fit_least_squares(self.form, points, rates)
        self.coef_, self.intercept_ = line.slopes, line.constant

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
    one_of("The form of a capacity model", form, FORMS)
    if form == SCALING:
        return ScalingModel(stateful=stateful, growth=growth)
    return CapacityModel(form, stateful=stateful, growth=growth)


Rows = NDArray[np.intp]
Rule = Literal["halves", "leave-one-out", "robust"]

_FEWEST_FITTED = 2
_FEWEST_TESTS = 2


def leave_one_out_error(X: ArrayLike, y: ArrayLike, form: str = "linear") -> float:  # noqa: N803
    """Mean over runs of the error at a run when the form is fitted to the others, records/s (StreamBed, section VI).

    inf if the others do not determine all coefficients; a column that never changes counts for none.
    """
    points, rates = as_runs(X, y)
    return fit_least_squares(form, points, rates).leave_one_out


def exploration_cost(X: ArrayLike, y: ArrayLike, forms: Sequence[str] = STREAMBED_FORMS) -> float:  # noqa: N803
    """Cost of the runs so far: the lowest leave-one-out error over the forms (StreamBed, Equation 9).

    0 where it is nothing but round-off, whose growth from run to run would mean nothing.
    """
    points, rates = as_runs(X, y)
    cost = min(leave_one_out_error(points, rates, form) for form in forms)
    return cost if cost > SLACK * float(rates.max()) else 0.0


def select_model(
    X: ArrayLike,  # noqa: N803
    y: ArrayLike,
    forms: Sequence[str] = STREAMBED_FORMS,
    rule: Rule = "halves",
    *,
    stateful: bool | None = None,
    growth: Growth | None = None,
    objectives: ArrayLike | None = None,
) -> Model:
    """Select a form and fit it to all runs; for the other parameters see `ScalingModel` and `Model.fit`.

    Parameters
    ----------
    rule
        ``"halves"``: StreamBed's (section VI). Runs are ordered by slots, then memory; the form fitted to the lower
        (of an odd number the smaller) half with the least root-mean-square error on the upper half wins. The lower half
        often has one slot count only, so it is extended until it determines as many coefficients as all runs do; if
        that leaves fewer than two to test, the leave-one-out error decides.
        ``"leave-one-out"``: the least such error; if no form has one, the first form.
        ``"robust"``: no selection, the scaling form.
    """
    one_of("The rule", rule, get_args(Rule))
    points, rates = as_runs(X, y)
    if rule == "robust":
        return ScalingModel(stateful=stateful, growth=growth).fit(points, rates, objectives=objectives)
    if not forms:
        raise WorkbenchError("No form competes; give at least one, such as 'linear'.")
    split = halves(points) if rule == "halves" else None
    if split is None:
        errors = [leave_one_out_error(points, rates, form) for form in forms]
    else:
        lower, upper = split
        fits = (model_of_form(form).fit(points[lower], rates[lower]) for form in forms)
        errors = [root_mean_square(model.predict(points[upper]) - rates[upper]) for model in fits]
    model = model_of_form(forms[int(np.argmin(errors))], stateful=stateful, growth=growth)
    return model.fit(X, y, objectives=objectives)


def halves(points: Floats) -> tuple[Rows, Rows] | None:
    """Rows of the lower and the upper half of `points` (rows, 2), see `select_model`; None if too few are left."""
    order = np.lexsort((np.arange(len(points)), points[:, 0], points[:, 1]))
    first = max(_FEWEST_FITTED, len(points) // 2)
    while first < len(points) and not determines("linear", points[order], range(first)):
        first += 1
    return (order[:first], order[first:]) if len(points) - first >= _FEWEST_TESTS else None


def root_mean_square(errors: Floats) -> float:
    """Return the root of the mean square of `errors`."""
    return float(np.sqrt(np.mean(errors**2)))
