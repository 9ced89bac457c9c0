"""What is worth knowing about a placement: every method's plan, the front, the thresholds, worker shapes."""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from workbench.errors import WorkbenchError
from workbench.placement import (
    SEARCH_S,
    Comparison,
    CostVector,
    Placed,
    PlacementInput,
    SearchResult,
    Setting,
    Spread,
    Tuning,
    check_methods,
    compare,
    count_plans,
    count_within,
    search,
    shape_spreads,
    tune,
)
from workbench.simulation import Worker

DRAWS = 50  # of each method that uses chance, by default
_LEVELS = (1.0, 0.5, 0.3, 0.2, 0.1, 0.05)
_COUNTING = 1e9  # additions, about a second
_ROOMS = (math.inf, 4.0, 2.0, 1.3)  # factors over the tightest thresholds, widest first


@dataclass(frozen=True, eq=False)
class PlacementStudy:
    """What was found about a placement."""

    given: PlacementInput
    compared: Comparison
    tuning: Tuning  # thresholds that just admit a plan
    front: SearchResult  # plans to choose between, within the widest thresholds that could be searched in time
    within: CostVector  # the widest thresholds that could be searched in time
    searches: tuple[tuple[CostVector, SearchResult], ...]  # the same search under several thresholds of the CPU
    shapes: tuple[Spread, ...]  # rates of random placements; none without rate and capacities
    timeout_s: float
    possible: int | None = None  # number of plans; None where counting takes too long, or workers differ
    admitted: int | None = None  # those of them that meet the thresholds
    asked: Placed | None = None  # plan of the requested method

    @property
    def shown(self) -> Placed:
        """The plan of the requested method, else the best."""
        return self.best if self.asked is None else self.asked

    @property
    def best(self) -> Placed:
        """The plan of the method with the highest rate, in the ranking of the comparison."""
        return self.compared.best.placed


def study_placement(
    given: PlacementInput,
    *,
    method: str | None = None,
    seed: int = 0,
    samples: int = DRAWS,
    timeout_s: float = SEARCH_S,
    thresholds: CostVector | None = None,
    odrp: Setting = "default",
    shapes: Sequence[tuple[int, int]] = (),
) -> PlacementStudy:
    """Find the plan with the highest rate, those of other methods, the front, and how tight thresholds can be.

    The plan of `method` is shown, see `place`; by default that of the one that sustains most. `samples` and `odrp` are
    the `draws` and `weights` of `compare`. `shapes` are (workers, slots) to compare; by default half as large, the same
    and twice as large, where rates are known. Raises WorkbenchError when a number is out of its range, or the method
    has no plan.
    """
    check_methods([method] if method else [], seed=seed, draws=samples, timeout_s=timeout_s, weights=odrp)
    problem = given.problem
    if not shapes and _limited(given):
        shapes = neighbouring_shapes(problem.workers, problem.slots)
    found = compare(given, thresholds=thresholds, seed=seed, draws=samples, timeout_s=timeout_s, weights=odrp)
    tuning = tune(problem, timeout_s=min(1.0, timeout_s))
    for room in _ROOMS:  # to the widest thresholds with plans that can all be visited in time, else the narrowest
        within = CostVector(*(room * limit if limit > 0 else 0.0 for limit in tuning.thresholds))
        front = search(problem, within, timeout_s=timeout_s / len(_ROOMS))
        if front.exhausted:
            break
    levels = sorted({level for level in _LEVELS if level > tuning.thresholds.cpu} | {tuning.thresholds.cpu})
    searches = tuple(
        (limits, search(problem, limits, timeout_s=timeout_s / len(levels)))
        for limits in (CostVector(cpu=level, io=within.io, net=within.net) for level in levels)
    )
    possible = admitted = asked = None
    with suppress(WorkbenchError):
        possible = count_plans(problem.parallelism, problem.workers, problem.slots, most_steps=_COUNTING)
    with suppress(WorkbenchError):
        admitted = count_within(problem, tuning.thresholds, most_steps=_COUNTING)
    if method is not None:
        if method in found.refused:
            raise WorkbenchError(found.refused[method])
        asked = next(row.placed for row in found.rows if row.placed.method == method)
    drawn = shapes_compared(given, shapes, samples, seed) if shapes else ()
    return PlacementStudy(given, found, tuning, front, within, searches, drawn, timeout_s, possible, admitted, asked)


def shapes_compared(
    given: PlacementInput, shapes: Sequence[tuple[int, int]], samples: int, seed: int
) -> tuple[Spread, ...]:
    """Draw random placements on workers of other shapes, whose slots each have a fair share of the given capacities."""
    if given.rate is None:
        raise WorkbenchError(
            "The rate that the loads belong to is unknown; give it here, or in the problem.", settings=("rate",)
        )
    if not _limited(given):
        raise WorkbenchError(
            "The capacities of the workers are unknown, so shapes cannot be distinguished; give one.",
            settings=("cpus", "io", "net"),
        )
    slots = given.problem.slots
    core = Worker(*(limit / slots for limit in vars(given.worker).values()))
    return shape_spreads(given.problem, given.rate, core=core, shapes=shapes, samples=samples, seed=seed)


def _limited(given: PlacementInput) -> bool:
    """Whether costs can be turned into rates."""
    return given.rate is not None and any(map(math.isfinite, vars(given.worker).values()))


def neighbouring_shapes(workers: int, slots: int) -> Sequence[tuple[int, int]]:
    """Return shapes (workers, slots) of as many slots: half as large, the same, twice as large if it is whole."""
    halved = [(2 * workers, slots // 2)] if slots % 2 == 0 else []
    doubled = [(workers // 2, 2 * slots)] if workers % 2 == 0 else []
    return (*halved, (workers, slots), *doubled)
