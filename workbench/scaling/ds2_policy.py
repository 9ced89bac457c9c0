"""DS2, the parallelism every operator needs in one pass over the dataflow, and policies of papers with it.

V. Kalavri et al., "Three steps is all you need: fast, accurate, automatic scaling decisions for distributed streaming
dataflows", OSDI 2018; the scaling controller of CAPSys and the basis of Justin. The policies decide on full metrics
windows and within an autoscaler's limits.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from workbench.checks import SLACK, not_negative, positive, require, whole
from workbench.dataflow import Dataflow
from workbench.errors import WorkbenchError
from workbench.scaling._justin import (
    BASE_MEMORY_MB,
    PAPER,
    JustinVariant,
    MemoryState,
    StateMetrics,
    justin_decisions,
    managed_memory_mb,
)
from workbench.scaling.autoscaler import (
    JUSTIN,
    AutoscalerSettings,
    Pending,
    evenly_spread,
    is_due,
    limit_parallelism,
    needs_scaling,
    planned_rates,
)
from workbench.scaling.policies import Answer, Counters, Decision, Tasks, Window


@dataclass(frozen=True)
class Ds2Decision:
    """What DS2 derives from the counters, and what it proposes, by operator."""

    # what the instances together would process and push if they were useful all the time, records/s; without sources
    true_rates: Mapping[str, tuple[float, float]]
    optimal_output: Mapping[str, float]  # records/s if all keep up, with sources
    parallelism: Mapping[str, int]  # tasks, without sources, which keep theirs
    selectivity: Mapping[str, float] = field(default_factory=dict)  # records out per record in
    uninformed: tuple[str, ...] = ()  # without informative counters: they keep their tasks and last selectivity
    needed: Mapping[str, float] = field(default_factory=dict)  # tasks before rounding, without the uninformed


def ds2(
    dataflow: Dataflow,
    counters: Mapping[str, Sequence[Counters]],
    source_rates: Mapping[str, float],
    *,
    last_selectivity: Mapping[str, float] = MappingProxyType({}),
) -> Ds2Decision:
    """Propose the least parallelism at which every operator keeps up with the source rates.

    An operator that does not keep up hides the load of those after it, so the pass follows the rates that operators
    push when they keep up. Sources send their full output to every consumer. An instance without useful seconds or
    input has no true rate; the other instances stand for it. If none has, the operator keeps its tasks, passes records
    on with `last_selectivity`, that of an earlier decision (1 if unknown), and is listed in ``Ds2Decision.uninformed``.

    The `counters` are those of one window and each instance, without sources; `source_rates` are targets, records/s.
    """
    _check(dataflow, counters, source_rates)
    true_rates: dict[str, tuple[float, float]] = {}
    output: dict[str, float] = {}
    parallelism: dict[str, int] = {}
    selectivity: dict[str, float] = {}
    needed: dict[str, float] = {}
    uninformed = []
    for name in dataflow.topological_order():
        if name in source_rates:
            output[name] = source_rates[name]
            continue
        need = sum(output[edge.upstream] for edge in dataflow.feeding.get(name, ()))
        informative = [instance for instance in counters[name] if instance[0] > 0 and instance[2] > 0]
        processing = sum(processed / useful for processed, _, useful in informative)
        pushing = sum(pushed / useful for _, pushed, useful in informative)
        true_rates[name] = (processing, pushing)
        if informative:
            selectivity[name] = pushing / processing
            needed[name] = tasks = need * len(informative) / processing
            parallelism[name] = max(1, math.ceil(tasks - SLACK * max(1.0, tasks)))  # but for errors of rounding
        else:
            selectivity[name] = last_selectivity.get(name, 1.0)
            parallelism[name] = len(counters[name])
            uninformed.append(name)
        output[name] = need * selectivity[name]
    return Ds2Decision(true_rates, output, parallelism, selectivity, tuple(uninformed), needed)


def _check(dataflow: Dataflow, counters: Mapping[str, Sequence[Counters]], source_rates: Mapping[str, float]) -> None:
    scaled = [operator.name for operator in dataflow.operators if operator.kind != "source"]
    _same_names("source_rates", source_rates, dataflow.sources, "source", dataflow.name)
    _same_names("counters", counters, scaled, "operator that is not a source", dataflow.name)
    for source, rate in source_rates.items():
        not_negative(f"The rate of source {source!r}", rate)
    for name in scaled:
        require(
            name in dataflow.feeding,
            f"Operator {name!r} has no upstream and is not of kind 'source', so its rate is unknown; "
            "add the edge that feeds it, or make it a source.",
        )
        require(len(counters[name]) > 0, f"Operator {name!r} has no counters; give those of each of its instances.")
        for index, instance in enumerate(counters[name]):
            if len(instance) != 3 or not all(0 <= value < math.inf for value in instance):
                raise WorkbenchError(
                    f"The counters of instance {index} of operator {name!r} are {tuple(instance)!r}; they must be "
                    "(processed, pushed, useful seconds), finite and at least 0."
                )


def _same_names(what: str, got: Mapping[str, object], wanted: Sequence[str], kind: str, dataflow: str) -> None:
    known = set(wanted)
    missing = [name for name in wanted if name not in got]
    unknown = [name for name in got if name not in known]
    require(
        not missing,
        f"{what} lacks {', '.join(map(repr, missing))} of dataflow {dataflow!r}; give one entry for every {kind}.",
    )
    require(
        not unknown,
        f"{what} names {', '.join(map(repr, unknown))}, no {kind} of dataflow {dataflow!r}; "
        f"there {'is' if len(wanted) == 1 else 'are'} {', '.join(wanted) or 'none'}.",
    )


_ROUNDING_S = 1e-6


@dataclass(frozen=True)
class Ds2Memory:
    """What `Ds2Policy` remembers."""

    windows: tuple[Window, ...] = ()  # windows that the next decision averages over
    decided_s: float | None = None  # when it last decided; None before the first decision
    selectivity: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))  # of the last decision
    pending: Pending = field(default_factory=lambda: MappingProxyType({}))  # scale-downs of the last decision


@dataclass(frozen=True)
class Ds2Policy:
    """DS2 within the limits of an autoscaler.

    It decides on the metrics of a full window that began after the activation time, at most once per policy interval,
    and only if the utilization of an operator that it would change is out of bounds. As in Flink, utilization is
    calculated from the source rates and the backlog to catch up with: above 1 for a saturated operator.

    When windows emit in bursts, true rates depend on the part of a burst that a metrics window covers. Set
    `metrics_window_s` to several windows of the query and `scale_down_interval_s` to the time that a backlog lasts.
    Otherwise tasks are given back and requested again.
    """

    settings: AutoscalerSettings = field(default_factory=AutoscalerSettings)

    @property
    def interval_s(self) -> float:
        """Seconds from one call to the next: two per metrics window, so that a window begins soon enough."""
        spans = (self.settings.policy_interval_s, self.settings.metrics_window_s / 2)
        return min((span for span in spans if span > 0), default=1.0)

    def decide(self, window: Window, memory: Ds2Memory | None) -> Answer[Ds2Memory]:
        """Decide as DS2 does, unless it is too early or every operator's utilization is within bounds."""
        tasks, whole, after = self.propose(window, memory)
        return (None if tasks == dict(whole.tasks) else tasks), after

    def propose(self, window: Window, memory: Ds2Memory | None) -> tuple[Tasks | None, Window, Ds2Memory]:
        """Return the tasks within the limits (None if no decision is due), and the metrics that they are based on."""
        before = memory or Ds2Memory()
        seen = self._collect(window, before)
        full = sum(one.seconds for one in seen) >= self.settings.metrics_window_s - _ROUNDING_S
        if not (seen and full and is_due(self.settings, window.now_s, window.deployed_s, before.decided_s)):
            return None, window, replace(before, windows=seen)
        whole = averaged(seen)
        if self.settings.busiest:
            whole = replace(whole, counters={name: _busiest(tasks) for name, tasks in whole.counters.items()})
        rates = planned_rates(self.settings, whole.source_rates, whole.backlog)
        found = ds2(whole.dataflow, whole.counters, rates, last_selectivity=before.selectivity)
        after = Ds2Memory(seen, whole.now_s, found.selectivity)
        keyed = {operator.name for operator in whole.dataflow.operators if operator.stateful}
        wanted = {
            name: evenly_spread(self.settings, tasks) if name in keyed else tasks
            for name, tasks in found.parallelism.items()
        }
        if any(
            whole.backlog.get(source, 0.0) > self.settings.lag_threshold_s * max(rate, SLACK)
            for source, rate in whole.source_rates.items()
        ):
            wanted = {name: max(tasks, whole.tasks[name]) for name, tasks in wanted.items()}
        bounds = self.settings.utilization_min, self.settings.utilization_max
        if bounds != (None, None) and not self._needed(whole, wanted):
            return None, whole, after
        tasks, pending = limit_parallelism(self.settings, whole.tasks, wanted, whole.now_s, before.pending)
        return {**whole.tasks, **tasks}, whole, replace(after, pending=pending)

    def _needed(self, window: Window, parallelism: Mapping[str, int]) -> bool:
        """Whether the utilization of any operator that would change is out of bounds: not that of an idle sink."""
        at_once = replace(self.settings, scale_down_interval_s=0.0)
        wanted, _ = limit_parallelism(at_once, window.tasks, parallelism, window.now_s)  # without sources
        changing = [name for name, tasks in wanted.items() if tasks != window.tasks[name]]
        if not changing:
            return False
        full = replace(self.settings, utilization_target=1.0)
        now, after = (
            utilization(window, planned_rates(one, window.source_rates, window.backlog))
            for one in (replace(full, restart_s=0.0), full)
        )
        return needs_scaling(self.settings, {name: now[name] for name in changing}, after)

    def _collect(self, window: Window, before: Ds2Memory) -> tuple[Window, ...]:
        """Add a window to those that a decision averages over: windows of this deployment, after its activation.

        Keep the fewest latest windows that fill the metrics window. The first may begin before it, because calls need
        not be evenly spaced.
        """
        if window.now_s - window.seconds < window.deployed_s + self.settings.activation_s - _ROUNDING_S:
            return ()
        kept, seconds = [window], window.seconds
        for old in reversed(before.windows):
            if old.deployed_s != window.deployed_s or seconds >= self.settings.metrics_window_s - _ROUNDING_S:
                break
            kept.append(old)
            seconds += old.seconds
        return tuple(reversed(kept))


def utilization(window: Window, rates: Mapping[str, float]) -> dict[str, float]:
    """Return the share of its true processing rate that each operator needs at source `rates`; busyness if unknown."""
    needed = ds2(window.dataflow, window.counters, rates).needed
    return {
        name: needed[name] / len(tasks) if name in needed else window.busyness[name]
        for name, tasks in window.counters.items()
    }


def _busiest(tasks: Sequence[Counters]) -> tuple[Counters, ...]:
    """Count every task as busy as the busiest one, so that the operator is full when that task is."""
    most = max(useful_s for _, _, useful_s in tasks)
    return tuple((processed, pushed, most) for processed, pushed, _ in tasks)


def averaged(windows: Sequence[Window]) -> Window:
    """Average successive windows of one deployment; time, tasks and backlog are those of the last window."""
    last = windows[-1]
    if len(windows) == 1:
        return last
    seconds = sum(window.seconds for window in windows)

    def mean(values: Sequence[float]) -> float:
        return sum(value * window.seconds for value, window in zip(values, windows, strict=True)) / seconds

    def summed(counters: Sequence[Sequence[Counters]]) -> tuple[Counters, ...]:
        total = np.array(counters, dtype=float).sum(axis=0)
        return tuple((processed, pushed, useful_s) for processed, pushed, useful_s in total.tolist())

    def mean_state(metrics: Sequence[StateMetrics]) -> StateMetrics:
        hits = [one.hit_rate for one in metrics if one.hit_rate is not None]
        waits = [one.latency_s for one in metrics if one.latency_s is not None]
        hit_rate = min(1.0, mean(hits)) if len(hits) == len(metrics) else None
        return StateMetrics(hit_rate, mean(waits) if len(waits) == len(metrics) else None)

    return replace(
        last,
        seconds=seconds,
        source_rates={name: mean([window.source_rates[name] for window in windows]) for name in last.source_rates},
        busyness={name: mean([window.busyness[name] for window in windows]) for name in last.busyness},
        counters={name: summed([window.counters[name] for window in windows]) for name in last.counters},
        state={name: mean_state([window.state[name] for window in windows]) for name in last.state},
    )


@dataclass(frozen=True)
class JustinMemory:
    """What `JustinPolicy` remembers."""

    ds2: Ds2Memory = field(default_factory=Ds2Memory)  # what DS2 remembers
    states: Mapping[str, MemoryState] | None = None  # the configuration of the last decision; None before the first
    # state metrics at the last decision
    before: Mapping[str, StateMetrics] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True)
class JustinPolicy:
    """Justin on top of DS2.

    It decides only when DS2's trigger fires (section 4.2). Every operator begins at the level of its managed memory,
    or at level 0 if memory is not split. Stateless operators lose their managed memory with the first decision.
    """

    settings: AutoscalerSettings = JUSTIN  # DS2's settings; the default is that of section 5
    variant: JustinVariant = PAPER  # named deviations from Algorithm 1
    # max_level, hit_rate, latency_s: as for `justin`
    max_level: int = 3
    hit_rate: float = 0.8
    latency_s: float = 0.001
    base_mb: float = BASE_MEMORY_MB  # managed memory of level 0, MB

    def __post_init__(self) -> None:
        whole("max_level", self.max_level, 1)
        positive("base_mb", self.base_mb)

    @property
    def interval_s(self) -> float:
        """Seconds from one call to the next."""
        return Ds2Policy(self.settings).interval_s

    def decide(self, window: Window, memory: JustinMemory | None) -> Answer[JustinMemory]:
        """Let DS2 propose tasks, then decide on tasks and memory by Algorithm 1."""
        history = memory or JustinMemory()
        proposed, whole, remembered = Ds2Policy(self.settings).propose(window, history.ds2)
        if proposed is None:
            return None, replace(history, ds2=remembered)
        now, given = dict(whole.state), window.managed_mb or {}
        begun = history.states or {name: self._begin(tasks, given.get(name)) for name, tasks in window.tasks.items()}
        limits = self.max_level, self.hit_rate, self.latency_s
        found = justin_decisions(begun, proposed, now, history.before, *limits, variant=self.variant)
        states = {name: one.state for name, one in found.items()}
        after = JustinMemory(remembered, states, now)
        tasks = {name: state.tasks for name, state in states.items()}
        managed = {name: managed_memory_mb(state.level, self.base_mb) or None for name, state in states.items()}
        if tasks == dict(window.tasks) and managed == window.managed_mb:
            return None, after
        return Decision(tasks, managed, reasons=MappingProxyType(found)), after

    def _begin(self, tasks: int, memory_mb: float | None) -> MemoryState:
        level = round(math.log2(memory_mb / self.base_mb)) if memory_mb else 0
        return MemoryState(tasks, min(self.max_level - 1, max(0, level)))
