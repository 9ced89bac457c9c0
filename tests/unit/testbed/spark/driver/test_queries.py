"""Warming up, filling a state, what the source alone can do, and what writing costs, by batches of a known cost."""

import json
import math
from dataclasses import replace
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest

from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.testbed.spark.driver import queries as warming
from workbench.testbed.spark.driver.live import CompletedBatch
from workbench.testbed.spark.driver.queries import Queries, warm_code
from workbench.testbed.spark.driver.source_and_sink import NOTHING, SourceAlone, added, growth, outside_s, write_cost
from workbench.testbed.spark.log.event_log import BatchLog, Stage, Task
from workbench.workload import Release

CAP_S = 180.0


class Batches:
    """Batches on a clock of their own: the driver's seconds fall, a row costs `row_s` CPU seconds on two cores."""

    def __init__(self, row_s, *, driver_s=0.3, cold_s=2.0, short=0):
        self.row_s, self.driver_s, self.cold_s, self.short = row_s, driver_s, cold_s, short
        self.now, self.done, self.rows, self.sizes = 0.0, [], 0, []

    def start(self, *_):
        return self

    def retire(self, _):
        pass

    def fixed_batches(self, rows):
        self.rows = rows - self.short

    def batches(self, _live, _count):
        self.sizes.append(self.rows)
        tasks_s = self.row_s * self.rows
        took_s = self.driver_s + self.cold_s / len(self.sizes) + tasks_s / 2
        self.now += took_s
        batch = SimpleNamespace(records=self.rows, duration_s=took_s)
        self.done.append(SimpleNamespace(batch=batch, threads_cpu_s=tasks_s, python_cpu_s=0.0, executor_cpu_s=tasks_s))
        return self.done[-1:]


@pytest.fixture
def warm(monkeypatch):
    def run(queries, rate, slots=2, cpus=0.3):
        monkeypatch.setattr(warming, "now_s", lambda: queries.now)
        budget = Budget(slots, SlotProfile(cpus, 1024), 1.0)
        compiler_s = count(step=1e6).__next__  # never idle
        spec = SimpleNamespace(budget=budget, warmup_cap_s=CAP_S, asked_rate=rate)
        return warm_code(queries, spec, lambda: float(compiler_s()))

    return run


@pytest.mark.parametrize("short", [0, 3])  # a topic's batches may be a few rows smaller
def test_it_ends_with_the_first_batch_that_would_be_sustained(warm, short):
    queries = Batches(1e-5, short=short)
    warm(queries, 10_000.0)
    assert max(queries.sizes) == 10_000 - short
    assert queries.driver_s + queries.cold_s / len(queries.sizes) + 0.1 / 0.6 < 1.0
    assert queries.now < 15.0


def test_a_warm_up_counts_what_the_quota_adds_and_ends_also_where_no_rate_is_sustained(warm):
    def steady_s(rows, cpus):
        queries = Batches(1e-5, driver_s=0.6, cold_s=0.0)
        warm(queries, rows, cpus=cpus)
        return queries.now / (0.6 + rows * 1e-5 / 2)

    assert steady_s(30_000.0, 1.0) < 5  # batches: 0.6 s, and 0.3 s of tasks on two cores
    assert steady_s(30_000.0, 0.3) > 6  # on 0.6 cores: it will not do
    queries = Batches(1e-5)
    warm(queries, 100_000.0)
    assert max(queries.sizes) == 100_000
    assert queries.now < CAP_S / 4
    assert warm(Batches(1e-6), 10_000.0, slots=1, cpus=0.05) > 10_000


def test_waiting_ends_with_the_state_or_at_the_most(monkeypatch):
    clock, live = iter(range(1000)), SimpleNamespace(since_empty=[])
    monkeypatch.setattr("workbench.testbed.spark.driver.queries.now_s", lambda: now[0])
    now = [0.0]

    class Ticking(Queries):
        def tick(self):
            now[0] = float(next(clock))
            if now[0] == 20:
                live.since_empty = [
                    CompletedBatch(0, {"durationMs": {}}, (), release=Release(1, 0.0, 0, 100, 0, 0, 0.0, 0.0))
                ]

    queries = Ticking(None, None, None, lambda: None)
    assert queries.fill(live, 5, 10) is False
    assert now[0] == pytest.approx(10, abs=1)
    assert queries.fill(live, 0, 60) is True
    assert now[0] == 20
    assert queries.fill(live, 8, 60) is True
    assert now[0] == pytest.approx(28, abs=1)


def test_a_query_that_failed_is_retired_too():
    stopped = []

    class Failing(Queries):
        def drain(self, _):
            raise WorkbenchError("It failed.")

    queries, live = Failing(None, None, None, lambda: None), SimpleNamespace(stop=lambda: stopped.append(1))
    queries._running.append(live)
    with pytest.raises(WorkbenchError, match="It failed"):
        queries.retire(live)
    assert stopped
    assert not queries._running


def sunk(number, rows, *, driver_s=0.1, task_s=0.05, row_s=1e-5, tasks=4, written=None):
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
    noop = [sunk(number, rows) for number, rows in enumerate(SIZES)]
    real = [sunk(number, rows, driver_s=0.25, task_s=0.08, row_s=3e-5) for number, rows in enumerate(SIZES)]
    found = added(real, noop)
    assert (found.batch_s, found.task_s, found.record_s) == pytest.approx((0.15, 0.03, 2e-5), rel=1e-6)
    assert (found.batch_error_s, found.task_error_s) == pytest.approx((0.0, 0.0), abs=1e-9)
    less = added(noop, real)
    assert (less.batch_s, less.task_s, less.record_s) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("counted", [True, False])
def test_jobs_of_the_sinks_own_are_no_part_of_the_tasks_that_write(counted):
    noop = [sunk(number, rows) for number, rows in enumerate(SIZES)]
    real = [sunk(at, rows, task_s=0.08, row_s=3e-5, written=rows * counted) for at, rows in enumerate(SIZES)]
    reads = Stage(1, (), tuple(Task(one, 0, 0, 0.15, 0.15, 0, 0.0) for one in range(50)), (), 90.0, 91.0)
    real = [replace(log, jobs=(reads,)) for log in real]
    found = added(real, noop)
    assert (found.task_s, found.record_s) == pytest.approx((0.03, 2e-5), rel=1e-6)
    cost = write_cost(real, 1.0, real, found)
    assert (cost.jobs_s, cost.jobs_error_s, cost.jobs_at_once) == pytest.approx((50 * 0.15, 0.0, 50.0))
    assert cost.written == (1.0 if counted else None)


def test_the_error_of_what_a_sink_adds_covers_the_scatter_of_the_batches():
    random, clear, off = np.random.default_rng(5), 0, []
    for _ in range(200):
        batches = [
            [sunk(at, rows, driver_s=0.1 + random.exponential(0.03)) for at, rows in enumerate(2 * SIZES)]
            for _ in range(2)
        ]
        found = added(*batches)
        clear += found.batch_s > 3 * found.batch_error_s
        off.append(found.batch_error_s)
    assert clear < 20  # of 200 sinks that add nothing
    assert 0.005 < np.median(off) < 0.03
    scattered = [sunk(at, rows, driver_s=0.3 + random.exponential(0.03)) for at, rows in enumerate(2 * SIZES)]
    found = added(scattered, batches[0])
    assert found.batch_s > 3 * found.batch_error_s


def test_growth_is_found_whatever_the_rows_and_stages_that_overlap_count_once():
    one = sunk(0, 100)
    stages = (Stage(0, (), (), (), 10.0, 10.5), Stage(1, (), (), (), 10.2, 10.6), Stage(2, (), (), (), 10.7, 10.8))
    progress = one.progress | {"durationMs": {"addBatch": 1000.0}}
    assert outside_s(BatchLog(0, progress, stages)) == pytest.approx(0.3)
    random = np.random.default_rng(1)
    logs = [sunk(number, int(random.integers(1_000, 5_000))) for number in range(80)]
    steady = [0.1 + 2e-5 * log.records + random.normal(0, 0.01) for log in logs]
    assert growth(steady, logs) == 0.0
    grows = [seconds + 0.0012 * log.batch_id for seconds, log in zip(steady, logs, strict=True)]
    assert growth(grows, logs) == pytest.approx(0.0012, rel=0.2)
    assert growth(grows[:20], logs[:20]) == 0.0
    # what every tenth batch takes longer counts
    logs = [sunk(number, 1_000) for number in range(200)]
    compacts = [0.1 + (0.01 * number if number % 10 == 9 else 0.0) for number in range(200)]
    assert growth(compacts, logs) == pytest.approx(0.001, rel=0.1)


def test_commits_and_written_rows_are_read_from_the_batches():
    logs = [sunk(number, 1_000, written=400) for number in range(5)]
    cost = write_cost(logs, 1.0, logs, replace(NOTHING, batch_s=0.1, task_s=0.2, record_s=0.3))
    assert (cost.outside_s, cost.log_s, cost.state_s) == pytest.approx((0.1, 0.05, 0.008))
    assert (cost.written, cost.batches, cost.growth_s) == (0.4, 5, 0.0)
    assert (cost.batch_s, cost.task_s, cost.record_s, cost.jobs_s) == (0.1, 0.2, 0.3, None)
    assert cost.own_jobs == (0.0, 1.0)
    assert write_cost([], 1.0) is None


# --- the source alone

FOUR = Budget(4, SlotProfile(0.2, 1024), 2.0)
ONE = Budget(1, SlotProfile(0.2, 1024), 2.0)


def reading(rows, seconds):
    offsets = {"startOffset": json.dumps({"n": 0}), "endOffset": json.dumps({"n": rows})}
    progress = {"sources": [offsets], "durationMs": {"triggerExecution": 1000 * seconds}}
    return CompletedBatch(0, progress, (), release=Release(1, 0.0, 0, rows, 0, 0, 0.0, 0.0))


def readings(fixed_s, per_record_s, sizes=(5_000, 15_000, 10_000)):
    return [reading(rows, fixed_s + per_record_s * rows) for rows in sizes]


def known(fixed_s=0.2, per_record_s=1e-5):
    source = SourceAlone(FOUR)
    source.keep(readings(fixed_s, per_record_s), FOUR)
    return source


def test_its_limit_is_what_fits_beside_its_fixed_part_and_there_is_none_while_it_is_unknown():
    assert SourceAlone(FOUR).profile(FOUR).rate_limit == math.inf
    source = known(0.2, 1e-5)
    assert source.profile(FOUR).rate_limit == pytest.approx(1.8 / (2.0 * 1e-5), rel=1e-3)
    assert source.profile(ONE).rate_limit == pytest.approx(1.8 / (2.0 * 4e-5), rel=1e-3)  # a quarter of the CPUs
    assert source.profile(FOUR, scans=2).rate_limit == pytest.approx(0.9 / (2.0 * 1e-5), rel=1e-3)


def test_a_rate_near_the_limit_is_reason_to_look_again_and_the_faster_look_counts():
    source = known()
    limit = source.profile(FOUR).rate_limit
    assert not source.doubtful(limit / 1.21, FOUR)
    assert source.doubtful(limit / 1.19, FOUR)
    assert source.doubtful(limit / 2, FOUR, scans=2)
    assert source.doubtful(limit / 2, ONE)
    assert not source.doubtful(math.inf, FOUR)  # it asks for what fits, whatever that is
    for _ in range(2):  # at most
        assert source.doubtful(1e9, FOUR)
        source.keep(readings(0.2, 1e-5), FOUR)
    assert not source.doubtful(1e9, FOUR)
    source = known(0.2, 4e-5)
    slow = source.profile(FOUR).rate_limit
    source.keep(readings(0.2, 1e-5), FOUR)
    assert source.profile(FOUR).rate_limit == pytest.approx(4 * slow, rel=1e-3)
    source.keep(readings(0.2, 9e-5), FOUR)  # a neighbour came
    assert source.profile(FOUR).rate_limit == pytest.approx(4 * slow, rel=1e-3)
    source = known(0.2, 4e-5)
    source.keep(readings(0.2, 4e-5), ONE)  # one slot reads as fast as four did: four read four times as fast
    assert source.profile(FOUR).rate_limit == pytest.approx(1.8 / (2.0 * 1e-5), rel=1e-3)
