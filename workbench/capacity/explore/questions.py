"""Which budget follows the runs so far, and why; recomputed from the runs for finished explorations.

What the explorer asks is a function of the runs and the seed, so nothing of it has to be stored.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from workbench import units
from workbench.capacity.explore.acquisition import Acquired, Point, acquire, edge, farthest, nearest
from workbench.capacity.explore.exploration import AT_ONE_MEMORY, CORNERS, Choice, costs_of
from workbench.capacity.model import STREAMBED_FORMS, unmeasured_memory_mb
from workbench.dataflow import Budget
from workbench.records import FailedRun, Run

if TYPE_CHECKING:
    from workbench.capacity.explore.explorer import Space

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
    space: "Space"
    runs: tuple[Run, ...]

    @property
    def sentence(self) -> str:
        """A sentence on the question; it adds if there is no choice because all budgets define the first cost."""
        budget, all_ = self.why.budget, len(self.space.budgets)
        asked = f"{units.some(budget.slots, 'slot')} of {units.count(budget.profile.memory_mb)} MB"
        after = f"After {units.some(len(self.runs), 'run')}" if self.runs else "At first"
        said = f"{after} the explorer asks for {asked}: {self.why.words}"
        if self.why.cause in {"corner", "farthest"} and all_ <= _defined_from(self.space):
            said += f" (the grid is the space: there is nothing to choose until its {all_} budgets are measured)"
        return said

    @property
    def lines(self) -> tuple[str, ...]:
        """The sentence, as the only line."""
        return (self.sentence,)


def next_question(
    runs: Sequence[Run],
    answers: Sequence[int],
    space: "Space",
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
    space: "Space",
    seed: int = 0,
    *,
    choice: Choice = "improvement",
    estimates: int = 1,
    forms: Sequence[str] = STREAMBED_FORMS,
) -> tuple[Why, ...]:
    """Return why each run was made; ``"grid"`` for all if no explorer of `space` with these parameters made them."""
    places, answers, found = _places(space), list[int](), list[Why]()
    given = calls = 0
    why: Why | None = None
    for row, run in enumerate(runs):
        if not given:
            why = next_question(runs[:row], answers, space, seed, calls=calls, choice=choice, forms=forms)
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


def _defined_from(space: "Space") -> int:
    """Return the number of runs from which on the cost is defined."""
    return CORNERS if len(space.memory_mb) > 1 else AT_ONE_MEMORY


def _places(space: "Space") -> dict[Budget, Point]:
    """Return the indices of the slots and of the memory of every budget."""
    return {
        space.budget(slots, memory): (i, j)
        for i, slots in enumerate(space.slots)
        for j, memory in enumerate(space.memory_mb)
    }


def on_the_way(run: Run, asked: Budget) -> bool:
    """Whether `run` is of the minimal configuration that the answer to `asked` needs."""
    return run.tasks is not None and run.budget != asked and run.budget == replace(asked, slots=len(run.tasks))
