"""BIDS2 (StreamBed, section V, Equations 1-4): the tasks of every operator that give a budget the highest rate.

An operator of p tasks carries p x true rate / ratio source records/s; the dataflow carries the least of these.
"""

import heapq
import math
from collections.abc import Mapping, Sequence
from numbers import Real
from operator import mul, truediv
from typing import Literal, SupportsIndex, get_args

import pulp

from workbench import units
from workbench.checks import one_of, whole
from workbench.errors import WorkbenchError
from workbench.records import Allocation, Measurement, Run, Status, Unbounded

Solver = Literal["exact", "cbc"]

_SHOWN = 5
_TOLERANCES = ["primalTolerance 1e-9", "integerTolerance 1e-9"]  # of CBC, which are absolute: scale a model up
_BELOW = 1 - 1e-12  # an exact tie is left to the single slots: rounding must not decide it


def bids2(
    true_rates: Mapping[str, float | None],
    ratios: Mapping[str, float],
    slots: SupportsIndex,
    solver: Solver = "exact",
    *,
    time_limit_s: float | None = None,
) -> Allocation:
    """Distribute `slots` among the operators so that the source rate they carry is the highest possible.

    Parameters
    ----------
    true_rates
        Records/s that one task of each operator processes when it is always busy, by operator name and without
        sources: observed input rate / (busyness x tasks). None, nan or inf: undefined, it was never seen busy.
    ratios
        Input records of each operator per source record, all inputs of a join together. 0: no input seen.
    slots
        Tasks to give, all of them, at least one to each operator.
    solver
        ``"exact"``: each further slot goes to the operator of least capacity, ties to the first of `true_rates`.
        ``"cbc"``: the paper's MILP, to which rates within about 1e-9 of each other are equal.
    time_limit_s
        For CBC only; what it ends has the status ``"feasible"`` and depends on the machine's speed.

    Raises
    ------
    WorkbenchError
        When the budget is below one slot per operator, or a name or number is wrong.

    Notes
    -----
    An operator without a bound gets one task (``Allocation.unbounded`` says why); the authors' code takes an idle one
    for busy 1 ms/s. The bounds of p in the paper are garbled; here 1 <= p <= slots - (operators - 1). The rate
    overstates what is then measured: operators are taken to be linear and independent.

    Examples
    --------
    >>> found = bids2({"parse": 120.0, "join": 45.0}, {"parse": 1.0, "join": 0.5}, slots=4)
    >>> found.tasks, found.source_rate, found.bottleneck
    ({'parse': 2, 'join': 2}, 180.0, 'join')
    """
    one_of("The solver", solver, get_args(Solver))
    budget = _budget(true_rates, ratios, slots)
    rates, weights, unbounded = _sorted_out(true_rates, ratios)
    spendable = budget - len(unbounded)
    status: Status = "optimal"
    if not rates:
        counts: list[int] = []
    elif solver == "exact":
        counts = _exact(list(rates.values()), weights, spendable)
    else:
        counts, status = _milp(list(rates.values()), weights, spendable, time_limit_s)
    tasks = dict.fromkeys(true_rates, 1)
    tasks.update(zip(rates, counts, strict=True))
    capacities = dict.fromkeys(true_rates, math.inf)
    for (name, rate), weight, count in zip(rates.items(), weights, counts, strict=True):
        capacities[name] = count * rate / weight  # (2), (3)
    return Allocation(tasks, min(capacities.values()), capacities, unbounded, 0 if rates else spendable, status)


def _exact(rates: Sequence[float], ratios: Sequence[float], slots: int) -> list[int]:
    """Assign each slot to the operator of least capacity, as any allocation that carries more must do.

    Operator i takes its k-th further slot at capacity k c_i, c_i being that of one task. At the level L = further
    slots / sum of 1/c_i at most that many k c_i are below L, so these are taken at once and the rest one by one.
    """
    costs = _costs(rates, ratios)
    level = (slots - len(rates)) / sum(costs) * _BELOW
    tasks = [1 + int(level * cost) for cost in costs]
    # not count x capacity of one task: count x rate is exact for whole numbers, and most ties are between these
    heap = list(zip(map(truediv, map(mul, tasks, rates), ratios), range(len(tasks)), strict=True))
    heapq.heapify(heap)
    for _ in range(slots - sum(tasks)):
        i = heap[0][1]
        tasks[i] += 1
        heapq.heapreplace(heap, (tasks[i] * rates[i] / ratios[i], i))
    return tasks


def _milp(
    rates: Sequence[float], ratios: Sequence[float], slots: int, time_limit_s: float | None
) -> tuple[list[int], Status]:
    """Equations 1-4, in tasks: the rate is written as a share of the rate that fractional tasks would carry."""
    costs = _costs(rates, ratios)
    total = sum(costs)
    problem = pulp.LpProblem("bids2", pulp.LpMaximize)
    share = problem.add_variable("share", 0, 1)
    most = slots - (len(rates) - 1)
    tasks = [problem.add_variable(f"tasks_{i:06d}", 1, most, pulp.LpInteger) for i in range(len(rates))]
    problem += share  # (1)
    for cost, count in zip(costs, tasks, strict=True):
        problem += slots * cost / total * share <= count  # (2), (3), divided by the true rate
    problem += pulp.lpSum(tasks) == slots  # (4)
    status = solve_by_cbc(problem, time_limit_s)
    return [round(count.value()) for count in tasks], status


def _costs(rates: Sequence[float], ratios: Sequence[float]) -> list[float]:
    """Tasks per source record/s, as shares of the most expensive operator's, so that no extreme rate overflows."""
    singles = list(map(truediv, rates, ratios))
    least = min(singles)
    return [least / single for single in singles]


def _budget(true_rates: Mapping[str, float | None], ratios: Mapping[str, float], slots: SupportsIndex) -> int:
    if not true_rates:
        raise WorkbenchError("There are no operators to give slots to; pass the true rate of at least one.")
    if true_rates.keys() != ratios.keys():
        name = next(name for name in (*true_rates, *ratios) if name not in true_rates or name not in ratios)
        thing = "true rate" if name in ratios else "ratio"
        raise WorkbenchError(
            f"Operator {name!r} has no {thing}; give both mappings the same operators, without sources."
        )
    budget, least = whole("slots", slots, 0), len(true_rates)
    if budget < least:
        names = ", ".join(list(true_rates)[:_SHOWN]) + (f" and {least - _SHOWN} more" if least > _SHOWN else "")
        raise WorkbenchError(
            f"A budget of {units.some(budget, 'slot')} misses the minimum of {least}, one task for each operator "
            f"({names}); give it at least {units.some(least, 'slot')}."
        )
    return budget


def _sorted_out(
    true_rates: Mapping[str, float | None], ratios: Mapping[str, float]
) -> tuple[dict[str, float], list[float], dict[str, Unbounded]]:
    """Return the rates and ratios of operators that bound the rate, and why others do not; refuse invalid numbers."""
    rates: dict[str, float] = {}
    weights: list[float] = []
    unbounded: dict[str, Unbounded] = {}
    for name, rate in true_rates.items():
        ratio = ratios[name]
        # float and int are Real: they come first because asking the abstract class takes five times as long
        if not isinstance(ratio, (float, int, Real)) or not 0 <= ratio < math.inf:
            raise WorkbenchError(
                f"The ratio of operator {name!r} is {ratio!r}; it must be a finite number of at least 0 "
                "(its input records per source record)."
            )
        if ratio == 0:
            unbounded[name] = "no input seen"
        elif rate is None or not rate < math.inf:  # inf or nan
            unbounded[name] = "true rate undefined"
        elif rate > 0 and 0 < float(rate) / float(ratio) < math.inf:
            rates[name] = float(rate)
            weights.append(float(ratio))
        else:
            raise WorkbenchError(
                f"The true rate of operator {name!r} is {rate!r}; it must be above 0 (records/s of one busy task), "
                "or None where it is undefined."
            )
    return rates, weights, unbounded


def solve_by_cbc(problem: pulp.LpProblem, time_limit_s: float | None = None) -> Status:
    """Solve `problem` in place, in one thread; ``"feasible"`` means that time ended before the optimum was proven."""
    solver = pulp.COIN_CMD(
        path=pulp.PULP_CBC_CMD.pulp_cbc_path, msg=False, threads=1, timeLimit=time_limit_s, options=_TOLERANCES
    )
    try:
        problem.solve(solver)
    except pulp.PulpSolverError as error:
        raise WorkbenchError(
            f"CBC could not be run on {problem.name} ({error}); check that this machine may execute it."
        ) from error
    if problem.sol_status == pulp.LpSolutionOptimal:
        return "optimal"
    if problem.sol_status == pulp.LpSolutionIntegerFeasible:
        return "feasible"
    limit = "" if time_limit_s is None else f" within {time_limit_s:g} s; raise the time limit"
    raise WorkbenchError(f"CBC found no solution of {problem.name}{limit} ({pulp.LpStatus[problem.status]}).")


def allocate(minimal: Run, slots: int) -> Allocation:
    """Distribute `slots` by BIDS2 with the true rates seen in the measurement `minimal`."""
    seen = minimal.estimate.observation if isinstance(minimal, Measurement) else None
    if seen is None or not seen.operators:
        raise WorkbenchError(
            f"The minimal configuration of {minimal.query!r} sustained no rate at {minimal.budget.profile.memory_mb:,} "
            "MB per slot, so its operators' true rates are unknown. Give a slot more memory_mb, or more slot_cpus."
        )
    operators = [one for one in seen.operators if not one.is_source]
    consumed = seen.consumed_records
    ratios = {one.operator: one.records_in / consumed if consumed else 0.0 for one in operators}
    return bids2({one.operator: one.true_processing_rate for one in operators}, ratios, slots)
