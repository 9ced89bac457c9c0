"""Which form of capacity model: StreamBed's selection by halves, and leave-one-out errors.

Both judge a form within the runs at hand. Neither says much about many more slots: on all valid runs of StreamBed's
published q1 both take sqrt, which predicts a third of what was then measured. ``"robust"`` therefore selects nothing
and returns the scaling law, which averages over ways to grow; it is what the workbench uses. Over 300 simulated
explorations of stateless queries, 2 to 5 times beyond the most slots measured, the median error is 12.7 % by halves,
9.8 % by leave-one-out, 5.9 % for linear throughout and 4.4 % by the law, and 90 % intervals hold the truth in 34, 38,
56 (textbook) and 94 % (``benchmarks/model.py``).
"""

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from workbench.capacity.model.forms import STREAMBED_FORMS, Floats, as_runs, determines, fit_least_squares
from workbench.capacity.model.growth import Growth
from workbench.capacity.model.model import Model
from workbench.capacity.model.scaling_model import ScalingModel, model_of_form
from workbench.checks import SLACK
from workbench.errors import WorkbenchError

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
    growth: Growth = "workers",
) -> Model:
    """Select a form and fit it to all runs.

    Parameters
    ----------
    X, y
        Runs, as `Model.fit` takes them.
    forms
        Those that compete; ties go to the first.
    rule
        ``"halves"``: StreamBed's (section VI). Runs are ordered by slots (then memory, then as given); the form fitted
        to the lower half that has the least root-mean-square error on the upper half wins. The lower half often has
        one slot count only, as in both published explorations, and then no form is determined. So it is extended by
        the next runs until it determines as many coefficients as all runs do; if that leaves fewer than two to test,
        the leave-one-out error decides. Of an odd number of runs the lower half is the smaller one.
        ``"leave-one-out"``: the least leave-one-out error; if no form has one, the first form.
        ``"robust"``: no selection, the scaling form.
    stateful, growth
        See `ScalingModel`.

    Raises
    ------
    WorkbenchError
        When the rule or a form is unknown, or no form is given.
    """
    if rule not in get_args(Rule):
        raise WorkbenchError(f"The rule is {rule!r}; use one of {', '.join(get_args(Rule))}.")
    points, rates = as_runs(X, y)
    if rule == "robust":
        return ScalingModel(stateful=stateful, growth=growth).fit(points, rates)
    if not forms:
        raise WorkbenchError("No form competes; give at least one, such as 'linear'.")
    order = np.lexsort((np.arange(len(rates)), points[:, 0], points[:, 1]))
    points, rates = points[order], rates[order]
    tested = _first_tested(points) if rule == "halves" else len(rates)
    if len(rates) - tested >= _FEWEST_TESTS:
        errors = [_extrapolation_error(form, points, rates, tested) for form in forms]
    else:
        errors = [leave_one_out_error(points, rates, form) for form in forms]
    return model_of_form(forms[int(np.argmin(errors))], stateful=stateful, growth=growth).fit(points, rates)


def _first_tested(points: Floats) -> int:
    """Where the upper half begins: after as many runs as determine a fit, at least half of them."""
    first = max(_FEWEST_FITTED, len(points) // 2)
    while first < len(points) and not determines("linear", points, range(first)):
        first += 1
    return first


def _extrapolation_error(form: str, points: Floats, rates: Floats, tested: int) -> float:
    """Root-mean-square error from run `tested` on of the form fitted to the runs before."""
    model = model_of_form(form).fit(points[:tested], rates[:tested])
    return float(np.sqrt(np.mean((model.predict(points[tested:]) - rates[tested:]) ** 2)))
