"""Readings that are not the query's capacity: none at all, lower bounds, outliers.

A run that failed or sustained nothing has no reading. One whose upper end is not the query's (the source was the limit,
or no rate was too high) is a lower bound of what the query carries.

A rate limiter that keeps its default reads the same whatever the budget, as nine of StreamBed's published runs of q1
and q2 do (637,000 to 638,900 events/s, where up to 16 M were measured before and after). One such run in a fit moves
the model more than all noise.

The rule: a reading is an *outlier* if readings of at least three budgets, at two slot counts or more, agree within half
a percent although each is at least a fifth below what its budget should carry by the scaling law of all other runs, and
by BIDS2's objective where there is one. And another run, on no more slots than the largest of these budgets, reads a
quarter more (where there is none, the least one's objective): a query that levels off also reads alike on many budgets,
but then no smaller one carries more.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from workbench import units
from workbench.arrays import Floats
from workbench.capacity.model.forms import as_objectives, as_points, as_runs
from workbench.capacity.model.growth import prior_of
from workbench.capacity.model.scaling_law import fit_scaling_law
from workbench.records import FailedRun, Measurement, MstEstimate, Run, overrun_s

AGREEMENT = 0.005
DISTURBED = 0.2
"""Share of the machine that others take; above it, they may be why a run sustains no rate."""

_SEPARATE = "where budgets share a deployment, set deployment: separate, which gives each run more time."
_ROOM = 4  # factor over the fixed time of a batch, which leaves most of the interval to its rows
SHORTFALL = 0.8
LEAST_BUDGETS = 3
LEAST_SLOT_COUNTS = 2

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Outliers:
    """Readings that agree although their budgets differ."""

    runs: tuple[int, ...]  # their rows
    rate: float  # their median, records/s
    budgets: int  # number of distinct (memory, slots)
    expected: tuple[float, float]  # least and largest capacity expected of their budgets, records/s

    def __str__(self) -> str:
        low, high = self.expected
        return (
            f"{len(self.runs)} runs on {self.budgets} budgets read {units.rate(self.rate)} within "
            f"{units.percent(AGREEMENT, 1)}, where {units.rate(low)} to {units.rate(high)} is expected: a limit "
            "outside the query was measured."
        )


@dataclass(frozen=True)
class Readings:
    """Which runs to fit."""

    valid: tuple[bool, ...]  # for each run, whether it is not an outlier
    outliers: tuple[Outliers, ...]  # groups of outliers


def why_no_capacity(run: Run) -> str | None:
    """Return one sentence on why `run` does not show the query's capacity; None if it does."""
    found = _reason_and_remedy(run)
    return None if found is None else found[0]


def _reason_and_remedy(run: Run) -> tuple[str, str] | None:
    """Return why `run` does not show the capacity, and what to do, in the keys of a study; None if it shows it."""
    if isinstance(run, FailedRun):
        return run.failure, "Run the same again to retry what failed; leave out slots or memory_mb that keep failing."
    estimate, interval_s = run.estimate, run.budget.interval_s
    if not estimate.rate:
        down_to = f" down to {units.rate(estimate.high)}" if math.isfinite(estimate.high) else ""
        why, more = f"no rate was sustained{down_to}", "Give a slot more memory_mb, or more slot_cpus."
        if estimate.exhausted:
            why, more = f"{why} before the probes ran out", f"{more} Or, {_SEPARATE}"
        if (least_s := full(run)) is not None:
            why = f"even at a low rate a batch took {least_s:.1f} s, over the trigger interval of {interval_s:g} s"
            longer = f"a longer trigger interval, such as interval_s: {math.ceil(_ROOM * least_s)}"
            more = f"Plan for {longer}, or for stronger slots (slot_cpus)."
        hindered = _hindrance(estimate)
        return (f"{why}.", more) if hindered is None else (f"{why} while {hindered[0]}.", f"{hindered[1]} {more}")
    least = f"so the query carries at least {units.rate(estimate.low)}."
    if estimate.limit == "source":
        fewer = "Explore fewer or slower slots (slots, slot_cpus), so that the query is the limit."
        return f"the source was the limit, {least}", fewer
    if estimate.limit == "query":
        return None
    if math.isfinite(estimate.high):
        low, high = units.ends(estimate.low, estimate.high, "records/s")
        why = f"the probes ran out while the maximum was anywhere from {low} to {high}, {least}"
    else:
        if not estimate.exhausted:
            more = "Allow higher rates: in Python CapacityEstimator(max_rate=...)."
            return f"the highest rate allowed was reached before a rate was too high, {least}", more
        why = f"the probes ran out before a rate was too high, {least}"
    return why, f"Raise the tolerance, or {_SEPARATE}"


def full(run: Run) -> float | None:
    """Seconds of a batch that filled the interval of `run` even at a low rate; None if one met the interval."""
    if not isinstance(run, Measurement) or run.tasks is not None:  # parallel operators do not share the interval
        return None
    return overrun_s(run.estimate.probes, run.budget.interval_s)


def unmeasured_memory_mb(runs: Sequence[Run]) -> tuple[int, ...]:
    """Memory per slot, MiB, at which `runs` were tried and none sustained a rate."""
    sustained = {one.budget.profile.memory_mb for one in runs if isinstance(one, Measurement) and one.estimate.rate}
    return tuple(sorted({run.budget.profile.memory_mb for run in runs} - sustained))


def describe_runs(runs: Sequence[Run], reasons: Mapping[int, str]) -> str:
    """Name the runs of each reason in `reasons`, with the reason."""
    rows: dict[str, list[int]] = {}
    for row, reason in reasons.items():
        rows.setdefault(reason, []).append(row)
    return " ".join(f"Run {', '.join(_words(runs, row) for row in same)}: {reason}" for reason, same in rows.items())


def advise(runs: Iterable[Run]) -> str:
    """Advise what to do about `runs` that do not show the capacity, in the keys of a study."""
    outlier = "", "Look for a limit outside the query, such as a generator's rate."
    return " ".join(dict.fromkeys((_reason_and_remedy(run) or outlier)[1] for run in runs))


def _words(runs: Sequence[Run], row: int) -> str:
    budget = runs[row].budget
    return f"{row + 1} ({units.some(budget.slots, 'slot')} of {budget.profile.memory_mb:,} MB)"


def _hindrance(estimate: MstEstimate) -> tuple[str, str] | None:
    """Return what else may be why no rate was sustained, with a remedy; None if the machine disturbed little."""
    worst = max((one.observation.disturbance for one in estimate.probes), key=lambda one: one.worst, default=None)
    if worst is None or worst.worst <= DISTURBED:
        return None
    if worst.other_load >= max(worst.steal, worst.throttled, worst.slowdown):
        return "other processes took much of the machine", "End what else runs on the machine."
    return (
        "only part of the machine's cores was available",
        "Measure where cores are not shared or limited from outside.",
    )


def review_readings(
    X: ArrayLike,  # noqa: N803
    y: ArrayLike,
    objectives: ArrayLike | None = None,
) -> Readings:
    """Find outliers among runs that `Model.fit` takes, with rates above 0.

    `objectives` are BIDS2's source rates, records/s, nan where there is none.
    """
    points, rates = as_runs(X, y)
    bounds = as_objectives(objectives, len(rates))
    bounds = np.where(np.isnan(bounds), math.inf, bounds)
    valid = np.ones(len(rates), dtype=bool)
    groups: list[Outliers] = []
    while begun := [
        group
        for base in np.unique(rates[valid]).tolist()
        if (group := _group(points, rates, bounds, valid, base)) is not None
    ]:
        largest = max(begun, key=lambda group: (len(group.runs), -group.rate))
        groups.append(largest)
        valid[list(largest.runs)] = False
    return Readings(tuple(valid.tolist()), tuple(groups))


def _group(points: Floats, rates: Floats, bounds: Floats, valid: Flags, base: float) -> Outliers | None:
    """Return outliers from `base` to half a percent above."""
    near = valid & (rates >= base) & (rates <= base * (1 + AGREEMENT))
    as_small = rates[valid & (points[:, 1] <= points[near, 1].max())].max()
    objective = bounds[near].max(where=np.isfinite(bounds[near]), initial=0.0)
    if SHORTFALL * max(as_small, objective) < base or not _many_budgets(points[near]):
        return None  # found without a fit
    expected = _expected(points, rates, bounds, valid & ~near, np.flatnonzero(near))
    short = rates[near] <= SHORTFALL * expected
    runs = np.flatnonzero(near)[short]
    if not (_many_budgets(points[runs]) and _carried(points, rates, bounds, valid & ~near, runs, base=base)):
        return None
    return Outliers(
        tuple(runs.tolist()),
        float(np.median(rates[runs])),
        len(np.unique(points[runs], axis=0)),
        (float(expected[short].min()), float(expected[short].max())),
    )


def _carried(
    points: Floats, rates: Floats, bounds: Floats, others: Flags, runs: NDArray[np.intp], *, base: float
) -> bool:
    """Whether a quarter more than `base` is carried by no more slots than the most of `runs`.

    That is, `others` read it; where there are none so small, it is the objective at the smallest slot count of `runs`.
    """
    smaller = others & (points[:, 1] <= points[runs, 1].max())
    least = runs[points[runs, 1] == points[runs, 1].min()]
    carried = rates[smaller] if smaller.any() else bounds[least][np.isfinite(bounds[least])]
    return bool((SHORTFALL * carried >= base).any())


def _many_budgets(points: Floats) -> bool:
    return len(np.unique(points, axis=0)) >= LEAST_BUDGETS and len(np.unique(points[:, 1])) >= LEAST_SLOT_COUNTS


def _expected(points: Floats, rates: Floats, bounds: Floats, fitted: Flags, asked: NDArray[np.intp]) -> Floats:
    """Return the capacity of the runs `asked`, by the law of `fitted` but at most the objective; 0 if unknown."""
    objective = bounds[asked]
    if np.count_nonzero(fitted) < LEAST_BUDGETS:
        return np.where(np.isinf(objective), 0.0, objective)
    prior = prior_of(float(points[fitted, 1].min()), stateful=None, tasks=1.0)  # in proportion, if in any way
    law = fit_scaling_law(points[fitted], rates[fitted], prior)
    return np.minimum(law.quantile(as_points(points[asked]), 0.5), objective)
