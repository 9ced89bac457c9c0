import dataclasses
import math
from operator import call

import numpy as np
import pytest
from refusals import refusals

from workbench.scaling.elastic import (
    PARADIGMS,
    ElasticCluster,
    ElasticSettings,
    KeyedOperator,
    compare_paradigms,
    simulate_paradigm,
)
from workbench.scaling.elastic._controllers import even_owners, even_route, overloaded
from workbench.scaling.elastic._queues import Queues
from workbench.scaling.elastic.paradigms import binned, quantile
from workbench.simulation import KeyTrace, RateTrace

STATIC, RC, NAIVE, EC = PARADIGMS
SMALL = ElasticCluster(nodes=4, node_cores=4)
OPERATOR = KeyedOperator(executors=4, shards=64, upstream=4)
KEYS = KeyTrace.zipf(2000, 0.5)


def go(paradigm, operator=OPERATOR, keys=KEYS, **how):
    return simulate_paradigm(paradigm, operator, SMALL, keys, **({"seconds": 30.0, "step_s": 0.02} | how))


def queues(operator=OPERATOR, cluster=SMALL, step_s=0.01):
    route = even_route(operator, even_owners(cluster, operator.executors))
    return Queues(cluster, operator, route, step_s, np.random.default_rng(0))


def test_elastic_paradigms_balance_what_static_cannot():
    runs = {p: go(p) for p in PARADIGMS}
    assert runs[STATIC].shard_moves == runs[STATIC].repartitions == runs[STATIC].core_moves == 0
    for paradigm in (RC, NAIVE, EC):
        assert runs[paradigm].throughput_per_s > 1.05 * runs[STATIC].throughput_per_s
    assert all(r.throughput_per_s <= SMALL.cores / OPERATOR.cpu_s * 1.001 for r in runs.values())


def test_frequent_shuffles_cost_the_resource_centric_paradigm_most():
    shuffled = dataclasses.replace(KEYS, changes_per_minute=20.0)
    many = dataclasses.replace(OPERATOR, upstream=32)  # as in the paper
    loss = {p: 1 - go(p, many, shuffled).throughput_per_s / go(p, many).throughput_per_s for p in PARADIGMS}
    assert abs(loss[EC]) < 0.03
    assert abs(loss[STATIC]) < 0.03  # queues of a second would even the shuffled keys out
    assert 0.08 < loss[RC] < 0.2


@pytest.mark.parametrize("rate", [100.0, 2000.0])
def test_nothing_moves_for_ever_on_even_keys_that_never_change(rate):
    even = KeyTrace(np.ones(100_000))
    central, elastic = (go(p, keys=even, rate=RateTrace.constant(rate, 60.0), seconds=None) for p in (RC, EC))
    assert central.repartitions == 0
    assert elastic.shard_moves <= 4 * OPERATOR.shards * OPERATOR.executors / SMALL.cores  # of some cores given back


def test_uneven_keys_are_evened_out_at_a_low_rate_too():
    uneven = KeyTrace(np.r_[np.full(40, 1.0), np.full(4000, 0.01)])  # 40 keys have half of the records
    rate = RateTrace.constant(2000.0, 30.0)
    assert go(RC, keys=uneven, rate=rate, seconds=None, warm_up_s=0.0).repartitions >= 1


@pytest.mark.parametrize("mean", [0.5, 5.0, 50.0, 500.0])
def test_chance_alone_seldom_overloads_a_core(mean):
    rng, variation, looks, cores = np.random.default_rng(1), 0.5, 4000, 16
    load, even = rng.gamma(mean / (1 + variation), 1 + variation, (looks, cores)), np.full(cores, mean)
    never_full = KeyedOperator(cpu_s=1e-300, variation=variation)
    assert sum(overloaded(row, even, never_full, ElasticSettings()).any() for row in load) <= 4  # 0.4 expected
    past = even.copy()
    past[0] += 8 * math.sqrt(mean * (1 + variation)) + 16
    found = overloaded(past, even, never_full, ElasticSettings())
    assert found.tolist() == [past[0] > 1.2 * mean, *[False] * 15]


def test_a_nearly_saturated_core_is_overloaded_above_the_threshold():
    load, mean = np.array([91.0, 75.0, 89.0]), np.array([75.0, 75.0, 75.0])
    found = overloaded(load, mean, KeyedOperator(cpu_s=0.01), ElasticSettings())  # 100 records fill a window
    assert found.tolist() == [True, False, False]
    assert not overloaded(load, mean, KeyedOperator(cpu_s=0.005), ElasticSettings()).any()


def test_large_state_makes_elasticity_lose_to_static():
    heavy = dataclasses.replace(OPERATOR, shard_bytes=512e6, executors=1, shards=256)
    shuffled = KeyTrace.zipf(2000, 0.8, changes_per_minute=8.0)
    runs = {p: go(p, heavy, shuffled).throughput_per_s for p in (STATIC, RC, EC)}
    assert runs[STATIC] > max(runs[RC], runs[EC])


def test_the_most_frequent_key_bounds_every_paradigm():
    keys = KeyTrace(np.array([1.0] + [0.002] * 1000))  # a third of all records has one key
    for run in compare_paradigms(OPERATOR, SMALL, keys, seconds=30.0, step_s=0.02):
        assert run.throughput_per_s <= 1.05 * 3 / OPERATOR.cpu_s


def test_the_scheduler_keeps_state_and_records_at_home():
    operator = dataclasses.replace(OPERATOR, cpu_s=1e-4, output_bytes=64.0)
    rate = RateTrace.steps([(5.0, r) for r in (50e3, 90e3, 60e3, 110e3)] * 3)
    keys = dataclasses.replace(KEYS, changes_per_minute=6.0)
    naive, optimised = (go(p, operator, keys, rate=rate, seconds=None) for p in (NAIVE, EC))
    assert naive.migrated_bytes_per_s > 1.5 * optimised.migrated_bytes_per_s
    assert naive.remote_bytes_per_s > 3 * optimised.remote_bytes_per_s


def test_a_low_rate_needs_few_cores_and_waits_for_none():
    run = go(EC, rate=RateTrace.constant(3000.0, 30.0))
    assert run.throughput_per_s == pytest.approx(3000.0, rel=0.02)
    assert run.cores < SMALL.cores
    assert run.waiting < 3000 * 0.1
    assert 1e-3 <= run.mean_latency_s < 0.1
    assert run.p99_latency_s >= run.mean_latency_s


def test_records_that_are_due_and_not_sent_wait():
    run = go(STATIC, rate=RateTrace.constant(20_000.0, 30.0), warm_up_s=0.0)  # 16 cores do at most 16,000
    at_cores = 30 * (20_000 - run.throughput_per_s) - run.waiting
    assert 0 <= at_cores <= 1.05 * SMALL.cores * OPERATOR.queue
    assert run.p99_latency_s == pytest.approx(run.waiting / 20_000, rel=0.1)  # first in, first out


def test_latency_at_arrival_agrees_with_littles_law():
    one = queues()
    held = admitted = waited = 0.0
    for step in range(4000):
        done = one.advance(130.0)  # 13,000 records/s on 16 cores
        admitted += done.admitted
        waited += float(done.latency_s @ done.weight)
        if step % 50 == 0 and step:
            core = int(one.backlog.argmax())
            one.move([(int(np.flatnonzero(one.route == core)[0]), int(one.backlog.argmin()))], 0.002)
        held += float(one.backlog.sum() + one._held.sum()) / OPERATOR.cpu_s
    assert admitted == pytest.approx(4000 * 130)
    mean_wait = waited / admitted - OPERATOR.cpu_s
    assert mean_wait == pytest.approx(held * one.step_s / admitted, rel=0.15, abs=2e-3)


def test_work_is_conserved_while_shards_move():
    one = queues(dataclasses.replace(OPERATOR, shard_bytes=5e6, variation=0.0))
    rng = np.random.default_rng(5)
    admitted = served = 0.0
    for step in range(600):
        if step % 7 == 0 and step < 400:
            one.move([(int(rng.integers(256)), int(rng.integers(16)))], 0.002)
        done = one.advance(100.0 if step < 500 else 0.0)
        admitted, served = admitted + done.admitted, served + done.served
        assert one.backlog.min() >= 0
    assert not one.moving.size
    assert one.empty
    assert served == pytest.approx(admitted, rel=0.02)  # gamma-distributed work, right in the mean


def test_a_shard_is_held_until_its_state_has_crossed_the_network():
    one = queues(dataclasses.replace(OPERATOR, shard_bytes=125e6))  # one second on a network card
    one.move([(0, 15)], 0.002)
    for _ in range(98):
        one.advance(0.0)
    assert one.moving.size
    for _ in range(4):
        one.advance(0.0)
    assert not one.moving.size
    assert one.migrated_bytes == 125e6
    one.move([(0, 14)], 0.002)  # a core of the same node
    one.advance(0.0)
    assert not one.moving.size
    assert one.migrated_bytes == 125e6


def test_full_network_cards_hold_the_sources_back():
    large = dataclasses.replace(OPERATOR, record_bytes=125e6 / 1000)  # 1000 a second fill a card
    run = go(EC, large, KeyTrace.zipf(2000, 0.0))
    assert run.throughput_per_s == pytest.approx(4 * 1000 / 0.75, rel=0.2)  # of four cards; a quarter comes from home


def test_a_seed_decides_everything():
    keys = dataclasses.replace(KEYS, changes_per_minute=6.0)
    first, again, other = (go(NAIVE, keys=keys, seed=seed, seconds=15.0) for seed in (3, 3, 4))
    assert np.array_equal(first.throughput_series, again.throughput_series)
    assert first.p99_latency_s == again.p99_latency_s
    assert not np.array_equal(first.throughput_series, other.throughput_series)


def test_cores_start_evenly_and_at_home():
    owner = even_owners(SMALL, 4)
    assert owner.tolist() == [j for j in range(4) for _ in range(4)]
    assert np.bincount(even_owners(SMALL, 3)).tolist() == [6, 5, 5]
    assert np.bincount(even_owners(SMALL, 16)).tolist() == [1] * 16
    route = even_route(OPERATOR, owner)
    assert np.bincount(route).tolist() == [16] * 16


def test_quantiles_of_binned_latencies():
    counts = binned(np.arange(1, 1001) / 1000, np.ones(1000))
    assert quantile(counts, 0.99) == pytest.approx(0.99, rel=0.012)
    assert math.isnan(quantile(0 * counts, 0.5))


NO_TIME = "warm_up_s is {} and the run lasts 30 s; the run must exceed it by a step, 0.02 s"


test_bad_input_is_named = refusals(
    call,
    (lambda: go("elastic"), "paradigm is 'elastic'; use one of 'static', 'resource-centric', 'naive-executor-cent"),
    (lambda: go(EC, dataclasses.replace(OPERATOR, executors=17)), "17 executors and the cluster 16 cores; every"),
    (lambda: go(EC, warm_up_s=30.0), NO_TIME.format("30")),
    (lambda: go(EC, seed=-1), "seed is -1; it must be a whole number of at least 0"),
    (lambda: KeyedOperator(cpu_s=0.0), "cpu_s is 0.0; it must be a finite number above 0"),
    (lambda: ElasticCluster(nodes=0), "nodes is 0; it must be a whole number of at least 1"),
    (lambda: ElasticSettings(sync_s=-1.0), "sync_s is -1.0; it must be a finite number above 0"),
)
