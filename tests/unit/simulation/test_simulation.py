import math
from dataclasses import replace
from operator import call

import numpy as np
import pytest
from refusals import refusals

from workbench.dataflow import Dataflow, Edge, Operator, OperatorProfile
from workbench.errors import WorkbenchError
from workbench.simulation import (
    Cluster,
    Deployment,
    OperatorModel,
    QueryModel,
    State,
    StateModel,
    StateResponse,
    WarmUp,
    Worker,
    advance,
    carry,
    preset,
    speed_factor,
    steady_state,
    stream,
    whole_step,
)
from workbench.simulation.deployment import block_cache_mb, hit_rate, read_latency_s
from workbench.simulation.keys import task_shares
from workbench.simulation.model import input_ratios, waves

MS = 1e-3


def costs(cpu_s, selectivity=1.0, output_bytes=0.0, state_bytes=0.0, **mechanisms):
    return OperatorModel(OperatorProfile(cpu_s, state_bytes, output_bytes, selectivity), **mechanisms)


def chain(*names, partitioning="shuffle"):
    operators = (Operator("source", "source"), *(Operator(name, "map") for name in names))
    ends = ("source", *names)
    return Dataflow("chain", operators, tuple(Edge(a, b, partitioning) for a, b in zip(ends, names, strict=False)))


def saturated(deployment, seconds=20.0, step_s=0.5):
    """Records/s in every step when the source offers all that fits."""
    state, rates = State.empty(deployment), []
    for _ in range(round(seconds / step_s)):
        state, step = advance(deployment, state, math.inf, step_s)
        rates.append(step.consumed / step_s)
    return rates


BURSTS = QueryModel(
    chain("filter", "window", "join"),
    {"filter": costs(1 * MS), "window": costs(2 * MS, 0.5, windowed=True, emission_s=1 * MS), "join": costs(6 * MS)},
    window_s=10.0,
)


def test_waves_are_downstream_first_and_bursts_add_to_the_seconds_of_a_record():
    bursts = {"window": {"filter": 0.0, "join": 1.0}}
    assert waves(BURSTS) == (bursts, {"source": {"filter": 1.0, "window": 1.0, "join": 0.0}})
    assert input_ratios(BURSTS) == {"filter": 1.0, "window": 1.0, "join": 0.5}
    # Per source record 2 ms of the window while filling, then half a result of 6 ms in the join while it emits.
    found = steady_state(Deployment(BURSTS, BURSTS.minimal_layout))
    assert found.rate == pytest.approx(1 / 5e-3)
    assert found.busyness() == pytest.approx({"filter": 0.2, "window": 0.5, "join": 0.6})
    # Work alone, as BIDS2 counts it, would allow 1 / 3 ms.
    assert max(found.work_s.values()) == pytest.approx(3e-3)


def test_a_burst_stops_the_sources_for_as_long_as_the_join_works_on_it():
    deployment = Deployment(BURSTS, BURSTS.minimal_layout)
    state, consumed = State.empty(deployment), []
    for _ in range(20):
        state, step = advance(deployment, state, 100.0, 1.0)
        consumed.append(step.consumed)
    # 1000 records in a window give 500 results, 3 s of the join.
    assert consumed[:10] == [100.0] * 10
    assert consumed[10:] == pytest.approx([0.0] * 3 + [100.0] * 7, abs=1e-9)


PLAIN = QueryModel(chain("map"), {"map": costs(1 * MS)})


def test_buffers_absorb_at_first():
    rates = saturated(Deployment(PLAIN, {"map": 2}, buffer_s=1.0), 2.0)
    assert rates == pytest.approx([6000.0, 2000.0, 2000.0, 2000.0])


def test_code_is_compiled_and_caches_fill_until_the_rate_is_steady():
    model = QueryModel(
        chain("map"),
        {"map": costs(1 * MS, state=StateModel(100.0, miss_s=1 * MS))},
        warm_up=WarmUp(code_s=10.0, slowdown=2.0, cache_s=20.0),
    )
    rates = saturated(Deployment(model, {"map": 1}), 30.0, 1.0)
    assert rates[0] == pytest.approx(1 / 4e-3)
    assert rates == sorted(rates)
    assert rates[19] < rates[20] == pytest.approx(1000.0)
    assert rates[20:] == rates[20:21] * 10


def test_memory_counts_until_the_working_set_fits():
    state = StateModel(1000.0, cache_share=0.5, miss_s=4 * MS, hit_s=1 * MS)
    shares = np.array([0.25, 0.75])
    assert hit_rate(250.0, state, shares) == pytest.approx([1.0, 1 / 3])
    assert hit_rate(250.0, replace(state, locality=0.5), shares) == pytest.approx([1.0, math.sqrt(1 / 3)])
    assert hit_rate(2000.0, state, shares).tolist() == [1.0, 1.0]
    assert read_latency_s(state, np.array([1.0, 0.5])) == pytest.approx([1 * MS, 2.5 * MS])
    model = QueryModel(chain("map"), {"map": costs(1 * MS, state=replace(state, reads=2.0))})
    rates = [steady_state(Deployment(model, {"map": 1}, memory)).rate for memory in (200, 1000, 2000, 4000)]
    assert rates == pytest.approx([1 / (1 + 2 * 3.7) / MS, 1 / (1 + 2 * 2.5) / MS, 1000 / 3, 1000 / 3])


def test_small_heaps_are_collected_more_often_and_a_fraction_of_a_core_is_slower():
    model = replace(PLAIN, live_mb=100.0)
    assert steady_state(Deployment(model, {"map": 1}, 200.0)).rate == pytest.approx(500.0)
    assert steady_state(Deployment(model, {"map": 1}, 1100.0)).rate == pytest.approx(1000 / 1.1)
    rates = [steady_state(Deployment(PLAIN, {"map": 1}, cpus=cpus)).rate for cpus in (0.25, 1.0, 4.0)]
    assert rates == pytest.approx([250.0, 1000.0, 1000.0])


def test_records_that_change_tasks_cost_more_and_forward_edges_keep_shares():
    model = QueryModel(chain("map"), {"map": costs(1 * MS, exchange_s=1 * MS)})
    rates = [steady_state(Deployment(model, {"map": tasks})).rate for tasks in (1, 2, 4)]
    assert rates == pytest.approx([1000.0, 2000 / 1.5, 4000 / 1.75])
    operators = {"a": costs(1 * MS, hot_share=0.5), "b": costs(1 * MS, exchange_s=1 * MS)}
    model = QueryModel(chain("a", "b", partitioning="forward"), operators)
    deployment = Deployment(model, {"a": 2, "b": 2})
    assert deployment.shares.tolist() == [0.25, 0.75, 0.25, 0.75]
    assert deployment.cpu_s.tolist() == [1 * MS] * 4
    unequal = Deployment(model, {"a": 2, "b": 4})
    assert unequal.shares[2:].tolist() == [0.25] * 4
    assert unequal.cpu_s[2:] == pytest.approx([1.75 * MS] * 4)


def test_shares_add_up_the_fullest_is_the_typical_maximum_and_tasks_take_whole_partitions():
    assert task_shares(1, 0.3, 0.2).tolist() == [1.0]
    assert task_shares(4, 0.2).tolist() == pytest.approx([0.2, 0.2, 0.2, 0.4])
    for tasks in (2, 3, 10, 999):
        shares = task_shares(tasks, 0.1, 0.3)
        assert shares.sum() == pytest.approx(1.0)
        assert shares.min() > 0
        assert shares.argmax() == tasks - 1
    # The expected largest of 10 standard normal draws is 1.54, of 100 it is 2.51.
    assert task_shares(10, 0.0, 0.1).max() * 10 - 1 == pytest.approx(0.154, rel=0.1)
    assert task_shares(100, 0.0, 0.1).max() * 100 - 1 == pytest.approx(0.251, rel=0.1)
    assert task_shares(3, partitions=8).tolist() == pytest.approx([2 / 8, 3 / 8, 3 / 8])
    assert task_shares(8, partitions=8).tolist() == task_shares(8).tolist()
    assert task_shares(5, partitions=2).tolist() == [0, 0, 0, 0.5, 0.5]
    for tasks, partitions in ((3, 8), (4, 8), (7, 20), (5, 2)):
        assert task_shares(tasks, partitions=partitions).max() == pytest.approx(-(-partitions // tasks) / partitions)
    assert task_shares(4, 0.2, 0.1, partitions=10).sum() == pytest.approx(1)
    assert task_shares(4, 1.0, partitions=10).tolist() == [0, 0, 0, 1]


CROWD = QueryModel(chain("a", "b"), {"a": costs(1 * MS, output_bytes=1000.0), "b": costs(1 * MS, state_bytes=500.0)})


def test_tasks_on_a_worker_share_its_cores_its_disk_and_its_network():
    layout = {"a": 2, "b": 2}
    together = Cluster((Worker(2.0), Worker(2.0)), {"a": (2, 0), "b": (2, 0)})
    spread = Cluster((Worker(2.0), Worker(2.0)), {"a": (1, 1), "b": (1, 1)})
    assert steady_state(Deployment(CROWD, layout, cluster=spread)).rate == pytest.approx(2000.0)
    crowded = Deployment(CROWD, layout, cluster=together)
    assert steady_state(crowded).rate == pytest.approx(1000.0)
    _, step = advance(crowded, State.empty(crowded), math.inf, 1.0)
    # Busy all the time at half the true rate: what DS2 then measures.
    assert step.useful_s == pytest.approx([1.0] * 4)
    assert step.records == pytest.approx([500.0] * 4)
    _, step = advance(crowded, State.empty(crowded), 800.0, 1.0)
    assert step.useful_s == pytest.approx([0.4] * 4)
    layout = {"a": 1, "b": 1}
    local, remote = {"a": (1, 0), "b": (1, 0)}, {"a": (1, 0), "b": (0, 1)}

    def rate(counts, **limits):
        return steady_state(Deployment(CROWD, layout, cluster=Cluster((Worker(**limits),) * 2, counts))).rate

    assert rate(local, io_bytes_per_s=100_000.0) == pytest.approx(200.0)
    assert rate(local, net_bytes_per_s=100_000.0) == pytest.approx(1000.0)
    assert rate(remote, net_bytes_per_s=100_000.0) == pytest.approx(100.0)
    # Of 4 tasks of b one shares a worker with a's only task: three quarters of its output leave.
    cluster = Cluster((Worker(net_bytes_per_s=1000.0),) * 2, {"a": (1, 0), "b": (1, 3)})
    assert steady_state(Deployment(CROWD, {"a": 1, "b": 4}, cluster=cluster)).rate == pytest.approx(4 / 3)


def test_window_contents_move_to_another_parallelism():
    old = Deployment(BURSTS, {"filter": 1, "window": 2, "join": 1})
    new = Deployment(BURSTS, {"filter": 2, "window": 3, "join": 4})
    state = State.empty(old)
    for _ in range(3):
        state, _ = advance(old, state, 100.0, 1.0)
    moved = carry(state, old, new)
    assert moved.held.sum() == pytest.approx(150.0)
    assert moved.held[new.slices["window"]] == pytest.approx([50.0] * 3)
    assert (moved.window_age_s, moved.age_s) == (3.0, 0.0)


def test_steps_divide_the_window():
    assert whole_step(0.5, None) == 0.5
    assert whole_step(0.5, 2.0) == 0.5
    assert whole_step(0.3, 2.0) == pytest.approx(2 / 7)
    assert whole_step(5.0, 2.0) == 2.0


def test_random_numbers_depend_on_the_key_alone():
    assert stream(1, "a").random() == stream(1, "a").random()
    assert len({stream(*key).random() for key in ((1, "a"), (2, "a"), (1, "b"), (1, "a", 0), ("1", "a"))}) == 5
    draws = np.array([speed_factor(stream(0, n), 0.1) for n in range(4000)])
    assert draws.mean() == pytest.approx(1.0, abs=0.005)
    assert draws.std() == pytest.approx(0.1, rel=0.05)
    assert speed_factor(stream(0), 0.0) == 1.0


def test_a_query_without_costs_has_no_limit():
    free = QueryModel(chain("map"), {"map": costs(0.0)})
    deployment = Deployment(free, {"map": 1})
    assert steady_state(deployment).rate == math.inf
    _, step = advance(deployment, State.empty(deployment), 5.0, 1.0)
    assert (step.consumed, step.active_s) == (5.0, 0.0)
    with pytest.raises(WorkbenchError, match=r"Nothing limits the rate of query 'chain'"):
        advance(deployment, State.empty(deployment), math.inf, 1.0)


test_models_that_contradict_themselves_are_refused = refusals(
    call,
    (lambda: QueryModel(chain("a"), {}), "has no model for operator 'a'; every operator but the sources"),
    (lambda: QueryModel(chain("a"), {"a": costs(1.0), "b": costs(1.0)}), "models the unknown operator 'b'; it has"),
    (lambda: QueryModel(chain("a"), {"a": costs(1.0, windowed=True)}), "window_s = None and the windowed"),
    (lambda: QueryModel(chain("a"), {"a": costs(1.0)}, 2.0), "window_s = 2.0 and the windowed operators none"),
    (lambda: QueryModel(chain("a"), {"a": costs(1.0)}, source_shares={"source": 0.5}), "that add up to 1"),
    (lambda: QueryModel(chain("a"), {"a": costs(1.0)}, noise=-1.0), "noise of query 'chain' is -1.0; it must be"),
    (lambda: QueryModel(Dataflow("x", (Operator("a", "map"),), ()), {"a": costs(1.0)}), "no operator of kind"),
    (lambda: costs(1.0, emission_s=1.0), "emission_s is 1.0 for an operator that is not windowed"),
    (lambda: costs(1.0, hot_share=1.5), r"hot_share is 1.5; it must be at least 0 and at most 1 \(share of"),
    (lambda: costs(1.0, imbalance=0.5), "imbalance is 0.5; it must be at least 0 and at most 0.3"),
    (lambda: Deployment(replace(PLAIN, live_mb=100.0), {"map": 1}, 100.0), "Slots of 100 MB cannot hold the"),
    (lambda: preset("q3"), "There is no preset 'q3'; there are q1, q2, q5, q8, q11"),
    (lambda: StateModel(-1.0), "working_set_mb is -1.0"),
    (lambda: Worker(0.0), "A worker's cpus is 0.0; it must be above 0"),
    (lambda: Cluster((), {}), "no workers"),
    (lambda: Cluster((Worker(),), {"a": (1, 2)}), r"counts of operator 'a' are \[1, 2\]; give one number"),
    (lambda: Deployment(BURSTS, {"filter": 1}), "needs some for filter, window, join"),
    (lambda: Deployment(BURSTS, {"filter": 1, "window": 0, "join": 1}), "'window' has 0 tasks; it needs a whole"),
    (
        lambda: steady_state(Deployment(CROWD, {"a": 2, "b": 1}, cluster=Cluster((Worker(),), {"a": (1,), "b": (1,)}))),
        "places 1 task of operator 'a', which has 2",
    ),
    (lambda: Deployment(MODEL, {"a": 1, "b": 1}, managed_mb={"c": 1.0}), "'c' is given 1.0 MB .* has a, b"),
    (lambda: Deployment(MODEL, {"a": 1, "b": 1}, key_shares={"a": [0.5, 0.5]}), "'a' has 2 shares of its records"),
    (lambda: Deployment(MODEL, {"a": 2, "b": 1}, key_shares={"a": [0.5, 0.4]}), "adding up to 1"),
    (lambda: replace(TABLE, hit_rate=(0.2, 0.5)), "columns of 3, 2, 3, 3 rows"),
    (lambda: replace(TABLE, memory_mb=(200.0, 100.0, 400.0)), "is 100 MB after 200 MB; it must ascend"),
    (lambda: replace(TABLE, hit_rate=(0.2, 1.9, -0.5)), r"^A hit rate of .* is 1\.9; it must be a share from 0"),
    (lambda: replace(TABLE, true_rate=(0.0, 1.0, 2.0)), "true rates above 0"),
    (lambda: replace(TABLE, tasks=0), "was measured with 0 tasks"),
    (
        lambda: OperatorModel(OperatorProfile(2e-3, 0, 0, 1.0), state=replace(STATE, response=TABLE)),
        "cpu_s is 0.002 s, but one task was measured at 1000 records/s",
    ),
)


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
    assert both.state_access() == {"a": (1.0, 0.0), "b": (0.5, 0.5e-3)}
    assert steady_state(both).rate == pytest.approx(1 / 1.5e-3)
    assert rate(MODEL, {"a": 1, "b": 1}, {"a": 464.0}) == pytest.approx(1 / 2e-3)  # b has none: every read misses
    assert rate(MODEL, {"a": 1, "b": 1}, {"a": None, "b": 464.0}) == pytest.approx(1 / 2e-3)
    assert rate(MODEL, {"a": 1, "b": 2}, {"a": 464.0, "b": 264.0}) == pytest.approx(1000.0)  # half the keys each

    shared = Deployment(MODEL, {"a": 1, "b": 1}, 500.0)  # a share of the slot caches
    assert [hits for hits, _ in shared.state_access().values()] == [0.5, 0.5]


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
    assert [hits for hits, _ in deployment.state_access().values()] == [1.0] * 2
    assert steady_state(deployment).rate == pytest.approx(1000 / 0.9)


def test_a_response_is_read_from_a_file(tmp_path):
    path, header = tmp_path / "response.csv", "memory_mb,hit_rate,latency_s,true_rate\n"
    with pytest.raises(WorkbenchError, match="cannot be read"):
        StateResponse.from_csv(path)
    path.write_text(f"{header}200,0.5,0.001,800\n100,0.2,0.002,500\n400,0.9,0.0001,1000\n")
    assert StateResponse.from_csv(path) == TABLE
    for text, message in (
        (f"{header}200,0.5,0.001,800\n100,0.2,slow,500\n", "Line 3 of .* has 'slow' in column 'latency_s'; it must be"),
        ("memory_mb,hit_rate\n", "no column 'latency_s', 'true_rate'; its first line names memory_mb, hit_rate"),
        (header, "has no rows"),
    ):
        path.write_text(text)
        with pytest.raises(WorkbenchError, match=message):
            StateResponse.from_csv(path)
