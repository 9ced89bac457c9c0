"""Policies as functions of metrics: what they see, what they decide, and what they remember.

A policy owns no clock and no state: `replay` hands it the metrics of a window and what it said to remember, and it
answers with tasks and with what to remember next. Two methods make one, so users can write their own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

from workbench.dataflow import Dataflow
from workbench.scaling._ds2 import Counters, ds2
from workbench.scaling._validation import whole
from workbench.scaling.autoscaler import (
    AutoscalerSettings,
    PendingScaleDown,
    is_due,
    limit_parallelism,
    needs_scaling,
    planned_rates,
)

Tasks = Mapping[str, int]


@dataclass(frozen=True)
class Window:
    """Metrics since the policy was asked last.

    Parameters
    ----------
    now_s, deployed_s
        Now, and when the present deployment began to run, seconds of the replay.
    dataflow
        The query.
    tasks
        Tasks per operator now.
    source_rates
        Records/s that arrived per source.
    backlog
        Records that wait per source.
    counters
        ``(processed, pushed, useful_s)`` per instance of every operator, as `ds2` takes them.
    busyness
        Share of their time that the tasks of each operator worked.
    """

    now_s: float
    deployed_s: float
    dataflow: Dataflow
    tasks: Tasks
    source_rates: Mapping[str, float]
    backlog: Mapping[str, float]
    counters: Mapping[str, tuple[Counters, ...]]
    busyness: Mapping[str, float]


class Policy(Protocol):
    """Decides how many tasks every operator gets; `memory` is what it returned the last time, None at first."""

    @property
    def interval_s(self) -> float:
        """Seconds from one question to the next."""
        ...

    def decide(self, window: Window, memory: Any) -> tuple[Tasks | None, Any]:  # noqa: ANN401 - the policy's own
        """Give the tasks per operator, None to leave them, and what to remember."""
        ...


@dataclass(frozen=True)
class Static:
    """Leaves everything as it was deployed."""

    interval_s: float = 60.0

    def decide(self, window: Window, memory: Any) -> tuple[Tasks | None, Any]:  # noqa: ANN401, ARG002
        """Leave the tasks."""
        return None, None


@dataclass(frozen=True)
class _Remembered:
    decided_s: float | None = None
    selectivity: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    pending: Mapping[str, PendingScaleDown] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True)
class Ds2Policy:
    """DS2 within the limits of an autoscaler.

    Parameters
    ----------
    settings
        When it may act and how far it may go.
    """

    settings: AutoscalerSettings = field(default_factory=AutoscalerSettings)

    @property
    def interval_s(self) -> float:
        """Seconds from one decision to the next."""
        return self.settings.policy_interval_s

    def decide(self, window: Window, memory: Any) -> tuple[Tasks | None, Any]:  # noqa: ANN401
        """Decide as DS2 does, unless it is too early or every operator's busyness is as wanted."""
        before: _Remembered = memory or _Remembered()
        if not is_due(self.settings, window.now_s, window.deployed_s, before.decided_s):
            return None, before
        rates = planned_rates(self.settings, window.source_rates, window.backlog)
        found = ds2(window.dataflow, window.counters, rates, last_selectivity=before.selectivity)
        if not needs_scaling(self.settings, window.busyness):
            return None, _Remembered(window.now_s, found.selectivity, before.pending)
        limited = limit_parallelism(self.settings, window.tasks, found.parallelism, window.now_s, before.pending)
        after = _Remembered(window.now_s, found.selectivity, limited.pending)
        return (limited.parallelism if dict(limited.parallelism) != dict(window.tasks) else None), after


@dataclass(frozen=True)
class Scheduled:
    """Changes tasks at given times, for comparisons with a plan made by hand: pairs of (seconds, tasks)."""

    changes: tuple[tuple[float, Tasks], ...]
    interval_s: float = 1.0

    def decide(self, window: Window, memory: Any) -> tuple[Tasks | None, Any]:  # noqa: ANN401
        """Give the tasks of the last change that has come; `memory` counts those carried out."""
        done = whole("The number of changes made", memory or 0, 0)
        come = sum(at <= window.now_s for at, _ in self.changes)
        return (self.changes[come - 1][1] if come > done else None), come
