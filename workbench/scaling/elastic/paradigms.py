"""Static, resource-centric, naive executor-centric and executor-centric scaling of one keyed operator, simulated.

Elasticutor (SIGMOD 2019, sections 2.2 and 5) compares four ways to spread the keys of an operator over the cores of a
cluster: one executor per core with fixed keys; the same, with keys repartitioned over all executors under a global
synchronisation; elastic executors that get cores on random nodes; and elastic executors with the paper's scheduler
(core allocation and assignment).
"""

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from workbench.arrays import Floats, Ints
from workbench.checks import one_of, positive, require, whole
from workbench.scaling.elastic._controllers import (
    ElasticSettings,
    ExecutorCentric,
    LoadWindow,
    ResourceCentric,
    StaticExecutors,
    counts_of,
    even_owners,
    even_route,
)
from workbench.scaling.elastic._queues import ElasticCluster, KeyedOperator, Queues
from workbench.simulation import KeyTrace, RateTrace

_PER_DECADE = 200  # a bin is 1.2 % wide
_LEAST, _DECADES = 1e-6, 12
_BINS = _PER_DECADE * _DECADES


def binned(latency_s: Floats, records: Floats) -> Floats:
    """Count records by the logarithm of their latency, shape (_BINS,)."""
    place = np.log10(np.maximum(latency_s, _LEAST) / _LEAST) * _PER_DECADE
    return np.asarray(np.bincount(np.minimum(place.astype(np.int64), _BINS - 1), records, _BINS), dtype=np.float64)


def quantile(counts: Floats, share: float) -> float:
    """Return the seconds, right within 1.2 %, that `share` of binned records do not exceed; nan without records."""
    total = float(counts.sum())
    if not total:
        return math.nan
    place = int(np.searchsorted(np.cumsum(counts), share * total * (1 - 1e-12)))
    return float(_LEAST * 10 ** ((min(place, _BINS - 1) + 1) / _PER_DECADE))


class Source:
    """Records by the clock, first in, first out; without a rate, as many as back-pressure admits."""

    def __init__(self, rate: RateTrace | None, step_s: float) -> None:
        self.sent = 0.0
        self.wait_s = 0.0  # of the oldest record that is due
        self._step_s = step_s
        self._due = None if rate is None else np.concatenate([[0.0], np.cumsum(rate.per_step(step_s))])

    def offered(self, step: int) -> float:
        """Return the records due by the end of a step and not yet sent; inf without a rate."""
        if self._due is None:
            return math.inf
        oldest = int(np.searchsorted(self._due, self.sent + 1e-6, side="right")) - 1
        self.wait_s = max(0.0, (step - oldest) * self._step_s)
        return self.waiting(step + 1)

    def demand(self, step: int, window_s: float, counted: float) -> float | None:
        """Return the records due in the last window over those `counted`, at least 1; None for a source held back."""
        if self._due is None or self.wait_s > window_s:
            return None
        due = self._due_by(step + 1) - self._due_by(max(0, step + 1 - round(window_s / self._step_s)))
        return max(1.0, due / counted) if counted else 1.0

    def waiting(self, steps: int) -> float:
        """Return the records due and not sent after `steps`; 0 without a rate."""
        return max(0.0, self._due_by(steps) - self.sent)

    def _due_by(self, step: int) -> float:
        return 0.0 if self._due is None else float(self._due[min(step, len(self._due) - 1)])


Paradigm = Literal["static", "resource-centric", "naive-executor-centric", "executor-centric"]
PARADIGMS: tuple[Paradigm, ...] = get_args(Paradigm)
DEFAULT_SETTINGS = ElasticSettings()


@dataclass(frozen=True, eq=False)
class ParadigmRun:
    """The result of one paradigm. Totals exclude the warm-up, series, with an entry for each second, include it."""

    paradigm: Paradigm
    throughput_per_s: float
    # latency: from when a record is due at the source, or without a rate is sent, to its completion
    mean_latency_s: float
    p99_latency_s: float
    cores: float  # in use, on average
    shard_moves: int
    core_moves: int
    repartitions: int
    migrated_bytes_per_s: float  # state that changed its node
    remote_bytes_per_s: float  # records between executors and their cores on other nodes
    waiting: float  # records that are due and not sent at the end; 0 without a rate
    time_s: Floats  # end of each second
    throughput_series: Floats
    latency_series: Floats  # mean of the records sent in a second; nan without records

    def summary(self) -> dict[str, float]:
        """Return the totals by name, one row of a comparison."""
        return {name: value for name, value in vars(self).items() if isinstance(value, int | float)}


def simulate_paradigm(
    paradigm: Paradigm,
    operator: KeyedOperator,
    cluster: ElasticCluster,
    keys: KeyTrace,
    *,
    rate: RateTrace | None = None,
    seconds: float | None = None,
    warm_up_s: float = 10.0,
    settings: ElasticSettings = DEFAULT_SETTINGS,
    step_s: float = 0.01,
    seed: int = 0,
) -> ParadigmRun:
    """Run one keyed operator on a cluster under one of `PARADIGMS`.

    The source has `rate`, records/s; None: as many records as back-pressure admits, as in the paper. The run lasts
    `seconds`, by default as long as `rate`, 60 s without one. The `seed` is that of service times, measurements and
    scheduling; the keys have their own.
    """
    one_of("paradigm", paradigm, PARADIGMS)
    require(
        operator.executors <= cluster.cores,
        f"The operator has {operator.executors:,} executors and the cluster {cluster.cores} cores; "
        "every executor needs a core.",
    )
    positive("step_s", step_s)
    length = positive("seconds", seconds if seconds is not None else 60.0 if rate is None else rate.duration_s)
    steps = max(1, round(length / step_s))
    require(
        0 <= warm_up_s < length and round(warm_up_s / step_s) < steps,
        f"warm_up_s is {warm_up_s:g} and the run lasts {length:g} s; the run must exceed it by a step, {step_s:g} s.",
    )
    first = round(warm_up_s / step_s)
    service, measuring, scheduling = np.random.default_rng(whole("seed", seed, 0)).spawn(3)
    shards = operator.executors * operator.shards
    elastic = paradigm.endswith("executor-centric")
    route: Ints = np.arange(shards) % cluster.cores  # even over all cores, or over those of each executor
    if elastic:
        route = even_route(operator, even_owners(cluster, operator.executors))
    queues = Queues(cluster, operator, route, step_s, service)
    window: LoadWindow = deque(maxlen=math.ceil((settings.window_s - 1e-9) / step_s))
    source = Source(rate, step_s)
    controller = StaticExecutors(queues, settings)
    if elastic:
        controller = ExecutorCentric(queues, settings, optimised=paradigm == "executor-centric", rng=scheduling)
    elif paradigm == "resource-centric":
        controller = ResourceCentric(queues, window, settings)
    latencies = np.zeros(_BINS)
    seen = np.zeros((5, steps))  # in each step: records served, seconds waited, records sent, bytes on the way, cores
    start, epoch, next_rebalance = _counters(controller), -1, settings.rebalance_s
    for step in range(steps):
        if keys.epoch_at(step * step_s) != epoch:
            epoch = keys.epoch_at(step * step_s)
            queues.set_shares(keys.task_shares(epoch, shards))
        if step == first:
            latencies, start = np.zeros(_BINS), _counters(controller)
        done = queues.advance(source.offered(step))
        latency = done.latency_s + source.wait_s
        source.sent += done.admitted
        latencies += binned(latency, done.weight)
        seen[:, step] = done.served, latency @ done.weight, done.admitted, done.remote_bytes, controller.cores_used
        window.append((done.admitted, queues.shares))
        controller.step()
        if queues.now >= next_rebalance - 1e-9:
            next_rebalance += settings.rebalance_s
            # CPU time of each shard, in records of mean cost: a compound Poisson sum, here gamma-distributed
            counts = measuring.gamma(counts_of(window, shards) / (1 + operator.variation), 1 + operator.variation)
            controller.measured(counts, source.demand(step, settings.window_s, float(counts.sum())))
    measured_s = (steps - first) * step_s
    shard_moves, core_moves, repartitions, migrated = (
        end - begin for end, begin in zip(_counters(controller), start, strict=True)
    )
    served, waited_s, _, remote, cores = np.cumsum(seen[:, first:], axis=1)[:, -1].tolist()
    each = max(1, round(1 / step_s))  # steps of a second; the last one counts only if it is complete
    rows = steps // each
    done_in, waited, sent = np.cumsum(seen[:3, : rows * each].reshape(3, rows, each), axis=2)[:, :, -1]
    return ParadigmRun(
        paradigm,
        served / measured_s,
        waited_s / float(latencies.sum()) if latencies.any() else math.nan,
        quantile(latencies, 0.99),
        cores / (steps - first),
        int(shard_moves),
        int(core_moves),
        int(repartitions),
        migrated / measured_s,
        remote / measured_s,
        source.waiting(steps),
        each * np.arange(1, rows + 1, dtype=np.float64) * step_s,
        done_in / (each * step_s),
        np.divide(waited, sent, out=np.full(rows, math.nan), where=sent != 0),
    )


def compare_paradigms(
    operator: KeyedOperator,
    cluster: ElasticCluster,
    keys: KeyTrace,
    paradigms: Sequence[Paradigm] = PARADIGMS,
    *,
    progress: Callable[[str], None] = lambda _: None,
    **options: Any,  # noqa: ANN401
) -> tuple[ParadigmRun, ...]:
    """Run `simulate_paradigm` for each of `paradigms`, on the same keys and hashing and with the same `options`.

    `progress` gets a line before each.
    """
    runs = []
    for place, name in enumerate(paradigms, start=1):
        progress(f"paradigm {place}/{len(paradigms)} · {name}")
        runs.append(simulate_paradigm(name, operator, cluster, keys, **options))
    return tuple(runs)


def _counters(controller: StaticExecutors) -> tuple[int, int, int, float]:
    queues = controller.queues
    return queues.moves, controller.core_moves, controller.repartitions, queues.migrated_bytes
