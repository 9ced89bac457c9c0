"""The Resource Explorer (StreamBed, section VI): which budgets to measure, and when to stop.

The four corners of the space come first. Then a Gaussian process (scikit-optimize, Expected Improvement) proposes the
budget that should lower the model's cost most: the lowest leave-one-out error over the forms after the new run
(Equation 9). The exploration ends when the cost of a run exceeds 1.10 times the one before, and that run is not fitted.

What to ask next is a function of the runs so far and the seed, so an interrupted exploration goes on where it was.

With ``choice="edge"``, ours, the corners are followed by the middle slot count and then by the most slots, again and
again, at the least and the most memory in turn. What many slots carry is best told by the most that can be had; the
middle ones tell a hot key, whose share of a task grows with the tasks, from keys that are spread unevenly; repeats
average out luck. It ends after a number of calls, not by the cost, and all runs are fitted.

Deviations: the paper's cost is called an RMSE and is a mean absolute error, and is called so here. A budget may be
measured again, as in the paper; scikit-optimize would put a random one in its place, so this is switched off. The
Gaussian process lives on the indices of the grid.
"""

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from skopt import Optimizer
from skopt.space import Integer

from workbench.capacity.forms import STREAMBED_FORMS
from workbench.capacity.measurement import Measurement
from workbench.capacity.model import SCALING, CapacityModel
from workbench.capacity.optimizer import ConfigurationOptimizer
from workbench.capacity.readings import review_readings
from workbench.capacity.selection import exploration_cost, select_model
from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.workload.query import Query

CORNERS = 4
LEAST_FITTED = 3
LEAST_RUNS = 7
MOST_RUNS = 20
GROWTH = 1.10
SLACK = 1e-9

Choice = Literal["improvement", "edge"]


@dataclass(frozen=True)
class Space:
    """Budgets that may be measured.

    Parameters
    ----------
    slots
        Slot counts, ascending; at least two.
    memory_mb
        Memory per slot, MiB, ascending: the grid.
    cpus
        Cores of a slot.
    interval_s
        Trigger interval, seconds.
    """

    slots: tuple[int, ...]
    memory_mb: tuple[int, ...]
    cpus: float = 1.0
    interval_s: float = 2.0

    def __post_init__(self) -> None:
        for name, values, least in (("slots", self.slots, 2), ("memory_mb", self.memory_mb, 1)):
            if len(values) < least or list(values) != sorted(set(values)) or values[0] < 1:
                raise WorkbenchError(
                    f"{name} of the space is {list(values)!r}; it must be at least {least} whole numbers above 0, "
                    "ascending. For example [1, 2, 4]."
                )

    def budget(self, slots: int, memory_mb: int) -> Budget:
        """Give the budget of `slots` slots of `memory_mb` MiB each."""
        return Budget(slots, SlotProfile(self.cpus, memory_mb), self.interval_s)

    @property
    def corners(self) -> tuple[Budget, ...]:
        """Budgets at the ends: two where the memory is fixed."""
        ends = dict.fromkeys((self.memory_mb[0], self.memory_mb[-1]))
        return tuple(self.budget(slots, memory) for memory in ends for slots in (self.slots[0], self.slots[-1]))


@dataclass(frozen=True)
class Exploration:
    """What was explored, and the model of it.

    Parameters
    ----------
    measurements
        All runs, in order.
    costs
        Cost after each run, records/s: the lowest leave-one-out error so far (inf until it is defined).
    fitted
        Which runs the model was fitted to.
    model
        The model.
    reason
        Why the exploration ended.
    """

    measurements: tuple[Measurement, ...]
    costs: tuple[float, ...]
    fitted: tuple[int, ...]
    model: CapacityModel
    reason: str

    @property
    def points(self) -> np.ndarray:
        """Memory per slot (MiB) and slots of the fitted runs, shape (runs, 2)."""
        return _points([self.measurements[row] for row in self.fitted])

    @property
    def rates(self) -> np.ndarray:
        """MST of the fitted runs, records/s, shape (runs,)."""
        return _rates([self.measurements[row] for row in self.fitted])


class ResourceExplorer:
    """Explores a space of budgets until the capacity model improves no more.

    Parameters
    ----------
    optimizer
        Measures one budget.
    space
        Budgets that may be measured.
    seed
        Of the Gaussian process; the same seed and measurements give the same exploration.
    form
        Form of the model: ``"scaling"``, ours, by default; a form of StreamBed's; or ``"halves"`` for its selection.
    score_form
        Fixes the form whose leave-one-out error is the cost, to replay Table III; None: the lowest of the three.
    most_runs
        Ends the exploration.
    most_calls
        Ends it, too: calls of the optimizer, of which the first at a memory takes a run more, the minimal
        configuration's, unless it is that itself. None: as many as the runs allow.
    choice
        Budgets after the corners: ``"improvement"``, the paper's Gaussian process and stop rule, or ``"edge"``.
    estimates
        Runs per call after the corners. More of them average out luck, and take less time than as many calls of the
        paper, which are up to two runs each.
    """

    def __init__(
        self,
        optimizer: ConfigurationOptimizer,
        space: Space,
        seed: int = 0,
        *,
        form: str = SCALING,
        score_form: str | None = None,
        most_runs: int = MOST_RUNS,
        most_calls: int | None = None,
        choice: Choice = "improvement",
        estimates: int = 1,
    ) -> None:
        if estimates < 1:
            raise WorkbenchError(f"estimates is {estimates!r}; a call of the optimizer takes at least 1 run.")
        if choice not in get_args(Choice):
            raise WorkbenchError(f"The choice is {choice!r}; use one of {', '.join(get_args(Choice))}.")
        if most_calls is not None and most_calls < len(space.corners):
            raise WorkbenchError(
                f"most_calls is {most_calls!r}; the corners of the space alone are {len(space.corners)} calls. Raise "
                "it."
            )
        if most_runs < len(space.corners):
            raise WorkbenchError(
                f"most_runs is {most_runs!r}; the corners of the space alone are {len(space.corners)} runs. Raise it."
            )
        self.optimizer = optimizer
        self.space = space
        self.seed = seed
        self.form = form
        self.score_forms = STREAMBED_FORMS if score_form is None else (score_form,)
        self.most_runs = most_runs
        self.most_calls = most_calls
        self.choice = choice
        self.estimates = estimates
        self._calls = 0
        self._asked: list[tuple[Budget, int]] = []
        self._runs: list[Measurement] = []

    @property
    def runs(self) -> tuple[Measurement, ...]:
        """Measurements told so far."""
        return tuple(self._runs)

    def ask(self) -> Budget | None:
        """Give the budget to measure next; None when the exploration is over."""
        if self.reason() is not None:
            return None
        return self._next()

    def tell(self, measurement: Measurement) -> None:
        """Take note of a run; runs that found no sustainable rate are kept and not fitted."""
        self._runs.append(measurement)

    def explore(self, query: Query) -> CapacityModel:
        """Measure until the exploration is over, and return the model; see `run` for all that was seen."""
        return self.run(query).model

    def run(self, query: Query) -> Exploration:
        """Explore `query`.

        Raises
        ------
        WorkbenchError
            When a budget cannot be measured, or too few runs sustained a rate for a model.
        """
        while (budget := self.ask()) is not None:
            for _ in range(self.estimates if self._calls >= len(self.space.corners) else 1):
                repeat = sum(asked == budget for asked, _ in self._asked)
                for measurement in self.optimizer.steps(query, budget, repeat):
                    self.tell(measurement)
                self._asked.append((budget, len(self._runs)))
            self._calls += 1
        return self.conclude()

    def conclude(self) -> Exploration:
        """Fit the model to the runs told so far; see `conclude`."""
        return conclude(
            self._runs,
            self.reason() or "ended early",
            form=self.form,
            score_forms=self.score_forms,
            most_runs=self.most_runs,
            choice=self.choice,
        )

    def reason(self) -> str | None:
        """Why the exploration is over; None while it is not."""
        if len(self._asked) < len(self.space.corners):
            return None
        costs = costs_of(self._runs, self.score_forms)
        stop = stopping_row(costs, self.most_runs) if self.choice == "improvement" else None
        if stop is not None:
            return f"run {stop + 1} raised the cost by {costs[stop] / costs[stop - 1] - 1:.0%}"
        if len(self._runs) >= self.most_runs:
            return f"{self.most_runs} runs were made"
        if self.most_calls is not None and self._calls >= self.most_calls:
            return f"{self.most_calls} budgets were asked for"
        return None

    def _next(self) -> Budget:
        corners = self.space.corners
        if len(self._asked) < len(corners):
            return corners[len(self._asked)]
        if self.choice == "edge":
            return edge(self.space, self._calls - len(corners))
        costs = costs_of(self._runs, self.score_forms)
        place = {self.space.budget(n, m): (i, j) for i, n in enumerate(self.space.slots)
                 for j, m in enumerate(self.space.memory_mb)}  # fmt: skip
        told = [(place[budget], costs[last - 1]) for budget, last in self._asked]
        # The corners' own costs are not defined before all of them are measured: they share the first defined one.
        first = next((cost for _, cost in told if math.isfinite(cost)), 1.0)
        values = [cost if math.isfinite(cost) else first for _, cost in told]
        i, j = propose(
            [point for point, _ in told], values, (len(self.space.slots), len(self.space.memory_mb)), self.seed
        )
        return self.space.budget(self.space.slots[i], self.space.memory_mb[j])


def conclude(
    runs: Sequence[Measurement],
    reason: str,
    *,
    form: str = SCALING,
    score_forms: Sequence[str] = STREAMBED_FORMS,
    most_runs: int = MOST_RUNS,
    choice: Choice = "improvement",
) -> Exploration:
    """Fit the model to the runs that count: before the one that ended it, with a rate, and not stuck at a limit.

    Raises
    ------
    WorkbenchError
        When fewer than three runs are left.
    """
    costs = costs_of(runs, score_forms)
    stop = stopping_row(costs, most_runs) if choice == "improvement" else None
    rows = [row for row, run in enumerate(runs[:stop]) if run.estimate.rate]
    if len(rows) >= LEAST_FITTED:
        kept = [runs[row] for row in rows]
        review = review_readings(_points(kept), _rates(kept), [run.predicted_rate or math.nan for run in kept])
        rows = [row for row, valid in zip(rows, review.valid, strict=True) if valid]
    if len(rows) < LEAST_FITTED:
        raise WorkbenchError(
            f"Only {len(rows)} of {len(runs)} runs give a capacity; a model needs at least {LEAST_FITTED}. Lower the "
            "estimator's min_rate, or explore larger budgets."
        )
    points, rates = _points([runs[row] for row in rows]), _rates([runs[row] for row in rows])
    stateful = any(keeps_state(run) for run in runs)
    if form == "halves":
        model = select_model(points, rates, stateful=stateful)
    else:
        model = CapacityModel(form, stateful=stateful).fit(points, rates, [runs[row] for row in rows])
    return Exploration(tuple(runs), costs, tuple(rows), model, reason)


def keeps_state(measurement: Measurement) -> bool:
    """Whether an operator was seen that keeps state."""
    seen = measurement.estimate.observation
    return seen is not None and any(operator.state_bytes is not None for operator in seen.operators)


def costs_of(runs: Sequence[Measurement], forms: Sequence[str] = STREAMBED_FORMS) -> tuple[float, ...]:
    """Cost after each run, records/s: the lowest leave-one-out error over `forms` (Equation 9); inf while undefined."""
    costs = []
    for count in range(1, len(runs) + 1):
        usable = [run for run in runs[:count] if run.estimate.rate]
        costs.append(exploration_cost(_points(usable), _rates(usable), forms) if len(usable) >= CORNERS else math.inf)
    return tuple(costs)


def edge(space: Space, number: int) -> Budget:
    """Give the budget that is asked for as `number` after the corners, counted from 0: the middle, then the edge."""
    ends = tuple(dict.fromkeys((space.memory_mb[0], space.memory_mb[-1])))
    middle = number < len(ends) and len(space.slots) > CORNERS // 2
    return space.budget(space.slots[len(space.slots) // 2 if middle else -1], ends[number % len(ends)])


def propose(
    points: Sequence[tuple[int, int]], costs: Sequence[float], shape: tuple[int, int], seed: int
) -> tuple[int, int]:
    """Give the grid point of highest expected improvement of a Gaussian process over `points` and their `costs`.

    The grids have `shape` points; a grid of one point is no dimension of the process.
    """
    free = [axis for axis in range(len(shape)) if shape[axis] > 1]
    scale = max(abs(cost) for cost in costs) or 1.0
    search = Optimizer(
        [Integer(0, shape[axis] - 1) for axis in free],
        base_estimator="GP",
        acq_func="EI",
        n_initial_points=1,
        random_state=seed + len(points),
        avoid_duplicates=False,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a length scale at its bound, or a repeated point, is no news
        search.tell([[point[axis] for axis in free] for point in points], [cost / scale for cost in costs])
        asked = search.ask()
    found = dict(zip(free, asked, strict=True))
    return int(found.get(0, 0)), int(found.get(1, 0))


def stopping_row(costs: Sequence[float], most_runs: int = MOST_RUNS) -> int | None:
    """Index of the run that ends the exploration and is not fitted; None if none does (algorithms of section VI).

    At least seven runs are kept; from the eighth on the first whose cost exceeds 1.10 times the one before ends it.
    """
    for row in range(LEAST_RUNS, min(len(costs), most_runs)):
        if costs[row] > GROWTH * costs[row - 1] * (1 + SLACK):
            return row
    return None


def _points(runs: Iterable[Measurement]) -> np.ndarray:
    return np.array([[run.budget.profile.memory_mb, run.budget.slots] for run in runs], dtype=float)


def _rates(runs: Iterable[Measurement]) -> np.ndarray:
    return np.array([run.estimate.rate for run in runs], dtype=float)
