"""Which budget follows the runs so far, and why; recomputed from the runs for finished explorations.

What the explorer asks is a function of the runs and the seed, so nothing of it has to be stored. On the grid of a
space, a point is the index of its slots and of its memory.
"""

import math
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from workbench import units
from workbench.arrays import Floats
from workbench.capacity.explore.exploration import AT_ONE_MEMORY, CORNERS, Choice, costs_of
from workbench.capacity.model import STREAMBED_FORMS, unmeasured_memory_mb
from workbench.checks import shown
from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.records import FailedRun, Run

Point = tuple[int, int]

_HAS_MIDDLE = 3
_SEEDS = 2**32  # NumPy's random states end here; a date and time is larger


def edge(shape: Point, number: int) -> Point:
    """Return point `number` (from 0) after the corners: the middle slots, then the most, at both memory ends."""
    ends = tuple(dict.fromkeys((0, shape[1] - 1)))
    middle = number < len(ends) and shape[0] >= _HAS_MIDDLE
    return shape[0] // 2 if middle else shape[0] - 1, ends[number % len(ends)]


def farthest(points: Collection[Point], shape: Point, allowed: Collection[Point]) -> Point:
    """Return the point of `allowed` farthest from the nearest of `points`; among equals, the one of most slots."""

    def distance(one: Point, other: Point) -> float:
        return math.hypot(*((a - b) / max(1, size - 1) for a, b, size in zip(one, other, shape, strict=True)))

    return max(allowed, key=lambda one: (round(min((distance(one, other) for other in points), default=0.0), 9), *one))


def nearest(point: Point, allowed: Collection[Point]) -> Point:
    """Return the point of `allowed` with the fewest steps from `point`; among equals, the first."""
    return min(allowed, key=lambda one: (abs(one[0] - point[0]) + abs(one[1] - point[1]), *one))


@dataclass(frozen=True)
class Acquired:
    """What a Gaussian process over the grid predicts for the cost of a next run, and the point it would measure."""

    point: Point  # the point that scikit-optimize asks for
    mean: Floats  # of the posterior of the cost, in the unit of the costs, shape (slots, memories)
    deviation: Floats  # likewise
    # expected improvement on the lowest cost seen, in the unit of the costs, shape (slots, memories)
    improvement: Floats


def acquire(points: Sequence[Point], costs: Sequence[float], shape: Point, seed: int) -> Acquired:
    """Fit a Gaussian process to `points` and their `costs`, and ask it for the point of highest expected improvement.

    A dimension of the grid's `shape` with one point does not enter the process.
    """
    from skopt import Optimizer  # noqa: PLC0415  takes seconds to import, and only explorations need it
    from skopt.acquisition import gaussian_ei  # noqa: PLC0415
    from skopt.space import Integer  # noqa: PLC0415

    free = [axis for axis in range(len(shape)) if shape[axis] > 1]
    scale = max(abs(cost) for cost in costs) or 1.0
    search = Optimizer(
        [Integer(0, shape[axis] - 1) for axis in free],
        base_estimator="GP",
        acq_func="EI",
        n_initial_points=1,
        acq_optimizer="sampling",  # of the grid: a gradient method would stop between its points
        random_state=(seed + len(points)) % _SEEDS,
        avoid_duplicates=False,
    )
    scaled = [cost / scale for cost in costs]
    grid = [[place[axis] for axis in free] for place in np.ndindex(shape)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a length scale at its bound, or a repeated point, needs no warning
        search.tell([[point[axis] for axis in free] for point in points], scaled)
        asked = search.ask()
        model, where = search.models[-1], search.space.transform(grid)
        mean, deviation = model.predict(where, return_std=True)
        improvement = gaussian_ei(where, model, min(scaled))
    found = dict(zip(free, asked, strict=True))
    tables = (np.reshape(table, shape) * scale for table in (mean, deviation, improvement))
    return Acquired((int(found.get(0, 0)), int(found.get(1, 0))), *tables)


@dataclass(frozen=True)
class Space:
    """Budgets that may be measured: the grid of `slots` and of `memory_mb`, MiB per slot, both ascending.

    One slot count is enough where runs with more partitions than slots show what tasks cost. With `largest_first` the
    corners of most slots come first, for which a warm deployment is made: no first answer goes beyond what was run.
    """

    slots: tuple[int, ...]
    memory_mb: tuple[int, ...]
    cpus: float = 1.0
    interval_s: float = 2.0
    largest_first: bool = False

    def __post_init__(self) -> None:
        for name, values in (("slots", self.slots), ("memory_mb", self.memory_mb)):
            if not values or list(values) != sorted(set(values)) or values[0] < 1:
                raise WorkbenchError(
                    f"{name} of the space is {shown(list(values))}; it must be whole numbers above 0, ascending. For "
                    "example [1, 2, 4]."
                )

    def budget(self, slots: int, memory_mb: int) -> Budget:
        """Return the budget of `slots` slots of `memory_mb` MiB each."""
        return Budget(slots, SlotProfile(self.cpus, memory_mb), self.interval_s)

    @property
    def budgets(self) -> tuple[Budget, ...]:
        """All budgets of the grid."""
        return tuple(self.budget(slots, memory) for memory in self.memory_mb for slots in self.slots)

    @property
    def corners(self) -> tuple[Budget, ...]:
        """Budgets at the ends: two where the memory is fixed."""
        ends = dict.fromkeys((self.memory_mb[0], self.memory_mb[-1]))
        few_and_many = dict.fromkeys((self.slots[0], self.slots[-1]))
        corners = tuple(self.budget(slots, memory) for memory in ends for slots in few_and_many)
        return tuple(sorted(corners, key=lambda one: -one.slots)) if self.largest_first else corners


Cause = Literal["corner", "minimal", "farthest", "improvement", "edge", "again", "grid"]

_ROUND = 4  # points after which the edge repeats
_WORDS: Mapping[Cause, str] = {
    "corner": "a corner of the space",
    "minimal": "one task per operator, for BIDS2",
    "farthest": "farthest from the runs so far",
    "improvement": "expected improvement",
    "edge": "the middle or the most slots",
    "again": "the same budget again",
    "grid": "every budget is measured",
}


@dataclass(frozen=True)
class Why:
    """Why a budget is measured."""

    budget: Budget
    # ``"farthest"`` from the runs: no cost is defined yet; ``"improvement"``: the highest expected one of the Gaussian
    # process; ``"edge"``: the middle or the most slots, in turn; ``"grid"``: no explorer asked
    cause: Cause
    # the Gaussian process asked, over the indices of the space's slots and memory; None where none was
    acquired: Acquired | None = None
    # its expected improvement at `budget`, records/s of the cost (Equation 9); None if there is none
    improvement: float | None = None

    @property
    def words(self) -> str:
        """The reason, in a few words."""
        if self.improvement is None:
            return _WORDS[self.cause]
        improvement = units.rate(self.improvement, 2) if self.improvement >= 1 else "under 1 record/s"
        return f"expected improvement of the error, {improvement}"


@dataclass(frozen=True, eq=False)
class Question:
    """The budget that the explorer asks for after `runs`, with the reason and the space."""

    why: Why
    space: Space
    runs: tuple[Run, ...]

    @property
    def sentence(self) -> str:
        """A sentence on the question; it adds if there is no choice because all budgets define the first cost."""
        budget, all_ = self.why.budget, len(self.space.budgets)
        asked = f"{units.some(budget.slots, 'slot')} of {units.count(budget.profile.memory_mb)} MB"
        after = f"After {units.some(len(self.runs), 'run')}" if self.runs else "At first"
        said = f"{after} the explorer asks for {asked}: {self.why.words}"
        if self.why.cause in {"corner", "farthest"} and all_ <= _defined_from(self.space):
            said += f"; there is nothing to choose, because all {all_} budgets are measured first"
        return said

    @property
    def lines(self) -> tuple[str, ...]:
        """The sentence, as the only line."""
        return (self.sentence,)


def next_question(
    runs: Sequence[Run],
    answers: Sequence[int],
    space: Space,
    seed: int = 0,
    *,
    calls: int | None = None,
    choice: Choice = "improvement",
    forms: Sequence[str] = STREAMBED_FORMS,
    used_up: Collection[Budget] = (),
) -> Why | None:
    """Choose the budget that follows `runs` (StreamBed, section VI); None if none is left.

    It never returns budgets that failed, budgets at a memory where nothing was sustained, or those
    `used_up`, of which nothing more can be measured. `answers` are the rows of runs that answered a question; the
    others were made on the way. `calls` counts the questions answered, of which one may take several runs; None: as
    many as answers. The cost is the lowest leave-one-out error of the `forms`. The rest is as of `ResourceExplorer`.
    """
    answered = {runs[row].budget for row in answers}
    corner = next((corner for corner in space.corners if corner not in answered), None)
    if corner is not None:
        return Why(corner, "corner")
    places, shape, useless = _places(space), (len(space.slots), len(space.memory_mb)), unmeasured_memory_mb(runs)
    refused = {*used_up, *(run.budget for run in runs if isinstance(run, FailedRun))}
    allowed = {
        place: budget
        for budget, place in places.items()
        if budget not in refused and budget.profile.memory_mb not in useless
    }
    if choice == "edge":
        first = (len(answers) if calls is None else calls) - len(space.corners)
        points = (edge(shape, number) for number in range(first, first + _ROUND))
        found = next((point for point in points if point in allowed), None)
        return None if found is None else Why(allowed[found], "edge")
    if not allowed:
        return None
    # Costs are undefined until all corners are measured: runs before that share the first defined cost.
    costs = costs_of(runs, forms, _defined_from(space))
    told = [(places[runs[row].budget], costs[row]) for row in answers if runs[row].budget in places]
    shared = next((cost for _, cost in told if math.isfinite(cost)), None)
    if shared is None:
        known = [places[run.budget] for run in runs if run.budget in places]
        return Why(allowed[farthest(known, shape, allowed)], "farthest")
    values = [cost if math.isfinite(cost) else shared for _, cost in told]
    acquired = acquire([point for point, _ in told], values, shape, seed)
    point = nearest(acquired.point, allowed)
    return Why(allowed[point], "improvement", acquired, float(acquired.improvement[point]))


def reasons(
    runs: Sequence[Run],
    space: Space,
    seed: int = 0,
    *,
    choice: Choice = "improvement",
    estimates: int = 1,
) -> tuple[Why, ...]:
    """Return why each run was made; ``"grid"`` for all if no explorer of `space` with these parameters made them."""
    places, answers, found = _places(space), list[int](), list[Why]()
    given = calls = 0
    why: Why | None = None
    for row, run in enumerate(runs):
        if not given:
            why = next_question(runs[:row], answers, space, seed, calls=calls, choice=choice)
        if why is None or (why.cause == "corner" and run.budget != why.budget and not on_the_way(run, why.budget)):
            return tuple(Why(one.budget, "grid") for one in runs)
        if on_the_way(run, why.budget):
            found.append(Why(run.budget, "minimal"))
            continue
        point = places.get(run.budget)
        if given:
            found.append(Why(run.budget, "again"))
        else:
            at = None if why.acquired is None or point is None else float(why.acquired.improvement[point])
            found.append(replace(why, budget=run.budget, improvement=at))
        answers.append(row)
        given += 1
        if given >= (estimates if calls >= len(space.corners) else 1) or isinstance(run, FailedRun):
            given, calls = 0, calls + 1
    return tuple(found)


def _defined_from(space: Space) -> int:
    return CORNERS if len(space.memory_mb) > 1 else AT_ONE_MEMORY


def _places(space: Space) -> dict[Budget, Point]:
    """Return the indices of the slots and of the memory of every budget."""
    return {
        space.budget(slots, memory): (i, j)
        for i, slots in enumerate(space.slots)
        for j, memory in enumerate(space.memory_mb)
    }


def on_the_way(run: Run, asked: Budget) -> bool:
    """Whether `run` is of the minimal configuration that the answer to `asked` needs."""
    return run.tasks is not None and run.budget != asked and run.budget == replace(asked, slots=len(run.tasks))
