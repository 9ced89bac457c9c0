"""Control groups against a folder that looks like the kernel's."""

import os
import threading
from pathlib import Path

import pytest

from workbench.testbed.spark import CpuQuota
from workbench.testbed.spark.machine import quota
from workbench.testbed.spark.machine.limits import Limit
from workbench.testbed.spark.machine.quota import threads
from workbench.testbed.spark.testbed import remove_stale_groups


@pytest.fixture
def v2(tmp_path):
    (tmp_path / "cgroup.subtree_control").write_text("cpu memory")
    (tmp_path / "cgroup.procs").write_text("")
    return tmp_path


@pytest.fixture
def v1(tmp_path):
    for name in ("cpu", "cpuacct"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "cgroup.procs").write_text("")
    return tmp_path


def test_version_2_writes_quota_and_period_together_and_counts_in_microseconds(v2):
    group = CpuQuota.create("g", v2)
    assert (v2 / "g" / "cpu.max").read_text() == "max 100000"
    group.limit(0.8)
    assert (v2 / "g" / "cpu.max").read_text() == "80000 100000"
    (v2 / "g" / "cpu.stat").write_text("usage_usec 2500000\nnr_periods 10\nnr_throttled 4\n")
    assert group.used_s() == 2.5
    assert group.periods() == (10, 4)


def test_version_2_asks_for_the_cpu_controller(v2):
    (v2 / "cgroup.subtree_control").write_text("memory")
    group = CpuQuota.create("g", v2)
    assert (v2 / "cgroup.subtree_control").read_text() == "+cpu"
    for folder in (group.folders[0], group.driver):  # they go before other processes
        assert (folder / "cpu.weight").read_text() == "1600"
    assert not (group.driver / "cpu.max").exists()
    assert not group.exempt(os.getpid(), ("C1 Compiler",))  # the threads of a process stay together


def test_a_limit_around_the_workbench_goes_on_to_hold(v1, monkeypatch):
    (v1 / "cpu" / "outer").mkdir()
    monkeypatch.setattr(quota, "outer_limit", lambda base: Limit(base / "cpu" / "outer", 1.2))
    group = CpuQuota.create("g", v1)
    assert group.all_folders == (v1 / "cpu/outer/g", v1 / "cpuacct/g", v1 / "cpu/outer/g-driver")


def test_slots_and_driver_go_before_other_processes(v1):
    group = CpuQuota.create("g", v1)
    group.add_driver(os.getpid())
    assert (v1 / "cpu" / "g-driver" / "cgroup.procs").read_text() == str(os.getpid())
    for folder in (group.folders[0], group.driver):
        assert (folder / "cpu.shares").read_text() == "16384"
    assert not (group.driver / "cpu.cfs_quota_us").exists()  # the slots are not charged for it


def test_version_1_keeps_quota_and_accounting_in_two_hierarchies(v1):
    group = CpuQuota.create("g", v1)
    group.limit(0.25)
    assert (v1 / "cpu" / "g" / "cpu.cfs_quota_us").read_text() == "25000"
    (v1 / "cpuacct" / "g" / "cpuacct.usage").write_text("1500000000")
    assert group.used_s() == 1.5
    group.limit(None)
    assert (v1 / "cpu" / "g" / "cpu.cfs_quota_us").read_text() == "-1"


def named_thread(name):
    """Id of a thread of this process that has the name `name` until `done` is set."""
    known, done = threading.Event(), threading.Event()

    def run():
        Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text(name)
        known.set()
        done.wait()

    thread = threading.Thread(target=run)
    thread.start()
    known.wait()
    return thread.native_id, done


def test_version_1_takes_the_compilers_threads_out_of_both_hierarchies(v1):
    group = CpuQuota.create("g", v1)
    compiler, done = named_thread("C2 CompilerThre")
    try:
        assert threads(os.getpid(), ("C1 Compiler", "C2 Compiler")) == [compiler]
        assert group.exempt(os.getpid(), ("C1 Compiler", "C2 Compiler"))
    finally:
        done.set()
    assert (v1 / "cpu" / "g-driver" / "tasks").read_text() == str(compiler)
    assert (v1 / "cpuacct" / "tasks").read_text() == str(compiler)


def test_where_nothing_may_be_written_it_says_so(tmp_path):
    with pytest.raises(OSError, match="subtree_control"):
        CpuQuota.create("g", tmp_path)


def test_stale_groups_go_and_those_of_the_living_stay(tmp_path):
    dead, alive = tmp_path / "workbench-999999999-a", tmp_path / f"workbench-{os.getpid()}-b"
    for group in (dead, alive):
        group.mkdir()
    remove_stale_groups(tmp_path)
    assert not dead.exists()
    assert alive.exists()
