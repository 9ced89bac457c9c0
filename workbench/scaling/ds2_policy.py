"""DS2 as a policy: its decision on full metrics windows, within an autoscaler's limits."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from workbench.checks import SLACK
from workbench.scaling._ds2 import Counters, ds2
from workbench.scaling._justin import StateMetrics
from workbench.scaling.autoscaler import (
    AutoscalerSettings,
    PendingScaleDown,
    evenly_spread,
    is_due,
    limit_parallelism,
    needs_scaling,
    planned_rates,
)
from workbench.scaling.policies import Answer, Tasks, Window

_ROUNDING_S = 1e-6


@dataclass(frozen=True)
class Ds2Memory:
    """What `Ds2Policy` remembers."""

    windows: tuple[Window, ...] = ()  # windows that the next decision averages over
    decided_s: float | None = None  # when it last decided; None before the first decision
    # selectivity, pending: selectivity and pending scale-downs of the last decision
    selectivity: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    pending: Mapping[str, PendingScaleDown] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True)
class Proposal:
    """Tasks per operator within the limits, and the metrics that they are based on."""

    tasks: Tasks
    window: Window


@dataclass(frozen=True)
class Ds2Policy:
    """DS2 within the limits of an autoscaler.

    It decides on the metrics of a full window that began after the activation time, at most once per policy interval,
    and only if the utilization of an operator that it would change is out of bounds. As in Flink, utilization is
    calculated from the source rates and the backlog to catch up with: above 1 for a saturated operator, and for
    operators downstream of it more than the records that reach them.

    When windows emit in bursts, true rates depend on the part of a burst that a metrics window covers, mostly while a
    backlog is worked off. Set `metrics_window_s` to several windows of the query and `scale_down_interval_s` to the
    time that a backlog lasts. Otherwise tasks are given back and requested again.

    Parameters
    ----------
    settings
        When it may act and how far it may go.
    """

    settings: AutoscalerSettings = field(default_factory=AutoscalerSettings)

    @property
    def interval_s(self) -> float:
        """Seconds from one call to the next: two per metrics window, so that a window begins soon enough."""
        spans = (self.settings.policy_interval_s, self.settings.metrics_window_s / 2)
        return min((span for span in spans if span > 0), default=1.0)

    def decide(self, window: Window, memory: Ds2Memory | None) -> Answer[Ds2Memory]:
        """Decide as DS2 does, unless it is too early or every operator's utilization is within bounds."""
        proposal, after = self.propose(window, memory)
        same = proposal is None or dict(proposal.tasks) == dict(proposal.window.tasks)
        return (None if proposal is None or same else proposal.tasks), after

    def propose(self, window: Window, memory: Ds2Memory | None) -> tuple[Proposal | None, Ds2Memory]:
        """Decide as `decide` does, and return the metrics too; None if no decision is due."""
        before = memory or Ds2Memory()
        seen = self._collect(window, before)
        if not self._due(seen, before.decided_s):
            return None, replace(before, windows=seen)
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
        if self._behind(whole):
            wanted = {name: max(tasks, whole.tasks[name]) for name, tasks in wanted.items()}
        if self.settings.bounded and not self._needed(whole, wanted):
            return None, after
        limited = limit_parallelism(self.settings, whole.tasks, wanted, whole.now_s, before.pending)
        return Proposal({**whole.tasks, **limited.parallelism}, whole), replace(after, pending=limited.pending)

    def _behind(self, window: Window) -> bool:
        """Whether a source's backlog exceeds the threshold above which nothing is given back."""
        return any(
            window.backlog.get(source, 0.0) > self.settings.lag_threshold_s * max(rate, SLACK)
            for source, rate in window.source_rates.items()
        )

    def _needed(self, window: Window, parallelism: Mapping[str, int]) -> bool:
        """Whether the utilization of an operator that would change is out of bounds.

        Others do not count: an idle sink of one task must not trigger a decision.
        """
        at_once = replace(self.settings, scale_down_interval_s=0.0)
        wanted = limit_parallelism(at_once, window.tasks, parallelism, window.now_s).parallelism  # without sources
        changing = {name for name, tasks in wanted.items() if tasks != window.tasks[name]}
        if not changing:
            return False
        now, after = (
            utilization(
                window,
                planned_rates(
                    replace(self.settings, utilization_target=1.0, restart_s=restart_s),
                    window.source_rates,
                    window.backlog,
                ),
            )
            for restart_s in (0.0, self.settings.restart_s)
        )
        return needs_scaling(self.settings, {name: now[name] for name in now if name in changing}, after)

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

    def _due(self, seen: Sequence[Window], decided_s: float | None) -> bool:
        """Whether the metrics suffice for a decision and the last decision is long enough ago."""
        if not seen or not is_due(self.settings, seen[-1].now_s, seen[-1].deployed_s, decided_s):
            return False
        return sum(window.seconds for window in seen) >= self.settings.metrics_window_s - _ROUNDING_S


def utilization(window: Window, rates: Mapping[str, float]) -> dict[str, float]:
    """Return the share of its true processing rate that each operator needs at source `rates`; busyness if unknown."""
    found = ds2(window.dataflow, window.counters, rates)
    asked = {}
    for name, (processing, _) in found.true_rates.items():
        arriving = sum(found.optimal_output[edge.upstream] for edge in window.dataflow.feeding.get(name, ()))
        informative = sum(processed > 0 and useful > 0 for processed, _, useful in window.counters[name])
        whole = processing * len(window.counters[name]) / informative if informative else 0.0
        asked[name] = arriving / whole if whole > 0 else window.busyness[name]
    return asked


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

    return replace(
        last,
        seconds=seconds,
        source_rates={name: mean([window.source_rates[name] for window in windows]) for name in last.source_rates},
        busyness={name: mean([window.busyness[name] for window in windows]) for name in last.busyness},
        counters={name: _summed([window.counters[name] for window in windows]) for name in last.counters},
        state={name: _mean_state([window.state[name] for window in windows], mean) for name in last.state},
    )


def _summed(counters: Sequence[Sequence[Counters]]) -> tuple[Counters, ...]:
    """Add up the counters of every instance."""
    total = np.array(counters, dtype=float).sum(axis=0)
    return tuple((processed, pushed, useful_s) for processed, pushed, useful_s in total.tolist())


def _mean_state(metrics: Sequence[StateMetrics], mean: Callable[[Sequence[float]], float]) -> StateMetrics:
    hits = [one.hit_rate for one in metrics if one.hit_rate is not None]
    waits = [one.latency_s for one in metrics if one.latency_s is not None]
    return StateMetrics(
        min(1.0, mean(hits)) if len(hits) == len(metrics) else None, mean(waits) if len(waits) == len(metrics) else None
    )
