"""Spark's dynamic allocation and KEDA's Kafka lag, with their defaults, on loads whose answer is known."""

import math
from dataclasses import replace
from operator import call

import pytest
from refusals import refusals
from replayed import chain

from workbench.dataflow import OperatorProfile
from workbench.scaling import FLINK, Ds2Policy, DynamicAllocation, KafkaLag, Static, replay
from workbench.simulation import KeyTrace, OperatorModel, RateTrace

RATE, SLOTS = 111_000, 4  # records/s; of an executor
MODEL = chain(batch=OperatorModel(OperatorProfile(10 / RATE, 0, 0, 1.0)))  # 10 slots carry the load
LOAD = RateTrace.steps([(900, RATE), (900, 0), (900, RATE)])
MOST = DynamicAllocation(executor_slots=SLOTS, max_executors=30, tasks=200, shuffle_tasks=104)


def replayed(policy, trace=LOAD, tasks=3 * SLOTS, **options):
    return replay(trace, MODEL, policy, {"batch": tasks}, batch_s=10.0, step_s=5.0, **options)


def executors(line, at_s):
    return line.tasks[int(at_s / line.step_s)] / SLOTS


@pytest.fixture(scope="module")
def unbounded():
    return replayed(MOST)


def test_thirty_executors_are_taken_where_three_suffice_and_a_bound_meets_the_load_for_less(unbounded):
    assert executors(unbounded, 60) == 30  # 1, 2, 4, 8 and 12 more within five seconds in which tasks wait
    most, alone = unbounded.summary(), replayed(Static()).summary()
    bound = replayed(DynamicAllocation(SLOTS, 200, 104, max_executors=10)).summary()
    assert alone["at_target"] == bound["at_target"] == most["at_target"] == 1
    assert most["core_hours"] > 5 * alone["core_hours"]
    assert bound["core_hours"] < 0.5 * most["core_hours"]


def test_executors_with_shuffle_files_stay_after_the_load(unbounded):
    assert executors(unbounded, 950) == 30
    assert executors(unbounded, 980) == 26  # four ran no task that writes shuffle files
    assert executors(unbounded, 900 + 600) == 26
    assert executors(replayed(DynamicAllocation(SLOTS, 200, 104, max_executors=30, shuffle_s=120)), 1050) == 1
    collected = replayed(MOST, RateTrace.steps([(300, RATE), (3600, 0)]))  # the driver's garbage, after half an hour
    assert executors(collected, 300 + 1800) == 26
    assert executors(collected, 300 + 1900) == 1


def test_no_more_executors_than_tasks_are_taken_and_the_query_goes_on_meanwhile():
    for tasks in (24, 12):
        assert replayed(DynamicAllocation(SLOTS, tasks=tasks)).tasks.max() == tasks
    assert replayed(MOST, restart_s=60.0).summary()["downtime_s"] == 0


def test_keda_takes_as_many_replicas_as_there_are_partitions_and_gives_them_back_after_five_quiet_minutes():
    """Ten waiting records for a replica are nothing at thousands a second, so the bound is all that counts.

    An interval's records wait for each batch, so a threshold of a replica's share of them changes nothing.
    """
    lag = KafkaLag(partitions=32)
    line = replayed(lag, tasks=3)
    assert max(line.tasks) == 32
    first = line.reconfigurations[0]
    assert (first.at_s, first.tasks["batch"]) == (30, 14)  # two syncs of 15 s: 4 more, then twice as many
    line = replayed(lag, RateTrace.steps([(300, RATE), (900, 0)]), tasks=12)
    assert 600 <= next(change.at_s for change in line.reconfigurations if change.tasks["batch"] == 1) <= 660
    suited = replace(lag, lag_threshold=10 * RATE / 12)
    assert not replayed(suited, RateTrace.constant(RATE, 900), tasks=12).reconfigurations


def test_a_hot_partition_is_read_no_faster_by_more_replicas():
    even = replayed(KafkaLag(partitions=32), tasks=12)
    hot = replayed(KafkaLag(partitions=32), tasks=12, keys={"batch": KeyTrace.hot_key(1_000, 0.5, 0.0)})
    assert max(hot.tasks) == 32
    assert hot.consumed[100:170].mean() < 0.5 * RATE < even.consumed[100:170].mean()


def test_flink_gives_nothing_back_while_a_backlog_waits():
    settings = {"activation_s": 10.0, "policy_interval_s": 10.0, "metrics_window_s": 10.0, "scale_down_interval_s": 0.0}
    trace = RateTrace.steps([(300, 4 * RATE), (600, RATE / 10)])
    quick = replace(FLINK, **settings, catch_up_s=1e9, max_parallelism=20)
    kept = replayed(Ds2Policy(quick), trace, tasks=20)
    free = replayed(Ds2Policy(replace(quick, lag_threshold_s=math.inf)), trace, tasks=20)
    at = int(400 / 5)
    assert kept.backlog[at] > 300 * RATE / 10
    assert kept.tasks[at] > free.tasks[at]


test_settings_are_checked = refusals(
    call,
    (lambda: DynamicAllocation(executor_slots=0), "executor_slots is 0"),
    (lambda: DynamicAllocation(max_executors=0), "max_executors is 0; it must be at least 1"),
    (lambda: DynamicAllocation(executor_ratio=2), "executor_ratio is 2"),
    (lambda: KafkaLag(lag_threshold=0), "lag_threshold"),
    (lambda: KafkaLag(partitions=0), "partitions is 0"),
)
