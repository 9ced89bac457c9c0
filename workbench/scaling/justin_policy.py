"""Justin as a policy: DS2's proposal, turned into memory where state accesses are slow (Algorithm 1)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from workbench.checks import positive
from workbench.scaling._justin import (
    BASE_MEMORY_MB,
    PAPER,
    JustinVariant,
    MemoryState,
    StateMetrics,
    justin_decisions,
    managed_memory_mb,
)
from workbench.scaling.autoscaler import JUSTIN, AutoscalerSettings
from workbench.scaling.ds2_policy import Ds2Memory, Ds2Policy
from workbench.scaling.policies import Answer, Decision, Window


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
        positive("base_mb", self.base_mb)

    @property
    def interval_s(self) -> float:
        """Seconds from one call to the next."""
        return Ds2Policy(self.settings).interval_s

    def decide(self, window: Window, memory: JustinMemory | None) -> Answer[JustinMemory]:
        """Let DS2 propose tasks, then decide on tasks and memory by Algorithm 1."""
        history = memory or JustinMemory()
        proposal, remembered = Ds2Policy(self.settings).propose(window, history.ds2)
        if proposal is None:
            return None, replace(history, ds2=remembered)
        now = dict(proposal.window.state)
        found = justin_decisions(
            history.states or self._begin(window),
            proposal.tasks,
            now,
            history.before,
            self.max_level,
            self.hit_rate,
            self.latency_s,
            variant=self.variant,
        )
        states = {name: one.state for name, one in found.items()}
        after = JustinMemory(remembered, states, now)
        tasks = {name: state.tasks for name, state in states.items()}
        managed = {name: managed_memory_mb(state.level, self.base_mb) or None for name, state in states.items()}
        if tasks == dict(window.tasks) and managed == window.managed_mb:
            return None, after
        return Decision(tasks, managed, reasons=MappingProxyType(found)), after

    def _begin(self, window: Window) -> dict[str, MemoryState]:
        """Derive the levels from the managed memory."""
        given = window.managed_mb or {}
        top = self.max_level - 1
        return {
            name: MemoryState(
                tasks, min(top, max(0, round(math.log2(memory / self.base_mb)))) if (memory := given.get(name)) else 0
            )
            for name, tasks in window.tasks.items()
        }
