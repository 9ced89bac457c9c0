"""What to replay, as plain values, and the deployment it begins with: a simulated query on slots, or that of a plan.

`Scenario` is the only definition of what ``workbench replay`` and the scaling report take.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, get_type_hints

import numpy as np

from workbench import bounds
from workbench.advice import Advice
from workbench.capacity import CapacityPlan, bids2
from workbench.capacity.model import MicroBatch, carries, fit_micro_batch
from workbench.capacity.planning import batch_of, in_turns, read_instances
from workbench.checks import finite, integer, shown
from workbench.errors import WorkbenchError
from workbench.metrics import Observation
from workbench.placement import batch_query, measured_query
from workbench.records import Measurement, PlannedStudy, deployed, nearest_run
from workbench.scaling import Fleet, WorkerShape
from workbench.scaling.elastic import PARADIGMS, ElasticCluster
from workbench.simulation import (
    CAPSYS_QUERIES,
    PRESETS,
    Deployment,
    KeyTrace,
    OperatorModel,
    QueryModel,
    RateTrace,
    StateModel,
    StateResponse,
    Worker,
    capsys_query,
    preset,
    short_name,
    simulated_query,
    steady_state,
)
from workbench.study import scaling
from workbench.study.planned import MEASUREMENT, SUFFIXES, resolved
from workbench.study.scaling import Start
from workbench.workload import read_key_frequencies

_KEYS = 10_000
_MB = float(1 << 20)
_NODES = 4
_STANDSTILL = 1e-9  # share of the capacity, if fixed seconds fill an interval
_MOST_CHANGES = 6_000  # of the keys, a minute
_TAKES = "a study, plans, a measurement or the name of a simulated query"
_NOT_KEYED = ("slots", "plan_rate", "managed_mb", "response", "prices", "instance", "worker_cpus", "worker_io_mb")

Words = Sequence[str | float]

RESTARTS_S = (5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
"""Restart times to compare, seconds; Flink's autoscaler assumes the longest by default. DRRS, which changes tasks while
they run, shortens a change by 73 to 86 % (Y. Qing and W. Zheng, arXiv 2503.11320)."""


@dataclass(frozen=True)
class Scenario:
    """A load, what it is replayed on, and under which policies. None and empty values are left out.

    Fields of numbers above 0 have their name for a reader, and the most they may be.
    """

    query: str  # a simulated query, the path of a planned study, of plans or of a measurement, or `KEYED`
    rates: str  # CSV file of the load
    time_column: str = "time_s"  # of the load, seconds
    rate_column: str = "rate_per_s"  # records/s
    slots: Annotated[int | None, "number of slots", bounds.TASKS] = None  # slots at the beginning
    plan_rate: Annotated[float | None, "target rate", bounds.RATE] = None  # of a plan; the lowest over the peak
    memory_mb: Annotated[float, "memory of a slot", bounds.MEMORY_MB] = 2048.0  # memory of a slot, MiB
    managed_mb: Annotated[float | None, "managed memory of a slot", bounds.MEMORY_MB] = None  # managed part of it, MiB
    policies: Sequence[str] = ()  # names, or ``module:name`` of your own; for a keyed operator paradigms
    # of all autoscalers but ``flink``; of a keyed operator and its elasticity
    settings: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    restart_s: float = 10.0  # downtime of a reconfiguration, seconds
    response: Words = ()  # operator, CSV file and tasks of a measured response of state to memory
    # workers of the policies that place tasks, or nodes of a keyed operator; slots, cores and MiB/s of each
    workers: Annotated[int | None, "number of workers", bounds.TASKS] = None
    worker_slots: Annotated[int, "number of slots of a worker", bounds.TASKS] = 4
    worker_cpus: Annotated[float | None, "number of cores of a worker", bounds.WORKER_CPUS] = None
    worker_io_mb: Annotated[float | None, "number of MB/s of state access of a worker", bounds.NUMBER] = None
    worker_net_mb: Annotated[float | None, "number of MB/s of network output of a worker", bounds.NUMBER] = None
    # a price list, and the type of it that is paid for; by default the plan's, unless `workers` are given
    prices: str | None = None
    instance: str | None = None
    # operator; share, exponent of Zipf's law, or file of frequencies; changes a minute
    hot_key: Words = ()
    shuffle_keys: Words = ()
    keys: Words = ()
    seed: int = 0  # of random placements, keys and service times

    def trace(self) -> RateTrace:
        """Read the load."""
        return RateTrace.from_csv(self.rates, self.time_column, self.rate_column)

    def replay(
        self, trace: RateTrace, progress: Callable[[str], None] = lambda _: None
    ) -> scaling.Replayed | scaling.ReplayedParadigms:
        """Replay `trace`, the load or a part of it."""
        self._check()
        if self.query == scaling.KEYED:
            return self._replay_keyed(trace, progress)
        start = self._start(trace.peak_per_s)
        return scaling.replay_start(
            start,
            trace,
            self.policies or tuple(scaling.POLICIES),
            restart_s=self.restart_s,
            managed_mb=self.managed_mb,
            pool=self._pool(start.slot_cpus),
            fleet=self._fleet(start),
            keys=self._keys(),
            seed=self.seed,
            settings=self.settings,
            progress=progress,
        )

    def _check(self) -> None:
        number = integer(self.seed)
        if number is None or number < 0:
            raise WorkbenchError(
                f"The seed is {shown(self.seed)}; it must be a whole number of at least 0.", settings=("seed",)
            )
        for name, hint in get_type_hints(Scenario, include_extras=True).items():
            value, (thing, most) = getattr(self, name), getattr(hint, "__metadata__", ("", math.inf))
            if thing and value is not None and not (finite(value) and 0 < value <= most):
                allowed = f"at most {most:,}" if finite(value) and value > 0 else "above 0"
                given = f"{value:g}" if finite(value) else shown(value)
                raise WorkbenchError(f"The {thing} is {given}; it must be {allowed}.", settings=(name,))
        if not (finite(self.restart_s) and 0 <= self.restart_s <= bounds.SECONDS):
            raise WorkbenchError(
                f"restart_s is {shown(self.restart_s)}; it must be at least 0 and at most {bounds.SECONDS:,}.",
                settings=("restart_s",),
            )
        for name, value in self.settings.items():
            if not finite(value):
                raise WorkbenchError(
                    f"The setting {name!r} is {shown(value)}; it must be a finite number.", settings=("settings",)
                )

    def _replay_keyed(self, trace: RateTrace, progress: Callable[[str], None]) -> scaling.ReplayedParadigms:
        given = [name for name in _NOT_KEYED if getattr(self, name) not in (None, ())]
        if given:
            raise WorkbenchError(
                f"{given[0]} does not apply to {scaling.KEYED!r}; describe its cluster by workers and their slots, and "
                "the operator by settings. Leave it out.",
                settings=given[:1],
            )
        keys = self._keys()
        if list(keys) != [scaling.KEYED]:
            raise WorkbenchError(
                f"The keys of {scaling.KEYED!r} are missing; give one of these for the operator {scaling.KEYED!r}.",
                settings=("hot_key", "shuffle_keys", "keys"),
            )
        network = {} if self.worker_net_mb is None else {"network_bytes_per_s": self.worker_net_mb * _MB}
        cluster = ElasticCluster(self.workers or _NODES, self.worker_slots, **network)
        chosen, own = self.policies or PARADIGMS, self.settings
        return scaling.replay_paradigms(
            trace, keys[scaling.KEYED], chosen, cluster=cluster, settings=own, seed=self.seed, progress=progress
        )

    def _start(self, peak: float) -> Start:
        start = self._deployed(peak)
        if not self.response:
            return start
        operator, path, tasks = _three("response", self.response, "an operator, a file and a number of tasks")
        if not (str(tasks).isascii() and str(tasks).isdigit() and len(str(tasks)) <= len(str(bounds.TASKS))):
            raise WorkbenchError(
                f"The tasks of the measured response are {shown(tasks)}; give a whole number of at least 1.",
                settings=("response",),
            )
        return with_response(start, str(operator), StateResponse.from_csv(str(path), int(tasks)))

    def _deployed(self, peak: float) -> Start:
        found = resolved(self.query, "replay", _TAKES) if Path(self.query).suffix in SUFFIXES else None
        if found is not None and found[0] != MEASUREMENT:
            return planned_start(found[1], self.plan_rate, peak)
        if self.plan_rate is not None:
            raise WorkbenchError(
                f"A target rate is one of several plans', but {self.query!r} has none. Leave it out.",
                settings=("plan_rate",),
            )
        if found is not None:
            return measured_start(found[1])
        return simulated_start(self.query, self.slots, self.memory_mb)

    def _pool(self, slot_cpus: float) -> scaling.Pool | None:
        if self.workers is None:
            return None
        cpus = slot_cpus * self.worker_slots if self.worker_cpus is None else self.worker_cpus
        io, net = (math.inf if mb is None else mb * _MB for mb in (self.worker_io_mb, self.worker_net_mb))
        return scaling.Pool(self.workers, self.worker_slots, Worker(cpus, io, net))

    def _fleet(self, start: Start) -> Fleet | None:
        planned = start.price if self.workers is None else None  # else the workers are described here
        own = () if planned is None else (planned.instance,)
        listed = {one.name: one for one in (own if self.prices is None else read_instances(Path(self.prices)))}
        name = self.instance or (planned.instance.name if planned else "")
        if name not in listed:
            if self.instance is None:
                return None
            if self.prices is None:
                raise WorkbenchError(
                    f"The instance type {self.instance!r} is of a price list; give the list.", settings=("prices",)
                )
            raise WorkbenchError(
                f"{self.prices} has no instance type {self.instance!r}; use one of {', '.join(listed)}."
            )
        chosen, cpus = listed[name], start.slot_cpus
        if planned and name == planned.instance.name:  # a worker holds as many slots as the plan says
            cpus = chosen.vcpus / planned.slots_per_worker
        shape = WorkerShape(chosen.vcpus, chosen.memory_mb)
        return Fleet(shape, start.memory_mb, cpus, chosen.price_per_hour, chosen.currency)

    def _keys(self) -> dict[str, KeyTrace]:
        keys: dict[str, KeyTrace] = {}
        given = {"hot_key": self.hot_key, "shuffle_keys": self.shuffle_keys, "keys": self.keys}
        for name, words in given.items():
            if not words:
                continue
            one, kind, often = _three(name, words, "an operator, what its keys are, and changes a minute")
            operator = str(one)
            if operator in keys:
                raise WorkbenchError(
                    f"The keys of {operator!r} are described twice; give one of these for each operator.",
                    settings=tuple(given),
                )
            try:
                per_minute = float(often)
                number = math.nan if name == "keys" else float(kind)
            except ValueError as error:
                raise WorkbenchError(
                    f"{' '.join(map(str, words))!r} must have numbers after the operator: {error}.", settings=(name,)
                ) from error
            if not (math.isfinite(per_minute) and 0 <= per_minute <= _MOST_CHANGES):
                raise WorkbenchError(
                    f"The keys change {per_minute:g} times a minute; give at least 0 and at most {_MOST_CHANGES:,}.",
                    settings=(name,),
                )
            if name == "hot_key":
                keys[operator] = KeyTrace.hot_key(_KEYS, number, per_minute, self.seed)
            elif name == "shuffle_keys":
                keys[operator] = KeyTrace.zipf(_KEYS, number, per_minute, seed=self.seed)
            else:
                keys[operator] = read_key_frequencies(str(kind)).trace(per_minute, seed=self.seed)
        return keys


def _three(name: str, words: Words, meaning: str) -> Words:
    if len(words) != 3:
        raise WorkbenchError(f"Expected three values ({meaning}), got {len(words)}. Give all three.", settings=(name,))
    return words


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
        counted = estimate.observation is not None and estimate.observation.lacking_s > 0
        found = "counts a state that was never full" if counted else "is that of a young state, and may be too high"
        doubts[f"The capacity measured {found}."] = Advice(remedy)
    return replace(_start(deployed(measured), (measured,)), doubts=doubts)


def planned_start(path: Path, rate: float | None = None, peak: float = math.inf) -> Start:
    """Begin with a deployment that ``workbench plan`` planned: for `rate`, or else for the lowest rate over `peak`.

    Where none is, it is for the highest.

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
    by_rate = sorted(plans, key=lambda one: one.rate)
    chosen = next((one for one in by_rate if one.rate >= peak), by_rate[-1])
    verdict, start = chosen.verdict, _start(chosen, planned.measurements)
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
    start = Start(model, dict(allocated), memory, cpus, price=chosen.price)
    if not chosen.has_interval:
        return start
    known = max([chosen.expected_rate, *(run.estimate.middle for run in runs)])
    return replace(start, batch_s=chosen.budget.interval_s, batch_fixed=_fixed_share(runs, chosen), known_per_s=known)


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


def replay_restarts(
    query: str,
    trace: RateTrace,
    *,
    slots: int,
    policies: Sequence[str] = tuple(scaling.POLICIES),
    restarts_s: Sequence[float] = RESTARTS_S,
) -> dict[float, scaling.Replayed]:
    """Replay `trace` on the simulated `query`, in slots of 2,048 MB, once for each restart time, seconds."""
    start = simulated_start(query, slots, 2048.0)
    return {one: scaling.replay_start(start, trace, policies, restart_s=one) for one in restarts_s}
