"""Records that wait at cores and network cards, and state that migrates: one operator, in short steps.

Every core and every direction of a node's network card is a server with a bounded queue of work, counted in seconds.
A record needs work of each server on its path; the fullest queue limits how many records the sources may send
(back-pressure, as in Storm). The work that reaches a core in a step is gamma-distributed with the mean and variance of
a compound Poisson sum. Migrating state takes at least half of a network card while records also need it. Records of a
moving shard are held until its old core has processed its queue, the routing has changed and the state has arrived.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from workbench.arrays import Floats, Ints
from workbench.checks import not_negative, positive, whole


@dataclass(frozen=True)
class ElasticCluster:
    """Nodes of equal size; defaults as in Elasticutor."""

    nodes: int = 32  # n
    node_cores: int = 8  # c_i
    network_bytes_per_s: float = 125e6  # of each node, in each direction: 1 Gbit/s

    def __post_init__(self) -> None:
        whole("nodes", self.nodes, 1)
        whole("node_cores", self.node_cores, 1)
        positive("network_bytes_per_s", self.network_bytes_per_s)

    @property
    def cores(self) -> int:
        """Cores of all nodes."""
        return self.nodes * self.node_cores


@dataclass(frozen=True)
class KeyedOperator:
    """A stateful operator whose keys are hashed to shards; defaults as in Elasticutor, section 5.1."""

    cpu_s: float = 1e-3  # per record, on average
    variation: float = 0.5  # squared coefficient of variation of it; N(mu, 0.5 mu) in the paper, in ms
    record_bytes: float = 128.0
    output_bytes: float = 0.0  # of a record; the paper's operator has no consumer
    shard_bytes: float = 32 * 1024.0  # state of a shard
    executors: int = 32  # y
    shards: int = 256  # z of each executor; static and resource-centric paradigms use the same ``y * z`` shards
    upstream: int = 32  # executors that send to this operator, spread evenly over the nodes
    # records that may wait for a core before the sources are held back; not in the paper. In Storm, eight cores share
    # an elastic executor's buffer of 1024. With 1024 each, queues of a second even out keys that are shuffled every
    # four, and the throughput rises with the shuffles (Figure 6).
    queue: int = 128

    def __post_init__(self) -> None:
        positive("cpu_s", self.cpu_s)
        for name in ("variation", "record_bytes", "output_bytes", "shard_bytes"):
            not_negative(name, getattr(self, name))
        for name in ("executors", "shards", "queue"):
            whole(name, getattr(self, name), 1)
        whole("upstream", self.upstream, 0)


NETWORK_QUEUE_S = 0.1  # seconds of records a network card's queue holds; not in the paper
STATE_SHARE = 0.5  # share of a network card for migrating state while records also wait
_EPS = 1e-12
_SIDES = np.array([[0], [1]])  # of a network card: in, out


@dataclass(frozen=True)
class QueueStep:
    """The result of one step; latencies by core, for the records admitted in it."""

    admitted: float
    served: float
    latency_s: Floats
    weight: Floats
    remote_bytes: float


class Queues:
    """The state of the operator over time."""

    def __init__(
        self, cluster: ElasticCluster, operator: KeyedOperator, route: Ints, step_s: float, rng: np.random.Generator
    ) -> None:
        self.cluster, self.operator, self.step_s = cluster, operator, step_s
        self.node = np.arange(cluster.cores) // cluster.node_cores
        self.route = route.copy()  # core of each shard
        self.home: Ints = self.node  # node of each core's main process; without elastic executors the core's own
        self.shares = np.full(len(route), 1.0 / len(route))
        self.now = 0.0
        self.backlog = np.zeros(cluster.cores)
        self.network = np.zeros((2, cluster.nodes))  # records: in, out
        self.state = np.zeros((2, cluster.nodes))  # state that waits: in, out
        self.stopped = False  # whether the sources must wait
        self.moves = 0
        self.migrated_bytes = 0.0
        self._drained = np.zeros((2, cluster.nodes))
        self.moving: Ints = np.zeros(0, dtype=np.int64)  # shards
        self._held = np.zeros(len(route))
        self._routed_at = np.zeros(len(route))  # when the old core has processed its records and routing has changed
        self._arrives = np.zeros((2, len(route)))  # drained state, in and out, at which the shard has arrived
        self._cards = np.zeros((2, len(route)), dtype=np.int64)
        self._rng = rng
        self._queue_s = max(operator.queue * operator.cpu_s, 2 * step_s)
        self._work_known = False

    def set_shares(self, shares: Floats) -> None:
        """Set the share of the records of each shard, shape (shards,)."""
        self.shares = shares
        self._work_known = False

    def set_homes(self, home: Ints) -> None:
        """Set the node of the main process that the records of each core pass, shape (cores,)."""
        self.home = home
        self._work_known = False

    @property
    def empty(self) -> bool:
        """Whether no record waits for a core."""
        return bool(self.backlog.max() <= _EPS) and not self._held.any()

    def move(self, moves: Iterable[tuple[int, int]], sync_s: float) -> None:
        """Move shards to other cores: (shard, core). State crosses the network only between nodes."""
        rate = self.cluster.network_bytes_per_s
        moved = []
        for shard, core in moves:
            source, target = int(self.node[self.route[shard]]), int(self.node[core])
            self._routed_at[shard] = max(self._routed_at[shard], self.now + self.backlog[self.route[shard]] + sync_s)
            self._cards[:, shard] = target, source
            self._arrives[:, shard] = 0.0
            if source != target and self.operator.shard_bytes:
                self.migrated_bytes += self.operator.shard_bytes
                for side, card in enumerate((target, source)):
                    self.state[side, card] += self.operator.shard_bytes / rate
                    self._arrives[side, shard] = self._drained[side, card] + self.state[side, card]
            self.route[shard] = core
            moved.append(shard)
        self.moves += len(moved)
        if moved:
            on_the_way = np.zeros(len(self.route), dtype=np.bool_)
            on_the_way[self.moving] = on_the_way[moved] = True
            self.moving = np.flatnonzero(on_the_way)
            self._work_known = False

    def advance(self, offered: float) -> QueueStep:
        """Advance one step, in which at most `offered` records arrive."""
        self._update_work()
        step, work = self.step_s, self.operator.cpu_s
        open_for_records = np.where(self.state > 0, 1 - STATE_SHARE, 1.0) * step
        held = np.bincount(self.route[self.moving], self._held[self.moving], self.cluster.cores)
        admitted = 0.0
        if not self.stopped:
            room = self._queue_s + step - self.backlog - held
            limit = float((room / self._core_work).min())
            card_room = NETWORK_QUEUE_S + open_for_records - self.network
            admitted = max(0.0, min(offered, limit, float((card_room / self._card_work).min())))
        latency = self._latencies()
        weight = admitted * np.concatenate([self._direct, self._held_shares])
        remote = admitted * self._remote_bytes
        unit = work * (1 + self.operator.variation)  # variance / mean of a compound Poisson sum
        self.backlog += self._rng.gamma(admitted * self._direct * work / unit, unit)
        self._held[self.moving] += admitted * self.shares[self.moving] * work
        served = np.minimum(self.backlog, step)
        self.backlog -= served
        self._pass_network(admitted)
        self.now += step
        self._finish_moves()
        return QueueStep(admitted, float(served.sum()) / work, latency, weight, remote)

    def _latencies(self) -> Floats:
        """Return the seconds of a record that arrives now: by core, then by moving shard (shape cores + moving)."""
        at_core = self.backlog + self.operator.cpu_s
        home = self.home
        remote = home != self.node
        rest = self.network.mean(axis=1)[1] + self.network[0, home]
        between = np.where(remote, self.network[1, home] + self.network[0, self.node], 0.0)
        at_core = np.asarray(at_core + rest + between, dtype=np.float64)
        if not self.moving.size:
            return at_core
        shards = self.moving
        on_card = (self._arrives[:, shards] - self._drained[_SIDES, self._cards[:, shards]]).max(axis=0)
        hold = np.maximum(self._routed_at[shards] - self.now, on_card)
        on_the_way = np.maximum(hold, 0.0) + self._held[shards] + at_core[self.route[shards]]
        return np.asarray(np.concatenate([at_core, on_the_way]), dtype=np.float64)

    def _pass_network(self, admitted: float) -> None:
        self.network += admitted * self._card_work
        state = np.minimum(self.state, np.maximum(STATE_SHARE * self.step_s, self.step_s - self.network))
        self.state -= state
        self._drained += state
        self.network -= np.minimum(self.network, self.step_s - state)
        self.state[self.state < _EPS] = 0.0

    def _finish_moves(self) -> None:
        if not self.moving.size:
            return
        shards = self.moving
        arrived = (self._drained[_SIDES, self._cards[:, shards]] >= self._arrives[:, shards] - 1e-9).all(axis=0)
        done = arrived & (self._routed_at[shards] <= self.now + 1e-9)
        if done.any():
            ready = shards[done]
            self.backlog += np.bincount(self.route[ready], self._held[ready], self.cluster.cores)
            self._held[ready] = self._routed_at[ready] = 0.0
            self.moving = shards[~done]
            self._work_known = False

    def _update_work(self) -> None:
        """Update the work per admitted record at every server, if the routing or the popularity changed."""
        if self._work_known:
            return
        self._work_known = True
        cluster, operator = self.cluster, self.operator
        share = np.bincount(self.route, self.shares, cluster.cores)
        self._held_shares = self.shares[self.moving]
        self._direct = share - np.bincount(self.route[self.moving], self._held_shares, cluster.cores)
        np.maximum(self._direct, 0.0, out=self._direct)
        self._core_work = np.maximum(share * operator.cpu_s, _EPS)
        home = self.home
        away = np.where(home != self.node, share, 0.0)
        by_home = np.bincount(home, share, cluster.nodes)
        remote_home = np.bincount(home, away, cluster.nodes)
        remote_node = np.bincount(self.node, away, cluster.nodes)
        others = 1 - 1 / cluster.nodes  # sources, and consumers, are spread evenly over the nodes
        size, output = operator.record_bytes, operator.output_bytes
        enter = by_home * others * size + remote_node * size + remote_home * output + output * others / cluster.nodes
        leave = (1 - by_home) * size / cluster.nodes + remote_home * size + remote_node * output
        leave = leave + by_home * others * output
        self._card_work = np.maximum(np.stack([enter, leave]) / cluster.network_bytes_per_s, _EPS)
        self._remote_bytes = float(away.sum()) * (size + output)
