"""What plans do under load, in the fluid engine: throughput and back-pressure, alone or together with other queries.

A cluster is calibrated as CAPSys does it (section 3.1): the target rate is what the workers just carry, so a worker has
what the fullest worker of a balanced plan needs. Then every plan that balances worse loses throughput.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from workbench.checks import positive
from workbench.errors import WorkbenchError
from workbench.placement.exact import optimal
from workbench.placement.problem import PlacementProblem
from workbench.simulation import Cluster, Deployment, QueryModel, Worker, steady_state

TEN_GBIT, ONE_GBIT = 1.25e9, 1.25e8  # bytes/s


@dataclass(frozen=True)
class Outcome:
    """What a query does at its target rate."""

    throughput: float  # records/s of its sources, at most the target
    # share of the offered records that its sources must hold back. Flink's figure is the share of time in which a
    # source is stopped, which is higher for sources that could emit faster.
    back_pressure: float


def calibrated_worker(problem: PlacementProblem, *, net_bytes_per_s: float = TEN_GBIT) -> Worker:
    """Give the worker of speed 1 that the plan of the least worst cost of CPU and state access just fills.

    Loads are those at the target. Its cores, or its bytes/s of state, are inf where no task needs any; the network is
    not calibrated.
    """
    quiet = replace(problem, edges=(), net=(0.0,) * len(problem.operators))
    even = optimal(quiet, objective="cost").counts
    loads = (quiet.worker_loads(even) / np.array(problem.speeds)).max(axis=1)
    cpus, io = (float(load) if load > 0 else math.inf for load in loads[:2])
    return Worker(cpus, io, net_bytes_per_s)


def simulated(
    model: QueryModel, problem: PlacementProblem, counts: ArrayLike, target: float, worker: Worker
) -> Outcome:
    """Let a query run at `target` records/s where a plan puts it: the engine's steady state.

    `target` is the offered rate of all sources together; `worker` has the capacities at speed 1. A worker of speed 2
    has twice the capacities; a task is one thread of speed 1 everywhere.
    """
    positive("The target", target, "records/s")
    plan = problem.checked(counts)
    by_name = {name: row.tolist() for name, row in zip(problem.operators, plan, strict=True)}
    cluster = Cluster(
        tuple(
            Worker(worker.cpus * speed, worker.io_bytes_per_s * speed, worker.net_bytes_per_s * speed)
            for speed in problem.speeds
        ),
        by_name,
    )
    rate = steady_state(
        Deployment(model, dict(zip(problem.operators, problem.parallelism, strict=True)), cluster=cluster)
    ).rate
    return _outcome(rate / target, target)


def shared(
    queries: Mapping[str, PlacementProblem], targets: Mapping[str, float], counts: ArrayLike, worker: Worker
) -> dict[str, Outcome]:
    """Let several queries share the workers of ``PlacementProblem.together(queries)``, each at its target.

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
    loads, first = [], 0
    for problem in queries.values():
        loads.append(problem.worker_loads(plan[first : first + len(problem.operators)]))
        first += len(problem.operators)
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
