"""What every capacity model predicts: the rate at a budget, its interval, and the fewest slots for a rate.

`CapacityModel` fits StreamBed's forms by least squares; `ScalingModel`, the default, is the workbench's own. They share
the interval of the scaling model, extended to the prediction of a form outside it: residuals of one form cannot show
that another is right, and the textbook interval holds the true capacity of simulated queries much less often than its
level promises (``benchmarks/model.py``).
"""

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from workbench import units
from workbench.arrays import Floats
from workbench.capacity.model.forms import COLUMNS, as_objectives, as_points, as_runs
from workbench.capacity.model.growth import SHARED_CORES, UNKNOWN_ENGINE, Growth, Prior, Steps, prior_of, read_steps
from workbench.capacity.model.micro_batch import MicroBatch, fit_micro_batch
from workbench.capacity.model.scaling_law import PartsLaw, ScalingLaw, carries, fit_parts_law, fit_scaling_law
from workbench.checks import SLACK, positive, whole
from workbench.errors import WorkbenchError
from workbench.records import Measurement

MARGIN = 1.10  # StreamBed provisions for 110 % of the rate
LEVEL = 0.9  # probability with which an interval holds the capacity
MAX_SLOTS = 10**9
_UNKNOWN_RISK = 0.5
_MICRO_BATCHES = frozenset({"spark", "observed"})  # testbeds: Spark here, or behind a log
_TRIED = 150  # slot counts to search for the highest capacity
_SAME = 1e-3


Law = ScalingLaw | PartsLaw  # the distribution of the capacity at every budget, given the runs


class Model(RegressorMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """Capacity in records/s over memory and slots.

    Memory may have any unit if it is always the same: X is neither rescaled nor checked against a range.

    Attributes
    ----------
    form, stateful, growth
        See `CapacityModel` and `ScalingModel`.
    law_ : Law or None
        Source of the interval; None if a rate, a memory or a number of slots was not positive.
    parts_ : MicroBatch or None
        What a batch is made of; None where the runs do not show it. The law rests on it where it explains the runs.
    memory_, slots_ : ndarray
        Distinct values measured, ascending.
    """

    _by_law: ClassVar[bool] = False  # whether predictions come from the law

    form: str
    stateful: bool | None
    growth: Growth | None
    law_: Law | None
    parts_: MicroBatch | None

    @abstractmethod
    def _fit(self, points: Floats, rates: Floats) -> None:
        """Fit what differs between models; the law is fitted already."""

    @abstractmethod
    def _predict(self, points: Floats) -> Floats:
        """Return the capacity at valid `points`."""

    @abstractmethod
    def _growth(self) -> float:
        """Coefficient or exponent of the slots; above 0, capacity grows with slots."""

    def fit(
        self,
        X: ArrayLike,  # noqa: N803  scikit-learn's name
        y: ArrayLike,
        runs: Sequence[Measurement] | None = None,
        objectives: ArrayLike | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (runs, 2)
            Columns memory_mb and slots; a data frame with these names may have them in any order.
        y : array-like of shape (runs,)
            Maximum sustainable throughput, records/s.
        runs
            The measurement behind each row, for what its batches and BIDS2 say; None: only rates are known.
        objectives
            BIDS2's prediction of each row, records/s, nan where there is none; by default that of `runs`.

        Raises
        ------
        WorkbenchError
            When the form is unknown or not defined at a row, or the rows are not a table of finite numbers, one a run.
        """
        points, rates = as_runs(X, y, fewest=2 if runs is None else 1)
        if runs is not None and len(runs) != len(rates):
            raise WorkbenchError(f"There are {len(runs)} runs for {len(rates)} rows; give the one behind each row.")
        self.n_features_in_ = len(COLUMNS)
        self.memory_, self.slots_ = np.unique(points[:, 0]), np.unique(points[:, 1])
        steps = _steps(points, runs, objectives)
        tasks = _tasks(self.growth, runs, steps)
        self.parts_ = fit_micro_batch(runs) if runs and tasks < 1 else None
        self.law_ = None
        if (points > 0).all() and (rates > 0).all():
            prior = prior_of(float(points[:, 1].min()), stateful=self.stateful, growth=self.growth, tasks=tasks)
            self.law_ = _fit_law(points, rates, runs, self.parts_, replace(prior, steps=steps if tasks == 1 else None))
        self._fit(points, rates)
        return self

    def predict(self, X: ArrayLike) -> Floats:  # noqa: N803  scikit-learn's name
        """Return the capacity in records/s, shape (rows,)."""
        check_is_fitted(self)
        return self._predict(as_points(X))

    def interval(self, X: ArrayLike, level: float = LEVEL) -> tuple[Floats, Floats]:  # noqa: N803  scikit-learn's name
        """Return the ends, shape (rows,), of the interval that holds the capacity with probability `level`.

        The capacity is the mean of many runs of one deployment, not the outcome of one more run. Raises
        `WorkbenchError` when `level` is not between 0 and 1, or a rate, a memory or a number of slots is not positive.
        """
        check_is_fitted(self)
        if not 0 < level < 1:
            raise WorkbenchError(f"The level of an interval is {level!r}; it must be between 0 and 1, such as 0.9.")
        points = as_points(X)
        middle = self._predict(points)
        law = self._law(points)
        low, high = law.quantile(points, (1 - level) / 2), law.quantile(points, (1 + level) / 2)
        return np.minimum(low, middle), np.maximum(high, middle)

    def risks(self, rate: float, memory_mb: float, counts: Sequence[int]) -> list[float]:
        """Probability that the capacity at each of `counts` slots is below `rate`."""
        law = self.law_
        if law is None:
            return [_UNKNOWN_RISK] * len(counts)
        where = np.array([[memory_mb, slots] for slots in counts], dtype=float)
        return [float(risk) for risk in law.below(where, float(rate))]

    @property
    def batch(self) -> MicroBatch | None:
        """The parts of a batch, if they explain the runs and the model rests on them."""
        return self.law_.parts if isinstance(self.law_, PartsLaw) and self._by_law else None

    @property
    def sharing_slots(self) -> float:
        """Slots that share up to `SHARED_CORES` of the machine measured, for which the prior is narrower; 0 if none."""
        return self.law_.sharing_slots if isinstance(self.law_, PartsLaw) and self._by_law else 0.0

    def at_interval(self, interval_s: float, stays: float = 1.0) -> Self:
        """Return the model at another trigger interval than that of the runs; it needs the parts of a batch.

        The state is that of `stays` times the rate, where the rate counts rows in other than real seconds.
        """
        positive("The trigger interval", interval_s, "seconds")
        check_is_fitted(self)
        if not (isinstance(self.law_, PartsLaw) and self._by_law):
            raise WorkbenchError(
                f"The runs, or the {self.form} form, do not show what a batch is made of, so nothing is known of other "
                "trigger intervals. Measure at them: add intervals to the study."
            )
        other = copy(self)
        other.law_ = replace(self.law_, at_s=interval_s, parts=self.law_.parts.staying(stays))
        return other

    def capacities(self, memory_mb: float, counts: Sequence[int], risk: float | None = None) -> Floats:
        """Return the capacity at each of `counts` slots; with a `risk`, the one missed with this probability."""
        points = np.array([[memory_mb, count] for count in counts], dtype=float).reshape(-1, len(COLUMNS))
        predicted = self._predict(points)
        return predicted if risk is None else np.minimum(predicted, self._law(points).quantile(points, risk))

    def slots_for(
        self,
        rate: float,
        memory_mb: float,
        margin: float = MARGIN,
        *,
        min_slots: int = 1,
        risk: float | None = None,
        step: int = 1,
    ) -> int:
        """Find the fewest slots whose capacity is at least ``margin * rate``; `WorkbenchError` if none are enough.

        The search assumes that capacity grows with slots. If that is not certain, it first tries every count up to the
        most slots measured. If it finds none, and capacity may fall again, it looks around the highest one.

        Parameters
        ----------
        margin
            Head-room beyond the prediction; the default is StreamBed's.
        min_slots, step
            Fewest slots to consider, as a pipelined engine needs one for each operator; only multiples of `step` are.
        risk
            Probability with which capacity may fall short of ``margin * rate``: the interval's lower end must reach it
            instead of the prediction. Give a margin of 1 with it, because both allow for the same doubt.
        """
        check_is_fitted(self)
        for name, value in (("rate", rate), ("memory_mb", memory_mb), ("margin", margin)):
            positive(f"The {name}", value)
        whole("min_slots", min_slots)
        if risk is not None and not 0 < risk < 1:
            raise WorkbenchError(f"The risk is {risk!r}; it must be between 0 and 1, such as 0.05.")
        needed, first = margin * rate, math.ceil(min_slots / step)

        def capacities(counts: Sequence[int]) -> Floats:
            return self.capacities(memory_mb, [step * count for count in counts], risk)

        def sustains(count: int) -> bool:
            return bool(capacities([count])[0] >= needed - SLACK * max(1.0, needed))

        found = self._least(sustains, first, step)
        if found is not None:
            return step * found
        most = max(MAX_SLOTS // step, first)
        that_many, highest = "that many sustain", capacities([most])[0]
        within = ""
        if self.law_ is not None:  # more slots may reduce capacity, or not raise it
            tried = np.unique(np.geomspace(first, most, _TRIED).astype(int)).tolist()
            reached = capacities(tried)
            place, highest = int(np.argmax(reached)), reached.max()
            if sustains(tried[place]):
                return step * (least_integer(sustains, tried[max(0, place - 1)], tried[place]) or tried[place])
            place = int(np.argmax(reached * (1 + _SAME) >= highest))  # the fewest
            if tried[place] < most:
                that_many = f"{units.some(step * tried[place], 'slot')} sustain the most,"
                within = "" if risk is not None else self._within(memory_mb, step * tried[place])
        safely = "" if risk is None else f" with a risk of at most {risk:g}"
        accept = "" if risk is None else "accept a larger risk, "
        longer = "lengthen the trigger interval, " if self.batch is not None else ""
        most_rate, asked = units.ends(float(highest), needed, "records/s")
        times = "" if margin == 1 else f" ({margin:g} x {units.rate(rate)})"
        alike = "" if step == 1 else f" in executors of {step:,}"
        what = f"{asked}{times} at {units.number(memory_mb, 6)} MB a slot{safely}"
        if self._growth() <= 0:
            raise WorkbenchError(
                f"No number of slots{alike} sustains {what}: by the {self.form} form capacity does not grow with slots "
                f"(coefficient {self._growth():g}). Measure more slot counts, or use another form."
            )
        raise WorkbenchError(
            f"No number of slots up to {MAX_SLOTS:,}{alike} sustains {what}: by the {self.form} form {that_many} "
            f"{most_rate}{within}. Set a lower rate, {accept}{longer}or measure larger budgets."
        )

    def _within(self, memory_mb: float, slots: int) -> str:
        if not self._by_law:
            return ""
        low, high = (float(end[0]) for end in self.interval([[memory_mb, slots]]))
        return f" (90 %: {' to '.join(units.ends(low, high))})"

    def attains(self, rate: float, memory_mb: float, margin: float, *, risk: float) -> bool:
        """Whether any number of slots is enough; see `slots_for`."""
        try:
            self.slots_for(rate, memory_mb, margin, risk=risk)
        except WorkbenchError:
            return False
        return True

    def _least(self, sustains: Callable[[int], bool], start: int, step: int) -> int | None:
        """Fewest times `step` slots, from `start` on, that are enough; None if none are."""
        if self._growth() <= 0 or self.law_ is not None:
            beyond = max(start, int(self.slots_[-1]) // step + 1)
            found = next((count for count in range(start, beyond) if sustains(count)), None)
            if found is not None:
                return found
            start = beyond
        return least_integer(sustains, start, max(MAX_SLOTS // step, start))

    def _law(self, points: Floats) -> Law:
        """Return the law, which must be defined both for the runs and at `points`."""
        if self.law_ is None:
            raise WorkbenchError(
                "There is no interval, because a rate, a memory or a number of slots of the runs was not positive; "
                "leave out the runs that sustained nothing, and fit again."
            )
        if not (points > 0).all():
            raise WorkbenchError("Memory and slots must be positive, for an interval and for the scaling form.")
        return self.law_


def _steps(points: Floats, runs: Sequence[Measurement] | None, objectives: ArrayLike | None) -> Steps | None:
    """Read the steps of BIDS2's objective; None where there is no objective."""
    if objectives is None and runs:
        objectives = [run.predicted_rate or math.nan for run in runs]
    known = as_objectives(objectives, len(points))
    return read_steps(points, known) if (points > 0).all() else None


def _tasks(growth: Growth | None, runs: Sequence[Measurement] | None, steps: Steps | None) -> float:
    """Probability that slots are spent on whole tasks: certain if BIDS2 spent them, impossible if Spark ran."""
    if growth is not None:
        return float(growth == "tasks")
    if any(run.tasks for run in runs or ()):
        return 1.0
    if any(run.testbed_kind in _MICRO_BATCHES for run in runs or ()):
        return 0.0
    return UNKNOWN_ENGINE if steps is None else 1.0


def _fit_law(
    points: Floats, rates: Floats, runs: Sequence[Measurement] | None, parts: MicroBatch | None, prior: Prior
) -> Law:
    """Fit the parts of a batch if they explain the runs, else the scaling law alone; tie it to the brackets."""
    if not runs or prior.tasks == 1:
        return fit_scaling_law(points, rates, prior)
    typical = max(prior.noise_typical, _deviation(runs))
    prior = replace(prior, noise_typical=typical, noise_high=max(prior.noise_high, 2 * typical))
    law: Law
    if parts is not None and parts.explains and carries(parts, points[:, 1], runs[0].budget.interval_s):
        rates = rates / _gained(parts, runs)
        prior = replace(prior, tasks=0.0, sharing=_sharing(runs))
        law = fit_parts_law(points, rates, parts, runs[0].budget.interval_s, prior)
    else:
        law = fit_scaling_law(points, rates, prior if parts is None else replace(prior, tasks=0.0))
    if not all(run.machine.slots and run.machine.real for run in runs):
        return law  # simulated deployments differ by more than their brackets
    low, high = np.array([(run.estimate.low, run.estimate.high) for run in runs]).T / [
        run.estimate.middle for run in runs
    ]
    return law.tied(points, low * rates, high * rates)


def _gained(parts: MicroBatch, runs: Sequence[Measurement]) -> Floats:
    """Return the factor that each run gained by its partitions, over as many as slots, according to the parts."""
    found = []
    for run in runs:
        probe = run.estimate.probes[-1] if run.estimate.probes else None
        slots, interval_s = run.budget.slots, run.budget.interval_s
        if probe is None or probe.partitions is None:
            found.append(1.0)
            continue
        laid_out = parts.rate(slots, probe.partitions, interval_s, probe.source_partitions or probe.partitions)
        found.append(laid_out / parts.rate(slots, slots, interval_s))
    return np.array(found)


def _sharing(runs: Sequence[Measurement]) -> float:
    """Return the slots that share `SHARED_CORES` of the machine of `runs`; 0 if they share more than cores, or unknown.

    Executors of a cluster are apart, what is behind a log is not seen, and a topic's broker serves all slots.
    """
    found = math.inf
    for run in runs:
        cores, seen = run.machine.cores, run.estimate.observation
        of_topic = seen is not None and bool(seen.source_partitions)
        if cores is None or of_topic or not (run.machine.real and run.machine.load_seen):
            return 0.0
        found = min(found, min(cores, SHARED_CORES) / run.budget.profile.cpus)
    return found


def _deviation(runs: Sequence[Measurement]) -> float:
    """Relative deviation of the rates of `runs`: the median of those read from a log; 0 without any."""
    known = [
        math.log(run.estimate.high / run.estimate.low) / (2 * ndtri((1 + LEVEL) / 2))
        for run in runs
        if run.estimate.from_readings and 0 < run.estimate.low <= run.estimate.high < math.inf
    ]
    return float(np.median(known)) if known else 0.0


def least_integer(holds: Callable[[int], bool], start: int, limit: int) -> int | None:
    """Return the least number from `start` to `limit` at which `holds` is true; None if there is none.

    `holds` must stay true from some number on. It is called about 2 log2(answer - start) times.
    """
    if holds(start):
        return start
    below, step = start, 1
    while not holds(above := min(below + step, limit)):
        if above == limit:
            return None
        below, step = above, 2 * step
    return bisect_left(range(above), x=True, lo=below + 1, key=holds)
