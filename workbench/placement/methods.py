"""Every way to place, behind one call, and all of them side by side."""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from workbench.dataflow import Dataflow, Edge, Operator, OperatorProfile
from workbench.errors import WorkbenchError
from workbench.placement._odrp import OdrpWeights, Setting, odrp
from workbench.placement.baselines import (
    Baseline,
    flink_default,
    flink_evenly,
    query_by_query,
    random_slots,
    round_robin,
)
from workbench.placement.caps import search
from workbench.placement.exact import optimal
from workbench.placement.inputs import PlacementInput
from workbench.placement.problem import SLACK, CostVector, Counts, PlacementProblem, arriving_rates
from workbench.placement.throughput import PlacedRate, fastest, placed_rate
from workbench.placement.tuning import tune

Method = Literal[
    "fastest", "optimal", "caps-first", "caps", "flink-default", "flink-evenly", "round-robin", "random", "odrp"
]
METHODS: tuple[str, ...] = get_args(Method)

_LONGEST_S = 60.0

BASELINES: Mapping[str, Baseline] = {
    "flink-default": flink_default,
    "flink-evenly": flink_evenly,
    "round-robin": round_robin,
    "random": random_slots,
}


@dataclass(frozen=True)
class Placed:
    """Where a method puts the tasks.

    Parameters
    ----------
    method
        Its name.
    problem
        What was placed; ODRP chooses the parallelism itself.
    counts
        Shape (operators, workers).
    cost
        Of the plan.
    rate
        What it sustains; None without the rate of the loads.
    seconds
        Decision time.
    note
        What was proven, or not.
    """

    method: str
    problem: PlacementProblem
    counts: Counts
    cost: CostVector
    rate: PlacedRate | None
    seconds: float
    note: str = ""


@dataclass(frozen=True)
class Compared:
    """A method beside the others: its plan, and the rates of `draws` plans where chance has a part.

    `lowest` and `highest` are None without the rate of the loads.
    """

    placed: Placed
    draws: int
    lowest: float | None
    highest: float | None


def place(
    given: PlacementInput,
    method: str | None = None,
    *,
    thresholds: CostVector | None = None,
    seed: int = 0,
    timeout_s: float | None = None,
    weights: Setting | OdrpWeights = "default",
) -> Placed:
    """Place the tasks by one method.

    Parameters
    ----------
    given
        What, on which workers.
    method
        One of ``METHODS``. ``"fastest"``: highest sustained rate, and ``"optimal"``: least worst cost, both with a
        bound; ``"caps-first"``: the first plan within the thresholds, tuned if none are given; ``"caps"``: the best of
        all plans within them. Flink and chance place several queries one after the other, in random order. None: see
        `best_method`.
    thresholds
        For both kinds of CAPS.
    seed
        Of chance.
    timeout_s
        Time limit of searches and solvers; per probe when tuning. If left out: 60 s for ODRP and all plans of CAPS,
        10 s for the fastest, 5 s per probe; the optimum's effort is bounded otherwise.
    weights
        For ODRP, which takes operators that nothing feeds for sources, and cpu loads for cores.

    Raises
    ------
    WorkbenchError
        For an unknown method, or thresholds that no plan meets.
    """
    method = method or best_method(given)
    if method not in METHODS:
        raise WorkbenchError(f"There is no placement method {method!r}; use one of {', '.join(METHODS)}.")
    begun = time.perf_counter()
    problem, counts, note = given.problem, None, ""
    if method in BASELINES:
        random = np.random.default_rng(seed)
        if len(given.queries) == 1:
            counts = BASELINES[method](problem, random)
        else:
            counts = query_by_query(given.queries, BASELINES[method], random)
    elif method == "optimal":
        proven = optimal(problem, timeout_s=timeout_s)
        bound = f"no plan costs less than {proven.bound:.4f} (gap {100 * proven.gap:.2g} %)"
        counts, note = proven.counts, "proven optimal" if proven.gap < SLACK else bound
    elif method == "fastest":
        counts, note = _fastest(given, timeout_s)
    elif method == "odrp":
        flow, profiles, rates = _dataflow(problem, given.rate or 1.0)
        limit = timeout_s or _LONGEST_S
        plan = odrp(flow, profiles, rates, problem.workers, problem.slots, weights=weights, timeout_s=limit)
        problem, counts = plan.problem, plan.counts
        note = f"{plan.slots} slots, score {plan.score:.4f}, bound {plan.bound:.4f}"
    else:
        counts, note = _caps(problem, thresholds, timeout_s, first=method == "caps-first")
    seconds = time.perf_counter() - begun
    rate = None if given.rate is None else placed_rate(problem, counts, given.rate, given.worker)
    return Placed(method, problem, counts, problem.cost(counts), rate, seconds, note)


def best_method(given: PlacementInput) -> str:
    """``"fastest"`` where the rate of the loads and a capacity are known, else ``"optimal"``."""
    limited = any(math.isfinite(limit) for limit in vars(given.worker).values())
    return "fastest" if given.rate is not None and limited else "optimal"


def compare(
    given: PlacementInput,
    methods: Sequence[str] | None = None,
    *,
    thresholds: CostVector | None = None,
    seed: int = 0,
    draws: int = 20,
    timeout_s: float | None = 10.0,
    weights: Setting | OdrpWeights = "default",
) -> tuple[Compared, ...]:
    """Place by every method; by those of chance `draws` times, with seeds from `seed` on. See `place`."""
    if methods is None:
        methods = [method for method in METHODS if method != "fastest" or best_method(given) == "fastest"]
    rows = []
    for method in methods:
        times = draws if method in BASELINES and method != "round-robin" else 1
        placed = [
            place(given, method, thresholds=thresholds, seed=seed + draw, timeout_s=timeout_s, weights=weights)
            for draw in range(times)
        ]
        rates = [one.rate.rate for one in placed if one.rate is not None]
        rows.append(Compared(placed[0], times, min(rates, default=None), max(rates, default=None)))
    return tuple(rows)


def _fastest(given: PlacementInput, timeout_s: float | None) -> tuple[Counts, str]:
    if given.rate is None:
        raise WorkbenchError("The rate that the loads belong to is unknown, so no rate can be the highest; give it.")
    found = fastest(given.problem, given.rate, given.worker, timeout_s=timeout_s or 10.0)
    return found.counts, f"no plan sustains more than {found.bound:,.1f} records/s"


def _caps(
    problem: PlacementProblem, thresholds: CostVector | None, timeout_s: float | None, *, first: bool
) -> tuple[Counts, str]:
    if first and thresholds is None:
        tuning = tune(problem, timeout_s=timeout_s or 5.0)
        limits = ", ".join(f"{limit:.4f}" for limit in tuning.thresholds)
        return tuning.plan.counts, f"tuned thresholds {limits}{'' if tuning.minimal else ' (not minimal: out of time)'}"
    found = search(problem, thresholds, first=first, timeout_s=timeout_s or _LONGEST_S)
    if found.best is None:
        limits = ", ".join(f"{limit:g}" for limit in thresholds or CostVector())
        proof = "No plan meets" if found.exhausted else "In the time given no plan was found that meets"
        raise WorkbenchError(f"{proof} the thresholds {limits}; raise them, or leave them out to have them tuned.")
    if first:
        return found.best.counts, "first plan within the thresholds"
    return found.best.counts, f"{found.count:,} plans{'' if found.exhausted else ' so far: out of time'}"


def _dataflow(problem: PlacementProblem, rate: float) -> tuple[Dataflow, dict[str, OperatorProfile], dict[str, float]]:
    """Give a dataflow that has the loads of `problem` at `rate` per source: every operator passes on what it gets."""
    fed = {edge.downstream for edge in problem.edges}
    flow = Dataflow(
        "placed",
        tuple(
            Operator(name, "operator" if position in fed else "source")
            for position, name in enumerate(problem.operators)
        ),
        tuple(Edge(problem.operators[u], problem.operators[v], kind) for u, v, kind in problem.edges),
    )
    rates = dict.fromkeys(flow.sources, rate)
    arriving = arriving_rates(flow, {}, rates)
    profiles = {}
    for position, (name, tasks) in enumerate(zip(problem.operators, problem.parallelism, strict=True)):
        cpu, io, net = (float(load) * tasks / arriving[name] for load in problem.loads[:, position])
        profiles[name] = OperatorProfile(cpu, io, net, 1.0)
    return flow, profiles, rates
