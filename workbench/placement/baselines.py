"""Schedulers that ignore loads: Flink's two strategies, round-robin, chance (CAPSys, section 2.2).

All return counts, shape (operators, workers). `free` are the slots still free on every worker, for clusters that run
other queries already; Flink deploys query by query, so a query's place depends on those before it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from workbench import units
from workbench.errors import WorkbenchError
from workbench.placement.problem import Counts, PlacementProblem

Baseline: TypeAlias = Callable[..., Counts]
"""Places the tasks of a problem, given a generator and free slots, as the functions below do."""


def flink_default(problem: PlacementProblem, rng: np.random.Generator, free: Sequence[int] | None = None) -> Counts:
    """Fill the slots of one worker after the other with the tasks in random order."""
    slots = np.repeat(np.arange(problem.workers), _free(problem, free))
    return _counts(problem, rng.permutation(_tasks(problem)), slots[: problem.tasks])


def flink_evenly(problem: PlacementProblem, rng: np.random.Generator, free: Sequence[int] | None = None) -> Counts:
    """Put the tasks, in random order, each on the worker with the fewest tasks; ties: lowest index."""
    left = _free(problem, free)
    workers = np.concatenate([np.flatnonzero(left >= level) for level in range(problem.slots, 0, -1)])
    return _counts(problem, rng.permutation(_tasks(problem)), workers[: problem.tasks])


def round_robin(
    problem: PlacementProblem,
    rng: np.random.Generator | None = None,  # noqa: ARG001 - called like the others, draws nothing
    free: Sequence[int] | None = None,
) -> Counts:
    """Deal the tasks out to the workers in turn, operator by operator, passing over full workers."""
    left = _free(problem, free)
    turns = np.concatenate([np.flatnonzero(left > turn) for turn in range(problem.slots)])
    return _counts(problem, _tasks(problem), turns[: problem.tasks])


def random_slots(problem: PlacementProblem, rng: np.random.Generator, free: Sequence[int] | None = None) -> Counts:
    """Put every task on a free slot drawn uniformly."""
    slots = np.repeat(np.arange(problem.workers), _free(problem, free))
    return _counts(problem, _tasks(problem), rng.permutation(slots)[: problem.tasks])


def query_by_query(queries: Mapping[str, PlacementProblem], baseline: Baseline, rng: np.random.Generator) -> Counts:
    """Place queries one after the other in random order, as Flink does with several of them (section 6.2.2).

    The counts are those of ``PlacementProblem.together(queries)``.
    """
    together = PlacementProblem.together(queries)
    free = np.full(together.workers, together.slots)
    placed: dict[str, Counts] = {}
    for index in rng.permutation(len(queries)):
        name = list(queries)[index]
        placed[name] = baseline(queries[name], rng, free.tolist())
        free -= placed[name].sum(axis=0)
    return np.concatenate([placed[name] for name in queries])


def _tasks(problem: PlacementProblem) -> Counts:
    """Operator of every task."""
    return np.repeat(np.arange(len(problem.operators)), problem.parallelism)


def _free(problem: PlacementProblem, free: Sequence[int] | None) -> Counts:
    if free is None:
        return np.full(problem.workers, problem.slots, dtype=np.int64)
    left = np.array(free, dtype=np.int64)
    if left.shape != (problem.workers,) or (left < 0).any() or (left > problem.slots).any():
        raise WorkbenchError(
            f"The free slots are {list(free)!r}; give one number from 0 to {problem.slots:,} for each of the "
            f"{problem.workers:,} workers."
        )
    if left.sum() < problem.tasks:
        raise WorkbenchError(
            f"There are {problem.tasks:,} tasks, but only {units.some(int(left.sum()), 'free slot')}; add workers "
            "or slots."
        )
    return left


def _counts(problem: PlacementProblem, tasks: Counts, workers: Counts) -> Counts:
    counts = np.zeros((len(problem.operators), problem.workers), dtype=np.int64)
    np.add.at(counts, (tasks, workers), 1)
    return counts
