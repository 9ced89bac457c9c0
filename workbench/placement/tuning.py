"""Threshold auto-tuning (CAPSys, section 5.2).

Phase 1 finds, for every dimension with the others off, the tightest threshold that some plan meets: it starts at
perfect balance and relaxes by a factor. Phase 2 relaxes all three together until a plan meets them at once.

Repairs: 0 times the factor is 0, so the first step from 0 goes to `step`, on which the result depends, and phase 2
starts from at least `step` in every dimension; otherwise one that can be balanced perfectly is never relaxed. The bound
of the linear programme refutes most levels that no plan can meet (`bounds`), which would take an exhaustive search; it
changes the thresholds only where a probe would run out of time.

The authors' artefact (``autotune.go``) tunes otherwise: it begins with a ceiling for every dimension, relaxed until
some plan meets all, and phase 1 keeps the other dimensions at theirs (`ceilings`). This matters where the tightest
network threshold is 0, because one worker has slots for all tasks: from 0, phase 2 relaxes the CPU as often as the
network, until it prunes nothing.

Phase 2 moves along one ray: its plan is the first within, and another may be better in all costs; see ``_caps``.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from workbench.errors import WorkbenchError
from workbench.placement._effort import Effort, deadline
from workbench.placement._instance import instance
from workbench.placement._level import raise_level
from workbench.placement._search import explore_plans, search
from workbench.placement.problem import DIMENSIONS, SLACK, CostVector, PlacementProblem, Plan

CEILINGS = CostVector(0.07, 0.07, 0.5)
"""Ceilings of the artefact's example of a call (``cmd/main/main.go``)."""


@dataclass(frozen=True)
class Tuning:
    """Thresholds, and how they were found."""

    thresholds: CostVector  # those of phase 2, which `plan` meets
    alone: CostVector  # those of phase 1: the tightest of every dimension with the others off
    plan: Plan  # the first plan within the thresholds
    probes: int  # searches made
    # whether every probe was finished. A probe out of time counts as "no plan", so the thresholds may be loose.
    minimal: bool


def tune_thresholds(
    problem: PlacementProblem,
    relaxation: float = 1.1,
    timeout_s: float = 5.0,
    *,
    step: float = 0.01,
    bounds: bool = True,
) -> CostVector:
    """Find thresholds as `tune` does, and warn when a probe ran out of time."""
    tuning = tune(problem, relaxation, timeout_s, step=step, bounds=bounds)
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
    step: float = 0.01,
    bounds: bool = True,
    ceilings: CostVector | None = None,
) -> Tuning:
    """Find thresholds that just admit a plan (CAPSys, section 5.2).

    Raises `WorkbenchError` for a `relaxation`, the factor in both phases, that is not above 1, or a `step`, the first
    threshold above 0, or time limit of a probe that is not above 0. With `bounds` levels that a bound proves to have no
    plan are skipped, and plans looked for by exchanges too; without, as the paper. The `ceilings` are the highest
    thresholds to begin with, as in the artefact; None: the other dimensions are off in phase 1 (section 5.2).
    """
    if not (math.isfinite(relaxation) and relaxation > 1):
        raise WorkbenchError(f"relaxation is {relaxation!r}; give a factor above 1.")
    if not (math.isfinite(step) and step > 0):
        raise WorkbenchError(f"step is {step!r}; give a number above 0.")
    deadline(timeout_s)
    highest = CostVector()
    climbs = []
    if ceilings is not None:
        raised = [CostVector(*(min(1.0, max(limit, step)) for limit in ceilings))]
        while min(raised[-1]) < 1:
            raised.append(CostVector(*(min(1.0, limit * relaxation) for limit in raised[-1])))
        climbs.append(_climb(problem, raised, timeout_s, bounds))
        highest = climbs[0].reached
    steps = [0.0, min(1.0, step)]  # every plan meets 1
    while steps[-1] < 1:
        steps.append(min(1.0, steps[-1] * relaxation))
    alone = []
    for position, dimension in enumerate(DIMENSIONS):
        proven = _proven(problem, [float(name == dimension) for name in DIMENSIONS], timeout_s) if bounds else 0.0
        top = min(1.0, tuple(highest)[position])
        levels = [*(level for level in steps if proven <= level + SLACK and level < top), top]
        climbs.append(_climb(problem, [replace(highest, **{dimension: one}) for one in levels], timeout_s, bounds))
        alone.append(tuple(climbs[-1].reached)[position])
    start = [max(level, step) for level in alone]
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
