"""Measurements and plans to place: on their own workers, unless others are requested."""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from workbench import units
from workbench.errors import WorkbenchError
from workbench.placement.problem import PlacementProblem
from workbench.placement.request import PlacementInput, Request
from workbench.placement.unit_costs import BATCH, batch_query, measured_query
from workbench.records import CapacityPlan, Measurement, PlannedStudy, deployed, nearest_run
from workbench.simulation import Worker

_same = partial(math.isclose, rel_tol=1e-6)


def read_measurement(asked: Request, measured: Measurement, tasks: Mapping[str, int] | None = None) -> PlacementInput:
    """Place the operators of a measurement, with `tasks` instead of its own.

    Without requested workers, micro-batches are placed as in a plan: on the measured slots.
    """
    seen, budget = measured.estimate.observation, measured.budget
    if measured.testbed_kind in {"spark", "observed"} and tasks is None and asked.anywhere:
        return _batches(asked, deployed(measured, asked.rate), measured)
    if seen is None or not seen.operators:
        raise WorkbenchError(f"{asked.what} sustained no rate, so its operators' costs are unknown; measure again.")
    query = measured_query(measured.query, seen.operators, seen.edges or None)
    rate = measured.estimate.low if asked.rate is None else asked.rate
    slots = asked.slots if asked.slots is not None else asked.room
    workers = None if slots is None else asked.workers_of(slots)
    if slots is None or workers is None:
        raise WorkbenchError(
            f"{asked.what} says nothing of the workers; give their number and slots.", settings=("workers", "slots")
        )
    problem = PlacementProblem.from_dataflow(
        query.dataflow, query.profiles, rate, workers, slots, parallelism=tasks or measured.tasks, speeds=asked.speeds
    )
    basis = ""
    if measured.testbed_kind == "spark":
        basis = (
            f"Rates are bounds: they count CPU, state and shuffle alone. The run itself sustained "
            f"{units.rate(measured.estimate.middle)} on {units.some(budget.slots, 'slot')}."
        )
    return PlacementInput({measured.query: problem}, rate, Worker(cpus=budget.profile.cpus * slots), basis)


def read_plan(asked: Request, planned: PlannedStudy) -> PlacementInput:
    """Place the plan for the requested rate, else the last; on its own workers unless others are requested."""
    if not planned.plans:
        raise WorkbenchError(f"{asked.what} has no plans, so there is nothing to place; plan again.")
    found = [one for one in planned.plans if asked.rate is None or _same(one.rate, asked.rate)]
    if not found:
        rates = ", ".join(f"{one.rate:g}" for one in planned.plans)
        raise WorkbenchError(
            f"{asked.what} has no plan for {asked.rate:g} records/s; give one of its rates (records/s): {rates}."
        )
    plan = found[-1]
    nearest = nearest_run(planned.measurements, plan.budget)
    if nearest is None and plan.testbed_kind == "recorded":
        raise WorkbenchError(
            f"{asked.what} rests on recorded rates, which say nothing of operators, so there is nothing to place. "
            "Measure the query: plan a study without a table."
        )
    if nearest is None:
        raise WorkbenchError(f"{asked.what} has no run that sustained a rate, so no costs are known; plan again.")
    others = dict.fromkeys(one.rate for one in planned.plans if not _same(one.rate, plan.rate))
    listed = ", ".join(units.scaled(rate, "") for rate in others)
    chosen = f"for {units.rate(plan.rate)}; others: {listed}" if others else ""
    if plan.has_interval:
        return replace(_batches(asked, plan, nearest), chosen=chosen)
    tasks = None if plan.allocation is None else plan.allocation.tasks
    own = replace(asked, rate=plan.rate)
    if asked.anywhere:
        workers, slots = _own_workers(plan)
        own = replace(own, workers=workers, slots=slots)
    measured = replace(read_measurement(own, replace(nearest, tasks=None), tasks), chosen=chosen)
    if tasks is None:
        return measured
    # The run is of another size than the plan, whose model also knows what more slots lose: scale the CPU of the
    # plan's own tasks, in slots, so that the fullest carries just the plan's capacity.
    placed = measured.problem
    fullest = max(placed.cpu)
    factor = plan.rate / plan.expected_rate / fullest if fullest > 0 else 1.0
    return replace(
        measured,
        queries={plan.query: replace(placed, cpu=tuple(factor * one for one in placed.cpu))},
        worker=Worker(cpus=float(placed.slots)),
        basis=_capacity(plan),
        unit_cpus=plan.budget.profile.cpus,
    )


def _batches(asked: Request, plan: CapacityPlan, nearest: Measurement) -> PlacementInput:
    """Place the slots of a plan on its own workers, unless another cluster is given."""
    seen = nearest.estimate.observation
    own_workers, slots = _own_workers(plan)
    slots = slots if asked.slots is None else asked.slots
    workers = asked.workers_of(slots)
    workers = own_workers if workers is None else workers
    query, tasks = batch_query(plan, seen.operators if seen is not None else (), slot_cpus=1.0), plan.budget.slots
    problem = PlacementProblem.from_dataflow(
        query.dataflow, query.profiles, plan.rate, workers, slots, parallelism={BATCH: tasks}, speeds=asked.speeds
    )
    shape = "name a price list in the study (prices: FILE), and the plan says which workers are the cheapest"
    if plan.price is not None:
        shape = f"the plan's, the cheapest of its price list, is {plan.price.workers:,} x {plan.price.instance.name}"
    carries = f"carries {units.rate(plan.rate)}" if plan.rate <= plan.expected_rate else "sustains the same"
    if plan.verdict is not None and plan.verdict.level != "safe":
        carries += f" if the plan holds (verdict: {plan.verdict.level})"
    alike = (
        f"Any placement {carries}: the {units.some(tasks, 'task')} of a micro-batch are alike, Spark "
        f"assigns them itself, and the workers are equal. Choose the worker shape: {shape}."
    )
    return PlacementInput(
        {plan.query: problem},
        plan.rate,
        Worker(cpus=float(slots)),
        _capacity(plan),
        plan.budget.profile.cpus,
        alike="" if asked.speeds else alike,
    )


def _own_workers(plan: CapacityPlan) -> tuple[int, int]:
    """Return the number of a plan's workers, and the slots of the executors on each; without a price each has one."""
    workers = plan.executors if plan.price is None else plan.price.workers
    return workers, math.ceil(plan.executors / workers) * plan.executor.slots


def _capacity(plan: CapacityPlan) -> str:
    slots = plan.budget.slots
    return (
        f"The plan's capacity on {'this slot' if slots == 1 else f'these {slots:,} slots'} is "
        f"{units.rate(plan.expected_rate)} (90 % interval {units.rate(plan.low)} to {units.rate(plan.high)}); no "
        "placement sustains more."
    )
