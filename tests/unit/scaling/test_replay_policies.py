"""Policies in the replay: DS2, Justin, the CAPSys controller, a user's own; whole workers; keys that move."""

import math
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from replayed import Scheduled, chain, compare

from workbench.dataflow import Dataflow, Edge, Operator, OperatorProfile
from workbench.errors import WorkbenchError
from workbench.scaling import (
    FLINK,
    JUSTIN,
    AutoscalerSettings,
    Controller,
    Decision,
    Ds2Policy,
    Fleet,
    JustinPolicy,
    JustinVariant,
    StateMetrics,
    Static,
    Window,
    WorkerShape,
    replay,
)
from workbench.scaling.ds2_policy import averaged, utilization
from workbench.simulation import (
    Deployment,
    KeyTrace,
    OperatorModel,
    QueryModel,
    RateTrace,
    StateModel,
    Worker,
    preset,
    steady_state,
)
from workbench.study import POLICIES
from workbench.study.scenario import initial_tasks

MODEL = chain(
    stateful=("count",),
    map=OperatorModel(OperatorProfile(1e-4, 0, 100, 1.0)),
    # 1000 MB are read all over: 10,000 records/s and task in memory, 2,000 from disk.
    count=OperatorModel(OperatorProfile(1e-4, 0, 0, 1.0), state=StateModel(1000.0, miss_s=4e-4)),
)
FLOW = MODEL.dataflow
ONE = {"map": 1, "count": 1}
START = Decision(ONE, dict.fromkeys(ONE, 158.0))
QUICK = AutoscalerSettings(activation_s=10.0, policy_interval_s=10.0, metrics_window_s=10.0)


def but(**operators):
    """The model with other operators."""
    return replace(MODEL, operators={**MODEL.operators, **operators})


def test_justin_gives_memory_first_and_none_to_what_has_no_state():
    banded = replace(QUICK, utilization_min=0.2, utilization_max=0.8, utilization_target=0.8)
    line = replay(RateTrace.constant(9_000, 900), MODEL, JustinPolicy(banded), START, step_s=1.0)
    first, second = line.reconfigurations[:2]
    assert (first.tasks, first.managed_mb) == ({"map": 2, "count": 1}, {"map": None, "count": 316.0})
    assert second.managed_mb == {"map": None, "count": 632.0}  # the hit rate rose
    assert line.consumed[-1] == pytest.approx(9_000)
    without = replay(RateTrace.constant(9_000, 900), MODEL, Ds2Policy(banded), START, step_s=1.0)
    assert line.reconfigurations[-1].tasks["count"] < without.reconfigurations[0].tasks["count"]
    assert without.reconfigurations[0].managed_mb == START.managed_mb


@pytest.mark.parametrize(
    ("policy", "at_s"),
    [
        (JustinPolicy(JUSTIN), 180.0),  # section 5.1: the first reconfiguration of q3 and q11
        (Ds2Policy(FLINK), FLINK.activation_s + FLINK.metrics_window_s),
    ],
)
def test_a_policy_acts_once_it_is_active_on_a_full_window(policy, at_s):
    line = replay(RateTrace.constant(9_000, 1_500), MODEL, policy, START, step_s=5.0)
    assert line.reconfigurations[0].at_s == at_s


@pytest.mark.parametrize(
    ("settings", "step_s"),
    [
        (FLINK, 7.0),
        (replace(JUSTIN, activation_s=90.0), 5.0),
        (replace(JUSTIN, metrics_window_s=90.0), 5.0),
        (replace(FLINK, policy_interval_s=70.0), 10.0),
    ],
)
def test_windows_that_do_not_tile_the_metrics_window_are_enough(settings, step_s):
    line = replay(RateTrace.constant(15_000, 1_500), MODEL, Ds2Policy(settings), ONE, step_s=step_s)
    first = line.reconfigurations[0].at_s
    assert 0 <= first - settings.activation_s - settings.metrics_window_s <= 2 * settings.policy_interval_s


def test_scale_in_gives_memory_back_only_in_the_variant():
    high = Decision({"map": 2, "count": 8}, {"map": None, "count": 632.0})
    trace = RateTrace.constant(9_000, 300)
    paper = replay(trace, MODEL, JustinPolicy(QUICK), high, step_s=1.0)
    ours = replay(trace, MODEL, JustinPolicy(QUICK, JustinVariant("exceeds", 0.05, 0.95)), high, step_s=1.0)
    assert paper.reconfigurations[0].managed_mb["count"] == 632.0
    assert ours.reconfigurations[0].managed_mb["count"] == 316.0


def test_flinks_autoscaler_answers_overload_though_it_lets_operators_be_busy_all_the_time():
    """Its utilization.max of 1 bounds what is asked for: a saturated operator is never busier than that."""
    dear = but(count=OperatorModel(OperatorProfile(2e-4, 0, 0, 1.0)))
    line = replay(RateTrace.steps([(2400, 4_000), (2400, 12_000)]), dear, Ds2Policy(FLINK), START, step_s=10.0)
    first = line.reconfigurations[0]
    assert 2400 < first.at_s <= 2400 + 900 + 60
    assert first.tasks["count"] > ONE["count"]
    assert line.reconfigurations[-1].tasks["count"] >= 12_000 * 2e-4
    assert line.consumed[-1] == pytest.approx(12_000)
    assert line.backlog[-1] == pytest.approx(0.0, abs=1.0)


def test_what_is_asked_for_of_an_operator_behind_a_saturated_one_counts_whole():
    idle = (0.0, 0.0, 0.0)
    counters = {"map": ((1_000.0, 1_000.0, 1.0),), "count": ((500.0, 0.0, 0.5), idle)}
    busyness = {"map": 1.0, "count": 0.25}
    window = Window(60.0, 0.0, FLOW, {"map": 1, "count": 2}, {"source": 3_000.0}, {"source": 0.0}, counters, busyness)
    assert utilization(window, {"source": 3_000.0}) == {"map": 3.0, "count": 1.5}
    unknown = replace(window, counters={**counters, "count": (idle,) * 2})
    assert utilization(unknown, {"source": 1.0})["count"] == 0.25


def test_windows_are_averaged_over_their_lengths():
    def window(now, seconds, rate, busy, hits):
        return Window(
            now, 0.0, FLOW, ONE, {"source": rate}, {"source": now}, {"map": ((1.0, 2.0, 3.0),)}, {"map": busy},
            seconds, {"count": StateMetrics(hits, None)},
        )  # fmt: skip

    mean = averaged([window(10.0, 10.0, 100.0, 0.2, 0.5), window(40.0, 30.0, 300.0, 1.0, 0.9)])
    assert (mean.source_rates, mean.busyness, mean.seconds) == ({"source": 250.0}, {"map": 0.8}, 40.0)
    assert (mean.counters, mean.backlog) == ({"map": ((2.0, 4.0, 6.0),)}, {"source": 40.0})
    assert mean.state["count"].hit_rate == pytest.approx(0.8)


def test_an_operator_that_would_not_change_triggers_nothing():
    settings = replace(QUICK, utilization_min=0.2, utilization_max=0.8, utilization_target=0.8)
    idle_map = but(map=OperatorModel(OperatorProfile(1e-6, 0, 0, 1.0)))
    start = {"map": 1, "count": 2}
    calm = replay(RateTrace.constant(8_000, 100), idle_map, Ds2Policy(settings), start, step_s=1.0)
    assert calm.reconfigurations == ()  # count is 40 % busy, map 1 %, but one task is the least
    idle = replay(RateTrace.constant(3_000, 100), idle_map, Ds2Policy(settings), start, step_s=1.0)
    assert idle.reconfigurations[0].tasks == ONE


WINDOWED = chain(
    stateful=("window",),
    window_s=10.0,
    filter=OperatorModel(OperatorProfile(5e-5, 0, 0, 1.0)),
    window=OperatorModel(OperatorProfile(1e-4, 0, 0, 1.0), windowed=True, emission_s=1e-5),
    join=OperatorModel(OperatorProfile(1e-4, 0, 0, 1.0)),  # works only while the window emits
)


@pytest.mark.parametrize("rate", [6_000, 15_000, 40_000])
def test_ds2_comes_to_rest_where_windows_emit_while_the_sources_stand_still(rate):
    """True rates of an operator that is useful in one of two phases alone are out of reach: both count."""
    settings = AutoscalerSettings(
        activation_s=30.0, policy_interval_s=60.0, metrics_window_s=60.0, utilization_target=0.8, utilization_min=0.5,
        utilization_max=0.9, catch_up_s=600.0, scale_down_interval_s=600.0,
    )  # fmt: skip
    start = dict.fromkeys(WINDOWED.modelled, 1)
    line = replay(RateTrace.constant(rate, 7_200), WINDOWED, Ds2Policy(settings), start, step_s=5.0)
    last = line.reconfigurations[-1]
    assert last.at_s < 3_600
    assert len(line.reconfigurations) <= 5
    assert steady_state(Deployment(WINDOWED, last.tasks)).rate >= rate
    assert line.tasks[-1] <= 3 * 2.6e-4 * rate + 3  # both phases together take no more than they must
    assert line.consumed[-120:].mean() == pytest.approx(rate, rel=0.01)


def test_the_default_ds2_comes_to_rest_on_the_windowed_preset():
    query = preset("q8")
    start = initial_tasks(query, 10, 2048.0)
    rate = 1.5 * steady_state(Deployment(query, start, 2048.0)).rate
    line = replay(RateTrace.constant(rate, 10_800), query, POLICIES["ds2"], start, memory_mb=2048.0)
    assert line.reconfigurations[-1].at_s < 3_600
    assert len(line.reconfigurations) <= 5
    assert line.summary()["at_target"] > 0.8


# --- placement

SPIN = chain(
    light=OperatorModel(OperatorProfile(2e-5, 0.0, 100.0, 1.0)),
    heavy=OperatorModel(OperatorProfile(1e-4, 1.0, 0.0, 1.0)),
)
PROFILES = {name: one.profile for name, one in SPIN.operators.items()}


def controller(strategy, seed=0, scaling=None):
    worker = Worker(cpus=2.0, io_bytes_per_s=11_000.0)  # little more than one heavy task's records
    return Controller(scaling or Ds2Policy(QUICK), PROFILES, 4, 3, worker, strategy, seed)


def test_the_controller_spreads_what_contends_and_flink_may_not():
    trace = RateTrace.constant(36_000, 600)
    start = Decision({"light": 1, "heavy": 4})
    caps = replay(trace, SPIN, controller("caps", scaling=Static()), start, step_s=1.0)
    default = replay(trace, SPIN, controller("default", scaling=Static()), start, step_s=1.0)
    assert caps.consumed[-1] == pytest.approx(36_000)
    assert default.consumed[-1] < 30_000


def test_bad_placement_makes_ds2_ask_for_more():
    trace = RateTrace.constant(18_000, 600)
    lines = {name: replay(trace, SPIN, controller(name), {"light": 1, "heavy": 1}, step_s=1.0) for name in
             ("caps", "default")}  # fmt: skip
    assert lines["caps"].reconfigurations[-1].tasks == {"light": 1, "heavy": 2}
    assert len(lines["caps"].reconfigurations) == 1
    assert lines["default"].tasks.max() > 3


def test_random_placements_depend_on_the_seed_and_the_decision_alone():
    one = controller("default", 3).place(SPIN.dataflow, {"light": 3, "heavy": 4}, {"source": 1.0}, 2)
    assert one == controller("default", 3).place(SPIN.dataflow, {"light": 3, "heavy": 4}, {"source": 9.0}, 2)
    others = [controller("default", 3).place(SPIN.dataflow, {"light": 3, "heavy": 4}, {"source": 1.0}, n)
              for n in range(6)]  # fmt: skip
    assert len({tuple(other.counts["heavy"]) for other in others}) > 1
    evenly = controller("evenly").place(SPIN.dataflow, {"light": 4, "heavy": 4}, {"source": 1.0})
    assert np.sum(list(evenly.counts.values()), axis=0).tolist() == [2, 2, 2, 2]


def test_tasks_beyond_the_slots_are_taken_off_again():
    assert controller("caps").fitting({"light": 9, "heavy": 7}) == {"light": 7, "heavy": 5}
    line = replay(RateTrace.constant(1e6, 100), SPIN, controller("caps"), {"light": 1, "heavy": 1}, step_s=1.0)
    assert line.tasks.max() == 12
    with pytest.raises(WorkbenchError, match="1 slot cannot hold 2 operators; add workers"):
        replace(controller("caps"), workers=1, slots=1).fitting({"light": 1, "heavy": 1})


def test_a_policy_that_places_nothing_is_refused_where_placement_counts():
    change = Scheduled(((50.0, {"light": 1, "heavy": 2}),))
    placed = controller("caps").begin(SPIN.dataflow, Decision({"light": 1, "heavy": 1}), {"source": 1.0})
    with pytest.raises(WorkbenchError, match="wrap the policy in a Controller"):
        replay(RateTrace.constant(1, 100), SPIN, change, placed, step_s=1.0)
    with pytest.raises(WorkbenchError, match="The placement strategy is 'best'; use one of 'caps'"):
        controller("best")


# --- a policy of your own, and what things cost


@dataclass(frozen=True)
class Thresholds:
    """Kubernetes' rule: tasks in proportion to busyness over its target, outside a tolerance, no shrinking at once."""

    target: float = 0.7
    tolerance: float = 0.1
    patience: int = 3
    interval_s: float = 15.0

    def decide(self, window, memory):
        wanted = {
            name: max(1, math.ceil(tasks * window.busyness[name] / self.target))
            if abs(window.busyness[name] / self.target - 1) > self.tolerance
            else tasks
            for name, tasks in window.tasks.items()
        }
        recent = [*(memory or []), wanted][-self.patience :]
        return {name: max(one[name] for one in recent) for name in wanted}, recent


def test_a_users_policy_of_twenty_lines_runs_beside_the_built_in_ones():
    trace = RateTrace.diurnal(1_000, 25_000, duration_s=3_600, period_s=3_600, peak_at_s=1_800)
    fleet = Fleet(WorkerShape(4.0, 2048.0), 354.0, price_per_hour=0.2)
    policies = {"static": Static(), "ds2": Ds2Policy(QUICK), "justin": JustinPolicy(QUICK), "mine": Thresholds()}
    rows = compare(trace, MODEL, policies, START, step_s=1.0, fleet=fleet)
    assert list(rows) == ["static", "ds2", "justin", "mine"]
    assert len({tuple(row) for row in rows.values()}) == 1  # one table
    assert set(rows["mine"]) >= {
        "at_target", "latency_p99_s", "core_hours", "gb_hours", "cost", "reconfigurations", "moved_bytes"
    }  # fmt: skip
    assert rows["mine"]["reconfigurations"] > 0
    assert rows["mine"]["latency_p99_s"] < rows["static"]["latency_p99_s"]
    assert rows["justin"]["core_hours"] <= rows["ds2"]["core_hours"]
    assert rows == compare(trace, MODEL, policies, START, step_s=1.0, fleet=fleet)


def test_whole_workers_are_paid_and_memory_levels_count():
    fleet = Fleet(WorkerShape(4.0, 2048.0), 354.0, price_per_hour=0.5)
    tasks = {"map": 4, "count": 4}
    hour = RateTrace.constant(1, 3_600)
    line = replay(hour, MODEL, Static(), Decision(tasks, {"map": None, "count": 158.0}), fleet=fleet)
    row = line.summary()
    assert set(line.workers) == {2}
    assert (row["core_hours"], row["gb_hours"], row["cost"]) == pytest.approx((8.0, 4.0, 1.0))
    assert fleet.paid(tasks, {"count": 632.0}) == (3, 12, 6144)  # two at 986 MB fill one; four maps need one more
    start = Decision(tasks, {"map": None, "count": 128.0})
    row = replay(hour, MODEL, Static(), start, memory_mb=512.0).summary()
    assert row["gb_hours"] == pytest.approx(8 * 0.5 + 4 * 0.125)
    assert "cost" not in row


def test_a_change_of_memory_moves_the_state_too():
    grow = Scheduled(((50.0, Decision(ONE, {"map": None, "count": 316.0})),))
    line = replay(RateTrace.constant(1, 200), MODEL, grow, START, step_s=1.0, restart_s=5.0)
    assert [change.moved_bytes for change in line.reconfigurations] == [1000.0 * 2**20]
    assert line.reconfigurations[0].downtime_s == pytest.approx(5.0 + 1000 * 2**20 / 100e6)


# --- keys


def test_a_hot_key_slows_the_task_it_is_on_wherever_it_wanders_and_of_no_operator_is_refused():
    tasks = {"map": 2, "count": 4}
    trace = RateTrace.constant(18_000, 300)
    plain = but(count=OperatorModel(OperatorProfile(2e-4, 0, 0, 1.0)))
    keys = {"count": KeyTrace.hot_key(1000, 0.4, changes_per_minute=2.0, seed=1)}
    calm = replay(trace, plain, Static(), tasks, step_s=1.0)
    hot = replay(trace, plain, Static(), tasks, step_s=1.0, keys=keys)
    assert calm.consumed.min() == pytest.approx(18_000)
    assert hot.consumed.max() < 5_000 / (0.4 + 0.6 / 4) * 1.1
    assert len(set(hot.consumed.round(3))) > 1  # other tasks, other neighbours
    again = replay(trace, plain, Static(), tasks, step_s=1.0, keys=keys)
    assert again.consumed.tolist() == hot.consumed.tolist()
    with pytest.raises(WorkbenchError, match="keys for join, which is not an operator with tasks; use map, count"):
        replay(RateTrace.constant(1, 10), MODEL, Static(), ONE, keys={"join": KeyTrace.zipf(10, 1.0)})


def test_sources_that_have_tasks_keep_them():
    query = QueryModel(
        Dataflow("fed", (Operator("source", "source"), Operator("map", "map")), (Edge("source", "map"),)),
        {name: OperatorModel(OperatorProfile(1e-4, 0, 0, 1.0)) for name in ("source", "map")},
    )
    start = {"source": 3, "map": 1}
    line = replay(RateTrace.constant(25_000, 100), query, Ds2Policy(QUICK), start, step_s=1.0)
    assert [change.tasks for change in line.reconfigurations] == [{"source": 3, "map": 3}]
    profiles = {name: one.profile for name, one in query.operators.items()}
    placing = Controller(JustinPolicy(QUICK), profiles, 2, 4, strategy="caps")
    line = replay(RateTrace.constant(25_000, 100), query, placing, start, step_s=1.0)
    assert line.reconfigurations[-1].tasks == {"source": 3, "map": 3}


@dataclass
class Noting:
    """Changes the tasks once, and notes the windows."""

    tasks: dict | None
    interval_s: float
    windows: list = field(default_factory=list)

    def decide(self, window, memory):
        self.windows.append(window)
        return (self.tasks if memory is None else None), True


def test_a_step_in_which_the_deployment_comes_up_counts_only_the_seconds_worked():
    noting = Noting({"map": 2, "count": 1}, 5.0)
    model = but(count=OperatorModel(OperatorProfile(1e-4, 0, 0, 1.0)))
    line = replay(RateTrace.constant(400.0, 600.0), model, noting, ONE, restart_s=8.0, step_s=5.0, batch_s=5.0)
    first, coming, *_ = noting.windows
    assert coming.seconds == pytest.approx(7.0)
    for window in noting.windows:
        for counters in window.counters.values():
            for processed, _, useful_s in counters:
                assert processed / useful_s == pytest.approx(10_000.0)
    assert first.busyness["count"] == pytest.approx(0.04)
    assert coming.busyness["count"] == pytest.approx(400.0 * 15 / 7 * 1e-4)
    assert line.busy[:4] == pytest.approx([0.04, 0.0, 0.2, 0.04])  # what came in two steps is worked off in 2 s


@pytest.mark.parametrize(("load", "tasks"), [(0.9, 4), (0.99, 4), (1.02, 7), (0.36, 4), (0.33, 3)])
def test_flink_keeps_its_tasks_up_to_full_utilization(load, tasks):
    light = chain(map=OperatorModel(OperatorProfile(1e-3, 0, 0, 1.0)))
    policy = Ds2Policy(replace(FLINK, scale_down_interval_s=0.0))
    decided = None
    window, memory = window_at(light, 4, load), None
    for _ in range(3):
        answer, memory = policy.decide(window, memory)
        decided = answer or decided
        window = replace(window, now_s=window.now_s + 900.0)
    assert (decided or window.tasks)["map"] == tasks


def window_at(model, tasks, load):
    """A window of `tasks` of 1,000 records/s each that are asked for a share of `load` of it."""
    rate = 1000.0 * tasks * load
    useful_s = 900.0 * min(1.0, load)
    each = (1000.0 * useful_s, 1000.0 * useful_s, useful_s)
    return Window(
        3000.0, 0.0, model.dataflow, {"map": tasks}, {"source": rate}, {"source": 0.0}, {"map": (each,) * tasks},
        {"map": min(1.0, load)}, seconds=900.0,
    )  # fmt: skip


def test_the_busiest_task_decides_how_much_an_operator_needs():
    """One of two tasks takes the hot key's six tenths of the records and half of the rest."""
    hot = but(map=OperatorModel(OperatorProfile(1e-4, 0, 100, 1.0), hot_share=0.6))
    start, trace = {"map": 2, "count": 4}, RateTrace.constant(11_000, 120)
    settings = replace(QUICK, utilization_target=0.7)
    by_mean, by_busiest = (
        replay(trace, hot, Ds2Policy(replace(settings, busiest=one)), start, step_s=1.0) for one in (False, True)
    )
    first = [line.reconfigurations[0].tasks["map"] for line in (by_mean, by_busiest)]
    carried = 1 / (1e-4 * 0.8)  # by both, when that one is full
    assert first[1] == math.ceil(2 * 11_000 / 0.7 / carried)
    assert first[0] < first[1]


def test_generated_records_do_not_wait_and_show_the_lower_rate():
    noting = Noting(None, 50.0)
    trace = RateTrace.steps([(100, 15_000), (100, 5_000)])
    line = replay(trace, MODEL, noting, {"map": 1, "count": 10}, step_s=1.0, generated=True)
    assert line.backlog.max() == 0
    assert line.consumed[50] == pytest.approx(10_000)
    assert line.consumed[150] == pytest.approx(5_000)
    seen = [(window.source_rates["source"], window.backlog["source"]) for window in noting.windows]
    assert seen[0] == pytest.approx((10_000, 0.0))
    assert seen[-1] == pytest.approx((5_000, 0.0))


LINEAR = chain(
    stateful=("count",),
    map=OperatorModel(OperatorProfile(1e-4, 0, 100, 0.5)),
    count=OperatorModel(OperatorProfile(2e-4, 0, 0, 1.0), state=StateModel(100.0, miss_s=0.0)),
)


def test_a_static_deployment_keeps_up_within_its_capacity_and_falls_behind_by_the_difference_beyond():
    line = replay(RateTrace.constant(9_000, 600), LINEAR, Static(), ONE, step_s=1.0)
    assert line.consumed == pytest.approx(np.full(600, 9_000))
    assert line.backlog.max() < 1e-6
    assert line.latency_s.max() <= 1.0
    assert line.summary()["at_target"] == 1.0
    assert line.summary()["core_hours"] == pytest.approx(2 * 600 / 3600)
    line = replay(RateTrace.constant(12_000, 300), LINEAR, Static(), ONE, step_s=1.0)
    assert line.backlog[-1] == pytest.approx(2_000 * 300, rel=1e-6)
    assert line.latency_s[-1] == pytest.approx(300 - 300 * 10 / 12, abs=1.0)
    assert line.summary()["at_target"] < 0.05


def test_nothing_runs_while_it_restarts():
    change = Scheduled(((100.0, {"map": 2, "count": 1}),))
    line = replay(RateTrace.constant(5_000, 200), LINEAR, change, ONE, step_s=1.0, restart_s=20.0)
    assert [one.at_s for one in line.reconfigurations] == [100.0]
    assert line.reconfigurations[0].moved_bytes == 0
    assert line.consumed[100:120].max() == 0
    assert line.backlog[119] == pytest.approx(20 * 5_000)
    assert line.consumed[120] == pytest.approx(10_000)
    assert line.summary()["at_target"] < 1


def test_a_plan_for_catching_up_empties_the_backlog_sooner():
    trace = RateTrace.steps([(60, 30_000), (600, 9_500)])
    slow = replay(trace, LINEAR, Static(), ONE, step_s=1.0)
    settings = AutoscalerSettings(activation_s=10, policy_interval_s=10, restart_s=5, catch_up_s=60)
    fast = replay(trace, LINEAR, Ds2Policy(settings), ONE, step_s=1.0, restart_s=5.0)
    assert fast.summary()["latency_p99_s"] < slow.summary()["latency_p99_s"] / 2
    assert fast.summary()["core_hours"] > slow.summary()["core_hours"]
