"""The CAPSys controller: a scaling policy decides how many tasks, a placement strategy where they go (sections 4, 5.1).

Operators are profiled once, each alone on a worker; their unit costs times the rates to come are the loads that the
placement balances. The scaling policy goes on reading live metrics. If tasks get into each other's way, those
metrics say that tasks are slow, and the policy asks for more of them than are needed: that is what a placement that
knows no loads does to an autoscaler (section 6.4).
"""

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from workbench.checks import require, whole
from workbench.dataflow import Dataflow, OperatorProfile
from workbench.placement import PlacementProblem, flink_default, flink_evenly, optimal
from workbench.scaling._ds2 import ds2
from workbench.scaling.ds2_policy import utilization
from workbench.scaling.policies import Answer, Decision, Policy, Tasks, Window
from workbench.simulation import Cluster, Worker, stream

Strategy = Literal["caps", "default", "evenly"]
LEAST_GAIN = (
    0.01  # a redeployment within full slots that serves the least served by less is not worth it; not in CAPSys
)


class _Memory(NamedTuple):
    scaling: Any
    placements: int


@dataclass(frozen=True)
class Controller:
    """Scale, place, deploy.

    Parameters
    ----------
    scaling
        Decides on the tasks, `Ds2Policy` in CAPSys.
    profiles
        Unit costs of every operator, as profiled.
    workers, slots
        The cluster; it does not grow. When the policy wants more tasks than it has slots, they are dealt out so that
        the least served operator is served best, and deployed only if it is served better than now.
    worker
        Capacities of a worker.
    strategy
        ``"caps"`` balances the loads of the resources that a worker could run short of: the plan of the least worst
        cost, proven within `gap`. ``"default"`` fills one worker after the other and ``"evenly"`` spreads tasks, both
        in random order, as Flink does.
    seed
        Of the random orders; decision n has its own.
    gap
        How far from the least worst cost is near enough.
    """

    scaling: Policy
    profiles: Mapping[str, OperatorProfile]
    workers: int
    slots: int
    worker: Worker = field(default_factory=Worker)
    strategy: Strategy = "caps"
    seed: int = 0
    gap: float = 0.02

    def __post_init__(self) -> None:
        whole("workers", self.workers, 1)
        whole("slots", self.slots, 1)
        require(
            self.strategy in get_args(Strategy),
            f"The placement strategy is {self.strategy!r}; use one of {', '.join(map(repr, get_args(Strategy)))}.",
        )

    @property
    def interval_s(self) -> float:
        """Seconds from one look at the metrics to the next: the scaling policy's."""
        return self.scaling.interval_s

    def begin(self, dataflow: Dataflow, start: Decision, source_rates: Mapping[str, float]) -> Decision:
        """Place the tasks of a deployment that is yet to begin, unless it is placed."""
        if start.cluster is not None:
            return start
        return Decision(start.tasks, start.managed_mb, self.place(dataflow, start.tasks, source_rates, 0))

    def decide(self, window: Window, memory: Any) -> Answer:  # noqa: ANN401
        """Let the scaling policy decide, and place what it wants."""
        before: _Memory = memory or _Memory(None, 0)
        wanted, remembered = self.scaling.decide(window, before.scaling)
        if wanted is None:
            return None, _Memory(remembered, before.placements)
        decision = wanted if isinstance(wanted, Decision) else Decision(wanted)
        need = needed_tasks(window)
        tasks = self.fitting(decision.tasks, need)
        same_memory = decision.managed_mb is None or decision.managed_mb == window.managed_mb
        trimmed = tasks != dict(decision.tasks)
        no_better = trimmed and served(tasks, need) <= served(window.tasks, need) * (1 + LEAST_GAIN)
        if same_memory and (tasks == dict(window.tasks) or no_better):
            return None, _Memory(remembered, before.placements)
        number = before.placements + 1
        cluster = self.place(window.dataflow, tasks, window.source_rates, number)
        return Decision(tasks, decision.managed_mb, cluster), _Memory(remembered, number)

    def place(self, dataflow: Dataflow, tasks: Tasks, source_rates: Mapping[str, float], number: int = 0) -> Cluster:
        """Place tasks for these rates (records/s per source); `number` tells one random order from another.

        Raises
        ------
        WorkbenchError
            When an operator has no profile, or there are fewer slots than tasks.
        """
        problem = self._problem(dataflow, tasks, source_rates, (True, True, True))
        if self.strategy == "caps":
            # A resource that no placement can exhaust must not outweigh those that some can.
            limits = (self.worker.cpus, self.worker.io_bytes_per_s, self.worker.net_bytes_per_s)
            scarce = tuple((problem.ideal + problem.span > np.array(limits)).tolist())
            if any(scarce) and not all(scarce):
                problem = self._problem(dataflow, tasks, source_rates, scarce)
            counts = optimal(problem, self.gap).counts
        else:
            random = stream("placement", self.seed, number)
            counts = (flink_default if self.strategy == "default" else flink_evenly)(problem, random)
        rows = zip(problem.operators, counts.tolist(), strict=True)
        return Cluster((self.worker,) * self.workers, {name: tuple(row) for name, row in rows})

    def _problem(
        self, dataflow: Dataflow, tasks: Tasks, source_rates: Mapping[str, float], counting: Sequence[bool]
    ) -> PlacementProblem:
        """Build the placement problem with the loads of the counting resources: cpu, io, net."""
        cpu, io, net = counting
        profiles = {
            name: OperatorProfile(one.cpu_s * cpu, one.state_bytes * io, one.output_bytes * net, one.selectivity)
            for name, one in self.profiles.items()
            if name in tasks
        }
        return PlacementProblem.from_dataflow(
            dataflow, profiles, dict(source_rates), self.workers, self.slots, parallelism=dict(tasks)
        )

    def fitting(self, tasks: Tasks, need: Mapping[str, float] | None = None) -> dict[str, int]:
        """Keep as many tasks as there are slots, so that the least served operator is served best.

        Every operator keeps one task; each further slot goes to the one with the least ``kept / need`` (ties: the
        first) that wants more. That is optimal: to serve the least served better, a split must take a task from
        another operator, which got its last one when it was served no better than the least served is in the end.

        Parameters
        ----------
        tasks
            As the policy wants them; nobody gets more.
        need
            Tasks each operator needs, fractions included, in one unit; the wanted ones by default. One that is not
            named keeps what is wanted of it as far as every other operator can still have one task.

        Raises
        ------
        WorkbenchError
            When there are fewer slots than operators.
        """
        room = self.workers * self.slots
        require(
            len(tasks) <= room, f"There are {room} slots for {len(tasks)} operators; add workers until each has a slot."
        )
        if sum(tasks.values()) <= room:
            return dict(tasks)
        need = tasks if need is None else need
        kept = {name: 1 if name in need else count for name, count in tasks.items()}
        while sum(kept.values()) > room:
            kept[max(kept, key=lambda name: kept[name])] -= 1
        lacking = [(_ratio(kept[name], need[name]), index, name) for index, name in enumerate(tasks) if name in need]
        heapq.heapify(lacking)
        for _ in range(room - sum(kept.values())):
            while kept[lacking[0][2]] == tasks[lacking[0][2]]:
                heapq.heappop(lacking)
            _, index, name = lacking[0]
            kept[name] += 1
            heapq.heapreplace(lacking, (_ratio(kept[name], need[name]), index, name))
        return kept


def needed_tasks(window: Window) -> dict[str, float]:
    """Tasks, fractions included, that keep up with the source rates at the window's true rates (DS2, before rounding).

    Operators whose counters tell no true rate are left out, and so are sources.
    """
    found = ds2(window.dataflow, window.counters, window.source_rates)
    shares = utilization(window, window.source_rates)
    return {name: shares[name] * window.tasks[name] for name in shares if name not in found.uninformed}


def served(tasks: Tasks, need: Mapping[str, float]) -> float:
    """Share of its need that the least served operator gets, above 1 with room to spare."""
    return min((_ratio(tasks[name], wanted) for name, wanted in need.items()), default=math.inf)


def _ratio(tasks: int, need: float) -> float:
    return tasks / need if need > 0 else math.inf
