"""Policies as functions of metrics: what they see, what they decide, and what they remember.

A policy owns no clock and no state: `replay` hands it the metrics of a window and what it said to remember, and it
answers with what to deploy and with what to remember next. Two members make one, so users can write their own::

    class Doubling:
        interval_s = 60.0

        def decide(self, window, memory):
            if max(window.busyness.values()) < 0.9:
                return None, memory
            return {name: 2 * tasks for name, tasks in window.tasks.items()}, memory
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

from workbench.checks import whole
from workbench.dataflow import Dataflow
from workbench.scaling._ds2 import Counters
from workbench.scaling._justin import StateMetrics
from workbench.simulation import Cluster

Tasks = Mapping[str, int]
Managed = Mapping[str, float | None]


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
        Tasks per operator now; sources are among them only if the model has tasks for them.
    source_rates
        Records/s that arrived per source.
    backlog
        Records that wait per source.
    counters
        ``(processed, pushed, useful_s)`` per instance of every operator but the sources, as `ds2` takes them.
    busyness
        Share of their time that the tasks of each of these operators worked.
    seconds
        Length of the window, downtime left out.
    state
        Hit rate and latency of the state accesses of every stateful operator.
    managed_mb
        Managed memory of one task by operator, MB; None where a slot's memory is not split.
    cluster
        Where the tasks run; None where that does not matter.
    """

    now_s: float
    deployed_s: float
    dataflow: Dataflow
    tasks: Tasks
    source_rates: Mapping[str, float]
    backlog: Mapping[str, float]
    counters: Mapping[str, tuple[Counters, ...]]
    busyness: Mapping[str, float]
    seconds: float = 0.0
    state: Mapping[str, StateMetrics] = field(default_factory=lambda: MappingProxyType({}))
    managed_mb: Managed | None = None
    cluster: Cluster | None = None


@dataclass(frozen=True)
class Decision:
    """What to deploy.

    Parameters
    ----------
    tasks
        Tasks per operator.
    managed_mb
        Managed memory of one task by operator, MB, None for none; left out, as it is.
    cluster
        Where the tasks go; left out, nowhere in particular.
    """

    tasks: Tasks
    managed_mb: Managed | None = None
    cluster: Cluster | None = None


Answer = tuple[Tasks | Decision | None, Any]


class Policy(Protocol):
    """Decides what to deploy; `memory` is what it returned the last time, None at first.

    One that places tasks may also have ``begin(dataflow, decision, source_rates) -> Decision``, which places those at
    the beginning.
    """

    @property
    def interval_s(self) -> float:
        """Seconds from one question to the next."""
        ...

    def decide(self, window: Window, memory: Any) -> Answer:  # noqa: ANN401 - the policy's own
        """Give the tasks per operator, or a `Decision`, or None to leave everything; and what to remember."""
        ...


@dataclass(frozen=True)
class Static:
    """Leaves everything as it was deployed."""

    interval_s: float = 60.0

    def decide(self, window: Window, memory: Any) -> Answer:  # noqa: ANN401, ARG002
        """Leave the tasks."""
        return None, None


@dataclass(frozen=True)
class Scheduled:
    """Changes tasks at given times, for comparisons with a plan made by hand: pairs of (seconds, tasks)."""

    changes: tuple[tuple[float, Tasks], ...]
    interval_s: float = 1.0

    def decide(self, window: Window, memory: Any) -> Answer:  # noqa: ANN401
        """Give the tasks of the last change that has come; `memory` counts those carried out."""
        done = whole("The number of changes made", memory or 0, 0)
        come = sum(at <= window.now_s for at, _ in self.changes)
        return (self.changes[come - 1][1] if come > done else None), come
