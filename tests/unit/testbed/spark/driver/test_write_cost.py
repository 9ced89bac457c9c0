"""What writing costs, from batches whose cost is known."""

from dataclasses import replace

import numpy as np
import pytest

from workbench.testbed.spark.driver.write_cost import NOTHING, added, growth, outside_s, write_cost
from workbench.testbed.spark.log.batches import BatchLog, Stage, Task


def batch(number, rows, *, driver_s=0.1, task_s=0.05, row_s=1e-5, tasks=4, written=None):
    """A batch of one stage whose tasks take `task_s` and `row_s` for each row, and a driver that takes `driver_s`."""
    run_s = task_s + row_s * rows / tasks
    ran = [Task(one, rows // tasks, 0, run_s, run_s, 0, 0.0, written=(written or 0) // tasks) for one in range(tasks)]
    took = {"addBatch": 1000 * (run_s + driver_s), "walCommit": 20, "commitOffsets": 30}
    state = {"numShufflePartitions": tasks, "commitTimeMs": 8 * tasks}
    source = {"startOffset": {"n": 0}, "endOffset": {"n": rows}, "numInputRows": rows}
    progress = {"durationMs": took, "sources": [source], "stateOperators": [state]}
    return BatchLog(number, progress, (Stage(0, (), tuple(ran), (), 100.0, 100.0 + run_s),))


SIZES = (1_000, 3_000, 1_000, 3_000)


def test_what_a_sink_adds_is_the_difference_to_noop():
    noop = [batch(number, rows) for number, rows in enumerate(SIZES)]
    real = [batch(number, rows, driver_s=0.25, task_s=0.08, row_s=3e-5) for number, rows in enumerate(SIZES)]
    found = added(real, noop)
    assert (found.batch_s, found.task_s, found.record_s) == pytest.approx((0.15, 0.03, 2e-5), rel=1e-6)
    assert added(noop, real) == replace(NOTHING, batch_s=0.0, task_s=0.0, record_s=0.0, jobs_s=0.0)


@pytest.mark.parametrize("counted", [True, False])
def test_jobs_of_the_sinks_own_are_no_part_of_the_tasks_that_write(counted):
    noop = [batch(number, rows) for number, rows in enumerate(SIZES)]
    real = [batch(at, rows, task_s=0.08, row_s=3e-5, written=rows * counted) for at, rows in enumerate(SIZES)]
    reads = Stage(1, (), tuple(Task(one, 0, 0, 0.15, 0.15, 0, 0.0) for one in range(50)), (), 90.0, 91.0)
    real = [replace(log, stages=(reads, *log.stages)) for log in real]
    found = added(real, noop)
    assert (found.task_s, found.record_s) == pytest.approx((0.03, 2e-5), rel=1e-6)
    assert found.jobs_s == pytest.approx(50 * 0.15)


def test_stages_that_overlap_count_once():
    one = batch(0, 100)
    stages = (Stage(0, (), (), (), 10.0, 10.5), Stage(1, (), (), (), 10.2, 10.6), Stage(2, (), (), (), 10.7, 10.8))
    progress = one.progress | {"durationMs": {"addBatch": 1000.0}}
    assert outside_s(BatchLog(0, progress, stages)) == pytest.approx(0.3)


def test_growth_is_found_whatever_the_rows_and_noise_alone_is_none():
    random = np.random.default_rng(1)
    logs = [batch(number, int(random.integers(1_000, 5_000))) for number in range(80)]
    steady = [0.1 + 2e-5 * log.records + random.normal(0, 0.01) for log in logs]
    assert growth(steady, logs) == 0.0
    grows = [seconds + 0.0012 * log.batch_id for seconds, log in zip(steady, logs, strict=True)]
    assert growth(grows, logs) == pytest.approx(0.0012, rel=0.2)
    assert growth(grows[:20], logs[:20]) == 0.0
    # what every tenth batch takes longer counts
    logs = [batch(number, 1_000) for number in range(200)]
    compacts = [0.1 + (0.01 * number if number % 10 == 9 else 0.0) for number in range(200)]
    assert growth(compacts, logs) == pytest.approx(0.001, rel=0.1)


def test_commits_and_written_rows_are_read_from_the_batches():
    logs = [batch(number, 1_000, written=400) for number in range(5)]
    cost = write_cost(logs, logs, replace(NOTHING, batch_s=0.1, task_s=0.2, record_s=0.3, jobs_s=0.4))
    assert (cost.outside_s, cost.log_s, cost.state_s) == pytest.approx((0.1, 0.05, 0.008))
    assert (cost.written, cost.batches, cost.growth_s) == (0.4, 5, 0.0)
    assert (cost.batch_s, cost.task_s, cost.record_s, cost.jobs_s) == (0.1, 0.2, 0.3, 0.4)
    assert write_cost([], [], NOTHING) is None
