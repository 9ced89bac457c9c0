"""A driver whose rate is missed while the source is unknown, or whose query hangs, on a clock that waiting moves."""

import math
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.speed import CoreSpeed
from workbench.testbed.spark.driver import deployment, queries
from workbench.testbed.spark.driver.deployment import Driver
from workbench.testbed.spark.machine.disturbance import InterferenceProbe, Load


@pytest.fixture
def driver():
    budget = Budget(2, SlotProfile(0.3, 1024), 1.0)
    spec = SimpleNamespace(budget=budget, cluster="spark://n:7077", generator=None, quota=None)
    driver = Driver(MagicMock(), spec)
    driver._queries, driver._live = MagicMock(), MagicMock(rows_fitting=500, done=[])
    driver._live.feed.restarts = False
    driver._source = MagicMock(known=False)
    driver._source.doubtful.return_value = False
    return driver


def test_it_looks_at_the_source_and_goes_on_with_the_rate(driver):
    driver._look_where_missed(1000.0, 989.0)
    driver._source.measure.assert_called_once()
    driver._live.command.assert_called_once_with(1000.0)  # the owner may observe again, without a new command


def test_it_does_not_where_the_rate_is_met_or_the_source_is_known(driver):
    driver._look_where_missed(1000.0, 991.0)
    driver._source.known = True
    driver._look_where_missed(1000.0, 500.0)
    driver._source.measure.assert_not_called()
    driver._queries.drain.assert_not_called()


@pytest.mark.parametrize(("rate", "hurried"), [(1000.0, 1), (math.inf, 0)])
def test_a_long_state_is_filled_as_densely_as_the_rate_says(driver, monkeypatch, rate, hurried):
    calls = []
    monkeypatch.setattr(deployment, "hurry", lambda *given: calls.append(given) or True)
    driver._stays, driver._cores, driver._live.commanded_rate = {0: 100.0}, MagicMock(), rate
    assert driver.fill((1.0, 2.0)) is bool(hurried)
    assert len(calls) == hurried


BUDGET = Budget(2, SlotProfile(1.0, 1024))


class Hanging:
    """Time passes only while it is waited for, and no batch is ever complete."""

    def __init__(self, monkeypatch, *modules):
        self.now = 0.0
        for module in modules:
            monkeypatch.setattr(module, "now_s", lambda: self.now)

    def wait(self):
        self.now += 0.5


@pytest.mark.fault("a query hangs while its code is warmed up")
def test_a_query_that_hangs_is_given_up(monkeypatch, injected):
    clock = Hanging(monkeypatch, queries)
    events = SimpleNamespace(poll=lambda: ())
    running = queries.Queries(None, events, None, clock.wait)
    live = SimpleNamespace(spec=SimpleNamespace(name="q1"), epoch=1, done=[], interval_s=2.0)
    with pytest.raises(WorkbenchError, match=r"completed 0 of 1 batches in 240 s.*give it more slots, or") as seen:
        running.batches(live, 1)
    assert clock.now < 300
    injected.seen(str(seen.value))


@pytest.mark.fault("a query hangs while it is observed")
def test_a_query_that_hangs_under_load_is_given_up(monkeypatch, injected):
    clock = Hanging(monkeypatch, deployment)
    serving = deployment.Driver.__new__(deployment.Driver)
    serving._live = SimpleNamespace(epoch=1, done=[], commanded_rate=1000.0)
    serving._spec = SimpleNamespace(name="q1", budget=BUDGET, quota=None)
    serving._queries = SimpleNamespace(tick=clock.wait)
    serving._cores = SimpleNamespace(periods=lambda: (0, 0), all_compilers_s=lambda: 0.0)
    serving._interference = SimpleNamespace(sample=lambda: None, end=lambda _: (1.0, 1.0))
    monkeypatch.setattr(serving, "_load", lambda: None)
    with pytest.raises(WorkbenchError, match=r"completed 0 batches in \d+ s; at least 1 are needed.*longer") as seen:
        serving.observe(14)
    assert clock.now < 120
    injected.seen(str(seen.value))


@pytest.mark.parametrize(("others", "waited_s"), [(0.0, 4.0), (0.5, 12.0)])
def test_waiting_for_others_does_not_wait_for_the_end_of_an_outer_quota(others, waited_s):
    """In a container of six tenths of a machine, each doubtful probe waited for the query's own throttling to end."""
    serving, now = deployment.Driver.__new__(deployment.Driver), [0.0]
    serving._spec = SimpleNamespace(cluster=None)
    serving._live = SimpleNamespace(commanded_rate=1000.0)
    serving._queries = SimpleNamespace(tick=lambda: now.__setitem__(0, now[0] + 0.5))
    serving._interference = InterferenceProbe(lambda: CoreSpeed(1.0, 1.0), lambda: now[0])
    used = 2 * (0.4 + others)  # seconds of two cores in each second, of which ours are .8
    serving._load = lambda: Load(now[0], used * now[0], 0.0, 0.8 * now[0], 2, int(10 * now[0]), int(9 * now[0]))
    serving.await_quiet(10.0)
    assert now[0] == waited_s
