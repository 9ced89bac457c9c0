import math
from operator import call

import numpy as np
import pytest
from refusals import refusals

from workbench.simulation import KeyTrace


def test_zipf_and_counts_are_shares():
    assert KeyTrace.zipf(4, 1.0).shares == pytest.approx(np.array([12, 6, 4, 3]) / 25)
    assert KeyTrace.zipf(4, 0.0).shares.tolist() == [0.25] * 4
    assert KeyTrace.from_counts([6, 2], untracked_keys=4, untracked_records=2).shares == pytest.approx(
        [0.6, 0.2, 0.05, 0.05, 0.05, 0.05]
    )


def test_a_shuffle_keeps_the_popularities_and_depends_on_seed_and_epoch_alone():
    trace = KeyTrace.zipf(1000, 0.5, changes_per_minute=2.0, seed=7)
    assert [trace.epoch_at(time) for time in (0, 29.9, 30, 60, 89)] == [0, 0, 1, 2, 2]
    later = trace.popularity(5)
    assert sorted(later) == pytest.approx(sorted(trace.shares))
    assert later.tolist() == KeyTrace.zipf(1000, 0.5, changes_per_minute=9.0, seed=7).popularity(5).tolist()
    assert later.tolist() != trace.popularity(6).tolist()
    assert trace.popularity(0) is trace.shares


def test_a_hot_key_wanders_alone():
    trace = KeyTrace.hot_key(100, 0.3, changes_per_minute=1.0, seed=3)
    places = {int(trace.popularity(epoch).argmax()) for epoch in range(20)}
    assert len(places) > 10
    assert all(trace.popularity(epoch).max() == pytest.approx(0.3) for epoch in range(5))
    assert KeyTrace.hot_key(2, 1.0).shares.tolist() == [1.0, 0.0]
    assert math.isinf(KeyTrace.hot_key(2, 1.0).period_s)


def test_a_key_stays_on_its_task_and_shares_add_up():
    trace = KeyTrace.zipf(5000, 0.5, changes_per_minute=1.0)
    tasks = trace.task_of(7)
    assert set(tasks) == set(range(7))
    for epoch in (0, 1):
        shares = trace.task_shares(epoch, 7)
        assert shares.sum() == pytest.approx(1.0)
        assert shares[3] == pytest.approx(trace.popularity(epoch)[tasks == 3].sum())
    # Doubling the tasks splits each range of the hash in two, as Flink's key groups.
    assert (trace.task_of(14) // 2 == tasks).all()


test_what_is_no_key_trace_is_refused = refusals(
    call,
    (lambda: KeyTrace([]), "one for each of its keys"),
    (lambda: KeyTrace([0.0, 0.0]), "no key with a weight above 0; count the keys first"),
    (lambda: KeyTrace([1.0, -1.0]), "finite numbers of at least 0"),
    (lambda: KeyTrace([1.0], -1.0), "changes_per_minute is -1.0; it must be a finite number of at least 0"),
    (lambda: KeyTrace([1.0], 1.0, "swap"), "change is 'swap'; use one of 'shuffle', 'wander'"),
    (lambda: KeyTrace.zipf(0, 1.0), "number of keys of a key trace is 0; it must be a whole number of at least 1"),
    (lambda: KeyTrace.zipf(9, math.inf), "exponent of Zipf's law is inf"),
    (lambda: KeyTrace.hot_key(1, 0.5), "with a hot key is 1; it must be a whole number of at least 2"),
    (lambda: KeyTrace.hot_key(9, 1.5), "hot_share is 1.5; it must be at least 0 and at most 1"),
    (lambda: KeyTrace.from_counts([1], -1), "number of untracked keys is -1; it must be"),
    (lambda: KeyTrace.from_counts([1], 1, math.inf), "records of untracked keys is inf; it must be"),
    (lambda: KeyTrace.from_counts([[1, 2]]), r"shape \(1, 2\); give one number for each key"),
    (lambda: KeyTrace([1.0], seed=-1), "seed of a key trace is -1; it must be a whole number of at least 0"),
    (lambda: KeyTrace([1e308, 1e308]), "weights of a key trace of 2 keys add up to inf; scale them"),
)
