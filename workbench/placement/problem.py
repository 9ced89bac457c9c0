"""What to place on which workers, and the cost of a placement (CAPSys, section 4).

Tasks of one operator are identical, and so are workers of one speed. A plan therefore only says how many tasks of
every operator run on every worker: *counts*, shape (operators, workers).

Workers of unequal speed follow the relaxation of the CIKM '14 paper (section 5): a worker of speed 2 represents one
twice as large in every resource, so its loads are divided by 2. Workers of one speed form a class.
"""

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from itertools import chain
from typing import NamedTuple, Self, cast, get_args

import numpy as np
from numpy.typing import ArrayLike

from workbench import bounds, units
from workbench.arrays import Floats, Ints
from workbench.checks import SLACK, entries, integer, not_negative, positive, shown, whole
from workbench.dataflow import Dataflow, OperatorProfile, Partitioning
from workbench.errors import WorkbenchError
from workbench.placement.unit_costs import arriving_rates, require_each

DIMENSIONS = ("cpu", "io", "net")

Counts = Ints


@dataclass(frozen=True)
class CostVector:
    """Costs of a plan in the three dimensions (Equation 4), each 0 (ideal) to 1 (worst); also thresholds for them.

    As a threshold any value from 0 on is allowed; infinity, the default, switches a dimension off.
    """

    cpu: float = math.inf
    io: float = math.inf
    net: float = math.inf

    def __post_init__(self) -> None:
        for name, value in zip(DIMENSIONS, self, strict=True):
            if not value >= 0:
                raise WorkbenchError(
                    f"The {name} entry of a cost vector is {value!r}; give a number from 0 on, or inf to switch "
                    "the dimension off."
                )

    def __iter__(self) -> Iterator[float]:
        return iter((self.cpu, self.io, self.net))

    @property
    def worst(self) -> float:
        """The largest of the three."""
        return max(self)

    def within(self, thresholds: "CostVector") -> bool:
        """Whether no entry exceeds its threshold (Equation 9)."""
        return all(value <= limit + SLACK for value, limit in zip(self, thresholds, strict=True))


@dataclass(frozen=True, eq=False)
class Plan:
    """Where the tasks go: `counts`, shape (operators, workers), and what that costs."""

    counts: Counts
    cost: CostVector

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and np.array_equal(self.counts, other.counts) and self.cost == other.cost

    def __hash__(self) -> int:
        return hash(self.counts.tobytes())


class Subtask(NamedTuple):
    """One task and where it runs, the form schedulers import."""

    operator: str
    subtask: int
    worker: int


Edge = tuple[int | str, int | str] | tuple[int | str, int | str, str]

_SAME_LOAD = 1e-12
_MOST = bounds.TASKS  # workers, slots and tasks: the compiled searches count in 64 bits


class Link(NamedTuple):
    """An edge between two operators, given by their positions."""

    upstream: int
    downstream: int
    partitioning: Partitioning


@dataclass(frozen=True, init=False)
class PlacementProblem:
    """Operators with the loads of one task each, edges between them, and identical slots on workers.

    Raises `WorkbenchError` for more tasks than slots, an unknown operator, two of one name, a cycle, or a number out of
    its range: workers, slots and tasks are 1 to 100,000, and loads must add up to finite sums.

    Parameters
    ----------
    parallelism
        Tasks of every operator: a sequence, whose positions then name the operators ``"0"``, ``"1"``, ..., or a
        mapping by name.
    edges
        ``(upstream, downstream)``, shuffled, or ``(upstream, downstream, "forward")``, one to one; operators by
        position or name. Forward between unequal parallelisms is treated as shuffle, with a warning.
    workers, slots
        Number of workers and of slots on each.
    cpu, io, net
        Load of one task of every operator, in any one unit per dimension; `net` is all its output. A sequence or a
        mapping, like `parallelism`.
    speeds
        Speed of every worker, any positive unit; all 1 if left out.
    operators
        Names of the operators, where `parallelism` is a sequence.
    """

    parallelism: tuple[int, ...]
    edges: tuple[Link, ...]
    workers: int
    slots: int
    cpu: tuple[float, ...]
    io: tuple[float, ...]
    net: tuple[float, ...]
    speeds: tuple[float, ...]
    operators: tuple[str, ...]

    def __init__(  # noqa: PLR0917 - DESIGN fixes the order
        self,
        parallelism: Sequence[int] | Mapping[str, int],
        edges: Sequence[Edge],
        workers: int,
        slots: int,
        cpu: Sequence[float] | Mapping[str, float],
        io: Sequence[float] | Mapping[str, float],
        net: Sequence[float] | Mapping[str, float],
        speeds: Sequence[float] | None = None,
        operators: Sequence[str] | None = None,
    ) -> None:
        put = object.__setattr__
        names = _operator_names(parallelism, operators)
        put(self, "operators", names)
        put(self, "workers", whole("workers", workers, most=_MOST))
        put(self, "slots", whole("slots", slots, most=_MOST))
        put(self, "parallelism", _tasks_by_operator(parallelism, names))
        for dimension, loads in zip(DIMENSIONS, (cpu, io, net), strict=True):
            given = zip(names, _by_operator(dimension, loads, names), strict=True)
            load = tuple(not_negative(f"The {dimension} load of operator {name!r}", one) for name, one in given)
            put(self, dimension, load)
        each = (1.0,) * self.workers if speeds is None else entries("speeds", speeds)
        if len(each) != self.workers:
            said = f"{units.some(len(each), 'speed')} for {units.some(self.workers, 'worker')}"
            raise WorkbenchError(f"The speeds do not fit the workers: {said}; give one for each.")
        put(self, "speeds", tuple(positive(f"The speed of worker {one}", speed) for one, speed in enumerate(each)))
        put(self, "edges", tuple(self._link(edge) for edge in edges))
        if self.tasks > self.workers * self.slots:
            raise WorkbenchError(
                f"There are {self.tasks:,} tasks, but {units.some(self.workers, 'worker')} of "
                f"{units.some(self.slots, 'slot')} cannot hold more than {self.workers * self.slots:,}; add "
                "workers or slots, or lower the parallelism."
            )
        _ = self.topological_order
        self._summable()

    def _summable(self) -> None:
        try:
            with np.errstate(all="ignore"):
                sums = [*self.ideal, *self.span]
        except OverflowError:  # of the speeds
            sums = [math.inf]
        if not np.isfinite(sums).all():
            raise WorkbenchError(
                "The loads of a worker add up to more than a number can hold; give loads and speeds in other units."
            )

    def _link(self, edge: Edge) -> Link:
        if not isinstance(edge, tuple | list) or len(edge) not in {2, 3}:
            raise WorkbenchError(
                f'Edge {shown(edge)} is not (upstream, downstream) or (upstream, downstream, "forward").'
            )
        upstream, downstream = (self._position(end, edge) for end in edge[:2])
        partitioning = cast("Partitioning", edge[2] if len(edge) == 3 else "shuffle")
        if partitioning not in get_args(Partitioning):
            raise WorkbenchError(
                f"Edge {shown(edge)} has partitioning {shown(partitioning)}; "
                f"use one of {', '.join(get_args(Partitioning))}."
            )
        if partitioning == "forward" and self.parallelism[upstream] != self.parallelism[downstream]:
            warnings.warn(
                f"Edge {self.operators[upstream]} -> {self.operators[downstream]} is forward, but "
                f"{self.parallelism[upstream]} tasks cannot feed {self.parallelism[downstream]} one to one; "
                "it is treated as shuffle.",
                stacklevel=4,
            )
            partitioning = "shuffle"
        return Link(upstream, downstream, partitioning)

    def _position(self, end: int | str, edge: Edge) -> int:
        if isinstance(end, str) and end in self.operators:
            return self.operators.index(end)
        position = integer(end)
        if position is not None and 0 <= position < len(self.operators):
            return position
        raise WorkbenchError(
            f"Edge {shown(tuple(edge))} names the unknown operator {shown(end)}; "
            f"the operators are {', '.join(self.operators)}."
        )

    @classmethod
    def from_dataflow(
        cls,
        dataflow: Dataflow,
        profiles: Mapping[str, OperatorProfile],
        rate: float | Mapping[str, float],
        workers: int,
        slots: int,
        *,
        parallelism: Mapping[str, int] | None = None,
        speeds: Sequence[float] | None = None,
    ) -> Self:
        """Multiply measured unit costs by the rates at a target source rate (CAPSys, section 5.1).

        Parameters
        ----------
        dataflow, profiles
            The query, and the unit costs of its operators per input record.
        rate
            Records/s of the source, or of every source by name.
        workers, slots, speeds
            The cluster, as for the class.
        parallelism
            Tasks of every operator, as planned. If left out, the least number that keeps every task below one CPU
            second per second. A source without parallelism, or then without profile, runs elsewhere and is not placed.
        """
        arriving = arriving_rates(dataflow, profiles, rate)
        known = profiles if parallelism is None else parallelism
        operators = [operator.name for operator in dataflow.operators]
        placed = [name for name in operators if name not in dataflow.sources or name in known]
        for name in parallelism or ():
            if name not in operators:
                raise WorkbenchError(
                    f"A parallelism is given for {name!r}, no operator of dataflow {dataflow.name!r}; there are "
                    f"{', '.join(operators)}."
                )
        require_each("profile", profiles, placed, dataflow)
        require_each("parallelism", known, placed, dataflow)
        if parallelism is None:
            tasks = {}
            for name in placed:
                busy = arriving[name] * profiles[name].cpu_s
                if not math.isfinite(busy):
                    raise WorkbenchError(f"Operator {name!r} would use {busy} CPU seconds per second; lower the rate.")
                tasks[name] = max(1, math.ceil(busy - SLACK))
        else:
            tasks = {name: whole(f"The parallelism of {name!r}", parallelism[name], most=_MOST) for name in placed}
        cpu, io, net = (
            [arriving[name] / tasks[name] * getattr(profiles[name], cost) for name in placed]
            for cost in ("cpu_s", "state_bytes", "output_bytes")
        )
        ends = ((edge.upstream, edge.downstream, edge.partitioning) for edge in dataflow.edges)
        edges = [(u, v, partitioning) for u, v, partitioning in ends if u in placed and v in placed]
        return cls(tasks, edges, workers, slots, cpu, io, net, speeds)

    @classmethod
    def together(cls, queries: Mapping[str, "PlacementProblem"]) -> Self:
        """One graph of several queries on the same cluster, operators named ``query.operator`` (section 6.2.2)."""
        if not queries:
            raise WorkbenchError("There are no queries to place together; give at least one.")
        clusters = {(query.workers, query.slots, query.speeds) for query in queries.values()}
        if len(clusters) > 1:
            sizes = ", ".join(f"{name}: {query.workers:,} x {query.slots:,}" for name, query in queries.items())
            raise WorkbenchError(f"The queries are to share a cluster, but theirs differ ({sizes}); give all the same.")
        ((workers, slots, speeds),) = clusters
        names: list[str] = []
        edges: list[Edge] = []
        for name, query in queries.items():
            edges += [(len(names) + u, len(names) + v, partitioning) for u, v, partitioning in query.edges]
            names += [f"{name}.{operator}" for operator in query.operators]
        for name in names:
            if names.count(name) > 1:
                raise WorkbenchError(
                    f"Operators of two queries are both named {name!r} when placed together; rename one of the queries."
                )
        tasks, cpu, io, net = (
            tuple(chain.from_iterable(getattr(query, field) for query in queries.values()))
            for field in ("parallelism", *DIMENSIONS)
        )
        return cls(tasks, edges, workers, slots, cpu, io, net, speeds, names)

    def with_parallelism(self, parallelism: Sequence[int] | Mapping[str, int]) -> "PlacementProblem":
        """Spread the total loads over other numbers of tasks: the same operators at the same rate, scaled."""
        tasks = _tasks_by_operator(parallelism, self.operators)
        spread = np.array(self.parallelism) / tasks
        cpu, io, net = (self.loads * spread).tolist()
        return replace(self, parallelism=tasks, cpu=cpu, io=io, net=net)

    @property
    def tasks(self) -> int:
        """Number of all tasks."""
        return sum(self.parallelism)

    @cached_property
    def topological_order(self) -> tuple[int, ...]:
        """Positions of the operators, each after those that feed it; ties in input order."""
        sorter = TopologicalSorter[int](dict.fromkeys(range(len(self.operators)), ()))
        for edge in self.edges:
            sorter.add(edge.downstream, edge.upstream)
        try:
            sorter.prepare()
        except CycleError as error:
            stuck = ", ".join(self.operators[operator] for operator in sorted(set(error.args[1])))
            raise WorkbenchError(
                f"The edges form a cycle among the operators {stuck}; a dataflow must be acyclic."
            ) from error
        ready, order = list[int](), list[int]()
        while sorter.is_active():
            for operator in sorter.get_ready():
                heappush(ready, operator)
            order.append(heappop(ready))
            sorter.done(order[-1])
        return tuple(order)

    @cached_property
    def classes(self) -> tuple[tuple[int, ...], ...]:
        """Workers of equal speed, fastest class first."""
        return tuple(
            tuple(w for w, speed in enumerate(self.speeds) if speed == distinct)
            for distinct in sorted(set(self.speeds), reverse=True)
        )

    @property
    def fastest_first(self) -> list[int]:
        """All workers, class by class."""
        return [worker for members in self.classes for worker in members]

    @cached_property
    def loads(self) -> Floats:
        """Loads of one task, shape (3, operators)."""
        return np.array([self.cpu, self.io, self.net], dtype=np.float64)

    @cached_property
    def link_loads(self) -> Floats:
        """Load of one physical link of every edge: U_net(u) / |D(u)| (Equation 8)."""
        links = [0] * len(self.operators)
        for u, v, partitioning in self.edges:
            links[u] += self.parallelism[v] if partitioning == "shuffle" else 1
        return np.array([self.net[edge.upstream] / links[edge.upstream] for edge in self.edges], dtype=np.float64)

    @cached_property
    def ideal(self) -> Floats:
        """L^min, shape (3,): the load of a worker of speed 1 in perfect balance, 0 for the network (Equation 6)."""
        total: Floats = self.loads @ np.array(self.parallelism, dtype=np.float64) / math.fsum(self.speeds)
        total[2] = 0.0
        return total

    @cached_property
    def span(self) -> Floats:
        """L^max - L^min, shape (3,); 0 where all plans cost the same (Equations 6, 7).

        L^max is the load of the slowest worker with the tasks of the highest load on all its slots.
        """
        order = np.argsort(-self.loads, axis=1, kind="stable")
        placed = np.minimum(np.cumsum(np.array(self.parallelism)[order], axis=1), self.slots)
        each = np.diff(placed, axis=1, prepend=0) * np.take_along_axis(self.loads, order, axis=1)
        heaviest = np.cumsum(each, axis=1)[:, -1] / min(self.speeds)
        difference = heaviest - self.ideal
        same = np.isfinite(difference) & (difference <= _SAME_LOAD * heaviest)
        span: Floats = np.where(same, 0.0, difference)
        return span

    def checked(self, counts: ArrayLike) -> Counts:
        """Return `counts` as an array, after checking that it is a plan of this problem (Equations 1, 2)."""
        given = np.asarray(counts)
        shape = (len(self.operators), self.workers)
        if given.shape != shape:
            raise WorkbenchError(f"The counts have shape {given.shape}; a plan has shape {shape}: operators, workers.")
        plan = given.astype(np.int64, order="C")
        if not np.array_equal(plan, given) or (plan < 0).any():
            raise WorkbenchError("A plan has a negative or broken count; counts are whole numbers from 0 on.")
        for operator, (placed, tasks) in enumerate(zip(plan.sum(axis=1), self.parallelism, strict=True)):
            if placed != tasks:
                raise WorkbenchError(
                    f"The plan places {units.some(placed, 'task')} of operator {self.operators[operator]!r}; it "
                    f"has {tasks}."
                )
        for worker, used in enumerate(plan.sum(axis=0)):
            if used > self.slots:
                raise WorkbenchError(
                    f"The plan puts {units.some(used, 'task')} on worker {worker}, which has "
                    f"{units.some(self.slots, 'slot')}."
                )
        return plan

    def worker_loads(self, counts: ArrayLike) -> Floats:
        """Add up the loads of every worker, shape (3, workers), its speed apart (Equations 5, 8)."""
        return self.loads_with(self.checked(counts))

    def bottleneck(self, counts: ArrayLike) -> Floats:
        """Return the largest loads of a worker, each divided by its speed, shape (3,)."""
        largest: Floats = (self.worker_loads(counts) / np.array(self.speeds)).max(axis=1)
        return largest

    def loads_with(self, plan: Counts, placed: AbstractSet[int] | None = None) -> Floats:
        """Add up the loads of any tasks, shape (operators, ...); of links only those between `placed` operators."""
        loads: Floats = self.loads @ plan
        loads[2] = 0.0
        for (u, v, partitioning), link in zip(self.edges, self.link_loads, strict=True):
            if placed is not None and not {u, v} <= placed:
                continue
            if partitioning == "shuffle":  # all to all: links to consumers on other workers
                remote = plan[u] * (self.parallelism[v] - plan[v])
            else:  # one to one, local pairs first
                remote = np.maximum(0, plan[u] - plan[v])
            loads[2] += link * remote
        return loads

    def cost(self, counts: ArrayLike) -> CostVector:
        """Cost of a plan, shape (operators, workers): how far its bottleneck worker is from the ideal (Equation 4)."""
        return CostVector(*np.maximum(self.relative(self.bottleneck(counts)), 0.0).tolist())

    def relative(self, loads: Floats) -> Floats:
        """Return the costs of loads of a worker of speed 1, shape (3, ...), below 0 below L^min (Equation 4)."""
        excess = loads.T - self.ideal
        costs: Floats = np.divide(excess, self.span, out=np.zeros_like(excess), where=self.span > 0).T
        return costs

    def plan(self, counts: ArrayLike) -> Plan:
        """Return the plan with its cost, canonical: tasks of the workers of a class descend lexicographically."""
        ordered = self.checked(counts)
        for members in self.classes:
            rows = sorted((tuple(ordered[:, worker]) for worker in members), reverse=True)
            ordered[:, list(members)] = np.array(rows).T
        ordered.setflags(write=False)
        return Plan(ordered, self.cost(ordered))

    def subtasks(self, counts: ArrayLike) -> list[Subtask]:
        """One row per task, as schedulers import a plan: operator by operator, subtasks in order of the workers."""
        plan = self.checked(counts)
        return [
            Subtask(name, subtask, int(worker))
            for name, row in zip(self.operators, plan, strict=True)
            for subtask, worker in enumerate(np.repeat(np.arange(self.workers), row))
        ]


def _operator_names(parallelism: object, operators: object) -> tuple[str, ...]:
    """Names of the operators: those given, those of a mapping, or ``"0"``, ``"1"``, ..."""
    if operators is not None:
        names = entries("operators", operators)
    elif isinstance(parallelism, Mapping):
        names = tuple(parallelism)
    else:
        names = tuple(map(str, range(len(entries("parallelism", parallelism)))))
    if not names:
        raise WorkbenchError("The problem has no operators; give at least one.")
    for name in names:
        if not isinstance(name, str):
            raise WorkbenchError(f"The operator name {name!r} is not text; give each operator a text.")
        if any("\ud800" <= character <= "\udfff" for character in name):
            raise WorkbenchError(
                f"The operator name {name!r} has half a character (a surrogate), which no file can hold; correct it."
            )
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise WorkbenchError(f"Two operators are named {twice!r}; give every operator a name of its own.")
    return cast("tuple[str, ...]", names)


def _by_operator(thing: str, values: object, names: tuple[str, ...]) -> tuple[object, ...]:
    if isinstance(values, Mapping):
        if set(values) != set(names):
            given = ", ".join(map(str, values)) or "none"
            raise WorkbenchError(f"{thing} is given for {given}; the operators are {', '.join(names)}.")
        return tuple(values[name] for name in names)
    found = entries(thing, values)
    if len(found) != len(names):
        raise WorkbenchError(f"{thing} has {len(found)} entries for {len(names)} operators; give one for each.")
    return found


def _tasks_by_operator(values: object, names: tuple[str, ...]) -> tuple[int, ...]:
    counts = zip(names, _by_operator("parallelism", values, names), strict=True)
    return tuple(whole(f"The parallelism of {name!r}", count, most=_MOST) for name, count in counts)
