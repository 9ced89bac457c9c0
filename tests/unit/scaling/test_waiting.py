"""Waits of records, by hand and against single records; what a summary makes of them and of backlogs."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from replayed import Scheduled, chain

from workbench.dataflow import OperatorProfile
from workbench.scaling import Static, replay
from workbench.scaling.timeline import Waits
from workbench.simulation import Deployment, OperatorModel, RateTrace, preset, steady_state
from workbench.study.scenario import initial_tasks

MAP = chain(map=OperatorModel(OperatorProfile(1 / 200, 0, 0, 1.0)))


@pytest.mark.parametrize("step_s", [5.0, 1.0, 0.1])
def test_all_the_waiting_that_a_restart_causes_counts_whatever_the_step(step_s):
    """100/s for 200 s; down from 50 s for 10 s; then two tasks of 200/s work off 1000 records within 10/3 s."""
    change = Scheduled(((50.0, {"map": 2}),))
    row = replay(RateTrace.constant(100, 200), MAP, change, {"map": 1}, step_s=step_s, restart_s=10.0).summary()
    # Area: a triangle of 10 s by 1000 records, and one of 10/3 s by 1000.
    assert row["latency_mean_s"] == pytest.approx((5_000 + 5_000 / 3) / 20_000, rel=0.15 if step_s == 5 else 0.02)
    # The record that came x s after 50 s is consumed at 10 + x / 4: it waits 10 - 3 x / 4. The 200 longest: x = 2.
    assert row["latency_p99_s"] == pytest.approx(8.5, rel=0.05)
    assert row["latency_p50_s"] == pytest.approx(0.0, abs=1e-6)


def test_rounding_makes_no_cohort():
    arrivals = np.full(2000, 4687343.8713)
    consumed = np.tile([0.1, 0.7, 2.2], 667)[:2000] * arrivals
    consumed *= (1 + 1e-16) * arrivals.sum() / consumed.sum()
    for most in (consumed, np.nextafter(arrivals, 0), np.nextafter(arrivals, np.inf)):
        assert (
            0 <= Waits.of(arrivals, most, 5.0).quantile_s(0.99) <= Waits.of(arrivals, most, 5.0).quantile_s(1.0) <= 1e4
        )


@examples(100)
@given(
    steps=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=10),
    step_s=st.sampled_from([0.5, 1.0, 4.0]),
)
def test_waits_are_those_of_single_records(steps, step_s):
    """Against 50 records for one, each followed through both curves."""
    arrivals = np.array([came for came, _ in steps], dtype=float)
    backlog, consumed = 0.0, []
    for came, most in steps:
        consumed.append(min(backlog + came, most))
        backlog += came - consumed[-1]
    waits = Waits.of(arrivals, np.array(consumed), step_s)

    def times(counts):
        return [
            (number + (k + 0.5) / (50 * count)) * step_s
            for number, count in enumerate(counts)
            for k in range(50 * count)
        ]

    came, went = times(arrivals.astype(int).tolist()), times([int(count) for count in consumed])
    went += [len(steps) * step_s] * (len(came) - len(went))
    single = np.sort(np.array(went) - np.array(came)) if came else np.zeros(1)
    assert waits.mean_s == pytest.approx(max(0.0, single.mean()), rel=0.02, abs=0.02 * step_s)
    for share in (0.1, 0.5, 0.9, 0.99):
        low, high = (np.quantile(single, min(1.0, max(0.0, share + off))) for off in (-0.01, 0.01))
        assert low - 0.05 * step_s <= waits.quantile_s(share) <= high + 0.05 * step_s
    assert all(low <= high + 1e-9 for low, high in pairwise([waits.quantile_s(q) for q in (0.1, 0.5, 0.9, 1.0)]))


@pytest.mark.parametrize("step_s", [5.0, 1.0, 0.2])
def test_a_windowed_query_that_keeps_up_is_at_target_whatever_the_step(step_s):
    model = replace(preset("q8"), warm_up=replace(preset("q8").warm_up, slowdown=0.0, cache_s=0.0))
    tasks = initial_tasks(model, 10, 2048.0)
    most = steady_state(Deployment(model, tasks, 2048.0)).rate

    def at_target(share):
        line = replay(RateTrace.constant(share * most, 400), model, Static(), tasks, memory_mb=2048.0, step_s=step_s)
        return line.summary()["at_target"]

    assert at_target(0.9) == 1.0
    assert at_target(1.2) < 0.1


def test_downtime_ends_with_the_replay():
    change = Scheduled(((50.0, {"map": 2}), (90.0, {"map": 3})))
    row = replay(RateTrace.constant(100, 100), MAP, change, {"map": 1}, step_s=1.0, restart_s=30.0).summary()
    assert row["reconfigurations"] == 2
    assert row["downtime_s"] == pytest.approx(30.0 + 10.0)


def test_what_sums_leave_by_rounding_is_no_wait():
    line = replay(RateTrace.constant(100, 200), MAP, Static(), {"map": 2}, step_s=1.0)
    late = replace(line, consumed=line.consumed * (1 - 1e-12))
    assert 0 < Waits.of(late.offered, late.consumed, 1.0).quantile_s(0.99) < 1e-6
    assert (late.summary()["latency_p99_s"], late.summary()["latency_mean_s"]) == (0.0, 0.0)


@pytest.mark.parametrize(("share", "seconds"), [(0.01, 3.1), (0.5, 8.0), (0.99, 12.9)])
def test_the_wait_for_a_trigger_has_no_steps(share, seconds):
    """Nothing waits but for its trigger, evenly up to 10 s, and for a batch of 3 s."""
    waits = Waits.of(np.array([100.0, 100.0]), np.array([100.0, 100.0]), 5.0)
    found = waits.in_batches(10.0, np.array([0.3, 0.3]))
    assert found.quantile_s(share) == pytest.approx(seconds, abs=1e-6)
    assert found.mean_s == pytest.approx(8.0)


def test_waits_of_two_kinds_of_batch_are_those_of_a_simulation():
    rng = np.random.default_rng(0)
    busy = np.array([0.1] * 18 + [0.9] * 2)
    found = Waits.of(np.full(20, 100.0), np.full(20, 100.0), 5.0).in_batches(10.0, busy)
    drawn = 10.0 * (rng.choice(busy, 200_000) + rng.random(200_000))
    for share in (0.5, 0.9, 0.99):
        assert found.quantile_s(share) == pytest.approx(np.quantile(drawn, share), abs=0.1)


@pytest.mark.parametrize("apart_s", [1e-7, 1e-5, 1e-4])
@pytest.mark.parametrize("longest_s", [1e4, 1e6])
def test_a_few_that_wait_long_change_nothing_for_those_that_hardly_wait(apart_s, longest_s):
    """Of the records 995 wait for a trigger of 0.1 s and for at most `apart_s` more."""
    waits = Waits(np.array([995.0, 5.0]), np.array([0.0, longest_s]), np.array([apart_s, longest_s]), np.arange(2), 0.1)
    for share in (0.5, 0.99):
        assert waits.quantile_s(share) == pytest.approx(0.1 * share / 0.995, abs=apart_s + 1e-9)
