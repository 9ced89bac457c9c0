"""What is worth knowing about a placement: every method's plan, the front, the thresholds, worker shapes."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from workbench.errors import WorkbenchError
from workbench.placement import (
    METHODS,
    CostVector,
    Placed,
    PlacementInput,
    PlacementProblem,
    SearchResult,
    Spread,
    Tuning,
    best_method,
    compare,
    count_plans,
    count_within,
    search,
    shape_spreads,
    tune,
)
from workbench.simulation import Worker

_LEVELS = (1.0, 0.5, 0.3, 0.2, 0.1, 0.05)
_COUNTING = 1e9  # additions, about a second
_ROOMS = (math.inf, 4.0, 2.0, 1.3)  # times the tightest thresholds, widest first


@dataclass(frozen=True, eq=False)
class PlacementStudy:
    """What was found.

    Parameters
    ----------
    given
        What was to be placed, on which workers.
    methods
        Plans by method, those that look for the best first; where chance has a part as many as were drawn.
    refused
        Methods that found no plan, with the reason.
    tuning
        Thresholds that just admit a plan.
    front
        Plans to choose between: a search within the widest thresholds that time allowed to search through.
    within
        These thresholds.
    searches
        The same search under several thresholds of the CPU.
    shapes
        Rates of random placements by worker shape; none without the rate of the loads and a worker's capacities.
    possible, admitted
        How many plans there are, and how many of them meet the thresholds; None where counting takes too long, or
        workers differ.
    """

    given: PlacementInput
    methods: Mapping[str, tuple[Placed, ...]]
    refused: Mapping[str, str]
    tuning: Tuning
    front: SearchResult
    within: CostVector
    searches: tuple[tuple[CostVector, SearchResult], ...]
    shapes: tuple[Spread, ...]
    possible: int | None = None
    admitted: int | None = None

    @property
    def best(self) -> Placed:
        """The plan of the highest rate where rates are known, else of the least worst cost; ties to the first method.

        Plans for other numbers of tasks, as ODRP chooses them, answer another question and do not compete.
        """
        tasks = self.given.problem.parallelism
        return max(
            (plan for plans in self.methods.values() for plan in plans if plan.problem.parallelism == tasks),
            key=lambda plan: float(f"{-plan.cost.worst if plan.rate is None else plan.rate.rate:.9g}"),
        )


def study_placement(
    given: PlacementInput, *, seed: int = 0, samples: int = 50, timeout_s: float = 5.0
) -> PlacementStudy:
    """Find the best plan, what other methods do, the front, and how tight thresholds can be.

    Parameters
    ----------
    given
        See `read_placement_input`.
    seed, samples
        Of the methods that draw; how often each draws.
    timeout_s
        Longest time of each search; the optimum is bounded by effort instead, so it is the same on every machine.

    Raises
    ------
    WorkbenchError
        When a number is out of its range.
    """
    check_draws(seed, samples, timeout_s)
    problem = given.problem
    best = ["fastest", "optimal"] if best_method(given) == "fastest" else ["optimal"]
    others = [method for method in METHODS if method not in {"fastest", "optimal", "caps"}]  # all plans: the front
    known = compare(given, best, timeout_s=None)
    drawn = compare(given, others, seed=seed, draws=samples, timeout_s=timeout_s)
    tuning = tune(problem, timeout_s=min(1.0, timeout_s))
    within, front = _widest(problem, tuning.thresholds, timeout_s / len(_ROOMS))
    levels = sorted({level for level in _LEVELS if level > tuning.thresholds.cpu} | {tuning.thresholds.cpu})
    searches = tuple(
        (limits, search(problem, limits, timeout_s=timeout_s / len(levels)))
        for limits in (CostVector(cpu=level, io=within.io, net=within.net) for level in levels)
    )
    return PlacementStudy(
        given,
        {row.placed.method: row.plans for row in (*known, *drawn)},
        {**known.refused, **drawn.refused},
        tuning,
        front,
        within,
        searches,
        _shapes(given, samples, seed),
        _counted(lambda: count_plans(problem.parallelism, problem.workers, problem.slots, most_steps=_COUNTING)),
        _counted(lambda: count_within(problem, tuning.thresholds, most_steps=_COUNTING)),
    )


def check_draws(seed: int, samples: int, timeout_s: float) -> None:
    """Refuse what `study_placement` cannot draw or search by.

    Raises
    ------
    WorkbenchError
        When a number is out of its range.
    """
    for name, value, least in (("samples", samples, 1), ("seed", seed, 0)):
        if value < least:
            raise WorkbenchError(f"{name} is {value!r}; it must be a whole number of at least {least}.")
    if not timeout_s > 0:
        raise WorkbenchError(f"timeout_s is {timeout_s!r}; give seconds above 0.")


def _counted(count: Callable[[], int]) -> int | None:
    try:
        return count()
    except WorkbenchError:
        return None


def _widest(problem: PlacementProblem, tightest: CostVector, timeout_s: float) -> tuple[CostVector, SearchResult]:
    """Search within the widest thresholds whose plans can all be met in time; else within the narrowest."""
    for room in _ROOMS:
        within = CostVector(*(room * limit if limit > 0 else 0.0 for limit in tightest))
        front = search(problem, within, timeout_s=timeout_s)
        if front.exhausted:
            break
    return within, front


def _shapes(given: PlacementInput, samples: int, seed: int) -> tuple[Spread, ...]:
    if given.rate is None or not _limited(given):
        return ()
    problem = given.problem
    core = Worker(*(limit / problem.slots for limit in vars(given.worker).values()))
    shapes = neighbouring_shapes(problem.workers, problem.slots)
    return shape_spreads(problem, given.rate, core=core, shapes=shapes, samples=samples, seed=seed)


def _limited(given: PlacementInput) -> bool:
    """Whether costs can be turned into rates."""
    return given.rate is not None and any(map(math.isfinite, vars(given.worker).values()))


def neighbouring_shapes(workers: int, slots: int) -> Sequence[tuple[int, int]]:
    """Give (workers, slots) with as many slots in all: half as large, the same, twice as large, where that is whole."""
    halved = [(2 * workers, slots // 2)] if slots % 2 == 0 else []
    doubled = [(workers // 2, 2 * slots)] if workers % 2 == 0 else []
    return (*halved, (workers, slots), *doubled)
