"""Policies as functions of metrics: what they see, what they decide, and what they remember.

A policy owns no clock and no state. `replay` hands it the metrics of a window and what it last returned to remember.
It answers with what to deploy and what to remember next. Two members make a policy of your own: see CONTRIBUTING.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias, TypeVar

from workbench.checks import finite, require, shown
from workbench.dataflow import Dataflow
from workbench.errors import WorkbenchError
from workbench.scaling._justin import JustinDecision, StateMetrics
from workbench.simulation import Cluster

Counters = tuple[float, float, float]  # records processed, records pushed, useful seconds of one instance
Tasks = Mapping[str, int]
Managed = Mapping[str, float | None]
Memory = TypeVar("Memory")  # remembered by a policy from one decision to the next


@dataclass(frozen=True)
class Window:
    """Metrics since the previous call of a policy."""

    now_s: float  # in the replay
    deployed_s: float  # when the present deployment began to run
    dataflow: Dataflow  # the query
    tasks: Tasks  # tasks per operator now; sources are included only if the model gives them tasks
    source_rates: Mapping[str, float]  # records/s that arrived per source
    backlog: Mapping[str, float]  # records that wait per source
    # ``(processed, pushed, useful_s)`` per instance of every operator except the sources, as `ds2` takes them
    counters: Mapping[str, tuple[Counters, ...]]
    busyness: Mapping[str, float]  # share of time that the tasks of each of these operators worked
    seconds: float = 0.0  # length of the window without downtime
    # hit rate and latency of the state accesses of every stateful operator
    state: Mapping[str, StateMetrics] = field(default_factory=lambda: MappingProxyType({}))
    # managed memory of one task by operator, MB; None if a slot's memory is not split
    managed_mb: Managed | None = None
    cluster: Cluster | None = None  # where the tasks run; None if placement does not count
    batch_s: float = 0.0  # trigger interval of a query in micro-batches; 0 without
    busy: float = 0.0  # share of it, or of the time, that records flowed and fixed work took


@dataclass(frozen=True)
class Decision:
    """A deployment to carry out."""

    tasks: Tasks  # tasks per operator
    # managed memory of one task by operator, MB; an operator with None has none. Without it, memory stays as it is.
    managed_mb: Managed | None = None
    cluster: Cluster | None = None  # where the tasks run; None if placement does not count
    # why tasks or memory were chosen, by operator, from policies that weigh one against the other
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
    """Leaves the deployment unchanged."""

    interval_s: float = 60.0

    def decide(self, window: Window, memory: None) -> Answer[None]:  # noqa: ARG002
        """Change nothing."""
        return None, None


MOST_TASKS = 100_000


def interval_of(policy: object) -> float:
    """Return the seconds from one call of `policy` to the next."""
    who = _name(policy)
    require(
        callable(getattr(policy, "decide", None)) and not isinstance(policy, type),
        f"{who} is not a policy: it has no method decide(window, memory). Give an object with decide and interval_s.",
    )
    require(hasattr(policy, "interval_s"), f"Policy {who} has no interval_s; set it to the seconds between two calls.")
    seconds = policy.interval_s  # type: ignore[attr-defined]
    if not (finite(seconds) and seconds > 0):  # called at every step: build no text without need
        raise WorkbenchError(
            f"Policy {who} has interval_s = {shown(seconds)}; it must be a finite number of seconds above 0."
        )
    return float(seconds)


def answered(policy: object, answer: Answer[Memory], operators: Sequence[str]) -> tuple[Decision | None, Memory]:
    """Split what ``decide`` returned into what to deploy (None for no change) and what to remember."""
    who = f"Policy {_name(policy)}"
    if not (isinstance(answer, tuple) and len(answer) == len(("wanted", "memory"))):  # building its text can take long
        raise WorkbenchError(
            f"{who} decided {shown(answer)}; decide must return a pair: first the tasks by operator, a Decision or "
            "None, then what to remember."
        )
    wanted, memory = answer
    return None if wanted is None else decided(who, wanted, operators), memory


def decided(who: str, wanted: Tasks | Decision, operators: Sequence[str]) -> Decision:
    """Return tasks by operator, or a `Decision`, as a checked `Decision`; errors name `who` as its author."""
    decision = wanted if isinstance(wanted, Decision) else Decision(wanted)
    tasks, managed = decision.tasks, decision.managed_mb
    names = ", ".join(operators)
    require(
        isinstance(tasks, Mapping) and set(tasks) == set(operators),
        f"{who} gave {shown(tasks)}; tasks must be a mapping with one number for each of {names}.",
    )
    for name, count in tasks.items():
        require(
            isinstance(count, Integral) and not isinstance(count, bool) and count >= 1,
            f"{who} gave operator {name!r} {shown(count)} tasks; it needs a whole number of at least 1.",
        )
    together = sum(int(count) for count in tasks.values())
    require(
        together <= MOST_TASKS,
        f"{who} gave {together:,} tasks; a replay takes at most {MOST_TASKS:,}. Lower the rates, or limit the policy, "
        "for example with max_parallelism.",
    )
    require(
        managed is None or isinstance(managed, Mapping),
        f"{who} gave managed_mb = {shown(managed)}; it must be a mapping of MB by operator, or None.",
    )
    for name, memory in (managed or {}).items():
        require(
            name in operators and (memory is None or (finite(memory) and memory >= 0)),
            f"{who} gave operator {name!r} {shown(memory)} MB of managed memory; it must be a finite number of at "
            f"least 0 or None, for operators of {names}.",
        )
    require(
        decision.cluster is None or isinstance(decision.cluster, Cluster),
        f"{who} gave the placement {shown(decision.cluster)}; it must be a Cluster or None.",
    )
    return decision


def _name(policy: object) -> str:
    return policy.__name__ if isinstance(policy, type) else type(policy).__name__
