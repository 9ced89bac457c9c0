"""Executors side by side: a slow worker is found, key skew and small stages are not taken for one."""

import pytest

from workbench.metrics import slow_executors
from workbench.testbed.spark.log.batches import BatchLog, Stage, Task
from workbench.testbed.spark.log.paces import executor_paces


def batch(*stages):
    """A batch of stages, each with (executor, records, seconds) for its tasks."""
    made = tuple(
        Stage(
            number,
            (),
            tuple(
                Task(place, records, 0, seconds, seconds, 0, 0.0, executor, f"10.0.0.{executor}")
                for place, (executor, records, seconds) in enumerate(tasks)
            ),
            (),
        )
        for number, tasks in enumerate(stages)
    )
    return BatchLog(0, {}, made)


def test_a_slow_executor_is_named_with_its_host():
    paces = executor_paces([batch([("0", 1000, 1.0), ("1", 1000, 2.5), ("2", 1000, 1.0)])] * 3)
    assert [(one.executor, one.host) for one in paces] == [("0", "10.0.0.0"), ("1", "10.0.0.1"), ("2", "10.0.0.2")]
    assert [one.times for one in paces] == pytest.approx([2 / 3.5, 2.5, 2 / 3.5])
    (slow,) = slow_executors(paces)
    assert slow.sentence == "Executor 1 on 10.0.0.1 took 2.5 times as long as the others per record"


def test_stages_of_different_cost_are_compared_each_for_itself():
    """One executor does more of the costly stage, at the same pace as the other."""
    cheap, costly = [("0", 1000, 1.0), ("1", 600, 0.6)], [("0", 600, 6.0), ("1", 1000, 10.0)]
    assert [one.times for one in executor_paces([batch(cheap, costly)])] == pytest.approx([1.0, 1.0])


def test_key_skew_is_not_taken_for_a_slow_worker():
    skewed = [("0", 1000, 1.0), ("1", 10, 0.5)]  # mostly the fixed time of a task
    assert executor_paces([batch(skewed)]) == ()
    fair = [("0", 500, 0.5), ("1", 500, 0.5)]
    assert slow_executors(executor_paces([batch(fair, skewed)])) == []


def test_one_executor_has_nobody_to_be_compared_with():
    assert executor_paces([batch([("0", 1000, 1.0), ("0", 1000, 9.0)])]) == ()
    assert executor_paces([batch([("0", 0, 1.0), ("1", 0, 9.0)])]) == ()
    assert executor_paces([batch([("0", 100, 0.0), ("1", 100, 0.0)])]) == ()
    assert executor_paces([]) == ()
