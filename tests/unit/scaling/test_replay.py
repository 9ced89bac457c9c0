"""Policies on a trace through the fluid engine."""

import numpy as np
import pytest
from replayed import Scheduled, chain

from workbench.dataflow import OperatorProfile
from workbench.scaling import AutoscalerSettings, Ds2Policy, Static, replay
from workbench.simulation import OperatorModel, RateTrace, StateModel

MODEL = chain(
    stateful=("count",),
    map=OperatorModel(OperatorProfile(1e-4, 0, 100, 0.5)),
    count=OperatorModel(OperatorProfile(2e-4, 0, 0, 1.0), state=StateModel(100.0, miss_s=0.0)),
)
ONE = {"map": 1, "count": 1}  # each carries 10,000 records/s of the source
QUICK = AutoscalerSettings(activation_s=10.0, policy_interval_s=10.0)


def test_within_its_capacity_a_static_deployment_keeps_up():
    line = replay(RateTrace.constant(9_000, 600), MODEL, Static(), ONE, step_s=1.0)
    assert line.consumed == pytest.approx(np.full(600, 9_000))
    assert line.backlog.max() < 1e-6
    assert line.latency_s.max() <= 1.0
    assert line.summary()["at_target"] == 1.0
    assert line.summary()["core_hours"] == pytest.approx(2 * 600 / 3600)


def test_beyond_it_the_backlog_grows_by_the_difference_and_latency_follows():
    line = replay(RateTrace.constant(12_000, 300), MODEL, Static(), ONE, step_s=1.0)
    assert line.backlog[-1] == pytest.approx(2_000 * 300, rel=1e-6)
    assert line.latency_s[-1] == pytest.approx(300 - 300 * 10 / 12, abs=1.0)
    assert line.summary()["at_target"] < 0.05


def test_ds2_reaches_in_one_step_what_the_rate_needs():
    line = replay(RateTrace.constant(34_000, 200), MODEL, Ds2Policy(QUICK), ONE, step_s=1.0, restart_s=5.0)
    first = line.reconfigurations[0]
    assert first.tasks == {"map": 4, "count": 4}
    assert len(line.reconfigurations) == 1
    assert first.downtime_s == pytest.approx(5.0 + 100 / 4 * 2**20 / 100e6)  # each task restores its share


def test_nothing_runs_while_it_restarts():
    change = Scheduled(((100.0, {"map": 2, "count": 1}),))
    line = replay(RateTrace.constant(5_000, 200), MODEL, change, ONE, step_s=1.0, restart_s=20.0)
    assert [one.at_s for one in line.reconfigurations] == [100.0]
    assert line.reconfigurations[0].moved_bytes == 0
    assert line.consumed[100:120].max() == 0
    assert line.backlog[119] == pytest.approx(20 * 5_000)
    assert line.consumed[120] == pytest.approx(10_000)
    assert line.summary()["at_target"] < 1


def test_a_plan_for_catching_up_empties_the_backlog_sooner():
    trace = RateTrace.steps([(60, 30_000), (600, 9_500)])
    slow = replay(trace, MODEL, Static(), ONE, step_s=1.0)
    settings = AutoscalerSettings(activation_s=10, policy_interval_s=10, restart_s=5, catch_up_s=60)
    fast = replay(trace, MODEL, Ds2Policy(settings), ONE, step_s=1.0, restart_s=5.0)
    assert fast.summary()["latency_p99_s"] < slow.summary()["latency_p99_s"] / 2
    assert fast.summary()["core_hours"] > slow.summary()["core_hours"]
