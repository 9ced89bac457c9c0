"""The CAPSys controller: a scaling policy decides how many tasks, a placement strategy where they go (sections 4, 5.1).

Operators are profiled once, each alone on a worker. Their unit costs times the expected rates are the loads that the
placement balances. The scaling policy reads live metrics: if tasks contend for a worker, it requests more tasks than
necessary, which is what a placement that ignores loads does to an autoscaler (section 6.4).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, Literal, get_args

from workbench import units
from workbench.checks import one_of, require, whole
from workbench.dataflow import Dataflow, OperatorProfile
from workbench.placement import (
    CEILINGS,
    CostVector,
    PlacementProblem,
    ThresholdTable,
    caps,
    flink_default,
    flink_evenly,
    optimal,
)
from workbench.scaling.ds2_policy import ds2
from workbench.scaling.policies import Answer, Decision, Memory, Policy, Tasks, Window
from workbench.simulation import Cluster, Worker, stream

Strategy = Literal["caps", "optimum", "default", "evenly"]
# With all slots in use, a redeployment must serve the least served operator better by this share. Not in CAPSys.
LEAST_GAIN = 0.01


@dataclass(frozen=True)
class ControllerMemory(Generic[Memory]):
    """What `Controller` remembers: the memory of its scaling policy, and how often it has placed tasks."""

    scaling: Memory | None = None
    placements: int = 0


@dataclass(frozen=True)
class Controller(Generic[Memory]):
    """A policy that scales, places and deploys."""

    scaling: Policy[Memory]  # decides on the tasks; `Ds2Policy` in CAPSys
    profiles: Mapping[str, OperatorProfile]  # unit costs of every operator, as profiled
    # The cluster does not grow. Where the policy wants more tasks than there are slots, `fitting` assigns the slots so
    # that the least served operator is served best; that is deployed only if it serves this operator better.
    workers: int
    slots: int
    worker: Worker = field(default_factory=Worker)  # capacities of a worker
    # ``"caps"`` places as CAPSys does: thresholds tuned, all plans within them searched, and of the Pareto-optimal ones
    # the plan that sustains most (`workbench.placement.caps`). ``"optimum"`` takes the plan that sustains most of all,
    # proven within `gap`; it is not in CAPSys. ``"default"`` fills one worker after the other and ``"evenly"`` spreads
    # tasks, both in random order, as Flink does.
    strategy: Strategy = "caps"
    seed: int = 0  # seed of the random orders; each decision has its own order
    gap: float = 0.001  # largest relative distance to the optimum
    # of CAPS, computed ahead (section 5.2); where it has none for the tasks, they are tuned
    thresholds: ThresholdTable | None = None
    # of CAPS's tuning, see `workbench.placement.tune`: those of the authors' artefact; None as section 5.2 reads
    ceilings: CostVector | None = CEILINGS

    def __post_init__(self) -> None:
        whole("workers", self.workers, 1)
        whole("slots", self.slots, 1)
        one_of("The placement strategy", self.strategy, get_args(Strategy))

    @property
    def interval_s(self) -> float:
        """Seconds from one call to the next: those of the scaling policy."""
        return self.scaling.interval_s

    def begin(self, dataflow: Dataflow, start: Decision, source_rates: Mapping[str, float]) -> Decision:
        """Place the tasks of the first deployment, unless they are placed."""
        if start.cluster is not None:
            return start
        return replace(start, cluster=self.place(dataflow, start.tasks, source_rates, 0))

    def decide(self, window: Window, memory: ControllerMemory[Memory] | None) -> Answer[ControllerMemory[Memory]]:
        """Let the scaling policy decide, and place its tasks."""
        before = memory or ControllerMemory[Memory]()
        wanted, remembered = self.scaling.decide(window, before.scaling)
        if wanted is None:
            return None, ControllerMemory(remembered, before.placements)
        decision = wanted if isinstance(wanted, Decision) else Decision(wanted)
        need = ds2(window.dataflow, window.counters, window.source_rates).needed
        tasks = self.fitting(decision.tasks, need)
        same_memory = decision.managed_mb is None or decision.managed_mb == window.managed_mb
        trimmed = tasks != dict(decision.tasks)
        no_better = trimmed and served(tasks, need) <= served(window.tasks, need) * (1 + LEAST_GAIN)
        if same_memory and (tasks == dict(window.tasks) or no_better):
            return None, ControllerMemory(remembered, before.placements)
        number = before.placements + 1
        cluster = self.place(window.dataflow, tasks, window.source_rates, number)
        return replace(decision, tasks=tasks, cluster=cluster), ControllerMemory(remembered, number)

    def place(self, dataflow: Dataflow, tasks: Tasks, source_rates: Mapping[str, float], number: int = 0) -> Cluster:
        """Place tasks for these rates (records/s per source); each `number` has its own random order."""
        profiles = {name: profile for name, profile in self.profiles.items() if name in tasks}
        problem = PlacementProblem.from_dataflow(
            dataflow, profiles, dict(source_rates), self.workers, self.slots, parallelism=dict(tasks)
        )
        if self.strategy == "caps":
            known = None if self.thresholds is None else self.thresholds.find(problem)
            found = caps(problem, thresholds=known, worker=self.worker, ceilings=self.ceilings).best
            require(found is not None, "No plan meets the thresholds computed ahead in time; leave them out.")
            counts = found.counts  # type: ignore[union-attr]
        elif self.strategy == "optimum":
            counts = optimal(problem, self.gap, worker=self.worker).counts
        else:
            random = stream("placement", self.seed, number)
            counts = (flink_default if self.strategy == "default" else flink_evenly)(problem, random)
        rows = zip(problem.operators, counts.tolist(), strict=True)
        return Cluster((self.worker,) * self.workers, {name: tuple(row) for name, row in rows})

    def fitting(self, tasks: Tasks, need: Mapping[str, float] | None = None) -> dict[str, int]:
        """Keep as many tasks as there are slots, so that the least served operator is served best.

        Every operator keeps one task. Each further slot goes to the operator with the least ``kept / need`` that wants
        more; ties go to the first. This is optimal: another split takes a task from an operator that got it when it was
        served no better than the least served operator is in the end.

        `need` has the tasks that each operator needs, fractions included; by default those wanted. One that it does not
        name keeps its wanted tasks as long as every other operator can have one.
        """
        room = self.workers * self.slots
        require(
            len(tasks) <= room,
            f"{units.some(room, 'slot')} cannot hold {len(tasks)} operators; add workers, one slot per operator "
            "at least.",
        )
        if sum(tasks.values()) <= room:
            return dict(tasks)
        need = tasks if need is None else need
        kept = {name: 1 if name in need else count for name, count in tasks.items()}
        while sum(kept.values()) > room:
            kept[max(kept, key=lambda name: kept[name])] -= 1
        further = sorted(
            (_ratio(count, need[name]), index, name)
            for index, name in enumerate(tasks)
            if name in need
            for count in range(1, min(int(tasks[name]), room))  # none can keep more
        )
        for _, _, name in further[: room - sum(kept.values())]:
            kept[name] += 1
        return kept


def served(tasks: Tasks, need: Mapping[str, float]) -> float:
    """Return the share of its need that the least served operator gets; above 1 if all have tasks to spare."""
    return min((_ratio(tasks[name], wanted) for name, wanted in need.items()), default=math.inf)


def _ratio(tasks: int, need: float) -> float:
    return tasks / need if need > 0 else math.inf
