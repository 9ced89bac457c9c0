"""What was measured or planned, placed: its operators at a rate, on the workers asked for or the plan's own."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from workbench import units
from workbench.errors import WorkbenchError
from workbench.placement.given import Asked, PlacementInput
from workbench.placement.measured import BATCH, batch_query, measured_query
from workbench.records import CapacityPlan, Measurement, PlannedStudy, deployed, nearest_run
from workbench.simulation import Worker


def measurement_from(asked: Asked, measured: Measurement, tasks: Mapping[str, int] | None = None) -> PlacementInput:
    """Place the operators of a measurement, with `tasks` instead of its own.

    Without workers asked for, micro-batches are placed as a plan's are: on the slots measured.
    """
    seen, budget = measured.estimate.observation, measured.budget
    if (
        measured.testbed_kind in {"spark", "observed"}
        and tasks is None
        and asked.workers is asked.slots is asked.room is None
    ):
        return _batches(asked, deployed(measured, asked.rate), measured)
    if seen is None or not seen.operators:
        raise WorkbenchError(f"{asked.what} sustained no rate, so its operators' costs are unknown; measure again.")
    query = measured_query(measured.query, seen.operators, seen.edges or None)
    rate = measured.estimate.low if asked.rate is None else asked.rate
    workers, slots = _cluster(asked)
    problem = query.problem(rate, workers, slots, tasks=tasks or measured.tasks, speeds=asked.speeds)
    basis = (
        f"Rates are bounds: they count CPU, state and shuffle alone. The run itself sustained "
        f"{units.rate(measured.estimate.middle)} on {units.some(budget.slots, 'slot')}."
        if measured.testbed_kind == "spark"
        else ""
    )
    return PlacementInput({measured.query: problem}, rate, Worker(cpus=budget.profile.cpus * slots), basis)


def plan_from(asked: Asked, planned: PlannedStudy) -> PlacementInput:
    """Place the plan for the rate asked for, else the last; on its own workers where no others are asked for."""
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
    chosen = _chosen(plan, planned.plans)
    if plan.has_interval:
        return replace(_batches(asked, plan, nearest), chosen=chosen)
    tasks = None if plan.allocation is None else plan.allocation.tasks
    unsaid = asked.workers is None and asked.slots is None and asked.room is None
    workers, slots = _own_workers(plan)
    own = replace(asked, workers=workers, slots=slots) if unsaid else asked
    measured = measurement_from(replace(own, rate=plan.rate), replace(nearest, tasks=None), tasks)
    return replace(measured if tasks is None else _as_planned(measured, plan), chosen=chosen)


def _batches(asked: Asked, plan: CapacityPlan, nearest: Measurement) -> PlacementInput:
    """Place the slots of a plan on its own workers, unless another cluster is given."""
    seen = nearest.estimate.observation
    own, held = _own_workers(plan)
    slots = asked.slots if asked.slots is not None else held
    room = asked.room if asked.room is not None and asked.workers is None else None
    own = own if asked.workers is None else asked.workers
    workers = math.ceil(room / max(1, slots)) if room else own
    query = batch_query(plan, seen.operators if seen is not None else (), slot_cpus=1.0)
    problem = query.problem(plan.rate, workers, slots, tasks={BATCH: plan.budget.slots}, speeds=asked.speeds)
    unit = plan.budget.profile.cpus
    return PlacementInput(
        {plan.query: problem},
        plan.rate,
        Worker(cpus=float(slots)),
        _capacity(plan),
        unit,
        alike="" if asked.speeds else _alike(plan),
    )


def _alike(plan: CapacityPlan) -> str:
    """Say why micro-batches need no placement on equal workers, and what you choose instead."""
    shape = "name a price list in the study (prices: FILE), and the plan says which workers are the cheapest"
    if plan.price is not None:
        shape = f"the plan's, the cheapest of its price list, is {plan.price.workers:,} x {plan.price.instance.name}"
    carries = f"carries {units.rate(plan.rate)}" if plan.rate <= plan.expected_rate else "sustains the same"
    return (
        f"Any placement {carries}: the {units.some(plan.budget.slots, 'task')} of a micro-batch are alike, Spark "
        f"assigns them itself, and the workers are equal. Choose the worker shape: {shape}."
    )


def _own_workers(plan: CapacityPlan) -> tuple[int, int]:
    """Give the number of a plan's workers, and the slots of the executors on each; without a price each has one."""
    workers = plan.executors if plan.price is None else plan.price.workers
    return workers, math.ceil(plan.executors / workers) * plan.executor.slots


def _cluster(asked: Asked) -> tuple[int, int]:
    slots = asked.slots if asked.slots is not None else asked.room
    if slots is None or (asked.workers is None and asked.room is None):
        raise WorkbenchError(
            f"{asked.what} says nothing of the workers; give their number and slots.",
            settings=("workers", "slots"),
        )
    if asked.workers is not None:
        return asked.workers, slots
    return math.ceil((asked.room or slots) / max(1, slots)), slots


def _as_planned(measured: PlacementInput, plan: CapacityPlan) -> PlacementInput:
    """Scale the CPU of the plan's own tasks, in slots, so that the fullest carries just the plan's capacity.

    The run is of another size than the plan, whose model also knows what more slots lose.
    """
    own = measured.problem
    fullest = max(own.cpu)
    factor = plan.rate / plan.expected_rate / fullest if fullest > 0 else 1.0
    problem = replace(own, cpu=tuple(factor * one for one in own.cpu))
    return replace(
        measured,
        queries={plan.query: problem},
        worker=Worker(cpus=float(problem.slots)),
        basis=_capacity(plan),
        unit_cpus=plan.budget.profile.cpus,
    )


def _capacity(plan: CapacityPlan) -> str:
    slots = plan.budget.slots
    return (
        f"The plan's capacity on {'this slot' if slots == 1 else f'these {slots:,} slots'} is "
        f"{units.rate(plan.expected_rate)} (90 % interval {units.rate(plan.low)} to {units.rate(plan.high)}); no "
        "placement sustains more."
    )


def _chosen(plan: CapacityPlan, plans: Sequence[CapacityPlan]) -> str:
    """Say which of several plans is placed, and what the others are for."""
    others = [one.rate for one in plans if not _same(one.rate, plan.rate)]
    if not others:
        return ""
    return f"for {units.rate(plan.rate)}; others: {', '.join(units.scaled(rate, '') for rate in dict.fromkeys(others))}"


def _same(rate: float, other: float) -> bool:
    return math.isclose(rate, other, rel_tol=1e-6)
