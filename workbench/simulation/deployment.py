"""A query model deployed: tasks per operator on slots of a given size, as arrays over all tasks.

Tasks are numbered operator by operator, upstream first.

A cache that keeps the most read part of a working set answers the share (cache / working set) ** (1 - locality) of the
reads. With locality 0 every key is read equally often and the hit rate is the share that fits; with keys read by
Zipf's law of exponent locality < 1 the first n of N keys get (n / N) ** (1 - locality) of the reads (the integral of
the law). This gives the shapes of Justin's Figure 4: reads gain from memory until the working set fits, then nothing.

Each resource of a worker, its CPU, disk and network, is a server that every record of every task there must pass, in
addition to the task's own time. Below its capacity nothing changes; at its capacity all tasks of the worker together
get no further, and each takes longer for a record than it would alone. Loads are those of CAPSys (Equations 5 and 8)
times the records: per record the CPU seconds, the bytes of state, and the bytes of output that leave the worker. Where
a task has two consumers each gets a full copy, as real systems send; Equation 8 splits one copy over all links.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from workbench import units
from workbench.arrays import Floats, Ints
from workbench.checks import require
from workbench.dataflow import Edge
from workbench.simulation.keys import task_shares
from workbench.simulation.model import OperatorModel, QueryModel, StateModel, input_ratios, listed, waves

_MEMTABLE_MB = 64.0


def block_cache_mb(managed_mb: float) -> float:
    """Return the part of managed memory that caches reads, MB, as Flink sets up RocksDB (Justin, section 3).

    Writes are buffered in a power of two of MB, at most 64, that is less than half: 128 MB leave 96 for the cache,
    256 leave 192, 512 leave 448.
    """
    if managed_mb <= 0:
        return 0.0
    if math.isinf(managed_mb):
        return math.inf
    return managed_mb - min(_MEMTABLE_MB, 2.0 ** (math.ceil(math.log2(managed_mb)) - 2))


def hit_rate(cache_mb: float, state: StateModel, shares: Floats) -> Floats:
    """Share of the reads that a cache of `cache_mb` answers, by the share of the keys on each task, shape (tasks,)."""
    working_set = state.working_set_mb * shares
    cache = np.full_like(working_set, cache_mb)
    fits = cache >= working_set
    held = np.divide(cache, working_set, out=np.ones_like(cache), where=~fits)
    return np.asarray(held ** (1.0 - state.locality))


def read_latency_s(state: StateModel, hits: Floats) -> Floats:
    """Mean seconds of one state read at these hit rates."""
    return state.hit_s * hits + state.miss_s * (1.0 - hits)


@dataclass(frozen=True)
class Worker:
    """Capacity of one worker: cores, and bytes/s of state access and of network output; inf never limits."""

    cpus: float = math.inf
    io_bytes_per_s: float = math.inf
    net_bytes_per_s: float = math.inf

    def __post_init__(self) -> None:
        for name in ("cpus", "io_bytes_per_s", "net_bytes_per_s"):
            value = getattr(self, name)
            require(value > 0, f"A worker's {name} is {value!r}; it must be above 0 (inf never limits).")


@dataclass(frozen=True)
class Cluster:
    """Workers, and how many tasks of each operator run on each: `counts[operator][worker]`.

    The tasks of an operator are numbered worker by worker.
    """

    workers: tuple[Worker, ...]
    counts: Mapping[str, Sequence[int]]

    def __post_init__(self) -> None:
        require(bool(self.workers), "A cluster has no workers; give it at least one.")
        for name, counts in self.counts.items():
            require(
                len(counts) == len(self.workers) and all(count >= 0 for count in counts),
                f"The counts of operator {name!r} are {list(counts)}; give one number from 0 on for each of the "
                f"{len(self.workers)} workers.",
            )

    def worker_of(self, operator: str, tasks: int) -> Ints:
        """Worker of each of the operator's tasks, shape (tasks,)."""
        require(operator in self.counts, f"Operator {operator!r} has no counts in the cluster; place its tasks.")
        placed = np.repeat(np.arange(len(self.workers)), self.counts[operator])
        require(
            len(placed) == tasks,
            f"The cluster places {units.some(len(placed), 'task')} of operator {operator!r}, which has {tasks}; "
            "place all of them.",
        )
        return placed


@dataclass(frozen=True)
class Contention:
    """The load that one record of each task puts on its worker."""

    worker: Ints  # worker of each task, shape (tasks,)
    # use per input record, and per result of a windowed task, shape (3, tasks): CPU seconds, bytes, bytes
    per_record: Floats
    per_result: Floats
    capacity: Floats  # per second, shape (3, workers)

    def seconds(self, records: Floats, results: Floats, cpu_factor: float = 1.0) -> Floats:
        """Seconds each worker needs for this work, each resource apart, shape (3, workers)."""
        use = self.per_record * records + self.per_result * results
        use[0] *= cpu_factor
        workers = self.capacity.shape[1]
        summed = np.stack([np.bincount(self.worker, weights=row, minlength=workers) for row in use])
        return np.asarray(summed / self.capacity)


class Costs(NamedTuple):
    """Seconds of a task per input record and per emitted result, shape (tasks,); CPU relative to the steady state."""

    record_s: Floats
    result_s: Floats
    cpu_factor: float


class Flow(NamedTuple):
    """A wave over tasks: `records[head, task]` enter a task per record the head emits."""

    heads: tuple[str, ...]
    records: Floats


@dataclass(frozen=True)
class Deployment:
    """Tasks of a query on slots."""

    model: QueryModel
    tasks: Mapping[str, int]  # tasks by operator, at least one for every modelled operator
    # memory of one slot, MB; inf: all state fits. With `managed_mb`, what a slot has in addition
    memory_mb: float = math.inf
    cpus: float = 1.0  # cores of one slot. A task is one thread and uses at most one
    # input a task can hold, in seconds of its own work. Steps and windows are exact for 0, where a full operator stops
    # those upstream at once
    buffer_s: float = 0.0
    cluster: Cluster | None = None  # workers and the placement of the tasks; None: tasks do not disturb each other
    # managed memory of one task by operator, MB, for its state (`block_cache_mb` of it caches); None, or left
    # out: that operator has none. Without the mapping state is cached in its share of `memory_mb`
    managed_mb: Mapping[str, float | None] | None = None
    # share of the records each task gets, by operator, where the model's own skew does not hold (`KeyTrace`). The state
    # stays spread as the model says
    key_shares: Mapping[str, Sequence[float] | Floats] | None = None

    def __post_init__(self) -> None:
        names = self.model.modelled
        require(
            set(self.tasks) == set(names),
            f"The layout has tasks for {listed(self.tasks)}; query {self.model.name!r} needs some for {listed(names)}.",
        )
        for name, count in self.tasks.items():
            require(
                isinstance(count, int | np.integer) and count >= 1,
                f"Operator {name!r} has {count!r} tasks; it needs a whole number of at least 1.",
            )
        require(
            self.memory_mb > self.model.live_mb,
            f"Slots of {self.memory_mb:,g} MB cannot hold the {self.model.live_mb:g} MB of live objects of query "
            f"{self.model.name!r}; give them more memory.",
        )
        require(self.cpus > 0, f"A slot has {self.cpus!r} cores; it needs more than 0.")
        require(self.buffer_s >= 0, f"buffer_s is {self.buffer_s!r}; it must be at least 0 seconds.")
        for name, memory in (self.managed_mb or {}).items():
            require(
                name in names and (memory is None or memory >= 0),
                f"Operator {name!r} is given {memory!r} MB of managed memory; query {self.model.name!r} has "
                f"{listed(names)}, and each takes at least 0 MB, or None.",
            )
        for name, shares in (self.key_shares or {}).items():
            require(
                name in names and len(shares) == self.tasks[name] and math.isclose(sum(shares), 1.0, rel_tol=1e-6),
                f"Operator {name!r} has {len(shares)} shares of its records; give one for each of its tasks, adding "
                f"up to 1, for operators of {listed(names)}.",
            )
        object.__setattr__(self, "tasks", MappingProxyType({name: int(self.tasks[name]) for name in names}))

    @property
    def size(self) -> int:
        """Number of tasks."""
        return sum(self.tasks.values())

    @cached_property
    def slices(self) -> dict[str, slice]:
        """Where the tasks of each operator are."""
        ends = np.cumsum(list(self.tasks.values()))
        return {name: slice(end - count, end) for (name, count), end in zip(self.tasks.items(), ends, strict=True)}

    @cached_property
    def starts(self) -> Ints:
        """First task of each operator, for sums over operators."""
        return np.array([where.start for where in self.slices.values()])

    @cached_property
    def shares(self) -> Floats:
        """Share of its operator's records that each task gets."""
        return self._shares({name: np.array(shares) for name, shares in (self.key_shares or {}).items()})

    @cached_property
    def state_shares(self) -> Floats:
        """Share of its operator's state that each task holds."""
        return self.shares if self.key_shares is None else self._shares({})

    def _shares(self, given: Mapping[str, Floats]) -> Floats:
        found: dict[str, Floats] = {}
        for name, model in self.model.operators_in_order():
            chained = self._chained_to(name)
            if name in given:
                found[name] = given[name]
            elif chained is not None:
                found[name] = found[chained]
            else:
                found[name] = task_shares(self.tasks[name], model.hot_share, model.imbalance, model.partitions)
        return np.concatenate(list(found.values()))

    @cached_property
    def selectivity(self) -> Floats:
        """Records out per record in, of each task."""
        return self._spread(lambda model: model.profile.selectivity)

    @cached_property
    def windowed(self) -> NDArray[np.bool_]:
        """Whether each task belongs to a windowed operator."""
        return np.asarray(self._spread(lambda model: float(model.windowed)) > 0)

    def state_access(self, age_s: float = math.inf) -> dict[str, tuple[float | None, float]]:
        """Hit rate and mean seconds of one state access of every operator with state, over its records.

        `age_s` seconds after the deployment began; the hit rate is None where nothing is read.
        """
        filled = self.model.warm_up.cache_filled(age_s)
        found: dict[str, tuple[float | None, float]] = {}
        for name, model in self.model.operators_in_order():
            if model.state is None:
                continue
            weights = self.shares[self.slices[name]]
            hits = self._hits(name, model.state, filled)
            response = model.state.response
            if response is None:
                waits = read_latency_s(model.state, hits)
            else:
                memory_mb = self._filled_mb(name, model.state, filled)
                waits = response.access_s(memory_mb, self.state_shares[self.slices[name]])
            reads = model.state.reads > 0 or response is not None
            found[name] = (min(1.0, float(weights @ hits)) if reads else None, float(weights @ waits))
        return found

    def _hits(self, name: str, state: StateModel, filled: float) -> Floats:
        """Hit rate of each task of an operator whose caches are filled so far."""
        shares = self.state_shares[self.slices[name]]
        if state.response is not None:
            return state.response.hits(self._filled_mb(name, state, filled), shares)
        cache = self._managed(name, state)
        return hit_rate(cache if self.managed_mb is None else block_cache_mb(cache), state, shares) * filled

    def _managed(self, name: str, state: StateModel) -> float:
        """Memory of one task for its state, MB."""
        if self.managed_mb is None:
            return self.memory_mb * state.cache_share
        return self.managed_mb.get(name) or 0.0

    def _filled_mb(self, name: str, state: StateModel, filled: float) -> float:
        """Memory that is worth as much as one task's while it fills, MB."""
        return self._managed(name, state) * filled if filled > 0 else 0.0

    @cached_property
    def cpu_s(self) -> Floats:
        """Steady CPU seconds per input record of each task, on one full core."""
        values = [
            model.cpu_s(self.tasks[name])
            + model.exchange_s * (0.0 if self._chained_to(name) else 1.0 - 1.0 / self.tasks[name])
            for name, model in self.model.operators_in_order()
        ]
        return np.repeat(values, list(self.tasks.values())) * self._garbage

    @cached_property
    def emission_cpu_s(self) -> Floats:
        """Steady CPU seconds per emitted result of each task, on one full core."""
        return self._spread(lambda model: model.emission_s) * self._garbage

    @cached_property
    def flows(self) -> tuple[Flow, ...]:
        """The waves over tasks, downstream first, the sources' last."""
        names = tuple(self.tasks)
        counts = list(self.tasks.values())
        return tuple(
            Flow(
                tuple(wave),
                np.repeat([[inflow.get(name, 0.0) for name in names] for inflow in wave.values()], counts, axis=1)
                * self.shares,
            )
            for wave in waves(self.model)
        )

    @cached_property
    def source_records(self) -> Floats:
        """Records that enter each task per record the sources emit, windowed operators holding theirs back."""
        sources = self.flows[-1]
        return np.array([self.model.source_shares[head] for head in sources.heads]) @ sources.records

    @cached_property
    def steady_source_seconds(self) -> Floats:
        """Seconds of each task's time for such a record, once warm."""
        return self.source_records * self.steady_costs.record_s

    @cached_property
    def contention(self) -> Contention | None:
        """The load of the tasks on their workers; None without a cluster."""
        if self.cluster is None:
            return None
        worker = np.concatenate([self.cluster.worker_of(name, count) for name, count in self.tasks.items()])
        output = self._spread(lambda model: model.profile.output_bytes) * self._remote(worker)
        emits = self.windowed
        per_result = np.divide(output, self.selectivity, out=np.zeros(self.size), where=emits & (self.selectivity > 0))
        io = self._spread(lambda model: model.profile.state_bytes)
        zeros = np.zeros(self.size)
        workers = self.cluster.workers
        return Contention(
            worker,
            np.stack([self.cpu_s, io, np.where(emits, 0.0, output)]),
            np.stack([self.emission_cpu_s, zeros, per_result]),
            np.array(
                [[w.cpus for w in workers], [w.io_bytes_per_s for w in workers], [w.net_bytes_per_s for w in workers]]
            ),
        )

    @cached_property
    def steady_costs(self) -> Costs:
        """Costs once warm."""
        return self._costs(1.0, 1.0)

    def costs(self, age_s: float) -> Costs:
        """Costs `age_s` seconds after the deployment began."""
        warm_up = self.model.warm_up
        if age_s >= warm_up.seconds:
            return self.steady_costs
        return self._costs(warm_up.cpu_factor(age_s), warm_up.cache_filled(age_s))

    def _costs(self, cpu_factor: float, filled: float) -> Costs:
        speed = min(1.0, self.cpus)
        waits = np.zeros(self.size)
        for name, model in self.model.operators_in_order():
            state = model.state
            if state is None:
                continue
            where = self.slices[name]
            if state.response is None:
                waits[where] = state.reads * read_latency_s(state, self._hits(name, state, filled))
            else:  # time that a measured record takes beyond its CPU time
                whole = state.response.record_s(self._filled_mb(name, state, filled), self.state_shares[where])
                waits[where] = np.maximum(0.0, whole - model.profile.cpu_s)
        return Costs(self.cpu_s * (cpu_factor / speed) + waits, self.emission_cpu_s * (cpu_factor / speed), cpu_factor)

    @property
    def _garbage(self) -> float:
        """CPU time with garbage collection / without: its cost is live objects / free memory (a copying collector)."""
        live = self.model.live_mb
        return 1.0 + (live / (self.memory_mb - live) if math.isfinite(self.memory_mb) else 0.0)

    def _chained_to(self, name: str) -> str | None:
        """Return the upstream operator whose tasks pass their output on one to one, if it is the only input."""
        edges = self.model.dataflow.feeding.get(name, ())
        if len(edges) != 1 or not self._one_to_one(edges[0]):
            return None
        return edges[0].upstream

    def _one_to_one(self, edge: Edge) -> bool:
        """Whether a forward edge is really one to one: with unequal parallelism it is treated as a shuffle."""
        return edge.partitioning == "forward" and self.tasks.get(edge.upstream) == self.tasks[edge.downstream]

    def _remote(self, worker: Ints) -> Floats:
        """Count the copies of a record of each task's output that leave its worker, all consumers together."""
        copies = np.zeros(self.size)
        for edge in self.model.dataflow.edges:
            if edge.upstream not in self.tasks:
                continue
            here, there = self.slices[edge.upstream], self.slices[edge.downstream]
            if self._one_to_one(edge):
                copies[here] += worker[here] != worker[there]
            else:
                local = np.bincount(worker[there], weights=self.shares[there], minlength=int(worker.max()) + 1)
                copies[here] += 1.0 - local[worker[here]]
        return copies

    def _spread(self, value: Callable[[OperatorModel], float]) -> Floats:
        values = [value(model) for _, model in self.model.operators_in_order()]
        return np.repeat(values, list(self.tasks.values()))


@dataclass(frozen=True)
class SteadyState:
    """The rate and the work that a warm, undisturbed deployment sustains."""

    rate: float  # highest sustainable rate of all sources together, records/s; inf if nothing costs time
    work_s: Mapping[str, float]  # by operator: seconds that all its tasks together work per source record
    tasks: Mapping[str, int]  # tasks by operator

    def busyness(self, rate: float | None = None) -> dict[str, float]:
        """Share of their time that the tasks of each operator work at `rate`, by default the highest sustainable."""
        rate = self.rate if rate is None else rate
        return {name: rate * work / self.tasks[name] if work > 0 else 0.0 for name, work in self.work_s.items()}


def steady_state(deployment: Deployment) -> SteadyState:
    """Solve the steady state of `deployment`: exact for ``buffer_s=0``, a lower bound of the rate otherwise.

    With no buffers to speak of, a wave moves at the pace of its slowest member, and the waves of one window follow each
    other (`waves`). So the seconds that one source record takes add up over the waves:

        pace(wave) = max over its tasks of records x seconds, its heads of results x seconds, its workers of use
        rate       = 1 / sum of pace(wave)

    Without windows there is one wave, and this is DS2's and BIDS2's bound (StreamBed, Equation 3), taken task by task
    instead of on average: the fullest task decides. Windows add what those bounds miss: while results run on, no input
    is taken, so an operator that works on bursts is idle for the rest of the time and cannot become fully busy.
    """
    model = deployment.model
    ratios = input_ratios(model)
    costs = deployment.steady_costs
    contention = deployment.contention
    work = np.zeros(deployment.size)
    seconds = 0.0
    for heads, flow in deployment.flows:
        emitted = {  # records per source record, in the long run
            head: model.source_shares[head]
            if head in model.dataflow.sources
            else ratios[head] * model.operators[head].profile.selectivity
            for head in heads
        }
        records = np.array(list(emitted.values())) @ flow
        results = np.zeros(deployment.size)
        for head, volume in emitted.items():
            if head not in model.dataflow.sources:
                where = deployment.slices[head]
                results[where] = volume * deployment.shares[where]
        received, sent = records * costs.record_s, results * costs.result_s
        pace = max(received.max(initial=0.0), sent.max(initial=0.0))
        if contention is not None:
            pace = max(pace, contention.seconds(records, results).max())
        seconds += float(pace)
        work += received + sent
    return SteadyState(
        1.0 / seconds if seconds > 0 else math.inf,
        {name: float(work[where].sum()) for name, where in deployment.slices.items()},
        deployment.tasks,
    )
