"""The value of a placement: the highest source rate that the workers' capacities allow, and its spread.

Loads grow with the source rate, so a plan's rate follows from its fullest worker: the one that first runs out of
cores, of bytes/s to its state, or of bytes/s to the network; or from a task that needs more than one core. The fluid
engine agrees for a dataflow without windows and with one consumer per operator.

Speed means size, as in the CIKM '14 relaxation (section 5): a worker of speed 2 has twice the cores and bytes/s. A task
stays one thread that no worker runs faster, so of two plans the one whose costs are all lower is never the slower.

Spark places tasks at random, so there only the shape of the workers can be chosen: `shape_spreads` shows what random
placement costs on each.

A cluster is calibrated as CAPSys does it (section 3.1): a worker has what the fullest worker of a balanced plan needs
at the target rate, so that every plan that balances worse loses throughput.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from workbench.arrays import Floats
from workbench.checks import positive, whole, within
from workbench.errors import WorkbenchError
from workbench.placement._effort import Effort
from workbench.placement._search import explore_plans
from workbench.placement.baselines import random_slots
from workbench.placement.exact import optimal
from workbench.placement.problem import DIMENSIONS, CostVector, PlacementProblem
from workbench.simulation import Cluster, Deployment, QueryModel, Worker, steady_state


@dataclass(frozen=True)
class PlacedRate:
    """The rate that a plan sustains."""

    rate: float  # highest source rate, records/s; inf if nothing limits it
    worker: int | None  # the worker that fills up first; None if a task's own core does, or nothing
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
        """Return the rate that this share of random placements misses: one that was drawn, so it may be inf."""
        within("The share of random placements", share, 0, 1, ends="[]")
        return float(np.quantile(self.rates, share, method="lower"))


def placed_rate(problem: PlacementProblem, counts: ArrayLike, rate: float, worker: Worker) -> PlacedRate:
    """Find the highest source rate that a plan sustains; `rate` is that of the problem's loads, records/s.

    `worker` has the capacities at speed 1; a worker of speed 2 has twice as much, but no faster cores.
    """
    positive("The rate of the loads", rate, "records/s")
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
    """Compare worker shapes, (workers, slots), for a scheduler that places at random; `core` has a slot's capacities.

    The first is the one to choose: sorted by the rate that nine of ten random placements reach; ties to fewer workers.
    """
    spreads = []
    for workers, slots in shapes:
        shaped = replace(problem, workers=workers, slots=slots, speeds=(1.0,) * workers)
        spreads.append(spread(shaped, rate, _sized(core, slots), samples=samples, seed=seed))
    return tuple(sorted(spreads, key=lambda one: (-one.quantile(0.1), one.workers)))


TEN_GBIT, ONE_GBIT = 1.25e9, 1.25e8  # bytes/s


@dataclass(frozen=True)
class Outcome:
    """The behaviour of a query at its target rate."""

    throughput: float  # records/s of its sources, at most the target
    # share of the offered records that its sources must hold back. Flink's figure is the share of time in which a
    # source is stopped, which is higher for sources that could emit faster.
    back_pressure: float


def calibrated_worker(problem: PlacementProblem, *, net_bytes_per_s: float = TEN_GBIT) -> Worker:
    """Return the worker of speed 1 that the plan of the least worst cost of CPU and state access just fills.

    Loads are those at the target. Its cores, or its bytes/s of state, are inf where no task needs any; the network is
    not calibrated.
    """
    quiet = replace(problem, edges=(), net=(0.0,) * len(problem.operators))
    even = optimal(quiet, objective="cost").counts
    cpus, io = (float(load) if load > 0 else math.inf for load in quiet.bottleneck(even)[:2])
    return Worker(cpus, io, net_bytes_per_s)


def simulated(
    model: QueryModel, problem: PlacementProblem, counts: ArrayLike, target: float, worker: Worker
) -> Outcome:
    """Run a query at `target` records/s in the steady state of the engine, placed by a plan.

    `target` is the offered rate of all sources together; `worker` has the capacities at speed 1.
    """
    positive("The target", target, "records/s")
    plan = problem.checked(counts)
    by_name = {name: row.tolist() for name, row in zip(problem.operators, plan, strict=True)}
    cluster = Cluster(tuple(_sized(worker, speed) for speed in problem.speeds), by_name)
    tasks = dict(zip(problem.operators, problem.parallelism, strict=True))
    return _outcome(steady_state(Deployment(model, tasks, cluster=cluster)).rate / target, target)


def _sized(worker: Worker, size: float) -> Worker:
    return Worker(worker.cpus * size, worker.io_bytes_per_s * size, worker.net_bytes_per_s * size)


def shared(
    queries: Mapping[str, PlacementProblem], targets: Mapping[str, float], counts: ArrayLike, worker: Worker
) -> dict[str, Outcome]:
    """Run several queries on the workers of ``PlacementProblem.together(queries)``, each at its target.

    Fair sharing: all queries rise together in proportion to their targets; when a worker is full, those with tasks
    there that need what is used up stay where they are, and the others rise on. For one query it is `simulated`.
    Loads are those at the targets, records/s; `counts` has shape (operators of all queries, workers).
    """
    if set(targets) != set(queries):
        raise WorkbenchError(
            f"Targets are given for {', '.join(targets) or 'none'}; the queries are {', '.join(queries) or 'none'}: "
            "give one for each."
        )
    for name, target in targets.items():
        positive(f"The target of query {name!r}", target, "records/s")
    plan = PlacementProblem.together(queries).checked(counts)
    parts = np.split(plan, np.cumsum([len(problem.operators) for problem in queries.values()])[:-1])
    loads = [problem.worker_loads(part) for problem, part in zip(queries.values(), parts, strict=True)]
    use = np.array(loads).reshape(len(queries), -1)  # one column per resource of a worker
    speeds = next(iter(queries.values())).speeds
    capacity = np.outer([worker.cpus, worker.io_bytes_per_s, worker.net_bytes_per_s], speeds).ravel()
    own = np.array([1 / max(1e-12, *problem.cpu) for problem in queries.values()])  # a task has one core
    share, rising = np.zeros(len(queries)), np.ones(len(queries), dtype=bool)
    while rising.any():
        growing = use[rising].sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(growing > 0, (capacity - use.T @ share) / growing, np.inf)
        level = share[rising].max()
        step = max(0.0, min(float(room.min()), float((np.minimum(own, 1.0) - share)[rising].min())))
        share[rising] = level + step
        full = room <= step * (1 + 1e-9) + 1e-12
        rising &= (share < np.minimum(own, 1.0) - 1e-12) & ~(use[:, full] > 0).any(axis=1)
    return {name: _outcome(float(part), targets[name]) for name, part in zip(queries, share, strict=True)}


def _outcome(share: float, target: float) -> Outcome:
    share = 1.0 if share >= 1.0 - 1e-9 else share
    return Outcome(target * share, 1.0 - share)
