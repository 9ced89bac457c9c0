"""What a placement is worth: the highest source rate that the workers' capacities allow, and its spread.

Loads grow with the source rate, so a plan's rate follows from its fullest worker: the one that first runs out of
cores, of bytes/s to its state, or of bytes/s to the network; or from a task that needs more than one core. It is what
the fluid engine's contention does to a dataflow without windows and with one consumer per operator (the tests compare).

Spark places tasks at random, so there a plan cannot be chosen, only the shape of the workers: `shape_spreads` shows
what random placement costs on each.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from workbench.dataflow import Dataflow, OperatorProfile
from workbench.errors import WorkbenchError
from workbench.placement.caps import search
from workbench.placement.problem import DIMENSIONS, CostVector, PlacementProblem
from workbench.simulation import Worker

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class PlacedRate:
    """What a plan sustains.

    Parameters
    ----------
    rate
        Highest source rate, records/s; inf if nothing limits it.
    worker
        The worker that is full first; None if a task's own core is, or nothing.
    resource
        ``"cpu"``, ``"io"``, ``"net"``, or ``"task"`` where a task needs a whole core; None if nothing limits.
    """

    rate: float
    worker: int | None
    resource: str | None


@dataclass(frozen=True)
class Spread:
    """Rates of random placements on workers of one shape, beside the best that was found.

    Parameters
    ----------
    workers, slots
        The shape.
    best
        Rate of the best plan found, records/s.
    rates
        Rates of the random placements, ascending, shape (samples,).
    """

    workers: int
    slots: int
    best: float
    rates: NDArray[np.float64]

    def quantile(self, share: float) -> float:
        """Rate that so large a share of random placements does not reach."""
        return float(np.quantile(self.rates, share))


def placed_rate(problem: PlacementProblem, counts: ArrayLike, rate: float, worker: Worker) -> PlacedRate:
    """Find the highest source rate that a plan sustains.

    Parameters
    ----------
    problem
        Its loads are those at `rate`: CPU seconds, bytes and bytes per second of each task.
    counts
        The plan, shape (operators, workers).
    rate
        Source rate of the loads, records/s.
    worker
        Capacities of a worker of speed 1; a worker of speed 2 has twice as much.

    Raises
    ------
    WorkbenchError
        When the rate is not above 0, or `counts` is no plan.
    """
    if not (math.isfinite(rate) and rate > 0):
        raise WorkbenchError(f"The rate of the loads is {rate!r}; it must be a finite number above 0, in records/s.")
    loads = problem.worker_loads(counts)
    speeds = np.array(problem.speeds)
    capacity = np.array([worker.cpus, worker.io_bytes_per_s, worker.net_bytes_per_s])[:, None] * speeds
    with np.errstate(divide="ignore", invalid="ignore"):
        factors = np.where(loads > 0, capacity / loads, np.inf)
    fullest = np.unravel_index(int(np.argmin(factors)), factors.shape)
    lowest = float(factors[fullest])
    own = _task_factor(problem, np.asarray(counts), speeds)
    if min(lowest, own) == math.inf:
        return PlacedRate(math.inf, None, None)
    if own < lowest:
        return PlacedRate(rate * own, None, "task")
    return PlacedRate(rate * lowest, int(fullest[1]), DIMENSIONS[int(fullest[0])])


def random_placement(problem: PlacementProblem, random: np.random.Generator) -> Counts:
    """Put every task on a free slot drawn at random, all slots alike: what Spark does."""
    owners = np.repeat(np.arange(problem.workers), problem.slots)
    drawn = random.permutation(owners)[: problem.tasks]
    counts = np.zeros((len(problem.operators), problem.workers), dtype=np.int64)
    operators = np.repeat(np.arange(len(problem.operators)), problem.parallelism)
    np.add.at(counts, (operators, drawn), 1)
    return counts


def spread(
    problem: PlacementProblem,
    rate: float,
    worker: Worker,
    *,
    samples: int = 200,
    seed: int = 0,
    timeout_s: float = 2.0,
) -> Spread:
    """Compare random placements with the best plan found.

    Parameters
    ----------
    samples, seed
        Number of random placements, and their seed.
    timeout_s
        For the search of the best plan among those of the Pareto front; the random ones compete as well.
    """
    random = np.random.default_rng(seed)
    rates = np.sort(
        [placed_rate(problem, random_placement(problem, random), rate, worker).rate for _ in range(samples)]
    )
    found = search(problem, CostVector(), timeout_s=timeout_s)
    front = [placed_rate(problem, plan.counts, rate, worker).rate for plan in found.pareto]
    return Spread(problem.workers, problem.slots, max([*front, float(rates[-1])]), rates)


def shape_spreads(
    dataflow: Dataflow,
    profiles: Mapping[str, OperatorProfile],
    parallelism: Mapping[str, int],
    rate: float,
    *,
    core: Worker,
    shapes: Sequence[tuple[int, int]],
    samples: int = 200,
    seed: int = 0,
) -> tuple[Spread, ...]:
    """Compare worker shapes for a scheduler that places at random, the best shape first.

    Parameters
    ----------
    dataflow, profiles, parallelism, rate
        See `PlacementProblem.from_dataflow`.
    core
        Capacities per slot: a worker of n slots has n times as much.
    shapes
        (workers, slots) to compare, such as (4, 4), (8, 2), (16, 1).

    Returns
    -------
    tuple of Spread
        By the rate that nine of ten random placements reach, highest first; ties to fewer workers.
    """
    spreads = []
    for workers, slots in shapes:
        problem = PlacementProblem.from_dataflow(dataflow, profiles, rate, workers, slots, parallelism=parallelism)
        worker = Worker(core.cpus * slots, core.io_bytes_per_s * slots, core.net_bytes_per_s * slots)
        spreads.append(spread(problem, rate, worker, samples=samples, seed=seed))
    return tuple(sorted(spreads, key=lambda one: (-one.quantile(0.1), one.workers)))


def _task_factor(problem: PlacementProblem, counts: Counts, speeds: NDArray[np.float64]) -> float:
    """How much more every task can do before one needs a whole core of its worker."""
    factors = [
        float(speeds[counts[operator] > 0].min()) / load
        for operator, load in enumerate(problem.cpu)
        if load > 0 and counts[operator].any()
    ]
    return min(factors, default=math.inf)
