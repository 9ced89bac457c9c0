"""Estimates on a driver that is cold, on slow cores, next to a neighbour: how often each kind of answer is wrong.

``python benchmarks/readings.py`` judges 10,000 runs; here are some of them.
"""

import benchmark_script
import pytest
from cold_driver import ColdRun

from workbench.testbed import SharedRun

RUNS = 40  # of each kind


@pytest.fixture(scope="module")
def readings():
    return benchmark_script.load("readings")


@pytest.fixture(scope="module")
def seen(readings):
    return readings.judged(RUNS * len(readings.KINDS))


def test_the_driver_is_a_warm_deployments():
    assert isinstance(ColdRun(0), SharedRun)


def test_no_kind_of_answer_excludes_the_truth_more_often_than_it_says(readings, seen):
    every = sum(seen.values(), readings.Seen())
    assert every.said["sustained"] > every.said["overloaded"] > len(seen)
    assert every.false["sustained"] == 0
    assert every.false["overloaded"] <= 0.05 * every.said["overloaded"]
    assert every.broken <= 0.05 * every.bounds
    for found in seen.values():
        assert found.held >= 0.9 * len(found.errors)
    assert max(every.errors) <= 0.3


def test_there_are_answers_and_not_only_bounds(seen):
    for (warmth, others, _), found in seen.items():
        least = {"none": 0.75, "always": 0.55, "bursts": 0.4 if warmth == "warm" else 0.15}[others]
        assert len(found.errors) >= least * RUNS
