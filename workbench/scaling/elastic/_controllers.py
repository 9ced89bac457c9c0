"""How each paradigm reacts to the measured load: not at all, by repartitioning keys, or by moving cores and shards.

Elasticutor moves shards when the fullest core exceeds theta = 1.2 times the mean in a window of 1 s (section 3.1). At
low rates a window contains few records, and even keys exceed the threshold by chance again and again. So one of two
conditions must hold too, which the paper, with saturated sources, does not need:

- Chance does not explain the excess. The CPU time of the records that reach a core in a window is a compound Poisson
  sum, here gamma-distributed, with mean m records and variance m (1 + variation). The fullest of n cores with even work
  exceeds the gamma quantile of 1 - FALSE_ALARM / n with a probability of at most FALSE_ALARM.
- The core is nearly saturated: it worked NEAR_SATURATION of the window, so chance alone makes records wait.

Cores are given back if the target is met without them even when the window had fewer records than usual by chance.
"""

import heapq
import math
from collections import deque
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainccinv

from workbench.arrays import Floats, Ints
from workbench.checks import positive, whole
from workbench.scaling.elastic._queues import ElasticCluster, KeyedOperator, Queues
from workbench.scaling.elastic.assignment import DEFAULT_THRESHOLD, assign_cores
from workbench.scaling.elastic.jackson import allocate_cores, jackson_latency
from workbench.scaling.elastic.shards import DEFAULT_IMBALANCE, rebalance_shards

FALSE_ALARM = 1e-4
NEAR_SATURATION = 0.9
LEAST_GAIN = 0.05  # a global synchronisation must lower the imbalance by at least this share; not in the paper
KEEP = 0.9  # cores that meet the target are kept if at least this share of them may be needed; not in the paper


@dataclass(frozen=True)
class ElasticSettings:
    """How often elasticity acts, and at what cost; the defaults are Elasticutor's where the paper states them."""

    window_s: float = 1.0  # sliding, over which load is measured
    rebalance_s: float = 0.5  # between moves of shards
    threshold: float = DEFAULT_IMBALANCE  # above it shards move
    schedule_s: float = 1.0  # between two decisions of the core scheduler; not stated in the paper
    sync_s: float = 0.002  # to redirect one shard inside an executor (figure 12)
    # of a repartitioning, per upstream executor: 32 take 0.64 s, the middle of "2-3 orders of magnitude" above 2 ms
    upstream_sync_s: float = 0.02
    moves_per_sync: int | None = None  # shards that one repartitioning moves; None: all of a plan
    target_latency: float = 1.25  # T_max as a multiple of the service time
    data_threshold: float = DEFAULT_THRESHOLD  # initial phi, bytes/s per core

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__.keys() - {"moves_per_sync"}:
            positive(name, getattr(self, name))
        if self.moves_per_sync is not None:
            whole("moves_per_sync", self.moves_per_sync, 1)


def overloaded(
    load: Floats | Ints, mean: Floats, operator: KeyedOperator, settings: ElasticSettings
) -> NDArray[np.bool_]:
    """Return which cores had so much more work than `mean` in the last window that shards should move.

    Both are records of mean cost, shape (cores,): of each core, and on average over the cores that share them.
    """
    explained = by_chance(mean, operator.variation)
    full = settings.window_s / operator.cpu_s
    return np.asarray((load > settings.threshold * mean) & ((load > explained) | (load >= NEAR_SATURATION * full)))


def by_chance(mean: Floats, variation: float) -> Floats:
    """Return the work, in records, that any of these exceeds with a probability of at most FALSE_ALARM."""
    scale = 1.0 + variation  # variance / mean
    return np.asarray(scale * gammainccinv(np.maximum(mean, 1e-9) / scale, FALSE_ALARM / len(mean)), dtype=np.float64)


LoadWindow: TypeAlias = deque[tuple[float, Floats]]
"""Records admitted in each of the last steps, as many as a window has, and their spread over the shards at the time."""


def counts_of(window: LoadWindow, shards: int) -> Floats:
    """Return the records of each shard in a window."""
    total = np.zeros(shards)
    parts: dict[int, tuple[Floats, float]] = {}
    for admitted, shares in window:
        parts[id(shares)] = shares, parts.get(id(shares), (shares, 0.0))[1] + admitted
    for shares, admitted in parts.values():
        total += admitted * shares
    return total


class StaticExecutors:
    """One executor per core, with fixed keys: what the other paradigms begin with."""

    def __init__(self, queues: Queues, settings: ElasticSettings) -> None:
        self.queues, self.settings = queues, settings
        self.core_moves = self.repartitions = 0

    @property
    def cores_used(self) -> int:
        """Cores in use."""
        return self.queues.cluster.cores

    def measured(self, counts: Floats, demand: float | None) -> None:
        """Act every `rebalance_s` on the load of each shard in the last window, in records.

        `demand` scales it to the records that the sources had; None if it is unknown, because they were held back.
        """

    def step(self) -> None:
        """Continue an action that takes several steps, after each of them."""


class ResourceCentric(StaticExecutors):
    """One executor per core; shards are repartitioned over all executors under a global synchronisation.

    The sources stop, records in flight are processed while routing changes, state moves, and the sources continue. By
    default all moves of a plan share one synchronisation, which favours this paradigm: figure 11 has one per shard.
    """

    def __init__(self, queues: Queues, window: LoadWindow, settings: ElasticSettings) -> None:
        super().__init__(queues, settings)
        self.window = window
        self._plan: list[tuple[int, int]] = []
        self._until = 0.0

    def measured(self, counts: Floats, demand: float | None) -> None:
        """Stop the sources if moving shards makes the work of the cores more even."""
        del demand
        queues = self.queues
        if queues.stopped or len(self.window) < (self.window.maxlen or 0) or not counts.any():
            return
        cores = queues.cluster.cores
        load, mean = np.bincount(queues.route, counts, cores), counts.sum() / cores
        if not overloaded(load, np.full(cores, mean), queues.operator, self.settings).any():
            return
        before = load.max() / mean
        plan = rebalance_shards(counts.tolist(), queues.route.tolist(), cores, self.settings.threshold)
        if plan.imbalance <= before * (1 - LEAST_GAIN):
            target = np.asarray(plan.assignment)
            self._plan = [(int(shard), int(target[shard])) for shard in np.flatnonzero(target != queues.route)]
            syncs = math.ceil(len(self._plan) / (self.settings.moves_per_sync or len(self._plan)))
            self._until = queues.now + syncs * self.settings.upstream_sync_s * queues.operator.upstream
            self.repartitions += 1
            queues.stopped = True

    def step(self) -> None:
        """Move the shards when no record is in flight, and resume when they have arrived."""
        queues = self.queues
        if not queues.stopped:
            return
        if self._plan and queues.empty:
            queues.move(self._plan, 0.0)
            self._plan = []
        if not self._plan and not queues.moving.size and queues.now >= self._until:
            queues.stopped = False
            self.window.clear()  # the shards have moved since


class ExecutorCentric(StaticExecutors):
    """Elastic executors: shards belong to executors, and cores move between executors.

    `optimised` False is the paper's naive executor-centric variant: cores are taken at random, without regard to
    migrated state and locality.
    """

    def __init__(self, queues: Queues, settings: ElasticSettings, *, optimised: bool, rng: np.random.Generator) -> None:
        super().__init__(queues, settings)
        self.optimised = optimised
        operator, cluster = queues.operator, queues.cluster
        self.executor = np.arange(operator.executors * operator.shards) // operator.shards  # of each shard
        self.home = np.arange(operator.executors) % cluster.nodes
        self.owner = even_owners(cluster, operator.executors)
        self._rng = rng
        self._next_schedule = settings.schedule_s
        self._own()

    @property
    def cores_used(self) -> int:
        """Cores that belong to an executor."""
        return int((self.owner >= 0).sum())

    def measured(self, counts: Floats, demand: float | None) -> None:
        """Schedule cores if a decision is due, then balance the work inside the executors."""
        if not counts.any():
            return
        queues = self.queues
        if queues.now >= self._next_schedule - 1e-9:
            self._next_schedule = queues.now + self.settings.schedule_s
            self._schedule(counts, demand)
        self._rebalance(counts)

    def _schedule(self, counts: Floats, demand: float | None) -> None:
        operator, cluster = self.queues.operator, self.queues.cluster
        arrivals = np.bincount(self.executor, counts) / self.settings.window_s * (demand or 1.0)
        taken, held = self.owner >= 0, np.zeros((cluster.nodes, len(self.home)), dtype=np.int64)
        np.add.at(held, (self.queues.node[taken], self.owner[taken]), 1)
        if demand is None:  # the model would allocate only for the records that back-pressure lets through
            required = _proportional(arrivals, cluster.cores)
        else:
            required = self._required(arrivals, held.sum(axis=0))
        if (required == held.sum(axis=0)).all():
            return
        # idle cores belong to an additional executor without state, so that returning a core costs as much as a move
        idle = cluster.node_cores - held.sum(axis=1)
        current = np.column_stack([held, idle])
        required = np.append(required, cluster.cores - required.sum())
        if self.optimised:
            intensity = arrivals * (operator.record_bytes + operator.output_bytes) / required[:-1]
            state = [operator.shard_bytes * operator.shards] * operator.executors + [0.0]
            homes, intensities = [*self.home.tolist(), 0], [*intensity.tolist(), 0.0]
            cores, phi = [cluster.node_cores] * cluster.nodes, self.settings.data_threshold
            answer = assign_cores(current.tolist(), required.tolist(), cores, state, homes, intensities, phi)
            matrix = np.asarray(answer.matrix)
        else:
            matrix = self._anywhere(current, required)
        self._take(matrix[:, :-1], held, counts)

    def _required(self, arrivals: Floats, held: Ints) -> Ints:
        """Return the cores per executor for the target latency; all cores, in proportion, if it is out of reach."""
        operator, supply = self.queues.operator, self.queues.cluster.cores
        services = [1 / operator.cpu_s] * len(arrivals)
        target, window = self.settings.target_latency * operator.cpu_s, self.settings.window_s

        def needed(rates: Floats) -> Ints | None:
            answer = allocate_cores(rates.tolist(), services, float(rates.sum()), target, supply)
            return None if answer.status == "insufficient" else np.asarray(answer.cores)

        cores = needed(arrivals)
        if cores is None:
            return _proportional(arrivals, supply)
        if jackson_latency(arrivals.tolist(), services, float(arrivals.sum()), held.tolist()) > target:
            return cores
        usual = needed(by_chance(arrivals * window, operator.variation) / window)
        return held if usual is None or usual.sum() >= KEEP * held.sum() else usual

    def _anywhere(self, current: Ints, required: Ints) -> Ints:
        """Assign surplus cores to executors that lack some, at random (naive executor-centric)."""
        matrix, nodes = current.copy(), np.arange(len(current))
        surplus = []
        for j, cores in enumerate(current.sum(axis=0) - required):
            taken = self._rng.choice(np.repeat(nodes, current[:, j]), max(0, int(cores)), replace=False)
            np.subtract.at(matrix[:, j], taken, 1)
            surplus += taken.tolist()
        lacking = np.repeat(np.arange(len(required)), np.maximum(0, required - current.sum(axis=0)))
        np.add.at(matrix, (self._rng.permutation(surplus), lacking), 1)
        return matrix

    def _take(self, matrix: Ints, current: Ints, counts: Floats) -> None:
        """Assign cores by their numbers; shards of lost cores go to the least loaded core of their executor."""
        queues = self.queues
        lost = []
        for node, executor in np.argwhere(matrix < current):
            mine = np.flatnonzero((self.owner == executor) & (queues.node == node))
            lost += [(int(core), int(executor)) for core in mine[matrix[node, executor] :]]
        self.owner[[core for core, _ in lost]] = -1
        for node, executor in np.argwhere(matrix > current):
            free = np.flatnonzero((self.owner == -1) & (queues.node == node))
            self.owner[free[: matrix[node, executor] - current[node, executor]]] = executor
        self.core_moves += len(lost)
        self._own()
        load = np.bincount(queues.route, counts, queues.cluster.cores)
        for core, executor in lost:
            mine = np.flatnonzero(self.owner == executor)
            work = [(float(load[other]), int(other)) for other in mine]
            heapq.heapify(work)
            shards = np.flatnonzero((queues.route == core) & (self.executor == executor))
            moves = []
            for shard in shards[np.argsort(-counts[shards], kind="stable")]:
                least, target = work[0]
                heapq.heapreplace(work, (least + float(counts[shard]), target))
                moves.append((int(shard), target))
            queues.move(moves, self.settings.sync_s)
            load = np.bincount(queues.route, counts, queues.cluster.cores)

    def _rebalance(self, counts: Floats) -> None:
        queues, executors = self.queues, len(self.home)
        load = np.bincount(queues.route, counts, queues.cluster.cores)
        taken = np.flatnonzero(self.owner >= 0)
        cores = np.bincount(self.owner[taken], minlength=executors)
        total = np.bincount(self.executor, counts, executors)
        mean = (total / np.maximum(cores, 1))[self.owner[taken]]
        uneven = overloaded(load[taken], mean, queues.operator, self.settings)
        busy = set(self.executor[queues.moving].tolist())
        for executor in sorted(set(self.owner[taken[uneven]].tolist()) - busy):
            mine = np.flatnonzero(self.owner == executor)
            shards = np.flatnonzero(self.executor == executor)
            here = np.searchsorted(mine, queues.route[shards])
            plan = rebalance_shards(counts[shards].tolist(), here.tolist(), len(mine), self.settings.threshold)
            new = np.asarray(plan.assignment)
            moved = np.flatnonzero(new != here)
            queues.move(zip(shards[moved].tolist(), mine[new[moved]].tolist(), strict=True), self.settings.sync_s)

    def _own(self) -> None:
        self.queues.set_homes(np.where(self.owner >= 0, self.home[self.owner], self.queues.node))


def even_owners(cluster: ElasticCluster, executors: int) -> Ints:
    """Return the executor of each core: equal numbers of cores, on the executor's own node as far as possible."""
    quota = np.full(executors, cluster.cores // executors)
    quota[: cluster.cores % executors] += 1
    owner = np.full(cluster.cores, -1)
    node = np.arange(cluster.cores) // cluster.node_cores
    for local, executor in product((True, False), range(executors)):
        free = (owner == -1) & (node == executor % cluster.nodes if local else True)
        cores = np.flatnonzero(free)[: quota[executor]]
        owner[cores] = executor
        quota[executor] -= len(cores)
    return owner


def even_route(operator: KeyedOperator, owner: Ints) -> Ints:
    """Return the core of each shard: the shards of an executor take its cores in turn."""
    by_executor = (np.flatnonzero(owner == executor) for executor in range(operator.executors))
    return np.concatenate([cores[np.arange(operator.shards) % len(cores)] for cores in by_executor])


def _proportional(arrivals: Floats, cores: int) -> Ints:
    """Return one core per executor, and every further core for the executor with most work per core."""
    work = arrivals[:, None] / np.arange(1, cores + 1)
    further = np.argsort(-work, axis=None, kind="stable")[: cores - len(arrivals)]
    return np.asarray(1 + np.bincount(further // cores, minlength=len(arrivals)), dtype=np.int64)
