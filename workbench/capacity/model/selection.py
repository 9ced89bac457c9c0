"""Which form of capacity model: StreamBed's selection by halves, and leave-one-out errors.

Both judge a form within the runs at hand and say little about many more slots: on StreamBed's published q1 both take
sqrt, which predicts a third of what was then measured. ``"robust"``, the workbench's, selects nothing and returns the
scaling law. Over 300 simulated explorations, 2 to 5 times beyond the most slots measured, the median error is 12.7 %
by halves, 9.8 % by leave-one-out and 4.4 % by the law (``benchmarks/model.py``).
"""

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from workbench.arrays import Floats
from workbench.capacity.model.forms import STREAMBED_FORMS, as_runs, determines, fit_least_squares
from workbench.capacity.model.growth import Growth
from workbench.capacity.model.kinds import ScalingModel, model_of_form
from workbench.capacity.model.model import Model
from workbench.checks import SLACK
from workbench.errors import WorkbenchError

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
    """Select a form and fit it to all runs.

    Parameters
    ----------
    rule
        ``"halves"``: StreamBed's (section VI). Runs are ordered by slots, then memory; the form fitted to the lower
        (of an odd number the smaller) half with the least root-mean-square error on the upper half wins. The lower half
        often has one slot count only, so it is extended until it determines as many coefficients as all runs do; if
        that leaves fewer than two to test, the leave-one-out error decides.
        ``"leave-one-out"``: the least such error; if no form has one, the first form.
        ``"robust"``: no selection, the scaling form.
    stateful, growth, objectives
        See `ScalingModel` and `Model.fit`.
    """
    if rule not in get_args(Rule):
        raise WorkbenchError(f"The rule is {rule!r}; use one of {', '.join(get_args(Rule))}.")
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
