"""The capacity model: rate over memory and slots, its interval, and the least slots for a rate.

Forms ``linear``, ``log`` and ``sqrt`` are StreamBed's (section VI, Equations 6-8), fitted as there by ordinary least
squares; ``log1p`` is the log of the authors' code. ``scaling`` is ours and the workbench's own choice: the `mechanism`
where the runs tell of their operators and it explains them, the `scaling_law` of rates alone otherwise.

Every form has the same interval, that of ``scaling``: a form's own residuals know nothing of the other forms, and on
simulated truths the textbook interval of the selected form holds the truth far less often than it says
(``benchmarks/model.py``). It is widened where needed to hold the form's own prediction.
"""

import math
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from workbench.capacity.model.forms import COLUMNS, TRANSFORMS, Floats, as_points, as_runs, fit_least_squares, transform
from workbench.capacity.model.mechanism import Mechanism, fit_mechanism
from workbench.capacity.model.scaling_law import ScalingLaw, believe, fit_scaling_law
from workbench.errors import WorkbenchError
from workbench.records import Measurement

SCALING = "scaling"
FORMS = (*TRANSFORMS, SCALING)

MARGIN = 1.10
"""StreamBed asks its model for 110 % of the rate."""

LEVEL = 0.9
"""Probability with which an interval is to hold the capacity."""

MAX_SLOTS = 10**9

_SLACK = 1e-9


class CapacityModel(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Capacity in records/s over memory and slots.

    Parameters
    ----------
    form
        ``"linear"``, ``"log"``, ``"sqrt"`` or ``"log1p"``: a g(memory) + b g(slots) + c by least squares;
        ``"scaling"``: the mechanism, or the scaling law.
    stateful
        Whether the query has a stateful operator, where the records of one key meet on one task: then capacity may
        level off, and the interval says so. None: not known. Only the scaling law and the interval depend on it.

    Attributes
    ----------
    coef_ : ndarray of shape (2,)
        a and b. For ``"scaling"`` the expected exponents of memory and of the slots that carry load; those of the
        mechanism hold at the most slots measured.
    intercept_ : float
        c. For ``"scaling"`` the constant of ln rate, such that the plain law
        ``exp(intercept_) * memory ** coef_[0] * (slots - overhead_) ** coef_[1]`` meets the prediction at the most
        slots measured; predictions average over all credible laws.
    overhead_ : float
        Slots expected not to carry load at the fewest slots measured; 0 but for the scaling law.
    law_ : Mechanism, ScalingLaw or None
        Where the interval comes from; None if a rate, a memory or a number of slots was not positive.
    memory_, slots_ : ndarray
        Distinct values measured, ascending.

    Notes
    -----
    Any unit of memory will do if it is always the same: X is neither rescaled nor checked against a range.

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

    def __init__(self, form: str = "linear", *, stateful: bool | None = None) -> None:
        self.form = form
        self.stateful = stateful

    def fit(
        self,
        X: ArrayLike,  # noqa: N803  scikit-learn's name
        y: ArrayLike,
        runs: Sequence[Measurement] | None = None,
    ) -> Self:
        """Fit the form.

        Parameters
        ----------
        X : array-like of shape (runs, 2)
            Columns memory_mb and slots; a data frame with these names may have them in any order.
        y : array-like of shape (runs,)
            Maximum sustainable throughput, records/s.
        runs
            The measurement behind each row, for what it tells of the operators; None: only rates are known.

        Raises
        ------
        WorkbenchError
            When the form is unknown, it is not defined at a row, the rows are not a table of finite numbers, or there
            is not one run for each.
        """
        if self.form not in FORMS:
            raise WorkbenchError(f"The form of a capacity model is {self.form!r}; use one of {', '.join(FORMS)}.")
        points, rates = as_runs(X, y)
        self.n_features_in_ = len(COLUMNS)
        self.memory_, self.slots_ = np.unique(points[:, 0]), np.unique(points[:, 1])
        if runs is not None and len(runs) != len(rates):
            raise WorkbenchError(f"There are {len(runs)} runs for {len(rates)} rows; give the one behind each row.")
        self.law_: Mechanism | ScalingLaw | None = None
        if self.form == SCALING or bool((points > 0).all() and (rates > 0).all()):
            self.law_ = (fit_mechanism(runs) if runs else None) or fit_scaling_law(
                points, rates, believe(float(self.slots_[0]), stateful=self.stateful)
            )
        if self.form == SCALING and self.law_ is not None:
            self.coef_ = np.array(self.law_.expected_exponents)
            self.overhead_ = self.law_.expected_overhead
            there = np.array([[np.exp(np.log(points[:, 0]).mean()), self.slots_[-1]]])
            plain = np.log([there[0, 0], there[0, 1] - self.overhead_]) @ self.coef_
            self.intercept_ = float(np.log(self.law_.quantile(there, 0.5)[0]) - plain)
        else:
            fitted = fit_least_squares(self.form, points, rates)
            self.coef_, self.intercept_ = np.array([fitted.memory, fitted.slots]), fitted.constant
            self.overhead_ = 0.0
        return self

    def predict(self, X: ArrayLike) -> Floats:  # noqa: N803  scikit-learn's name
        """Capacity in records/s, shape (rows,); for ``"scaling"`` the median."""
        check_is_fitted(self)
        return self._predict(as_points(X))

    def interval(self, X: ArrayLike, level: float = LEVEL) -> tuple[Floats, Floats]:  # noqa: N803  scikit-learn's name
        """Lower and upper ends of the interval that holds the capacity with probability `level`, shape (rows,) each.

        It is the capacity that is held, the mean of many runs of one deployment, not the outcome of one more run.

        Raises
        ------
        WorkbenchError
            When `level` is not between 0 and 1, or a rate, a memory or a number of slots is not positive.
        """
        check_is_fitted(self)
        if not 0 < level < 1:
            raise WorkbenchError(f"The level of an interval is {level!r}; it must lie between 0 and 1, such as 0.9.")
        points = as_points(X)
        middle = self._predict(points)
        law = self._law(points)
        low, high = law.quantile(points, (1 - level) / 2), law.quantile(points, (1 + level) / 2)
        return np.minimum(low, middle), np.maximum(high, middle)

    def slots_for(
        self,
        rate: float,
        memory_mb: float,
        margin: float = MARGIN,
        *,
        min_slots: int = 1,
        risk: float | None = None,
    ) -> int:
        """Find the least number of slots whose capacity is at least ``margin * rate``.

        Parameters
        ----------
        rate
            Records/s to be carried.
        memory_mb
            Memory, in the unit of the fit.
        margin
            What StreamBed provisions beyond the prediction.
        min_slots
            Where to begin: a pipelined engine needs a slot for each operator.
        risk
            Where given, capacity falls short of ``margin * rate`` with at most this probability: the interval's lower
            end must reach it, not the prediction. The risk covers what the margin is a rule of thumb for, so a margin
            of 1 goes with it.

        Raises
        ------
        WorkbenchError
            When no number of slots will do, because capacity does not grow with slots or not that far.

        Notes
        -----
        Capacity is taken to grow with the slots. Where that is not known, every count up to the most measured is looked
        at: by the mechanism, whose whole tasks may carry less on one slot more, and where capacity falls in the end.
        """
        check_is_fitted(self)
        self._check_request(rate, memory_mb, margin, min_slots, risk)
        needed = margin * rate

        def capacity(slots: int) -> float:
            point = np.array([[memory_mb, slots]], dtype=float)
            predicted = self._predict(point)[0]
            return float(predicted if risk is None else min(predicted, self._law(point).quantile(point, risk)[0]))

        def carries(slots: int) -> bool:
            return capacity(slots) >= needed - _SLACK * max(1.0, needed)

        found = self._least(carries, min_slots)
        if found is not None:
            return found
        safely = "" if risk is None else f" with a risk of at most {risk:g}"
        what = f"{needed:,.6g} records/s ({margin:g} x {rate:,.6g}) at memory_mb = {memory_mb:g}{safely}"
        if self.coef_[1] <= 0:
            raise WorkbenchError(
                f"No number of slots carries {what}: by the {self.form} form capacity does not grow with slots "
                f"(coefficient {self.coef_[1]:g}). Measure more slot counts, or use another form."
            )
        raise WorkbenchError(
            f"No number of slots up to {MAX_SLOTS:,} carries {what}: by the {self.form} form so many carry "
            f"{capacity(MAX_SLOTS):,.6g} records/s. Ask for a lower rate, or measure larger budgets."
        )

    def _least(self, carries: Callable[[int], bool], start: int) -> int | None:
        """Least number of slots from `start` on that `carries`; None if none does."""
        if isinstance(self.law_, Mechanism) or self.coef_[1] <= 0:
            beyond = max(start, int(self.slots_[-1]) + 1)
            found = next((slots for slots in range(start, beyond) if carries(slots)), None)
            if found is not None:
                return found
            start = beyond
        return least_integer(carries, start, max(MAX_SLOTS, start))

    def _predict(self, points: Floats) -> Floats:
        if self.form == SCALING:
            return self._law(points).quantile(points, 0.5)
        return np.asarray(transform(self.form, points) @ self.coef_ + self.intercept_)

    def _law(self, points: Floats) -> Mechanism | ScalingLaw:
        """Give the law, which must be defined for the runs and at `points`."""
        if self.law_ is None:
            raise WorkbenchError(
                "There is no interval, because a rate, a memory or a number of slots of the runs was not positive; "
                "leave out the runs that sustained nothing, and fit again."
            )
        if not (points > 0).all():
            raise WorkbenchError("Memory and slots must be positive, for an interval and for the scaling form.")
        return self.law_

    @staticmethod
    def _check_request(rate: float, memory_mb: float, margin: float, min_slots: int, risk: float | None) -> None:
        for name, value in (("rate", rate), ("memory_mb", memory_mb), ("margin", margin)):
            if not (math.isfinite(value) and value > 0):
                raise WorkbenchError(f"The {name} is {value!r}; it must be a finite number above 0.")
        if not (isinstance(min_slots, Integral) and min_slots >= 1):
            raise WorkbenchError(f"min_slots is {min_slots!r}; it must be a whole number of at least 1.")
        if risk is not None and not 0 < risk < 1:
            raise WorkbenchError(f"The risk is {risk!r}; it must lie between 0 and 1, such as 0.05.")


def least_integer(holds: Callable[[int], bool], start: int, limit: int) -> int | None:
    """Least number from `start` to `limit` that `holds`, for a property that holds from some number on; None if none.

    Galloping, then bisection: about 2 log2(answer - start) questions.
    """
    if holds(start):
        return start
    below, step = start, 1
    while not holds(above := min(below + step, limit)):
        if above == limit:
            return None
        below, step = above, 2 * step
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (below, middle) if holds(middle) else (middle, above)
    return above
