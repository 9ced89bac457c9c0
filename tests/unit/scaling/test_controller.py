from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from replayed import chain

from workbench.dataflow import OperatorProfile
from workbench.scaling import Controller, Decision, Static, Window, ds2
from workbench.scaling.controller import served
from workbench.simulation import Deployment, OperatorModel, RateTrace, Worker, steady_state
from workbench.study import Pool, replay_start, simulated_start

PROFILES = {name: OperatorProfile(1e-4, 0.0, 0.0, 1.0) for name in ("light", "heavy")}
FLOW = chain(**{name: OperatorModel(profile) for name, profile in PROFILES.items()}).dataflow


class Wants:
    """A policy that always wants the same."""

    interval_s = 1.0

    def __init__(self, tasks, managed_mb=None):
        self.decision = Decision(tasks, managed_mb)

    def decide(self, _, memory):
        return self.decision, memory


def controller(slots, policy=None):
    return Controller(policy or Static(), PROFILES, 1, slots)


def window(tasks, useful_s, rate=1000.0, managed_mb=None):
    """Every task of an operator passed 100 records on in `useful_s` seconds; none with 0."""
    counters = {name: ((100.0, 100.0, useful_s[name]) if useful_s[name] else (0.0, 0.0, 0.0),) * n
                for name, n in tasks.items()}  # fmt: skip
    busyness = dict.fromkeys(tasks, 1.0)
    return Window(60, 0, FLOW, tasks, {"source": rate}, {"source": 0.0}, counters, busyness, 1.0, managed_mb=managed_mb)


SPLITS = st.integers(2, 4).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(1, 7), min_size=n, max_size=n),
        st.lists(st.one_of(st.just(0.0), st.floats(0.01, 9.0)), min_size=n, max_size=n),
        st.integers(n, 12),
    )
)


@given(SPLITS)
def test_no_other_split_serves_the_least_served_better(drawn):
    wanted, needs, room = drawn
    tasks, need = (dict(zip("abcd", values, strict=False)) for values in (wanted, needs))
    kept = controller(room).fitting(tasks, need)
    assert sum(kept.values()) == min(room, sum(wanted))
    assert all(1 <= kept[name] <= tasks[name] for name in tasks)
    splits = product(*(range(1, most + 1) for most in wanted))
    best = max(served(dict(zip("abcd", one, strict=False)), need) for one in splits if sum(one) <= room)
    assert served(kept, need) == best


def test_an_operator_of_unknown_need_keeps_its_tasks_and_needs_are_fractions_of_true_rates():
    assert controller(6).fitting({"a": 3, "b": 9}, {"b": 9.0}) == {"a": 3, "b": 3}
    assert controller(6).fitting({"a": 9, "b": 9}, {"b": 9.0}) == {"a": 5, "b": 1}
    assert controller(6).fitting({"a": 10**15, "b": 2.0}) == {"a": 5, "b": 1}
    tasks = {"light": 2, "heavy": 3}
    for heavy_s, needed in ((0.25, {"light": 0.5, "heavy": 2.5}), (0.0, {"light": 0.5})):
        seen = window(tasks, {"light": 0.05, "heavy": heavy_s})
        assert ds2(FLOW, seen.counters, seen.source_rates).needed == pytest.approx(needed)


def test_full_slots_are_dealt_anew_only_for_a_better_served_operator_or_other_memory():
    useful = {"light": 0.2, "heavy": 0.8}  # at 1000 records/s they need 2 and 8 tasks
    placing = controller(5, Wants({"light": 2, "heavy": 8}))
    better, _ = placing.decide(window({"light": 2, "heavy": 3}, useful), None)
    assert better.tasks == {"light": 1, "heavy": 4}
    assert placing.decide(window({"light": 1, "heavy": 4}, useful), None)[0] is None
    no_better = window({"light": 3, "heavy": 2}, {"light": 0.3, "heavy": 0.2})  # whose least served get all they need
    assert placing.decide(no_better, None)[0] is None
    more, tasks = controller(5, Wants({"light": 2, "heavy": 8}, {"light": None, "heavy": 64.0})), better.tasks
    assert more.decide(window(tasks, useful, managed_mb={"light": None, "heavy": 32.0}), None)[0].managed_mb is not None
    assert more.decide(window(tasks, useful, managed_mb={"light": None, "heavy": 64.0}), None)[0] is None


def test_three_times_the_load_on_full_slots_gets_better_layouts_only_and_ends_near_the_best():
    start = simulated_start("q5", 14, 2048.0)

    def capacity(tasks):
        return steady_state(Deployment(start.model, tasks, start.memory_mb, start.slot_cpus)).rate

    rate = RateTrace.constant(3 * capacity(start.tasks), 1200.0)
    pool = Pool(6, 4, Worker(cpus=4.0))
    (line,) = replay_start(start, rate, ["capsys"], pool=pool).timelines.values()
    sustained = [capacity(tasks) for tasks in (start.tasks, *(change.tasks for change in line.reconfigurations))]
    assert 2 <= len(sustained) <= 3
    assert sustained == sorted(sustained)
    assert sustained[-1] >= 0.99 * capacity(simulated_start("q5", 24, 2048.0).tasks)
