"""Replay a load against a deployment under a policy, on the fluid engine.

The engine owns time: it lets steps pass, asks the policy at its interval, and carries a reconfiguration out: nothing
runs for the restart and while the state moves, what arrives meanwhile waits, and the new deployment begins cold.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.scaling._validation import not_negative, positive, require
from workbench.scaling.policies import Policy, Tasks, Window
from workbench.simulation import Deployment, QueryModel, RateTrace, State, advance, carry, whole_step

Floats = NDArray[np.float64]

_MB = float(1 << 20)
_AT_TARGET = 0.99


@dataclass(frozen=True)
class Reconfiguration:
    """A change of tasks: when it began, how long nothing ran, bytes of state that moved, and the tasks after it."""

    at_s: float
    downtime_s: float
    moved_bytes: float
    tasks: Tasks


@dataclass(frozen=True, eq=False)
class Timeline:
    """What happened; arrays have one entry per step.

    Parameters
    ----------
    step_s
        Length of a step, seconds.
    offered, consumed
        Records/s.
    backlog
        Records that wait at the end of a step.
    latency_s
        Seconds that the records consumed last in a step had waited at the sources.
    tasks
        Tasks of all operators together that were paid for.
    reconfigurations
        In order.
    """

    step_s: float
    offered: Floats
    consumed: Floats
    backlog: Floats
    latency_s: Floats
    tasks: NDArray[np.int64]
    reconfigurations: tuple[Reconfiguration, ...]
    memory_mb: float

    @property
    def times_s(self) -> Floats:
        """Begin of every step."""
        return np.arange(len(self.offered), dtype=np.float64) * self.step_s

    def summary(self) -> dict[str, float]:
        """One row of a comparison.

        Share of time in which the backlog was no more than a step's worth, latencies weighted by records (mean, p50,
        p99, seconds), core-hours and GB-hours of slots, reconfigurations, and bytes moved.
        """
        within = self.backlog <= (1 - _AT_TARGET) * self.offered * self.step_s + 1e-6
        hours = self.step_s / 3600
        return {
            "at_target": float(np.mean(within)),
            "latency_mean_s": _weighted_mean(self.latency_s, self.consumed),
            "latency_p50_s": _weighted_quantile(self.latency_s, self.consumed, 0.5),
            "latency_p99_s": _weighted_quantile(self.latency_s, self.consumed, 0.99),
            "core_hours": float(self.tasks.sum() * hours),
            "gb_hours": float(self.tasks.sum() * hours * self.memory_mb / 1024),
            "reconfigurations": len(self.reconfigurations),
            "moved_bytes": float(sum(change.moved_bytes for change in self.reconfigurations)),
        }


def replay(
    trace: RateTrace,
    model: QueryModel,
    policy: Policy,
    tasks: Tasks,
    *,
    memory_mb: float = math.inf,
    restart_s: float = 10.0,
    state_bytes_per_s: float = 100e6,
    step_s: float = 5.0,
    speed: float = 1.0,
) -> Timeline:
    """Replay `trace` against `tasks` of `model` under `policy`.

    Parameters
    ----------
    tasks
        Tasks per operator at the beginning.
    memory_mb
        Memory of a slot, MB.
    restart_s
        Seconds nothing runs at a reconfiguration, state aside.
    state_bytes_per_s
        Speed at which state moves; all state of an operator whose tasks change moves, as on savepoint and restore.
    step_s
        Longest step.
    speed
        How fast everything works, 1 being the model.

    Raises
    ------
    WorkbenchError
        When tasks are missing, or a number is out of its range.
    """
    not_negative("restart_s", restart_s)
    positive("state_bytes_per_s", state_bytes_per_s)
    positive("step_s", step_s)
    step = whole_step(min(step_s, trace.duration_s), model.window_s)
    arrivals = np.asarray(trace.per_step(step), dtype=float)
    deployment = Deployment(model, tasks, memory_mb)
    state = State.empty(deployment)
    meter = _Meter(deployment)
    changes: list[Reconfiguration] = []
    consumed, backlog, paid = np.zeros(len(arrivals)), np.zeros(len(arrivals)), np.zeros(len(arrivals), dtype=np.int64)
    waiting, down_until_s, deployed_s, asked_s, memory = 0.0, 0.0, 0.0, 0.0, None
    for number, arrived in enumerate(arrivals.tolist()):
        begin_s = number * step
        waiting += arrived
        up_s = min(step, max(0.0, begin_s + step - down_until_s))
        if up_s > 0:
            state, done = advance(deployment, state, waiting, step, speed * up_s / step)
            consumed[number] = done.consumed
            waiting = max(0.0, waiting - done.consumed)
            meter.add(done.records, done.results, done.useful_s, up_s)
        meter.arrived += arrived * up_s / step  # downtime is no part of a window
        backlog[number], paid[number] = waiting, deployment.size
        now_s = begin_s + step
        if now_s < asked_s + policy.interval_s - 1e-9 or now_s <= down_until_s or meter.up_s <= 0:
            continue
        wanted, memory = policy.decide(_seen(deployment, meter, waiting, now_s, deployed_s), memory)
        asked_s, meter = now_s, _Meter(deployment)
        if wanted is None or dict(wanted) == dict(deployment.tasks):
            continue
        after = Deployment(model, wanted, memory_mb)
        moved = _moved_bytes(deployment, after)
        downtime = restart_s + moved / state_bytes_per_s
        changes.append(Reconfiguration(now_s, downtime, moved, dict(after.tasks)))
        state, deployment = carry(state, deployment, after), after
        meter = _Meter(deployment)
        down_until_s = deployed_s = asked_s = now_s + downtime
    return Timeline(
        step,
        arrivals / step,
        consumed / step,
        backlog,
        _latencies(arrivals, consumed, step),
        paid,
        tuple(changes),
        0.0 if math.isinf(memory_mb) else memory_mb,
    )


def compare(
    trace: RateTrace,
    model: QueryModel,
    policies: Mapping[str, Policy],
    tasks: Tasks,
    **options: Any,  # noqa: ANN401
) -> dict[str, dict[str, float]]:
    """Replay the same trace under several policies; one row of `Timeline.summary` by name."""
    require(bool(policies), "There are no policies to compare; give at least one.")
    return {name: replay(trace, model, policy, tasks, **options).summary() for name, policy in policies.items()}


class _Meter:
    """Work since the policy was asked last."""

    def __init__(self, deployment: Deployment) -> None:
        self.records = np.zeros(deployment.size)
        self.results = np.zeros(deployment.size)
        self.useful_s = np.zeros(deployment.size)
        self.up_s = 0.0
        self.arrived = 0.0

    def add(self, records: Floats, results: Floats, useful_s: Floats, up_s: float) -> None:
        self.records = self.records + records
        self.results = self.results + results
        self.useful_s = self.useful_s + useful_s
        self.up_s += up_s


def _seen(deployment: Deployment, meter: "_Meter", waiting: float, now_s: float, deployed_s: float) -> Window:
    """Metrics of the window that ends now."""
    model = deployment.model
    pushed = np.where(deployment.windowed, meter.results, meter.records * deployment.selectivity)
    counters, busyness = {}, {}
    for name, where in deployment.slices.items():
        rows = zip(meter.records[where].tolist(), pushed[where].tolist(), meter.useful_s[where].tolist(), strict=True)
        counters[name] = tuple(rows)
        busyness[name] = float(meter.useful_s[where].mean() / meter.up_s)
    shares = model.source_shares.items()
    return Window(
        now_s,
        deployed_s,
        model.dataflow,
        dict(deployment.tasks),
        {name: meter.arrived * share / meter.up_s for name, share in shares},
        {name: waiting * share for name, share in shares},
        counters,
        busyness,
    )


def _moved_bytes(old: Deployment, new: Deployment) -> float:
    """State of the operators whose tasks change."""
    return sum(
        model.state.working_set_mb * _MB
        for name, model in old.model.operators_in_order()
        if model.state is not None and old.tasks[name] != new.tasks[name]
    )


def _latencies(arrivals: Floats, consumed: Floats, step: float) -> Floats:
    """How long ago the record consumed last in each step arrived: first in, first out."""
    ends = np.arange(len(arrivals) + 1) * step
    arrived = np.concatenate([[0.0], np.cumsum(arrivals)])
    left = np.cumsum(consumed)
    # Where nothing arrives the curve is flat: the earliest time at which so many had arrived.
    rising = np.concatenate([[True], np.diff(arrived) > 0])
    since = np.interp(left, arrived[rising], ends[rising])
    waited: Floats = np.maximum(0.0, ends[1:] - since)
    return waited


def _weighted_mean(values: Floats, weights: Floats) -> float:
    total = float(weights.sum())
    return float(values @ weights / total) if total > 0 else 0.0


def _weighted_quantile(values: Floats, weights: Floats, share: float) -> float:
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    if reached[-1] <= 0:
        return 0.0
    return float(values[order][int(np.searchsorted(reached, share * reached[-1]))])
