"""Memory per operator: managed memory, the cache it leaves, and a measured response."""

import math
from dataclasses import replace

import numpy as np
import pytest

from workbench.dataflow import Dataflow, Edge, Operator, OperatorProfile
from workbench.errors import WorkbenchError
from workbench.simulation import (
    Deployment,
    OperatorModel,
    QueryModel,
    State,
    StateModel,
    StateResponse,
    advance,
    steady_state,
)
from workbench.simulation.deployment import block_cache_mb

FLOW = Dataflow(
    "two counts",
    (Operator("source", "source"), Operator("a", "count", stateful=True), Operator("b", "count", stateful=True)),
    (Edge("source", "a"), Edge("a", "b")),
)
STATE = StateModel(400.0, miss_s=1e-3)
MODEL = QueryModel(FLOW, {name: OperatorModel(OperatorProfile(1e-3, 0, 0, 1.0), state=STATE) for name in "ab"})
TABLE = StateResponse((100.0, 200.0, 400.0), (0.2, 0.5, 0.9), (2e-3, 1e-3, 1e-4), (500.0, 800.0, 1000.0))


def rate(model, tasks, managed):
    return steady_state(Deployment(model, tasks, managed_mb=managed)).rate


def test_flink_keeps_less_than_half_of_managed_memory_for_writes():
    # Justin, section 3: 128 MB leave 96, 256 leave 192, 512 leave 448.
    assert block_cache_mb(5e-324) == 5e-324  # whose half is 0
    assert [block_cache_mb(memory) for memory in (0, 128, 158, 256, 316, 512, 632)] == [0, 96, 94, 192, 252, 448, 568]


def test_memory_counts_for_its_own_operator_alone():
    both = Deployment(MODEL, {"a": 1, "b": 1}, managed_mb={"a": 464.0, "b": 264.0})
    assert both.hits.tolist() == [1.0, 0.5]
    assert both.state_access() == {"a": (1.0, 0.0), "b": (0.5, 0.5e-3)}
    assert steady_state(both).rate == pytest.approx(1 / 1.5e-3)
    assert rate(MODEL, {"a": 1, "b": 1}, {"a": 464.0}) == pytest.approx(1 / 2e-3)  # b has none: every read misses
    assert rate(MODEL, {"a": 1, "b": 1}, {"a": None, "b": 464.0}) == pytest.approx(1 / 2e-3)
    assert rate(MODEL, {"a": 1, "b": 2}, {"a": 464.0, "b": 264.0}) == pytest.approx(1000.0)  # half the keys each


def test_without_managed_memory_a_share_of_the_slot_caches():
    assert Deployment(MODEL, {"a": 1, "b": 1}, 500.0).hits.tolist() == [0.5, 0.5]


def test_the_engine_saturates_at_the_closed_form_of_its_memory():
    deployment = Deployment(MODEL, {"a": 2, "b": 3}, managed_mb={"a": 158.0, "b": 316.0})
    _, step = advance(deployment, State.empty(deployment), np.inf, 10.0)
    assert step.consumed / 10.0 == pytest.approx(steady_state(deployment).rate)


def test_a_measured_response_is_interpolated_in_memory_per_state():
    model = QueryModel(
        FLOW,
        {
            "a": OperatorModel(OperatorProfile(1e-3, 0, 0, 1.0), state=replace(STATE, response=TABLE)),
            "b": OperatorModel(OperatorProfile(1e-5, 0, 0, 1.0)),
        },
    )
    assert rate(model, {"a": 1, "b": 1}, {"a": 200.0}) == pytest.approx(800.0)
    assert rate(model, {"a": 1, "b": 1}, {"a": 150.0}) == pytest.approx(650.0)
    assert rate(model, {"a": 1, "b": 1}, {"a": 9000.0}) == pytest.approx(1000.0)
    assert rate(model, {"a": 2, "b": 1}, {"a": 100.0}) == pytest.approx(1600.0)  # half the state on each
    deployment = Deployment(model, {"a": 1, "b": 1}, managed_mb={"a": 150.0})
    assert deployment.state_access()["a"] == pytest.approx((0.35, 1.5e-3))
    with_two = replace(model.operators["a"], state=replace(STATE, response=replace(TABLE, tasks=2)))
    measured_with_two = QueryModel(FLOW, {**model.operators, "a": with_two})
    assert rate(measured_with_two, {"a": 2, "b": 1}, {"a": 200.0}) == pytest.approx(1600.0)


def test_shares_given_for_a_while_do_not_move_the_state():
    deployment = Deployment(MODEL, {"a": 2, "b": 2}, managed_mb={"a": 264.0, "b": 264.0}, key_shares={"a": [0.9, 0.1]})
    assert deployment.hits.tolist() == [1.0] * 4
    assert steady_state(deployment).rate == pytest.approx(1000 / 0.9)


def test_a_response_is_read_from_a_file(tmp_path):
    path = tmp_path / "response.csv"
    path.write_text(
        "memory_mb,hit_rate,latency_s,true_rate\n200,0.5,0.001,800\n100,0.2,0.002,500\n400,0.9,0.0001,1000\n"
    )
    assert StateResponse.from_csv(path) == TABLE
    path.write_text("memory_mb,hit_rate,latency_s,true_rate\n200,0.5,0.001,800\n100,0.2,slow,500\n")
    with pytest.raises(
        WorkbenchError, match=r"Line 3 of .* has 'slow' in column 'latency_s'; it must be a finite number"
    ):
        StateResponse.from_csv(path)
    path.write_text("memory_mb,hit_rate\n")
    with pytest.raises(
        WorkbenchError, match="has no column 'latency_s', 'true_rate'; its first line names memory_mb, hit_rate"
    ):
        StateResponse.from_csv(path)
    path.write_text("memory_mb,hit_rate,latency_s,true_rate\n")
    with pytest.raises(WorkbenchError, match="has no rows"):
        StateResponse.from_csv(path)
    with pytest.raises(WorkbenchError, match="cannot be read"):
        StateResponse.from_csv(tmp_path / "missing.csv")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Deployment(MODEL, {"a": 1, "b": 1}, managed_mb={"c": 1.0}), "'c' is given 1.0 MB .* has a, b"),
        (lambda: Deployment(MODEL, {"a": 1, "b": 1}, managed_mb={"a": -1.0}), "'a' is given -1.0 MB"),
        (lambda: Deployment(MODEL, {"a": 1, "b": 1}, key_shares={"a": [0.5, 0.5]}), "'a' has 2 shares of its records"),
        (lambda: Deployment(MODEL, {"a": 2, "b": 1}, key_shares={"a": [0.5, 0.4]}), "adding up to 1"),
        (lambda: replace(TABLE, hit_rate=(0.2, 0.5)), "columns of 3, 2, 3, 3 rows"),
        (
            lambda: replace(TABLE, memory_mb=(200.0, 100.0, 400.0)),
            r"memory of a state response is 100 MB after 200 MB; it must ascend from above 0\. Give each memory once",
        ),
        (lambda: replace(TABLE, memory_mb=(0.0, 100.0, 400.0)), "is 0 MB after 0 MB; it must ascend from above 0"),
        (lambda: replace(TABLE, memory_mb=(100.0, 100.0, math.nan)), "is 100 MB after 100 MB"),
        (
            lambda: replace(TABLE, hit_rate=(0.2, 1.9, -0.5)),
            r"^A hit rate of a state response is 1\.9; it must be a share from 0 to 1\.",
        ),
        (lambda: replace(TABLE, true_rate=(0.0, 1.0, 2.0)), "true rates above 0"),
        (lambda: replace(TABLE, tasks=0), "was measured with 0 tasks"),
        (
            lambda: OperatorModel(OperatorProfile(2e-3, 0, 0, 1.0), state=replace(STATE, response=TABLE)),
            "cpu_s is 0.002 s, but one task was measured at 1000 records/s",
        ),
    ],
)
def test_what_contradicts_itself_is_refused(make, message):
    with pytest.raises(WorkbenchError, match=message):
        make()
