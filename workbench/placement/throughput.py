"""What a placement is worth: the highest source rate that the workers' capacities allow, and its spread.

Loads grow with the source rate, so a plan's rate follows from its fullest worker: the one that first runs out of
cores, of bytes/s to its state, or of bytes/s to the network; or from a task that needs more than one core. It is what
the fluid engine's contention does to a dataflow without windows and with one consumer per operator (the tests compare).

Speed means size, as in the CIKM '14 relaxation (section 5: a quad-core node has four times the capacity): a worker of
speed 2 has twice the cores and bytes/s. A task stays one thread that no worker runs faster, so what a task allows is
the same in every plan, and of two plans the one whose costs are all lower is never the slower.

Spark places tasks at random, so there a plan cannot be chosen, only the shape of the workers: `shape_spreads` shows
what random placement costs on each.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from workbench.arrays import Floats
from workbench.checks import finite, shown, whole
from workbench.errors import WorkbenchError
from workbench.placement._effort import Effort
from workbench.placement._search import explore_plans
from workbench.placement.baselines import random_slots
from workbench.placement.exact import optimal
from workbench.placement.plan import DIMENSIONS, CostVector
from workbench.placement.problem import PlacementProblem
from workbench.simulation import Worker


@dataclass(frozen=True)
class PlacedRate:
    """What a plan sustains."""

    rate: float  # highest source rate, records/s; inf if nothing limits it
    worker: int | None  # the worker that is full first; None if a task's own core is, or nothing
    # ``"cpu"``, ``"io"``, ``"net"``, or ``"task"`` where a task needs a whole core; None if nothing limits
    resource: str | None


@dataclass(frozen=True)
class Spread:
    """Rates of random placements on workers of one shape, and the best that was found."""

    # workers, slots: the shape
    workers: int
    slots: int
    best: float  # rate of the best plan found, records/s
    rates: Floats  # rates of the random placements, ascending, shape (samples,)
    proven: bool = False  # whether all plans were searched, so that none is better

    def quantile(self, share: float) -> float:
        """Rate that so large a share of random placements does not reach: one that was drawn, so it may be inf."""
        if not 0 <= share <= 1:
            raise WorkbenchError(f"The share of random placements is {share!r}; give a number from 0 to 1.")
        return float(np.quantile(self.rates, share, method="lower"))


def placed_rate(problem: PlacementProblem, counts: ArrayLike, rate: float, worker: Worker) -> PlacedRate:
    """Find the highest source rate that a plan sustains; `rate` is that of the problem's loads, records/s.

    `worker` has the capacities at speed 1; a worker of speed 2 has twice as much, but no faster cores.
    """
    if not (finite(rate) and rate > 0):
        raise WorkbenchError(
            f"The rate of the loads is {shown(rate)}; it must be a finite number above 0, in records/s."
        )
    loads = problem.worker_loads(counts)
    speeds = np.array(problem.speeds)
    capacity = np.array([worker.cpus, worker.io_bytes_per_s, worker.net_bytes_per_s])[:, None] * speeds
    with np.errstate(divide="ignore", invalid="ignore"):
        factors = np.where(loads > 0, capacity / loads, np.inf)
    fullest = np.unravel_index(int(np.argmin(factors)), factors.shape)
    lowest = float(factors[fullest])
    own = 1.0 / max(problem.cpu) if max(problem.cpu) > 0 else math.inf
    if min(lowest, own) == math.inf:
        return PlacedRate(math.inf, None, None)
    if own < lowest:
        return PlacedRate(rate * own, None, "task")
    return PlacedRate(rate * lowest, int(fullest[1]), DIMENSIONS[int(fullest[0])])


def spread(
    problem: PlacementProblem, rate: float, worker: Worker, *, samples: int = 200, seed: int = 0, nodes: int = 5_000_000
) -> Spread:
    """Compare random placements with the best plan found, with the capacities of `placed_rate`.

    The search for the best plan visits at most `nodes` choices: the rate falls with every cost, so it is one of the
    Pareto front. Where not all plans can be searched, the optimum and the random ones compete as well.
    """
    whole("samples", samples, 1)
    whole("seed", seed, 0)
    random = np.random.default_rng(seed)
    rates = np.sort([placed_rate(problem, random_slots(problem, random), rate, worker).rate for _ in range(samples)])
    found = explore_plans(problem, CostVector(), Effort(math.inf, nodes), first=False)
    plans = [plan.counts for plan in found.pareto]
    if not found.exhausted:
        plans.append(optimal(problem, worker=worker).counts)
    best = max(placed_rate(problem, counts, rate, worker).rate for counts in plans)
    return Spread(problem.workers, problem.slots, max(best, float(rates[-1])), rates, found.exhausted)


def shape_spreads(
    problem: PlacementProblem,
    rate: float,
    *,
    core: Worker,
    shapes: Sequence[tuple[int, int]],
    samples: int = 200,
    seed: int = 0,
) -> tuple[Spread, ...]:
    """Compare worker shapes for a scheduler that places at random, the shape to choose first.

    The workers of `problem` do not count; `core` has the capacities per slot, and `shapes` are (workers, slots). The
    spreads are sorted by the rate that nine of ten random placements reach, highest first; ties to fewer workers.
    """
    spreads = []
    for workers, slots in shapes:
        shaped = replace(problem, workers=workers, slots=slots, speeds=(1.0,) * workers)
        worker = Worker(core.cpus * slots, core.io_bytes_per_s * slots, core.net_bytes_per_s * slots)
        spreads.append(spread(shaped, rate, worker, samples=samples, seed=seed))
    return tuple(sorted(spreads, key=lambda one: (-one.quantile(0.1), one.workers)))
