"""CAPS as CAPSys's placement controller runs it: tune the thresholds, search all plans within, take the best.

Section 5.1 returns "the Pareto-optimal solution" and does not say which of several. The one that sustains most is taken
where the capacities of a worker are known, else that of the least worst cost, as `search` orders them.

Thresholds are tuned in two phases (section 5.2). Phase 1 finds, for every dimension with the others off, the tightest
threshold that some plan meets: it starts at perfect balance and relaxes by a factor. Phase 2 relaxes all three together
until a plan meets them at once; it moves along one ray, so another plan within may be better in all costs. Thresholds
depend on the query and the cluster only, so `tune_range` computes them ahead, on several cores, for the tasks that a
scaling policy may choose.

Repairs: 0 times the factor is 0, so the first step from 0 goes to ``_STEP``, on which the result depends, and phase 2
starts from at least as much in every dimension; otherwise one that can be balanced perfectly is never relaxed. The
bound of the linear programme refutes most levels that no plan can meet (`bounds`), which would take an exhaustive
search; it changes the thresholds only where a probe would run out of time.

The authors' artefact (``autotune.go``) tunes otherwise: it begins with a ceiling for every dimension, relaxed until
some plan meets all, and phase 1 keeps the other dimensions at theirs (`ceilings`). This matters where the tightest
network threshold is 0, because one worker has slots for all tasks: from 0, phase 2 relaxes the CPU as often as the
network, until it prunes nothing.
"""

import json
import math
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import NamedTuple

import numpy as np

from workbench.checks import SLACK, within
from workbench.errors import WorkbenchError
from workbench.files import write_whole
from workbench.placement._effort import Effort, deadline
from workbench.placement._level import raise_level
from workbench.placement._pattern_search import instance
from workbench.placement._search import SearchResult, explore_plans, preference, search
from workbench.placement.problem import DIMENSIONS, CostVector, PlacementProblem, Plan
from workbench.placement.throughput import placed_rate
from workbench.reading import parse_json, read_text
from workbench.records import structure
from workbench.simulation import Worker

CEILINGS = CostVector(0.07, 0.07, 0.5)
"""Ceilings of the artefact's example of a call (``cmd/main/main.go``)."""

_STEP = 0.01  # the first threshold above 0
_ALIKE = 1e-6  # loads whose shares differ by less are equal


@dataclass(frozen=True)
class Tuning:
    """Thresholds, and how they were found."""

    thresholds: CostVector  # those of phase 2, which `plan` meets
    alone: CostVector  # those of phase 1: the tightest of every dimension with the others off
    plan: Plan  # the first plan within the thresholds
    probes: int  # searches made
    # whether every probe was finished. A probe out of time counts as "no plan", so the thresholds may be loose.
    minimal: bool


def tune_thresholds(problem: PlacementProblem, relaxation: float = 1.1, timeout_s: float = 5.0) -> CostVector:
    """Find thresholds as `tune` does, and warn when a probe ran out of time."""
    tuning = tune(problem, relaxation, timeout_s)
    if not tuning.minimal:
        warnings.warn(
            f"A probe of the tuning took more than {timeout_s} s and counts as having no plan; the thresholds may "
            "be looser than necessary. Give more time, or use the optimum with its bound.",
            stacklevel=2,
        )
    return tuning.thresholds


def tune(
    problem: PlacementProblem,
    relaxation: float = 1.1,
    timeout_s: float | None = 5.0,
    *,
    bounds: bool = True,
    ceilings: CostVector | None = None,
) -> Tuning:
    """Find thresholds that just admit a plan (CAPSys, section 5.2).

    Raises `WorkbenchError` for a `relaxation`, the factor in both phases, that is not above 1, or a time limit of a
    probe that is not above 0. With `bounds` levels that a bound proves to have no plan are skipped, and plans looked
    for by exchanges too; without, as the paper. The `ceilings` are the highest thresholds to begin with, as in the
    artefact; None: the other dimensions are off in phase 1 (section 5.2).
    """
    within("relaxation", relaxation, 1, math.inf, "a factor")
    deadline(timeout_s)
    highest = CostVector()
    climbs = []
    if ceilings is not None:
        raised = [CostVector(*(min(1.0, max(limit, _STEP)) for limit in ceilings))]
        while min(raised[-1]) < 1:
            raised.append(CostVector(*(min(1.0, limit * relaxation) for limit in raised[-1])))
        climbs.append(_climb(problem, raised, timeout_s, bounds))
        highest = climbs[0].reached
    steps = [0.0, _STEP]  # every plan meets 1
    while steps[-1] < 1:
        steps.append(min(1.0, steps[-1] * relaxation))
    alone = []
    for position, dimension in enumerate(DIMENSIONS):
        proven = _proven(problem, [float(name == dimension) for name in DIMENSIONS], timeout_s) if bounds else 0.0
        top = min(1.0, tuple(highest)[position])
        levels = [*(level for level in steps if proven <= level + SLACK and level < top), top]
        climbs.append(_climb(problem, [replace(highest, **{dimension: one}) for one in levels], timeout_s, bounds))
        alone.append(tuple(climbs[-1].reached)[position])
    start = [max(level, _STEP) for level in alone]
    proven = _proven(problem, [1 / level for level in start], timeout_s) if bounds else 0.0
    factors = [1.0]
    while min(start) * factors[-1] < 1:
        factors.append(factors[-1] * relaxation)
    together = [
        CostVector(*(min(1.0, level * factor) for level in start)) for factor in factors if factor + SLACK >= proven
    ]
    climbs.append(_climb(problem, together, timeout_s, bounds))
    last = climbs[-1]
    probes, minimal = sum(one.probes for one in climbs), all(one.finished for one in climbs)
    return Tuning(last.reached, CostVector(*alone), last.plan, probes, minimal)


def _proven(problem: PlacementProblem, weights: Sequence[float], timeout_s: float | None) -> float:
    """Bound the highest weighted cost of any plan from below; no plan exceeds the highest weight."""
    return raise_level(instance(problem, weights), max(weights), Effort(deadline(timeout_s))).bound


class _Climb(NamedTuple):
    reached: CostVector
    probes: int
    plan: Plan
    finished: bool


def _climb(problem: PlacementProblem, levels: Sequence[CostVector], timeout_s: float | None, bounds: bool) -> _Climb:
    """Try the levels in turn until one has a plan; the last one admits all."""
    finished = True
    for probes, level in enumerate(levels, start=1):
        if bounds:
            result = search(problem, level, first=True, timeout_s=timeout_s)
        else:
            result = explore_plans(problem, level, Effort(deadline(timeout_s)), first=True)
        if result.best is not None:
            return _Climb(level, probes, result.best, finished)
        finished = finished and result.exhausted
    everywhere = explore_plans(problem, CostVector(), Effort(math.inf), first=True)
    assert everywhere.best is not None  # noqa: S101 - there are slots for all tasks
    return _Climb(levels[-1], len(levels), everywhere.best, finished=False)


def caps(
    problem: PlacementProblem,
    relaxation: float = 1.1,
    timeout_s: float | None = 5.0,
    *,
    thresholds: CostVector | None = None,
    worker: Worker | None = None,
    ceilings: CostVector | None = None,
) -> SearchResult:
    """Place as CAPSys does (sections 5.1, 5.2): the best plan of all within thresholds, by default tuned as by `tune`.

    The best of the front is the plan that sustains most with the capacities of a `worker` of speed 1; without them it
    is that of the least worst cost. The time limit is that of each probe of the tuning and of the search; the plan that
    the tuning ended with is never lost. Raises what `tune` does.
    """
    tuned = None
    if thresholds is None:
        tuning = tune(problem, relaxation, timeout_s, ceilings=ceilings)
        thresholds, tuned = tuning.thresholds, tuning.plan
    found = search(problem, thresholds, timeout_s=timeout_s)
    if tuned is not None and not any(plan.cost.within(tuned.cost) for plan in found.pareto):  # out of time before it
        others = [plan for plan in found.pareto if not tuned.cost.within(plan.cost)]
        found = replace(found, count=found.count + 1, pareto=(*others, tuned))
    front = tuple(sorted(found.pareto, key=lambda plan: _rank(problem, plan, worker)))
    return replace(found, pareto=front, best=next(iter(front), None))


def _rank(problem: PlacementProblem, plan: Plan, worker: Worker | None) -> tuple[float, ...]:
    """Return a sort key for plans by what they sustain, highest first, then as a search orders them."""
    rate = 0.0 if worker is None else placed_rate(problem, plan.counts, 1.0, worker).rate
    return (-float(f"{rate:.9g}"), *preference(plan))


@dataclass(frozen=True)
class TunedTasks:
    """Thresholds for one number of tasks of every operator."""

    tasks: Mapping[str, int]
    thresholds: CostVector


@dataclass(frozen=True)
class ThresholdTable:
    """Thresholds of a query on a cluster, computed ahead for several numbers of tasks (section 5.2)."""

    workers: int
    slots: int
    speeds: tuple[float, ...]
    shares: Mapping[str, tuple[float, ...]]  # of every operator, in the query's cpu, io and net loads
    rows: tuple[TunedTasks, ...]

    def find(self, problem: PlacementProblem) -> CostVector | None:
        """Look up the thresholds for the tasks of a problem; None where there are none, or its loads differ."""
        cluster = (problem.workers, problem.slots, problem.speeds)
        if cluster != (self.workers, self.slots, self.speeds) or set(problem.operators) != set(self.shares):
            raise WorkbenchError(
                f"The thresholds are for {', '.join(self.shares)} on {self.workers} x {self.slots} slots; the problem "
                f"has {', '.join(problem.operators)} on {problem.workers} x {problem.slots}. Tune for this problem."
            )
        shares = _shares(problem)
        if any(not np.allclose(shares[name], self.shares[name], rtol=0, atol=_ALIKE) for name in shares):
            return None
        tasks = dict(zip(problem.operators, problem.parallelism, strict=True))
        return next((row.thresholds for row in self.rows if row.tasks == tasks), None)

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write the table to `path`, all of it or nothing."""
        write_whole(path, json.dumps(asdict(self), indent=1, allow_nan=False) + "\n")

    @classmethod
    def from_json(cls, path: str | os.PathLike[str]) -> "ThresholdTable":
        """Read a table that `to_json` wrote."""
        what = f"The table of thresholds {os.fspath(path)}"
        try:
            document = parse_json(read_text(path, what))
        except ValueError as error:
            raise WorkbenchError(f"{what} is not JSON: {error}. Tune again.") from error
        return structure(document, cls, what)


def tune_range(
    problem: PlacementProblem,
    tasks: Iterable[Mapping[str, int]],
    relaxation: float = 1.1,
    timeout_s: float = 5.0,
    *,
    ceilings: CostVector | None = None,
) -> ThresholdTable:
    """Tune the thresholds ahead, as `tune` does, on all cores, for `tasks` that a policy may choose (section 5.2).

    The rate of the `problem` changes no threshold, because costs are relative. Raises `WorkbenchError` as `tune` does,
    and for tasks that are not of these operators or need more slots than there are.
    """
    problems = [problem.with_parallelism(one) for one in tasks]
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # the compiled search does not hold the interpreter's lock
        tuned = list(pool.map(lambda one: tune(one, relaxation, timeout_s, ceilings=ceilings).thresholds, problems))
    rows = (
        TunedTasks(dict(zip(one.operators, one.parallelism, strict=True)), limits)
        for one, limits in zip(problems, tuned, strict=True)
    )
    return ThresholdTable(problem.workers, problem.slots, problem.speeds, _shares(problem), tuple(rows))


def _shares(problem: PlacementProblem) -> dict[str, tuple[float, ...]]:
    loads = problem.loads * np.array(problem.parallelism)
    whole = loads.sum(axis=1, keepdims=True)
    shares = np.divide(loads, whole, out=np.zeros_like(loads), where=whole > 0)
    return dict(zip(problem.operators, map(tuple, shares.T.tolist()), strict=True))
