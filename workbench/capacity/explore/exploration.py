"""The result of an exploration: which runs show the query's capacity, what each was worth, and the fitted model.

Deviation: a run's capacity is the middle of its bracket, not the rate that was sustained, which is less by half the
tolerance.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Literal

import numpy as np

from workbench.capacity.model import (
    SCALING,
    STREAMBED_FORMS,
    Asked,
    Growth,
    Model,
    ModelFinding,
    advise,
    check_runs,
    describe_runs,
    exploration_cost,
    model_of_form,
    review_readings,
    select_model,
    why_no_capacity,
)
from workbench.checks import SLACK
from workbench.errors import NoCapacityError, WorkbenchError
from workbench.records import FailedRun, Measurement, Run

CORNERS, AT_ONE_MEMORY = 4, 3
"""Fewest runs for a defined cost: in general; and where only slots are explored, as two runs determine a form."""
LEAST_FITTED, LEAST_OF_LAW = 3, 2
LEAST_RUNS = 7
MOST_RUNS = 20
GROWTH = 1.10

Choice = Literal["improvement", "edge"]


@dataclass(frozen=True)
class Exploration:
    """The runs of an exploration, and the model fitted to them."""

    runs: tuple[Run, ...]  # all runs, in order, those that failed included
    # cost after each run, records/s: the lowest leave-one-out error so far (inf until it is defined)
    costs: tuple[float, ...]
    fitted: tuple[int, ...]
    model: Model
    reason: str
    # runs that do not show the query's capacity, each with the reason; they are not fitted
    left_out: Mapping[int, str] = field(default_factory=dict)
    asked: Asked = field(default_factory=Asked)  # how the runs were requested; advice depends on it

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """Runs that did not fail, in order."""
        return tuple(run for run in self.runs if isinstance(run, Measurement))

    @property
    def fitted_runs(self) -> tuple[Measurement, ...]:
        """Runs the model was fitted to."""
        return tuple(run for row in self.fitted if isinstance(run := self.runs[row], Measurement))

    @property
    def points(self) -> np.ndarray:
        """Memory per slot (MiB) and slots of the fitted runs, shape (runs, 2)."""
        return _points(self.fitted_runs)

    @property
    def rates(self) -> np.ndarray:
        """Capacity of the fitted runs, the middle of their brackets, records/s, shape (runs,)."""
        return _rates(self.fitted_runs)

    @property
    def findings(self) -> tuple[ModelFinding, ...]:
        """What to know about the runs."""
        return check_runs(self.runs, self.fitted, self.left_out, self.asked)


def conclude(
    runs: Sequence[Run],
    reason: str,
    *,
    form: str = SCALING,
    score_forms: Sequence[str] = STREAMBED_FORMS,
    most_runs: int = MOST_RUNS,
    choice: Choice = "improvement",
    growth: Growth | None = None,
    least: int | None = None,
) -> Exploration:
    """Fit the model to the runs before the one that ended the exploration, except outliers and runs without a capacity.

    `growth` is what more slots are, if known; see `ScalingModel`. `least` is the fewest runs that are
    fitted: three, or two by the scaling law, whose interval says how little they show.
    """
    costs = costs_of(runs, score_forms)
    stop = stopping_row(costs, most_runs) if choice == "improvement" else None
    left_out = {row: why for row, run in enumerate(runs[:stop]) if (why := why_no_capacity(run)) is not None}
    shown = ((row, run) for row, run in enumerate(runs[:stop]) if row not in left_out)
    usable = {row: run for row, run in shown if isinstance(run, Measurement)}
    if len(usable) >= LEAST_FITTED:
        rows, kept = list(usable), list(usable.values())
        review = review_readings(_points(kept), _rates(kept), [run.predicted_rate or math.nan for run in kept])
        left_out |= {rows[row]: str(group) for group in review.outliers for row in group.runs}
        usable = {row: run for row, run in usable.items() if row not in left_out}
    wanted, fitted = least or (LEAST_OF_LAW if form == SCALING else LEAST_FITTED), list(usable.values())
    too_few = _too_few(runs, len(fitted), left_out, wanted) if len(fitted) < wanted else None
    if too_few is not None and not (fitted and form == SCALING):
        raise too_few
    points, rates = _points(fitted), _rates(fitted)
    chosen = select_model(points, rates).form if form == "halves" else form
    model = model_of_form(chosen, stateful=keeps_state(runs), growth=growth).fit(points, rates, fitted)
    if too_few is not None and model.batch is None:  # where its parts explain a batch, fewer runs are enough
        raise too_few
    asked = Asked(fitted[0].testbed_kind)
    return Exploration(tuple(runs), costs, tuple(usable), model, reason, dict(sorted(left_out.items())), asked)


def _too_few(runs: Sequence[Run], count: int, left_out: Mapping[int, str], wanted: int) -> WorkbenchError:
    """Make the error that `count` runs are too few for a model: why the others do not count, and what to do."""
    causes = dict.fromkeys(run.failure for run in runs if isinstance(run, FailedRun))
    if len(causes) == 1 and all(isinstance(run, FailedRun) for run in runs):
        return WorkbenchError(next(iter(causes)))  # other budgets would fail, too
    others = {row: "it failed." if isinstance(runs[row], FailedRun) else why for row, why in left_out.items()}
    few = f"Only {count}" if count else "None"
    said = [
        *causes,
        f"{few} of {len(runs)} runs give{'s' * (count <= 1)} a capacity; a model needs at least {wanted}.",
        describe_runs(runs, others),
        advise(runs[row] for row in left_out) or "Explore more budgets (slots, memory_mb, most_runs).",
    ]
    kind = WorkbenchError if causes else NoCapacityError  # the input or the machine may be what failed
    return kind(" ".join(filter(None, said)))


def keeps_state(runs: Iterable[Run]) -> bool | None:
    """Whether any of `runs` saw an operator that keeps state; None if none saw operators, as in a table of rates."""
    seen = [run.estimate.observation for run in runs if isinstance(run, Measurement)]
    stateful = [operator.keeps_state for one in seen if one is not None for operator in one.operators]
    return any(stateful) if stateful else None


def costs_of(runs: Sequence[Run], forms: Sequence[str] = STREAMBED_FORMS, fewest: int = CORNERS) -> tuple[float, ...]:
    """Lowest leave-one-out error over `forms` after each run, records/s (Equation 9); inf before `fewest` runs."""
    shows = [isinstance(run, Measurement) and why_no_capacity(run) is None for run in runs]
    usable = [run for run, shown in zip(runs, shows, strict=True) if shown and isinstance(run, Measurement)]
    points, rates = _points(usable), _rates(usable)
    return tuple(
        exploration_cost(points[:count], rates[:count], forms) if count >= fewest else math.inf
        for count in accumulate(map(int, shows))
    )


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
    return np.array([run.estimate.middle for run in runs], dtype=float)
