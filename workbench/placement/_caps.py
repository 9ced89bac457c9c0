"""CAPS as CAPSys's placement controller runs it: tune the thresholds, search all plans within, take the best.

Section 5.1 returns "the Pareto-optimal solution" and does not say which of several. The one that sustains most is taken
where the capacities of a worker are known, else that of the least worst cost, as `search` orders them. Thresholds
depend on the query and the cluster only, so `tune_range` computes them ahead, on several cores, for the tasks
that a scaling policy may choose (section 5.2).
"""

import json
import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace

import numpy as np

from workbench.errors import WorkbenchError
from workbench.files import write_whole
from workbench.placement._search import SearchResult, preference, search
from workbench.placement.problem import CostVector, PlacementProblem, Plan
from workbench.placement.throughput import placed_rate
from workbench.placement.tuning import tune
from workbench.reading import parse_json, read_text
from workbench.records import structure
from workbench.simulation import Worker

_ALIKE = 1e-6  # loads whose shares differ by less are equal


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
    tuned: tuple[Plan, ...] = ()
    if thresholds is None:
        tuning = tune(problem, relaxation, timeout_s, ceilings=ceilings)
        thresholds, tuned = tuning.thresholds, (tuning.plan,)
    found = search(problem, thresholds, timeout_s=timeout_s)
    if not found.exhausted:
        plans = {plan.counts.tobytes(): plan for plan in (*found.pareto, *tuned)}.values()
        found = replace(found, count=max(found.count, len(plans)), pareto=_undominated(plans))
    front = tuple(sorted(found.pareto, key=lambda plan: _rank(problem, plan, worker)))
    return replace(found, pareto=front, best=next(iter(front), None))


def _rank(problem: PlacementProblem, plan: Plan, worker: Worker | None) -> tuple[float, ...]:
    """Return a sort key for plans by what they sustain, highest first, then as a search orders them."""
    rate = 0.0 if worker is None else placed_rate(problem, plan.counts, 1.0, worker).rate
    return (-float(f"{rate:.9g}"), *preference(plan))


def _undominated(plans: Iterable[Plan]) -> tuple[Plan, ...]:
    costs = {plan: np.array(tuple(plan.cost)) for plan in plans}
    return tuple(
        plan
        for plan, cost in costs.items()
        if not any((other <= cost).all() and (other < cost).any() for other in costs.values())
    )


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
