"""The engine against the closed form, the closed form against exact rationals, over random dataflows."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from examples import examples
from hypothesis import assume, given
from hypothesis import strategies as st

from workbench.dataflow import Dataflow, Edge, Operator, OperatorProfile
from workbench.simulation import (
    Cluster,
    Deployment,
    OperatorModel,
    QueryModel,
    State,
    StateModel,
    Worker,
    advance,
    steady_state,
)
from workbench.simulation.model import input_ratios

WINDOW_S = 4.0
MICRO = 1e-6


@st.composite
def models(draw, *, windows):
    """Random acyclic queries of one or two sources and up to five operators."""
    sources = [f"s{i}" for i in range(draw(st.integers(1, 2)))]
    names = [f"o{i}" for i in range(draw(st.integers(1, 5)))]
    edges, operators = [], {}
    for i, name in enumerate(names):
        above = draw(st.lists(st.sampled_from(sources + names[:i]), min_size=1, max_size=2, unique=True))
        partitioning = draw(st.sampled_from(["shuffle", "forward"]))
        edges.extend(Edge(upstream, name, partitioning) for upstream in above)
        windowed = windows and draw(st.booleans())
        operators[name] = OperatorModel(
            OperatorProfile(
                draw(st.integers(0, 50)) * MICRO, 0.0, 0.0, draw(st.sampled_from([0.0, 0.1, 0.5, 1.0, 2.0]))
            ),
            exchange_s=draw(st.sampled_from([0.0, 3 * MICRO])),
            windowed=windowed,
            emission_s=draw(st.integers(0, 20)) * MICRO if windowed else 0.0,
            hot_share=draw(st.sampled_from([0.0, 0.2])),
            imbalance=draw(st.sampled_from([0.0, 0.15])),
            state=draw(st.sampled_from([None, StateModel(2000.0, miss_s=10 * MICRO, locality=0.5)])),
        )
    shares = {sources[0]: 1.0} if len(sources) == 1 else {sources[0]: 0.25, sources[1]: 0.75}
    flow = Dataflow(
        "random",
        (*(Operator(name, "source") for name in sources), *(Operator(name, "map") for name in names)),
        tuple(edges),
    )
    has_windows = any(model.windowed for model in operators.values())
    return QueryModel(flow, operators, WINDOW_S if has_windows else None, 20.0, shares)


@st.composite
def deployments(draw, *, windows=False, crowded=False, buffers=True):
    model = draw(models(windows=windows))
    tasks = {name: draw(st.integers(1, 4)) for name in model.modelled}
    cluster = None
    if crowded:
        workers = draw(st.integers(1, 3))
        placed = {
            name: draw(st.lists(st.integers(0, workers - 1), min_size=n, max_size=n)) for name, n in tasks.items()
        }
        counts = {name: [where.count(w) for w in range(workers)] for name, where in placed.items()}
        cluster = Cluster(tuple(Worker(draw(st.sampled_from([0.5, 1.0, 2.0]))) for _ in range(workers)), counts)
    deployment = Deployment(
        model,
        tasks,
        draw(st.sampled_from([256.0, 1024.0, math.inf])),
        draw(st.sampled_from([0.25, 1.0, 2.0])),
        draw(st.sampled_from([0.0, 0.3])) if buffers else 0.0,
        cluster,
    )
    assume(math.isfinite(steady_state(deployment).rate))
    return deployment


def run(deployment, offered, seconds, step_s):
    """Steps with `offered` records/s and everything unconsumed kept at the sources; state, steps and backlogs."""
    state, backlog, steps, backlogs = State.empty(deployment), 0.0, [], []
    for _ in range(round(seconds / step_s)):
        backlog += offered * step_s
        state, step = advance(deployment, state, backlog, step_s)
        backlog = max(0.0, backlog - step.consumed) if math.isfinite(backlog) else math.inf
        steps.append(step)
        backlogs.append(backlog)
    return state, steps, backlogs


@examples(250)
@given(
    deployment=deployments() | deployments(crowded=True, buffers=False), step_s=st.sampled_from([0.1, 0.5, 1.0, 2.0])
)
def test_saturated_without_windows_is_the_closed_form(deployment, step_s):
    rate = steady_state(deployment).rate
    _, steps, _ = run(deployment, math.inf, 40 * step_s, step_s)
    assert sum(step.consumed for step in steps[20:]) / (20 * step_s) == pytest.approx(rate, rel=1e-9)
    if deployment.cluster is not None:
        assert max(step.useful_s.max() for step in steps) <= step_s
        costs = deployment.steady_costs.record_s  # on a worker, tasks are never faster than alone
        assert all((step.useful_s >= step.records * costs * (1 - 1e-9)).all() for step in steps)


@examples(150)
@given(deployment=deployments(windows=True, buffers=False), steps_per_window=st.sampled_from([1, 3, 8]))
def test_just_below_the_closed_form_every_window_catches_up(deployment, steps_per_window):
    rate = steady_state(deployment).rate * (1 - 1e-6)
    step_s = WINDOW_S / steps_per_window
    _, _, backlogs = run(deployment, rate, 10 * WINDOW_S, step_s)
    at_window_ends = backlogs[steps_per_window - 1 :: steps_per_window]
    assert max(at_window_ends) <= 1e-6 * rate


@examples(150)
@given(
    deployment=deployments(windows=True, buffers=False),
    steps_per_window=st.sampled_from([1, 3, 8]),
    overload=st.sampled_from([1.01, 1.5, 5.0, 100.0]),
)
def test_above_the_closed_form_no_more_records_are_finished_than_it_says(deployment, steps_per_window, overload):
    rate = steady_state(deployment).rate
    windows = 30
    _, steps, _ = run(deployment, overload * rate, windows * WINDOW_S, WINDOW_S / steps_per_window)
    model = deployment.model
    complete = []  # source records whose results each windowed operator has emitted
    for name, behaviour in model.operators_in_order():
        ratio = input_ratios(model)[name] * behaviour.profile.selectivity
        if behaviour.windowed and ratio > 0:
            complete.append(sum(step.results[deployment.slices[name]].sum() for step in steps) / ratio)
    assume(complete)
    assert min(complete) <= rate * windows * WINDOW_S * (1 + 1e-6)


@examples(100)
@given(deployment=deployments(windows=True, buffers=False), load=st.sampled_from([0.2, 0.9, 1 - 1e-6]))
def test_busyness_and_records_are_the_closed_form(deployment, load):
    found = steady_state(deployment)
    rate = load * found.rate
    _, steps, _ = run(deployment, rate, 14 * WINDOW_S, WINDOW_S / 4)
    last = steps[-4:]  # one window
    ratios = input_ratios(deployment.model)
    for name, where in deployment.slices.items():
        records = sum(step.records[where].sum() for step in last)
        assert records == pytest.approx(rate * WINDOW_S * ratios[name], rel=1e-4, abs=1e-6 * rate)
        busy = sum(step.useful_s[where].sum() for step in last) / (WINDOW_S * deployment.tasks[name])
        assert busy == pytest.approx(found.busyness(rate)[name], rel=1e-4, abs=1e-6)


@examples(100)
@given(deployment=deployments(windows=True), rate_share=st.sampled_from([0.5, 1.0, 3.0]))
def test_buffers_stay_bounded_and_no_record_is_lost(deployment, rate_share):
    rate = rate_share * steady_state(deployment).rate
    state, steps, backlogs = run(deployment, rate, 20.0, 0.5)
    assert state.waiting_s.max(initial=0.0) <= deployment.buffer_s + 1e-9
    assert min(backlogs) >= 0
    consumed = sum(step.consumed for step in steps)
    assert consumed + backlogs[-1] == pytest.approx(rate * 20.0)
    model = deployment.model
    received = {name: sum(step.records[where].sum() for step in steps) for name, where in deployment.slices.items()}
    emitted = {name: sum(step.results[where].sum() for step in steps) for name, where in deployment.slices.items()}
    sent = {name: consumed * share for name, share in model.source_shares.items()}
    for name, behaviour in model.operators_in_order():
        sent[name] = emitted[name] if behaviour.windowed else received[name] * behaviour.profile.selectivity
    for name, where in deployment.slices.items():
        arrived = sum(sent[edge.upstream] for edge in model.dataflow.edges if edge.downstream == name)
        assert received[name] == pytest.approx(arrived, rel=1e-9, abs=1e-9)
        behaviour = model.operators[name]
        if behaviour.windowed:
            kept = (state.held + state.pending)[where].sum()
            made = received[name] * behaviour.profile.selectivity
            assert emitted[name] + kept == pytest.approx(made, rel=1e-9, abs=1e-9)


@examples(100)
@given(
    micros=st.lists(st.integers(1, 60), min_size=1, max_size=5),
    tenths=st.lists(st.integers(0, 20), min_size=5, max_size=5),
    tasks=st.lists(st.integers(1, 6), min_size=5, max_size=5),
    hot=st.integers(0, 4),
)
def test_closed_form_of_a_chain_is_exact_arithmetic(micros, tenths, tasks, hot):
    names = [f"o{i}" for i in range(len(micros))]
    flow = Dataflow(
        "chain",
        (Operator("s", "source"), *(Operator(name, "map") for name in names)),
        tuple(Edge(*pair) for pair in pairwise(["s", *names])),
    )
    model = QueryModel(
        flow,
        {
            name: OperatorModel(OperatorProfile(us * MICRO, 0.0, 0.0, ten / 10), hot_share=hot / 10)
            for name, us, ten in zip(names, micros, tenths, strict=False)
        },
    )
    # Independent: a record's seconds at the fullest task of each operator, in rationals.
    slowest, ratio = Fraction(0), Fraction(1)
    for us, ten, count in zip(micros, tenths, tasks, strict=False):
        fullest = Fraction(hot, 10) + (1 - Fraction(hot, 10)) / count
        slowest = max(slowest, ratio * fullest * Fraction(us, 10**6))
        ratio *= Fraction(ten, 10)
    deployment = Deployment(model, dict(zip(names, tasks, strict=False)))
    assert steady_state(deployment).rate == pytest.approx(float(1 / slowest), rel=1e-12)


@examples(60)
@given(deployment=deployments(windows=True, buffers=False), factor=st.sampled_from([0.5, 3.0]))
def test_everything_scales_with_the_speed_of_the_slots(deployment, factor):
    offered = 10.0 * steady_state(deployment).rate
    state, other = State.empty(deployment), State.empty(deployment)
    for _ in range(8):
        state, step = advance(deployment, state, offered, 1.0)
        other, scaled = advance(deployment, other, factor * offered, 1.0, factor)
        assert scaled.consumed == pytest.approx(factor * step.consumed)
        assert np.allclose(scaled.useful_s, step.useful_s)
