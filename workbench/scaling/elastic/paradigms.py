"""Static, resource-centric, naive executor-centric and executor-centric scaling of one keyed operator, simulated.

Elasticutor [1]_ compares four ways to spread the keys of an operator over the cores of a cluster:

- ``"static"``: one executor per core, with fixed keys;
- ``"resource-centric"``: one executor per core; keys are repartitioned over all executors under a global
  synchronisation;
- ``"naive-executor-centric"``: elastic executors that get cores on random nodes;
- ``"executor-centric"``: elastic executors with the paper's scheduler (core allocation and assignment).

References
----------
.. [1] L. Wang et al., "Elasticutor: Rapid Elasticity for Realtime Stateful Stream Processing", SIGMOD 2019, sections
   2.2 and 5.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from workbench.arrays import Floats, Ints
from workbench.checks import positive, require, whole
from workbench.scaling.elastic._controllers import (
    ElasticSettings,
    ExecutorCentric,
    LoadWindow,
    ResourceCentric,
    StaticExecutors,
    even_owners,
    even_route,
)
from workbench.scaling.elastic._queues import Queues
from workbench.scaling.elastic._recording import Series, Source, Totals
from workbench.scaling.elastic.keyed_operator import ElasticCluster, KeyedOperator
from workbench.simulation import KeyTrace, RateTrace

Paradigm = Literal["static", "resource-centric", "naive-executor-centric", "executor-centric"]
PARADIGMS: tuple[Paradigm, ...] = get_args(Paradigm)
DEFAULT_SETTINGS = ElasticSettings()
TOTALS = (
    "throughput_per_s",
    "mean_latency_s",
    "p99_latency_s",
    "cores",
    "shard_moves",
    "core_moves",
    "repartitions",
    "migrated_bytes_per_s",
    "remote_bytes_per_s",
    "waiting",
)
"""Columns of a comparison, in order."""


@dataclass(frozen=True, eq=False)
class ParadigmRun:
    """The result of one paradigm. Totals exclude the warm-up, series include it.

    Parameters
    ----------
    paradigm
        Its name.
    throughput_per_s
        Records processed per second.
    mean_latency_s, p99_latency_s
        Time from when a record is due at the source (with a rate) or is sent (without a rate) to its completion.
    cores
        Mean number of cores in use.
    shard_moves, core_moves, repartitions
        How often a shard moved, a core moved, and the keys of the operator were repartitioned.
    migrated_bytes_per_s
        State that changed its node.
    remote_bytes_per_s
        Records between executors and their cores on other nodes.
    waiting
        Records that are due and not sent at the end; 0 without a rate.
    time_s, throughput_series, latency_series
        For each second: its end, records/s, and the mean latency of the records sent in it (nan without records).
    """

    paradigm: Paradigm
    throughput_per_s: float
    mean_latency_s: float
    p99_latency_s: float
    cores: float
    shard_moves: int
    core_moves: int
    repartitions: int
    migrated_bytes_per_s: float
    remote_bytes_per_s: float
    waiting: float
    time_s: Floats
    throughput_series: Floats
    latency_series: Floats

    def summary(self) -> dict[str, float]:
        """Return the totals by name, one row of a comparison."""
        return {name: getattr(self, name) for name in TOTALS}


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
    """Run one keyed operator on a cluster under a paradigm.

    Parameters
    ----------
    paradigm
        One of `PARADIGMS`.
    operator, cluster, keys, settings
        What runs, where, on which keys, and what elasticity costs.
    rate
        Records/s at the source. None: as many as back-pressure admits, as in the paper.
    seconds
        Length of the run: that of `rate` by default, 60 s without a rate.
    warm_up_s
        Seconds at the beginning that the totals exclude.
    step_s
        Length of a step, seconds.
    seed
        Seed of service times, measurements and scheduling; the keys have their own seed.
    """
    require(paradigm in PARADIGMS, f"paradigm is {paradigm!r}; use one of {', '.join(map(repr, PARADIGMS))}.")
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
    queues = Queues(cluster, operator, _first_route(paradigm, operator, cluster), step_s, service)
    window, source = LoadWindow(settings.window_s), Source(rate, step_s)
    controller = _controller(paradigm, queues, window, settings, scheduling)

    totals, series = Totals(), Series(step_s)
    start, epoch, next_rebalance = _counters(controller), -1, settings.rebalance_s
    for step in range(steps):
        if keys.epoch_at(step * step_s) != epoch:
            epoch = keys.epoch_at(step * step_s)
            queues.set_shares(keys.task_shares(epoch, shards))
        if step == first:
            totals, start = Totals(), _counters(controller)
        done = queues.advance(source.offered(step))
        latency = done.latency_s + source.wait_s
        source.sent += done.admitted
        totals.add(done, latency, controller.cores_used)
        series.add(done, latency)
        window.add(queues.now, done.admitted, queues.shares)
        controller.step()
        if queues.now >= next_rebalance - 1e-9:
            next_rebalance += settings.rebalance_s
            # CPU time of each shard, in records of mean cost: a compound Poisson sum, here gamma-distributed
            counts = measuring.gamma(window.counts(shards) / (1 + operator.variation), 1 + operator.variation)
            controller.measured(counts, source.demand(step, settings.window_s, float(counts.sum())))
    measured_s = (steps - first) * step_s
    shard_moves, core_moves, repartitions, migrated = (
        end - begin for end, begin in zip(_counters(controller), start, strict=True)
    )
    return ParadigmRun(
        paradigm,
        totals.served / measured_s,
        totals.latency.mean,
        totals.latency.quantile(0.99),
        totals.cores / (steps - first),
        int(shard_moves),
        int(core_moves),
        int(repartitions),
        migrated / measured_s,
        totals.remote_bytes / measured_s,
        source.waiting(steps),
        *series.columns(),
    )


def compare_paradigms(
    operator: KeyedOperator,
    cluster: ElasticCluster,
    keys: KeyTrace,
    paradigms: Sequence[Paradigm] = PARADIGMS,
    *,
    rate: RateTrace | None = None,
    seconds: float | None = None,
    warm_up_s: float = 10.0,
    settings: ElasticSettings = DEFAULT_SETTINGS,
    step_s: float = 0.01,
    seed: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> tuple[ParadigmRun, ...]:
    """Run `simulate_paradigm` for each of `paradigms`, on the same keys, hashing and rate.

    Parameters
    ----------
    operator, cluster, keys, rate, seconds, warm_up_s, settings, step_s, seed
        As for `simulate_paradigm`.
    paradigms
        Some of `PARADIGMS`.
    progress
        Is given a line about each before it runs.

    Raises
    ------
    WorkbenchError
        As `simulate_paradigm`.
    """
    runs = []
    for place, name in enumerate(paradigms, start=1):
        progress(f"paradigm {place}/{len(paradigms)} · {name}")
        run = simulate_paradigm(
            name,
            operator,
            cluster,
            keys,
            rate=rate,
            seconds=seconds,
            warm_up_s=warm_up_s,
            settings=settings,
            step_s=step_s,
            seed=seed,
        )
        runs.append(run)
    return tuple(runs)


def _counters(controller: StaticExecutors) -> tuple[int, int, int, float]:
    queues = controller.queues
    return queues.moves, controller.core_moves, controller.repartitions, queues.migrated_bytes


def _first_route(paradigm: Paradigm, operator: KeyedOperator, cluster: ElasticCluster) -> Ints:
    """Return the core of each shard at the start: even over all cores, or over those of its executor."""
    if paradigm in {"static", "resource-centric"}:
        return np.arange(operator.executors * operator.shards) % cluster.cores
    return even_route(operator, even_owners(cluster, operator.executors))


def _controller(
    paradigm: Paradigm, queues: Queues, window: LoadWindow, settings: ElasticSettings, rng: np.random.Generator
) -> StaticExecutors:
    if paradigm == "static":
        return StaticExecutors(queues, settings)
    if paradigm == "resource-centric":
        return ResourceCentric(queues, window, settings)
    return ExecutorCentric(queues, settings, optimised=paradigm == "executor-centric", rng=rng)
