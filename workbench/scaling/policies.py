"""Policies as functions of metrics: what they see, what they decide, and what they remember.

A policy owns no clock and no state. `replay` hands it the metrics of a window and what it last returned to remember.
It answers with what to deploy and what to remember next. Two members make a policy, so you can write your own::

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
from typing import Any, Protocol, TypeAlias, TypeVar

from workbench.dataflow import Dataflow
from workbench.scaling._ds2 import Counters
from workbench.scaling._justin import JustinDecision, StateMetrics
from workbench.simulation import Cluster

Tasks = Mapping[str, int]
Managed = Mapping[str, float | None]
Memory = TypeVar("Memory")  # what a policy remembers from one decision to the next


@dataclass(frozen=True)
class Window:
    """Metrics since the previous call of a policy.

    Parameters
    ----------
    now_s, deployed_s
        Now, and when the present deployment began to run, in seconds of the replay.
    dataflow
        The query.
    tasks
        Tasks per operator now; sources are included only if the model gives them tasks.
    source_rates
        Records/s that arrived per source.
    backlog
        Records that wait per source.
    counters
        ``(processed, pushed, useful_s)`` per instance of every operator except the sources, as `ds2` takes them.
    busyness
        Share of time that the tasks of each of these operators worked.
    seconds
        Length of the window without downtime.
    state
        Hit rate and latency of the state accesses of every stateful operator.
    managed_mb
        Managed memory of one task by operator, MB; None if a slot's memory is not split.
    cluster
        Where the tasks run; None if placement does not count.
    batch_s, busy
        Trigger interval of a query in micro-batches, seconds, 0 without; share of it, or of the time, that records
        flowed and fixed work took.
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
    batch_s: float = 0.0
    busy: float = 0.0


@dataclass(frozen=True)
class Decision:
    """What to deploy.

    Parameters
    ----------
    tasks
        Tasks per operator.
    managed_mb
        Managed memory of one task by operator, MB; an operator with None has none. Without it, memory stays as it is.
    cluster
        Where the tasks run; None if placement does not count.
    reasons
        Why tasks or memory were chosen, by operator, from policies that weigh one against the other.
    """

    tasks: Tasks
    managed_mb: Managed | None = None
    cluster: Cluster | None = None
    reasons: Mapping[str, JustinDecision] = field(default_factory=lambda: MappingProxyType({}))


Answer: TypeAlias = tuple[Tasks | Decision | None, Memory]


class Policy(Protocol[Memory]):
    """Decides what to deploy; `memory` is what it returned last time, None at first.

    A policy that places tasks may also have ``begin(dataflow, decision, source_rates) -> Decision``, which places the
    first deployment. One with ``restarts = False`` changes tasks while the query runs: only moving state stops it.
    """

    @property
    def interval_s(self) -> float:
        """Seconds from one call to the next."""
        ...

    def decide(self, window: Window, memory: Memory | None) -> Answer[Memory]:
        """Return the tasks per operator, or a `Decision`, or None to change nothing; and what to remember."""
        ...


AnyPolicy: TypeAlias = Policy[Any]
"""A policy whose memory only the policy itself reads."""


@dataclass(frozen=True)
class Static:
    """Leaves everything as it was deployed."""

    interval_s: float = 60.0

    def decide(self, window: Window, memory: None) -> Answer[None]:  # noqa: ARG002
        """Change nothing."""
        return None, None
