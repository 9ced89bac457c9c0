"""Where a replay begins: a simulated query on slots, or the deployment that a plan names."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from workbench.advice import Advice
from workbench.capacity import CapacityPlan, bids2
from workbench.capacity.model import MicroBatch, carries, fit_micro_batch
from workbench.capacity.planning import batch_of, in_turns
from workbench.errors import WorkbenchError
from workbench.metrics import Observation
from workbench.placement import batch_query, measured_query
from workbench.records import Measurement, PlannedStudy, deployed, nearest_run
from workbench.simulation import (
    CAPSYS_QUERIES,
    PRESETS,
    Deployment,
    OperatorModel,
    QueryModel,
    StateModel,
    StateResponse,
    capsys_query,
    preset,
    short_name,
    simulated_query,
    steady_state,
)

_MB = float(1 << 20)
_STANDSTILL = 1e-9  # share of the capacity, if fixed seconds fill an interval


@dataclass(frozen=True)
class Start:
    """The deployment at the beginning.

    A query, its tasks per operator, memory (MB) and cores of a slot, the trigger interval (seconds; 0 without), and the
    share of it that goes to what rows do not add to, with 1, 2, ... tasks.
    """

    model: QueryModel
    tasks: Mapping[str, int]
    memory_mb: float
    slot_cpus: float = 1.0
    batch_s: float = 0.0
    batch_fixed: tuple[float, ...] = (0.0,)
    known_per_s: float = math.inf  # highest capacity measured or planned, records/s
    doubts: Mapping[str, Advice] = field(default_factory=dict)  # doubts about the capacity at the beginning


def simulated_start(query: str, slots: int | None, memory_mb: float) -> Start:
    """Begin with `slots` slots for a simulated query, assigned by BIDS2.

    Without `slots`, one of CAPSys's queries begins with its published tasks.
    """
    name = short_name(query)
    model = simulated_query(name)
    if slots is not None:
        return Start(model, initial_tasks(model, slots, memory_mb), memory_mb)
    if name not in CAPSYS_QUERIES:
        raise WorkbenchError(
            f"The number of slots for {query!r} is missing; give it, or the JSON file of a plan.", settings=("slots",)
        )
    return Start(model, dict(capsys_query(name).tasks), memory_mb)


def with_response(start: Start, operator: str, response: StateResponse) -> Start:
    """Replace the modelled response of an operator's state to memory by a measured one."""
    operators = dict(start.model.operators)
    if operator not in operators:
        raise WorkbenchError(
            f"The response is for {operator!r}, which is not an operator of {start.model.name}; "
            f"use one of {', '.join(operators)}."
        )
    one = operators[operator]
    operators[operator] = replace(one, state=replace(one.state or StateModel(0.0), response=response))
    return replace(start, model=replace(start.model, operators=operators))


def measured_start(path: Path) -> Start:
    """Begin with the deployment of a measurement; see `planned_start`.

    Raises WorkbenchError when the file is not a measurement, or it sustained no rate.
    """
    measured = Measurement.from_json(path)
    estimate, doubts = measured.estimate, dict[str, Advice]()
    if estimate.limit != "query":
        fewer = "Measure first with slots that the source keeps busy: fewer, or slower ones."
        remedy = fewer if estimate.limit == "source" else "Measure first with a higher rate allowed."
        doubts["The capacity measured is a lower bound: fewer slots may be enough."] = Advice(remedy)
    if estimate.filled is False:
        remedy = "Measure first in a deployment of its own, whose state has minutes to fill."
        doubts["The capacity measured is that of a young state, and may be too high."] = Advice(remedy)
    return replace(_start(deployed(measured), (measured,)), doubts=doubts)


def planned_start(path: Path, rate: float | None = None) -> Start:
    """Begin with a deployment that ``workbench plan`` planned.

    A plan from the fluid testbed is for a preset. A query in micro-batches begins with the planned slots, which carry
    the plan's capacity. Another query is modelled by the unit costs of its operators in the run nearest to the plan, so
    its capacity is proportional to its tasks.
    """
    planned = PlannedStudy.from_json(path)
    if not planned.plans:
        raise WorkbenchError(f"{path} has no plan: no target could be planned. Plan again with workbench plan.")
    plans = [one for one in planned.plans if rate is None or math.isclose(one.rate, rate, rel_tol=1e-6)]
    if not plans:
        rates = ", ".join(f"{one.rate:g}" for one in planned.plans)
        raise WorkbenchError(f"{path} has no plan for {rate:g} records/s; give one of its rates (records/s): {rates}.")
    verdict, start = plans[-1].verdict, _start(plans[-1], planned.measurements)
    if verdict is None or verdict.level == "safe":
        return start
    return replace(start, doubts={f"The verdict on the plan is: {verdict.level}. {verdict.reason}": verdict.advised})


def _start(chosen: CapacityPlan, runs: Sequence[Measurement]) -> Start:
    memory, cpus = float(chosen.budget.profile.memory_mb), chosen.budget.profile.cpus
    name = short_name(chosen.query)
    model = preset(name) if chosen.simulated and name in PRESETS else measured_model(name, runs, chosen)
    allocated = None if chosen.allocation is None else chosen.allocation.tasks
    if allocated is None or set(allocated) != set(model.modelled):
        allocated = initial_tasks(model, max(chosen.budget.slots, len(model.modelled)), memory)
    start = Start(model, dict(allocated), memory, cpus)
    if not chosen.has_interval:
        return start
    known = max([chosen.expected_rate, *(run.estimate.middle for run in runs)])
    fixed = _fixed_share(runs, chosen)
    return replace(start, batch_s=chosen.budget.interval_s, batch_fixed=fixed, known_per_s=known)


def measured_model(name: str, runs: Sequence[Measurement], chosen: CapacityPlan) -> QueryModel:
    """Model a query by the unit costs observed in the run nearest to a plan: by memory first, then by slots.

    Micro-batches scale as a whole, in slots; the planned slots carry just the plan's capacity. The partitions of state
    are frozen: fewer slots take whole ones in turns and pay the fixed seconds of a task at each, and more slots than
    partitions carry no more. A new deployment loads the state; its reads are part of what a record was seen to cost.
    """
    nearest = nearest_run(runs, chosen.budget)
    seen = None if nearest is None else nearest.estimate.observation
    if seen is None:
        raise WorkbenchError(
            f"The plan of {name!r} rests on recorded rates, which say nothing of operators, so there is nothing to "
            "replay. Measure the query: plan a study without a table, or replay a simulated query."
            if chosen.testbed_kind == "recorded"
            else f"No run of {name!r} sustained a rate, so its operators' costs are unknown; plan again."
        )
    if chosen.has_interval:
        measured = batch_query(chosen, seen.operators, chosen.budget.profile.cpus)
    else:
        measured = measured_query(name, seen.operators, seen.edges or None)
    frozen = _frozen(chosen)
    slowdown = _slowdown(runs, chosen, frozen) if chosen.has_interval else (1.0,)
    state = _kept_state(seen, chosen.rate) if chosen.has_interval else None
    operators = {
        name: OperatorModel(profile, partitions=frozen, slowdown=slowdown, state=state)
        for name, profile in measured.profiles.items()
        if name not in measured.dataflow.sources
    }
    return QueryModel(measured.dataflow, operators)


def _slowdown(runs: Sequence[Measurement], chosen: CapacityPlan, frozen: int | None) -> tuple[float, ...]:
    """Return the cost of a record on 1, 2, ... slots, relative to an even share of the plan's capacity.

    The plan's capacity is that of its slots; on other slots it changes as by the parts of a batch. The slot that takes
    most of the `frozen` partitions sets the pace.
    """
    planned, cpus = chosen.budget.slots, chosen.budget.profile.cpus
    one_core = min(1.0, cpus) / cpus  # a simulated task uses no more, but the capacity is that of whole slots
    if frozen is None:
        return (one_core,)
    counts = np.arange(1.0, max(frozen, planned) + 1)
    fullest = np.ceil(frozen / counts) / frozen
    carried = in_turns(_parts(runs, chosen), counts, np.full_like(counts, frozen), chosen.budget.interval_s)
    most = carried[min(frozen, planned) - 1]  # more slots than partitions carry no more
    carried = np.clip(carried, _STANDSTILL * most, most)
    return tuple((one_core * carried[planned - 1] / (carried * fullest * planned)).tolist())


def _fixed_share(runs: Sequence[Measurement], chosen: CapacityPlan) -> tuple[float, ...]:
    """Return the share of a trigger interval spent whatever the rows, on 1, 2, ... slots; 0 where unknown."""
    parts, planned, interval_s = _parts(runs, chosen), chosen.budget.slots, chosen.budget.interval_s
    if parts is None or not carries(parts, np.array([float(planned)]), interval_s):
        return (0.0,)
    frozen = _frozen(chosen)
    counts = np.arange(1.0, max(frozen or 1, planned) + 1)
    partitions = counts if frozen is None else np.full_like(counts, frozen)
    return tuple(np.minimum(parts.fixed_share(counts, partitions, interval_s, counts), 1.0).tolist())


def _frozen(chosen: CapacityPlan) -> int | None:
    return chosen.layout.stateful_partitions if chosen.has_interval and chosen.layout else None


def _parts(runs: Sequence[Measurement], chosen: CapacityPlan) -> MicroBatch | None:
    """Return the parts of a batch on the plan's cores."""
    fitted = fit_micro_batch(runs)
    found = batch_of(runs, fitted if fitted is not None and fitted.explains else None)
    return found if found is None or chosen.cores is None else found.on_cores(chosen.cores.times)


def _kept_state(seen: Observation, rate: float) -> StateModel | None:
    """Return the state that a deployment at `rate` (records/s) loads, which grows at most with it; None: none seen."""
    kept = sum(one.state_kept_bytes or 0 for one in seen.operators)
    if not kept or seen.consumed_rate <= 0:
        return None
    return StateModel(kept / _MB * rate / seen.consumed_rate, reads=0.0)


def initial_tasks(model: QueryModel, slots: int, memory_mb: float) -> dict[str, int]:
    """Assign `slots` to the operators by BIDS2, with the model's costs of one task each."""
    work = steady_state(Deployment(model, model.minimal_layout, memory_mb)).work_s
    rates = {name: 1 / seconds if seconds > 0 else math.inf for name, seconds in work.items()}
    return dict(bids2(rates, dict.fromkeys(rates, 1.0), slots).tasks)
