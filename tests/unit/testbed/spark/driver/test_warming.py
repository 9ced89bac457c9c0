"""When the warm-up of a query's code ends where only rates are asked for, and what it says fits afterwards."""

from itertools import count
from types import SimpleNamespace

import pytest

from workbench.dataflow import Budget, SlotProfile
from workbench.testbed.spark.driver import warming
from workbench.testbed.spark.driver.warming import warm_code

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


def test_what_the_quota_adds_to_a_batch_is_counted(warm):
    def steady_s(rows, cpus):
        queries = Batches(1e-5, driver_s=0.6, cold_s=0.0)
        warm(queries, rows, cpus=cpus)
        return queries.now / (0.6 + rows * 1e-5 / 2)

    assert steady_s(30_000.0, 1.0) < 5  # batches: 0.6 s, and 0.3 s of tasks on two cores
    assert steady_s(30_000.0, 0.3) > 6  # on 0.6 cores: it will not do


def test_a_rate_that_is_never_sustained_takes_no_longer_than_a_maximum_does(warm):
    queries = Batches(1e-5)
    warm(queries, 100_000.0)
    assert max(queries.sizes) == 100_000
    assert queries.now < CAP_S / 4


def test_what_fits_is_no_less_than_what_was_sustained(warm):
    assert warm(Batches(1e-6), 10_000.0, slots=1, cpus=0.05) > 10_000
