"""Which cores the slots and everything else get, and when the quota holds."""

from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from workbench.dataflow import Budget, SlotProfile
from workbench.speed import CoreSpeed
from workbench.testbed.spark.driver import cores

EXECUTOR, WORKER, DRIVER = 11, 12, 10


def budget(slots):
    return Budget(slots, SlotProfile(0.8, 512), 1.0)


@pytest.fixture
def pinned(monkeypatch):
    """Cores by process, on a machine of four."""
    found = {}
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2, 3})
    monkeypatch.setattr("os.getpid", lambda: DRIVER)
    there = {EXECUTOR: [EXECUTOR, WORKER], DRIVER: [DRIVER, EXECUTOR, WORKER]}
    monkeypatch.setattr(cores, "family", there.__getitem__)
    monkeypatch.setattr(cores, "pin_family", lambda pid, to: found.update({one: set(to) for one in there[pid]}))
    monkeypatch.setattr(cores, "pin", lambda pid, to, threads=None: found.update({(pid, threads): set(to)}))
    return found


def made(slots=2, quota=None, cluster=None):
    return cores.Cores(SimpleNamespace(budget=budget(slots), quota=quota, cluster=cluster))


def test_the_slots_have_the_first_cores_and_all_else_the_others(pinned):
    quota = MagicMock()
    quota.exempt.return_value = True
    ours = made(quota=quota)
    assert ours.at_once == 2
    ours.divide()
    assert pinned == {}  # there is no executor yet
    ours.hold(EXECUTOR, EXECUTOR)
    quota.add.assert_called_once_with(EXECUTOR)
    ours.divide()
    compilers = ("C1 Compiler", "C2 Compiler", "Sweeper")
    assert pinned == {
        EXECUTOR: {0, 1}, WORKER: {0, 1}, (EXECUTOR, compilers): {2, 3}, (DRIVER, None): {2, 3}
    }  # fmt: skip
    ours.give(budget(1))
    ours.divide()
    assert (pinned[EXECUTOR], pinned[DRIVER, None]) == ({0}, {1, 2, 3})


def test_slots_that_need_all_cores_share_them_and_get_them_back(pinned):
    ours = made(slots=5)
    ours.hold(EXECUTOR, EXECUTOR)
    ours.divide()
    assert pinned == {EXECUTOR: {0, 1, 2, 3}, WORKER: {0, 1, 2, 3}}
    for slots, others in ((1, {1, 2, 3}), (5, {0, 1, 2, 3})):
        ours.give(budget(slots))
        ours.divide()
        assert pinned[DRIVER, None] == others


def test_the_quota_is_that_of_the_budget_and_holds_again_after_an_error():
    quota = MagicMock()
    ours = made(quota=quota)
    with pytest.raises(KeyError), ours.unlimited():
        raise KeyError
    ours.give(budget(1))
    ours.limit(quota=True)
    assert [call.args for call in quota.limit.call_args_list] == [(None,), (1.6,), (0.8,)]


def test_of_a_cluster_nothing_is_seen(pinned):
    ours = made(cluster="k8s")
    ours.divide()
    assert (pinned, ours.timer()(), ours.periods(), ours.compiler_s()) == ({}, CoreSpeed(0.0, 0.0), (0, 0), 0.0)
    assert ours.load(3.0).disturbance_since(ours.load(1.0)).worst == 0
