"""What a replay starts from, policies by name, and its steps as a table."""

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType

from workbench.capacity import CapacityPlan, bids2
from workbench.errors import WorkbenchError
from workbench.placement import measured_query
from workbench.records import Measurement
from workbench.scaling import (
    FLINK,
    JUSTIN,
    AutoscalerSettings,
    Controller,
    Decision,
    Ds2Policy,
    Fleet,
    JustinPolicy,
    JustinVariant,
    Policy,
    Static,
    Strategy,
    Timeline,
    replay,
)
from workbench.simulation import (
    PRESETS,
    Deployment,
    KeyTrace,
    OperatorModel,
    QueryModel,
    RateTrace,
    StateModel,
    StateResponse,
    Worker,
    preset,
    steady_state,
)
from workbench.study.carry_out import read_planned

_EACH_MINUTE = AutoscalerSettings(
    policy_interval_s=60.0,
    metrics_window_s=60.0,
    utilization_target=0.8,
    utilization_min=0.5,
    utilization_max=0.9,
    scale_down_interval_s=600.0,  # what a backlog asked for is kept until the load behind it shows
    restart_s=10.0,
    catch_up_s=600.0,
)
_JUSTIN_SETTINGS = replace(JUSTIN, utilization_target=0.8)  # the upper end of the band it leaves alone
_HYSTERESIS = JustinVariant(min_gain=0.05)
_GIVES_BACK = JustinVariant("exceeds", 0.05, 0.95)

POLICIES: Mapping[str, Policy] = MappingProxyType(
    {
        "static": Static(),
        "ds2": Ds2Policy(_EACH_MINUTE),
        "flink": Ds2Policy(FLINK),
    }
)
"""Policies that are compared when none is named: leave everything; DS2 every minute, with a fifth of head-room and ten
minutes to catch up, at rest while half to nine tenths of an operator are asked for, giving back only what was not
needed for ten minutes; Flink's autoscaler as shipped."""
_JUSTIN: Mapping[str, JustinVariant] = MappingProxyType(
    {"justin": JustinVariant(), "justin-hysteresis": _HYSTERESIS, "justin-gives-back": _GIVES_BACK}
)
_CONTROLLERS: Mapping[str, Strategy] = MappingProxyType(
    {"capsys": "caps", "capsys-default": "default", "capsys-evenly": "evenly"}
)
NAMES = (*POLICIES, *_JUSTIN, *_CONTROLLERS)
"""All policies there are: Justin; with a hysteresis of 5 %; one that also shrinks when DS2 says so and gives memory
back at a hit rate of 95 %; DS2 every minute with CAPSys's placement, or Flink's two."""

COLUMNS = ("policy", "time_s", "offered_per_s", "consumed_per_s", "backlog", "latency_s", "tasks", "workers")
_AS_THEY_ARE: Mapping[str, float] = MappingProxyType({})
_MANAGED_SHARE = 0.4  # of a slot's memory, as Flink's default


@dataclass(frozen=True)
class Pool:
    """Workers that a controller places tasks on: how many, slots of each, and what one can give."""

    workers: int
    slots: int
    worker: Worker = field(default_factory=Worker)


@dataclass(frozen=True)
class Start:
    """What runs at the beginning: a query, tasks per operator on slots of this memory (MB) and so many cores."""

    model: QueryModel
    tasks: Mapping[str, int]
    memory_mb: float
    slot_cpus: float = 1.0


@dataclass(frozen=True, eq=False)
class Replayed:
    """A load replayed under policies: the simulated query, the load, the tasks at the beginning, what happened."""

    query: str
    trace: RateTrace
    tasks: Mapping[str, int]
    timelines: Mapping[str, Timeline]

    @property
    def rows(self) -> dict[str, dict[str, float]]:
        """One row of `Timeline.summary` by policy."""
        return {name: line.summary() for name, line in self.timelines.items()}


def replay_policies(
    query: str,
    trace: RateTrace,
    *,
    slots: int,
    memory_mb: float = 2048.0,
    policies: Sequence[str] = tuple(POLICIES),
    restart_s: float = 10.0,
) -> Replayed:
    """Replay `trace` on the simulated `query` under each of `policies`, from the same deployment.

    Raises
    ------
    WorkbenchError
        When there is no such query or policy, or there are fewer slots than operators.
    """
    return replay_start(preset_start(query, slots, memory_mb), trace, policies, restart_s=restart_s)


def replay_start(
    start: Start,
    trace: RateTrace,
    policies: Sequence[str] = tuple(POLICIES),
    *,
    restart_s: float = 10.0,
    managed_mb: float | None = None,
    pool: Pool | None = None,
    fleet: Fleet | None = None,
    keys: Mapping[str, KeyTrace] | None = None,
    seed: int = 0,
    settings: Mapping[str, float] = _AS_THEY_ARE,
) -> Replayed:
    """Replay `trace` under policies by name, from the same deployment.

    Parameters
    ----------
    managed_mb
        Managed memory of every task at the beginning, MB, part of a slot's; Justin's level 0. By default four tenths
        if a Justin is among the policies, else memory is not split.
    pool
        Workers, for the policies that place tasks. The others run as if tasks never got into each other's way.
    fleet
        Workers that are paid as a whole; a task takes its slot's memory of them.
    keys
        As for `replay`.
    seed
        Of the random placements.
    settings
        Fields of `AutoscalerSettings` that all policies but ``static`` and ``flink`` shall have otherwise.

    Raises
    ------
    WorkbenchError
        When there is no such policy, or it needs workers and there are none.
    """
    managed = _MANAGED_SHARE * start.memory_mb if managed_mb is None else managed_mb
    split = managed_mb is not None or any(name in _JUSTIN for name in policies)
    if split and not 0 < managed < start.memory_mb:
        raise WorkbenchError(
            f"Managed memory of {managed:g} MB is no part of a slot of {start.memory_mb:g} MB; give less than the slot."
        )
    made = named_policies(policies, start.model, managed, pool=pool, seed=seed, settings=settings)
    beside = start.memory_mb - managed if split else start.memory_mb
    first = Decision(start.tasks, dict.fromkeys(start.tasks, managed) if split else None)
    lines = {
        name: replay(
            trace,
            start.model,
            policy,
            first,
            memory_mb=beside,
            slot_cpus=start.slot_cpus,
            restart_s=restart_s,
            fleet=fleet and replace(fleet, task_memory_mb=beside),
            keys=keys,
        )
        for name, policy in made.items()
    }
    return Replayed(start.model.name, trace, start.tasks, lines)


def named_policies(
    names: Sequence[str],
    model: QueryModel,
    base_mb: float,
    *,
    pool: Pool | None = None,
    seed: int = 0,
    settings: Mapping[str, float] = _AS_THEY_ARE,
) -> dict[str, Policy]:
    """Make the policies of these names; `base_mb` is Justin's level 0, the rest as for `replay_start`."""
    known = [one.name for one in fields(AutoscalerSettings)]
    strange = [name for name in settings if name not in known]
    if strange:
        raise WorkbenchError(f"There is no setting {strange[0]!r} of an autoscaler; there are {', '.join(known)}.")
    # `replace` takes what the check above let through; the settings check the values.
    each_minute, justin = (replace(one, **settings) for one in (_EACH_MINUTE, _JUSTIN_SETTINGS))  # type: ignore[arg-type]
    unknown = [name for name in names if name not in NAMES]
    if unknown or not names:
        missing = f"There is no policy {unknown[0]!r}" if unknown else "There are no policies"
        raise WorkbenchError(f"{missing}; use one of {', '.join(NAMES)}.")
    made: dict[str, Policy] = {}
    for name in names:
        if name in _JUSTIN:
            made[name] = JustinPolicy(justin, _JUSTIN[name], base_mb=base_mb)
        elif name in _CONTROLLERS:
            if pool is None:
                raise WorkbenchError(f"Policy {name!r} places tasks on workers; give their number and slots.")
            profiles = {operator: one.profile for operator, one in model.operators.items()}
            made[name] = Controller(
                Ds2Policy(each_minute), profiles, pool.workers, pool.slots, pool.worker, _CONTROLLERS[name], seed
            )
        else:
            made[name] = Ds2Policy(each_minute) if name == "ds2" else POLICIES[name]
    return made


def preset_start(query: str, slots: int, memory_mb: float) -> Start:
    """Begin with `slots` slots of a preset, dealt out by BIDS2."""
    model = preset(query.removeprefix("nexmark:"))
    return Start(model, initial_tasks(model, slots, memory_mb), memory_mb)


def with_response(start: Start, operator: str, response: StateResponse) -> Start:
    """Let the state of an operator respond to memory as it was measured, instead of as the model computes.

    Raises
    ------
    WorkbenchError
        When the model has no such operator, or its CPU seconds exceed what was measured.
    """
    operators = dict(start.model.operators)
    if operator not in operators:
        raise WorkbenchError(
            f"A response was measured for {operator!r}, no operator of {start.model.name}; there are "
            f"{', '.join(operators)}."
        )
    state = operators[operator].state or StateModel(0.0)
    operators[operator] = replace(operators[operator], state=replace(state, response=response))
    return replace(start, model=replace(start.model, operators=operators))


def planned_start(path: Path, rate: float | None = None) -> Start:
    """Begin with a deployment that ``workbench plan`` planned.

    A plan made on the fluid testbed is of a preset; another query is modelled by what its operators cost in the run
    nearest to the plan, so its capacity is in proportion to its tasks.

    Parameters
    ----------
    path
        What ``workbench plan --output`` wrote.
    rate
        Which plan, by the rate it was made for; by default the last.

    Raises
    ------
    WorkbenchError
        When the file holds no such plan, or no run says what its operators cost.
    """
    planned = read_planned(path)
    plans = [one for one in planned.plans if rate is None or math.isclose(one.rate, rate, rel_tol=1e-6)]
    if not plans:
        rates = ", ".join(f"{one.rate:g}" for one in planned.plans) or "none"
        raise WorkbenchError(f"{path} has no plan for {rate} records/s; there are plans for {rates}.")
    chosen = plans[-1]
    memory, cpus = float(chosen.budget.profile.memory_mb), chosen.budget.profile.cpus
    name = chosen.query.removeprefix("nexmark:")
    if planned.study.testbed == "fluid" and name in PRESETS:
        model = preset(name)
    else:
        model = measured_model(name, planned.exploration.measurements, chosen)
    allocated = None if chosen.allocation is None else chosen.allocation.tasks
    if allocated is None or set(allocated) != set(model.modelled):
        allocated = initial_tasks(model, max(chosen.budget.slots, len(model.modelled)), memory)
    return Start(model, dict(allocated), memory, cpus)


def measured_model(name: str, runs: Sequence[Measurement], chosen: CapacityPlan) -> QueryModel:
    """Model a query by the unit costs observed in the run nearest to a plan: by memory first, then by slots."""
    usable = [run for run in runs if run.estimate.observation is not None and run.estimate.observation.operators]
    if not usable:
        raise WorkbenchError(f"No run of {name!r} sustained a rate, so its operators' costs are unknown; plan again.")
    budget = chosen.budget
    nearest = min(
        usable,
        key=lambda run: (
            abs(run.budget.profile.memory_mb - budget.profile.memory_mb),
            abs(run.budget.slots - budget.slots),
        ),
    )
    seen = nearest.estimate.observation
    assert seen is not None  # noqa: S101 - `usable` has some
    measured = measured_query(name, seen.operators, seen.edges or None)
    sources = measured.dataflow.sources
    return QueryModel(
        measured.dataflow,
        {name: OperatorModel(profile) for name, profile in measured.profiles.items() if name not in sources},
    )


def initial_tasks(model: QueryModel, slots: int, memory_mb: float) -> dict[str, int]:
    """Deal `slots` out to the operators by BIDS2, with the model's own costs of one task each.

    Raises
    ------
    WorkbenchError
        When there are fewer slots than operators.
    """
    work = steady_state(Deployment(model, model.minimal_layout, memory_mb)).work_s
    rates = {name: 1 / seconds if seconds > 0 else math.inf for name, seconds in work.items()}
    return dict(bids2(rates, dict.fromkeys(rates, 1.0), slots).tasks)


def timelines_csv(lines: Mapping[str, Timeline]) -> str:
    """Write every step of every timeline as comma-separated text."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for name, line in lines.items():
        columns = (
            line.times_s, line.offered, line.consumed, line.backlog, line.latency_s, line.tasks, line.workers
        )  # fmt: skip
        writer.writerows((name, *step) for step in zip(*(column.tolist() for column in columns), strict=True))
    return text.getvalue()
