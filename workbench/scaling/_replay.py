"""Replay a load against a deployment under a policy, on the fluid engine.

The engine owns time. It advances step by step, calls the policy at its interval, and carries out reconfigurations:
nothing runs during the restart and while state moves, arriving records wait, and the new deployment begins cold.
Configurations cost what their tasks take, packed into complete workers of one shape (Justin, section 4.3).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from workbench.arrays import Floats
from workbench.checks import SLACK, not_negative, positive, require
from workbench.dataflow import Dataflow, OperatorProfile
from workbench.errors import WorkbenchError
from workbench.scaling._justin import StateMetrics
from workbench.scaling.policies import Decision, Managed, Memory, Policy, Tasks, Window, answered, decided, interval_of
from workbench.scaling.timeline import Reconfiguration, Timeline, waited
from workbench.simulation import (
    Cluster,
    Deployment,
    KeyTrace,
    OperatorModel,
    QueryModel,
    RateTrace,
    State,
    Step,
    advance,
    carry,
    whole_step,
)

_Size = tuple[float, float]  # cores, memory of a task as shares of a worker's

# With two resources "largest" has several meanings.
_ORDERS: tuple[Callable[[_Size], float], ...] = (max, sum, lambda size: size[1], lambda size: size[0])


class Paid(NamedTuple):
    """Paid resources at one time: workers, their cores and their memory (MB)."""

    workers: int
    cpus: float
    memory_mb: float


@dataclass(frozen=True)
class WorkerShape:
    """Cores and memory (MB) of one worker for its tasks."""

    cpus: float
    memory_mb: float

    def __post_init__(self) -> None:
        positive("A worker's cpus", self.cpus)
        positive("A worker's memory_mb", self.memory_mb)


@dataclass(frozen=True)
class Fleet:
    """Workers of one shape, started and stopped as tasks need them, each paid as a whole."""

    shape: WorkerShape  # cores and memory of a worker
    # memory of a task without its managed memory (heap, network, its share of the framework's), MB
    task_memory_mb: float = 0.0
    task_cpus: float = 1.0  # cores of a task
    price_per_hour: float | None = None  # price of one worker; None if unknown
    currency: str = ""  # of the price; empty if unknown

    def __post_init__(self) -> None:
        not_negative("task_memory_mb", self.task_memory_mb)
        not_negative("task_cpus", self.task_cpus)
        if self.price_per_hour is not None:
            not_negative("price_per_hour", self.price_per_hour)

    def paid(self, tasks: Tasks, managed_mb: Managed | None = None, cluster: Cluster | None = None) -> Paid:
        """Return the workers that run these tasks: those of the cluster that have tasks, or else as few as possible."""
        if cluster is not None:
            workers = sum(sum(counts) > 0 for counts in zip(*cluster.counts.values(), strict=True))
        else:
            workers = packed(tasks, {name: self._size(name, (managed_mb or {}).get(name) or 0.0) for name in tasks})
        return Paid(workers, workers * self.shape.cpus, workers * self.shape.memory_mb)

    def _size(self, name: str, managed_mb: float) -> _Size:
        """Return what a task takes, after a check that a worker has as much."""
        memory_mb = self.task_memory_mb + managed_mb
        size = self.task_cpus / self.shape.cpus, memory_mb / self.shape.memory_mb
        require(
            max(size) <= 1 + SLACK,
            f"One task of operator {name!r} needs {self.task_cpus:g} cores and {memory_mb:,g} MB; a worker has "
            f"{self.shape.cpus:g} and {self.shape.memory_mb:,g}. Choose larger workers or a lower memory level.",
        )
        return size


def packed(tasks: Tasks, sizes: Mapping[str, _Size]) -> int:
    """Pack all tasks into few workers, and return their number.

    Multidimensional bin packing by best fit decreasing: the largest task first, into the worker that it fills most; a
    new worker if none has room. Of four meanings of "largest" the one with the fewest workers is taken. Ties: operators
    in their order, workers by lowest index.
    """
    return min(_best_fit(tasks, sizes, order) for order in _ORDERS)


def _best_fit(tasks: Tasks, sizes: Mapping[str, _Size], order: Callable[[_Size], float]) -> int:
    used: list[_Size] = []
    for name in sorted(tasks, key=lambda name: -order(sizes[name])):
        left, size = tasks[name], sizes[name]
        fitting = iter(sorted((-sum(held), index) for index, held in enumerate(used) if _fits(held, size)))
        while left:
            _, chosen = next(fitting, (0.0, len(used)))
            if chosen == len(used):
                used.append((0.0, 0.0))
            # The next equal task fits best here too, because this worker has become fuller.
            while left and _fits(used[chosen], size):
                used[chosen] = (used[chosen][0] + size[0], used[chosen][1] + size[1])
                left -= 1
    return len(used)


def _fits(held: _Size, size: _Size) -> bool:
    return held[0] + size[0] <= 1 + SLACK and held[1] + size[1] <= 1 + SLACK


_MB = float(1 << 20)
_ROUNDING = 1e-9


def replay(
    trace: RateTrace,
    dataflow: QueryModel | Dataflow,
    policy: Policy[Memory],
    tasks: Tasks | Decision,
    *,
    profiles: Mapping[str, OperatorProfile] | None = None,
    memory_mb: float = math.inf,
    slot_cpus: float = 1.0,
    restart_s: float = 10.0,
    state_bytes_per_s: float = 100e6,
    step_s: float = 5.0,
    speed: float = 1.0,
    fleet: Fleet | None = None,
    keys: Mapping[str, KeyTrace] | None = None,
    batch_s: float = 0.0,
    batch_fixed: Sequence[float] = (0.0,),
    generated: bool = False,
) -> Timeline:
    """Replay `trace` against `tasks` of `dataflow` under `policy`.

    Parameters
    ----------
    dataflow
        The query and the costs of its records: a `QueryModel`, or a `Dataflow` with `profiles`, whose capacity is
        proportional to the tasks.
    tasks
        Tasks per operator at the beginning, or a `Decision` with managed memory per operator and a placement, which a
        policy with a method ``begin``, such as `Controller`, may complete.
    profiles
        Unit costs by operator, only with a `Dataflow`; a source may have none.
    memory_mb, slot_cpus
        Of a slot: memory, MB (with managed memory per operator: the rest), and cores, of which a task uses at most one.
    restart_s, state_bytes_per_s
        Downtime of a reconfiguration, seconds, without moving state, and speed at which each task restores its share.
        When an operator's tasks, memory or workers change, all its state moves, as with savepoint and restore.
    step_s, speed
        Longest step, seconds; speed of the machines relative to the model.
    fleet
        Workers that are paid as a whole. Without it only slots are paid, `slot_cpus` and `memory_mb` each.
    keys
        Popularity of the keys over time, by operator; the records of other operators spread as the model says.
    batch_s
        Trigger interval of a query in micro-batches, seconds: its records wait for a trigger and for their batch too.
    batch_fixed
        Share of it that a batch takes whatever its rows, with 1, 2, ... tasks; the last holds for more. The rows have
        the rest, and fill it at the capacity.
    generated
        Whether the sources generate up to the rates of `trace`: under back-pressure they generate less, nothing waits,
        and a policy sees the lower rate. By default they read a queue that fills at those rates.
    """
    model = _model(dataflow, profiles)
    interval_of(policy)
    for name, value in (("speed", speed), ("state_bytes_per_s", state_bytes_per_s), ("step_s", step_s)):
        positive(name, value)
    not_negative("restart_s", restart_s)
    not_negative("batch_s", batch_s)
    step = whole_step(min(step_s, trace.duration_s), model.window_s)
    arrivals = np.asarray(trace.per_step(step), dtype=float)
    start = _first(model, policy, tasks, trace.rate_at(0.0))
    popularity = _Popularity(keys or {})
    deployment = popularity.at(
        0.0, Deployment(model, start.tasks, memory_mb, slot_cpus, cluster=start.cluster, managed_mb=start.managed_mb)
    )
    state = State.empty(deployment)
    meter = _Meter(deployment)
    changes: list[Reconfiguration] = []
    consumed, backlog, busy = (np.zeros(len(arrivals)) for _ in range(3))
    deployed = [(0, deployment.size, *_paid(deployment, fleet))]  # from which step on, how many tasks, and what is paid
    waiting, down_until_s, deployed_s, asked_s = 0.0, 0.0, 0.0, 0.0
    memory: Memory | None = None
    for number, arrived in enumerate(arrivals.tolist()):
        begin_s = number * step
        deployment = popularity.at(begin_s, deployment)
        waiting += arrived
        up_s = min(step, max(0.0, begin_s + step - down_until_s))
        if up_s > 0:
            state, done = advance(deployment, state, waiting, step, speed * up_s / step)
            fixed = batch_fixed[min(deployment.size, len(batch_fixed)) - 1]
            consumed[number], busy[number] = done.consumed, fixed + (1 - fixed) * min(1.0, done.active_s / step)
            meter.add(done, up_s, up_s / step, float(busy[number]))
        waiting = 0.0 if generated else max(0.0, waiting - float(consumed[number]))
        # windows do not include downtime
        meter.arrived += float(consumed[number]) if generated else arrived * up_s / step
        backlog[number] = waiting
        now_s = begin_s + step
        if now_s < asked_s + interval_of(policy) - 1e-9 or now_s <= down_until_s or meter.up_s <= 0:
            continue
        window = _window(deployment, meter, waiting, now_s, deployed_s, batch_s)
        wanted, memory = answered(policy, policy.decide(window, memory), model.modelled)
        asked_s, meter = now_s, _Meter(deployment)
        if wanted is None or (after := _next(deployment, wanted)) is None:
            continue
        moved, most = _moved_bytes(deployment, after)
        downtime = restart_s * getattr(policy, "restarts", True) + most / state_bytes_per_s
        changes.append(Reconfiguration(now_s, downtime, moved, dict(after.tasks), after.managed_mb, wanted.reasons))
        after = popularity.at(now_s, after)
        state, deployment = carry(state, deployment, after), after
        meter = _Meter(deployment)
        down_until_s = deployed_s = asked_s = now_s + downtime
        deployed.append((number + 1, deployment.size, *_paid(deployment, fleet)))
    since, sizes, workers, cores, paid_mb = zip(*deployed, strict=True)
    lasting = np.diff([*since, len(arrivals)])
    return Timeline(
        step,
        arrivals / step,
        consumed / step,
        backlog,
        waited(arrivals, consumed, step) + batch_s * (1 + busy),
        np.repeat(sizes, lasting),
        tuple(changes),
        0.0 if math.isinf(memory_mb) else memory_mb,
        np.repeat(cores, lasting),
        np.repeat(paid_mb, lasting),
        np.repeat(workers, lasting),
        None if fleet is None else fleet.price_per_hour,
        model.window_s,
        batch_s,
        busy,
    )


def _model(dataflow: QueryModel | Dataflow, profiles: Mapping[str, OperatorProfile] | None) -> QueryModel:
    """Return the query model, or build it from the operators' unit costs."""
    if isinstance(dataflow, QueryModel):
        require(
            profiles is None,
            f"The query model {dataflow.name!r} includes the costs of its operators; leave profiles out.",
        )
        return dataflow
    require(
        isinstance(dataflow, Dataflow),
        f"The dataflow of a replay is a {type(dataflow).__name__}; give a QueryModel, or a Dataflow with profiles.",
    )
    require(
        isinstance(profiles, Mapping) and all(isinstance(one, OperatorProfile) for one in profiles.values()),
        f"The dataflow {dataflow.name!r} does not include the costs of its operators; give profiles, a mapping with an "
        "OperatorProfile for each, or a QueryModel.",
    )
    return QueryModel(dataflow, {name: OperatorModel(profile) for name, profile in (profiles or {}).items()})


def _first(model: QueryModel, policy: Policy[Memory], tasks: Tasks | Decision, rate_per_s: float) -> Decision:
    start = decided("The start of the replay", tasks, model.modelled)
    begin = getattr(policy, "begin", None)
    if begin is None:
        return start
    rates = {name: rate_per_s * share for name, share in model.source_shares.items()}
    return decided(f"Policy {type(policy).__name__}", begin(model.dataflow, start, rates), model.modelled)


def _next(present: Deployment, decision: Decision) -> Deployment | None:
    """Return the deployment that a policy wants; None if it is the present one."""
    managed = present.managed_mb if decision.managed_mb is None else dict(decision.managed_mb)
    tasks = dict(decision.tasks)
    same = tasks == dict(present.tasks) and managed == present.managed_mb
    if same and (decision.cluster is None or decision.cluster == present.cluster):
        return None
    if present.cluster is not None and decision.cluster is None:
        raise WorkbenchError(
            "The policy changed the tasks of a placed deployment without placing them. Return a Decision with a "
            "cluster, or wrap the policy in a Controller."
        )
    return replace(present, tasks=tasks, managed_mb=managed, cluster=decision.cluster, key_shares=None)


class _Popularity:
    """Spread of the records over tasks, by the popularity of the keys at the time."""

    def __init__(self, keys: Mapping[str, KeyTrace]) -> None:
        self._keys = keys
        self._epochs: dict[str, int] = {}

    def at(self, time_s: float, deployment: Deployment) -> Deployment:
        """Return `deployment` with the shares at `time_s`; unchanged if they still hold."""
        epochs = {name: trace.epoch_at(time_s) for name, trace in self._keys.items()}
        if epochs == self._epochs and (deployment.key_shares is not None or not epochs):
            return deployment
        self._epochs = epochs
        unknown = [name for name in self._keys if name not in deployment.tasks]
        require(
            not unknown,
            f"There are keys for {', '.join(unknown)}, which is not an operator with tasks; "
            f"use {', '.join(deployment.tasks)}.",
        )
        shares = {name: trace.task_shares(epochs[name], deployment.tasks[name]) for name, trace in self._keys.items()}
        return replace(deployment, key_shares=shares)


def _paid(deployment: Deployment, fleet: Fleet | None) -> Paid:
    if fleet is not None:
        return fleet.paid(deployment.tasks, deployment.managed_mb, deployment.cluster)
    slot = 0.0 if math.isinf(deployment.memory_mb) else deployment.memory_mb
    managed: Managed = deployment.managed_mb or {}
    split = sum(count * (managed.get(name) or 0.0) for name, count in deployment.tasks.items())
    return Paid(deployment.size, deployment.size * deployment.cpus, deployment.size * slot + split)


class _Meter:
    """Work since the last call of the policy."""

    def __init__(self, deployment: Deployment) -> None:
        # _emitting: useful seconds while windows emit
        self.records, self.results, self.useful_s, self._emitting = (np.zeros(deployment.size) for _ in range(4))
        self.up_s = self.arrived = self.busy_s = self._emitting_s = self._active_s = 0.0

    def add(self, done: Step, up_s: float, up: float, busy: float) -> None:
        """Add a step of which `up_s` seconds, a share of `up`, were up, with the seconds of a slow whole step."""
        self.busy_s += up_s * busy
        self.records = self.records + done.records
        self.results = self.results + done.results
        self.useful_s = self.useful_s + done.useful_s * up
        self.up_s += up_s
        self._active_s += done.active_s * up
        if done.useful_emitting_s is not None:
            self._emitting = self._emitting + done.useful_emitting_s * up
            self._emitting_s += done.emitting_s * up

    @property
    def bound_s(self) -> Floats:
        """Useful seconds, as if each task could work in both phases: while windows emit, and while the sources flow.

        A task that is busy for a complete phase bounds the rate even if it idles in the other, in which its work cannot
        be done. So it counts as useful in both as much as in its busier one.
        """
        flowing_s = self._active_s - self._emitting_s
        if self._emitting_s <= 0 or flowing_s <= _ROUNDING * self._active_s:
            return self.useful_s
        flowing = np.maximum(self.useful_s - self._emitting, 0.0) / flowing_s
        busier = np.maximum(self._emitting / self._emitting_s, flowing)
        bound: Floats = np.maximum(self.useful_s, np.minimum(busier, 1.0) * self._active_s)
        return bound


def _window(  # noqa: PLR0917 - private, called once
    deployment: Deployment, meter: _Meter, waiting: float, now_s: float, deployed_s: float, batch_s: float
) -> Window:
    """Return the metrics of the window that ends now.

    Deviation from DS2, whose useful time excludes all waiting: `_Meter.bound_s` is reported instead, which differs with
    windows. An operator cannot reach the rate of continuous work then, and DS2 would give tasks back and request them
    again forever.
    """
    model = deployment.model
    pushed = np.where(deployment.windowed, meter.results, meter.records * deployment.selectivity)
    rows = list(zip(meter.records.tolist(), pushed.tolist(), meter.bound_s.tolist(), strict=True))
    scaled = {name: where for name, where in deployment.slices.items() if name not in model.dataflow.sources}
    shares = model.source_shares.items()
    access = deployment.state_access(now_s - deployed_s)  # without a model of state, all accesses hit
    stateful = [one.name for one in model.dataflow.operators if one.stateful and one.name in deployment.tasks]
    return Window(
        now_s,
        deployed_s,
        model.dataflow,
        dict(deployment.tasks),
        {name: meter.arrived * share / meter.up_s for name, share in shares},
        {name: waiting * share for name, share in shares},
        {name: tuple(rows[where]) for name, where in scaled.items()},
        {name: float(meter.useful_s[where].mean() / meter.up_s) for name, where in scaled.items()},
        meter.up_s,
        {name: StateMetrics(*access.get(name, (1.0, 0.0))) for name in dict.fromkeys([*stateful, *access])},
        deployment.managed_mb,
        deployment.cluster,
        batch_s,
        meter.busy_s / meter.up_s,
    )


def _moved_bytes(old: Deployment, new: Deployment) -> tuple[float, float]:
    """Return the state of the operators whose tasks, memory or workers change, and the most that one task restores."""

    def run_as(one: Deployment, name: str) -> tuple[object, ...]:
        where = None if one.cluster is None else tuple(one.cluster.counts[name])
        return one.tasks[name], (one.managed_mb or {}).get(name), where

    moved = {
        name: model.state.working_set_mb * _MB
        for name, model in old.model.operators_in_order()
        if model.state is not None and run_as(old, name) != run_as(new, name)
    }
    return sum(moved.values()), max((size / new.tasks[name] for name, size in moved.items()), default=0.0)
