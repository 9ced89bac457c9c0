"""What every replay keeps, whatever the load, the memory and the policy."""

from dataclasses import replace

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from replayed import chain

from workbench.dataflow import OperatorProfile
from workbench.scaling import AutoscalerSettings, Decision, Ds2Policy, JustinPolicy, JustinVariant, Static, replay
from workbench.simulation import (
    Cluster,
    Deployment,
    KeyTrace,
    OperatorModel,
    RateTrace,
    State,
    StateModel,
    WarmUp,
    Worker,
    advance,
    steady_state,
)

MILLI = st.integers(1, 20).map(lambda value: value / 1e4)
MEMORY = st.none() | st.sampled_from([158.0, 316.0, 632.0])


@st.composite
def queries(draw, linear=False):
    def operator(name):
        state = StateModel(draw(st.integers(1, 3000)), miss_s=draw(MILLI)) if name == "b" and not linear else None
        return OperatorModel(OperatorProfile(draw(MILLI), 0, 0, draw(st.sampled_from([0.5, 1.0, 2.0]))), state=state)

    return chain(stateful="b", **{name: operator(name) for name in "abc"})


STEPS = st.lists(st.tuples(st.sampled_from([30.0, 60.0]), st.integers(0, 20_000)), min_size=1, max_size=4)
SETTINGS = st.builds(
    AutoscalerSettings,
    activation_s=st.sampled_from([5.0, 20.0]),
    policy_interval_s=st.just(10.0),
    metrics_window_s=st.sampled_from([5.0, 10.0]),
    utilization_target=st.sampled_from([0.7, 1.0]),
    utilization_min=st.sampled_from([None, 0.2]),
    utilization_max=st.sampled_from([None, 0.8]),
    max_parallelism=st.just(40),
)
VARIANTS = st.builds(
    JustinVariant, st.sampled_from(["differs", "exceeds"]), st.just(0.05), st.sampled_from([None, 0.9])
)


@examples(30)
@given(model=queries(), steps=STEPS, limits=SETTINGS, variant=VARIANTS, max_level=st.integers(1, 3))
def test_justin_in_a_replay(model, steps, limits, variant, max_level):
    trace = RateTrace.steps(steps)
    start = Decision(dict.fromkeys("abc", 1), dict.fromkeys("abc", 158.0))
    line = replay(trace, model, JustinPolicy(limits, variant, max_level), start, step_s=1.0)
    for change in line.reconfigurations:
        assert change.managed_mb["a"] is None is change.managed_mb["c"]
        assert change.managed_mb["b"] in [158.0 * 2**level for level in range(max_level)]
        assert max(change.tasks.values()) <= 40
    done = line.consumed.sum() * line.step_s
    assert done + line.backlog[-1] == pytest.approx(trace.per_step(1.0).sum(), rel=1e-6, abs=1e-3)
    assert (line.latency_s >= 0).all()
    assert (line.latency_s <= trace.duration_s).all()


@examples(30)
@given(model=queries(linear=True), rate=st.integers(100, 20_000))
def test_ds2_converges_in_one_step_on_linear_costs(model, rate):
    once = AutoscalerSettings(activation_s=5.0, policy_interval_s=5.0)
    line = replay(RateTrace.constant(rate, 120), model, Ds2Policy(once), dict.fromkeys("abc", 1), step_s=1.0)
    assert len(line.reconfigurations) <= 1
    tasks = line.reconfigurations[0].tasks if line.reconfigurations else dict.fromkeys("abc", 1)
    assert steady_state(Deployment(model, tasks)).rate >= rate * (1 - 1e-9)
    for name, count in tasks.items():
        if count > 1:
            assert steady_state(Deployment(model, {**tasks, name: count - 1})).rate < rate


@examples(60)
@given(
    limits=st.builds(
        AutoscalerSettings,
        activation_s=st.floats(0.0, 100.0),
        policy_interval_s=st.floats(0.0, 100.0),
        metrics_window_s=st.floats(0.0, 100.0),
        utilization_max=st.sampled_from([None, 0.8]),
    ),
    step_s=st.floats(1.0, 20.0),
    memory=st.booleans(),
)
def test_an_overload_is_answered_however_settings_and_steps_divide(limits, step_s, memory):
    policy = JustinPolicy(limits) if memory else Ds2Policy(limits)
    model = chain(stateful="b", **{name: OperatorModel(OperatorProfile(1e-4, 0, 0, 1.0)) for name in "abc"})
    line = replay(RateTrace.constant(15_000, 600), model, policy, dict.fromkeys("abc", 1), step_s=step_s)
    assert line.reconfigurations
    # After the activation one look may pass; whole looks fill the metrics window; then an interval may still run.
    look = policy.interval_s + step_s
    latest = limits.activation_s + look + limits.metrics_window_s + look + limits.policy_interval_s + step_s
    assert line.reconfigurations[0].at_s <= latest


@examples(40)
@given(
    model=queries(),
    tasks=st.lists(st.integers(1, 6), min_size=3, max_size=3),
    memory=MEMORY,
    exponent=st.sampled_from([None, 0.0, 1.0]),
)
def test_a_flooded_deployment_reaches_the_closed_form_of_its_memory_and_keys(model, tasks, memory, exponent):
    layout, managed = dict(zip("abc", tasks, strict=True)), {"b": memory}
    keys = {} if exponent is None else {"b": KeyTrace.zipf(200, exponent)}
    shares = {name: trace.task_shares(0, layout[name]) for name, trace in keys.items()}
    truth = steady_state(Deployment(model, layout, managed_mb=managed, key_shares=shares or None)).rate
    line = replay(RateTrace.constant(2 * truth, 20), model, Static(), Decision(layout, managed), step_s=1.0, keys=keys)
    assert line.consumed == pytest.approx(np.full(20, truth))
    more = {"b": 2 * (memory or 79.0)}
    assert steady_state(Deployment(model, layout, managed_mb=more)).rate >= steady_state(
        Deployment(model, layout, managed_mb=managed)
    ).rate * (1 - 1e-9)


@examples(40)
@given(
    model=queries(),
    windowed=st.booleans(),
    cold=st.booleans(),
    steps=st.lists(st.tuples(st.integers(0, 5_000), st.sampled_from([1.0, 0.5])), min_size=1, max_size=12),
)
def test_a_step_without_contention_is_that_of_the_general_engine(model, windowed, cold, steps):
    query = replace(model, warm_up=WarmUp(5.0, 1.0, 5.0) if cold else WarmUp(0.0, 0.0, 0.0))
    if windowed:
        emits = replace(query.operators["a"], windowed=True, emission_s=1e-4)
        query = replace(query, operators={**query.operators, "a": emits}, window_s=4.0)
    tasks = {"a": 2, "b": 3, "c": 1}
    somewhere = Cluster((Worker(),), {name: (count,) for name, count in tasks.items()})
    lone, placed = (Deployment(query, tasks, managed_mb={"b": 158.0}, cluster=one) for one in (None, somewhere))
    states = [State.empty(lone), State.empty(placed)]
    for offered, speed in steps:
        (states[0], one), (states[1], other) = (
            advance(deployment, state, offered, 1.0, speed)
            for deployment, state in zip((lone, placed), states, strict=True)
        )
        assert one.consumed == pytest.approx(other.consumed, rel=1e-9, abs=1e-9)
        assert one.active_s == pytest.approx(other.active_s, rel=1e-9, abs=1e-9)
        for field in ("records", "results", "useful_s"):
            assert getattr(one, field) == pytest.approx(getattr(other, field), rel=1e-9, abs=1e-9)
        for field in ("held", "pending", "waiting_s"):
            assert getattr(states[0], field) == pytest.approx(getattr(states[1], field), rel=1e-9, abs=1e-9)
