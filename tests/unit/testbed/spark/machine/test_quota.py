"""Control groups against a folder that looks like the kernel's, and what killed deployments left behind."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from workbench import doctor
from workbench.testbed.spark import CpuQuota, left_over, removal
from workbench.testbed.spark.machine import quota
from workbench.testbed.spark.machine.quota import Limit, threads
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


def test_version_1_keeps_quota_and_accounting_apart_and_slots_and_driver_go_before_others(v1):
    group = CpuQuota.create("g", v1)
    group.add_driver(os.getpid())
    assert (v1 / "cpu" / "g-driver" / "cgroup.procs").read_text() == str(os.getpid())
    for folder in (group.folders[0], group.driver):
        assert (folder / "cpu.shares").read_text() == "16384"
    assert not (group.driver / "cpu.cfs_quota_us").exists()  # the slots are not charged for it
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


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An old folder, in one of two places that are looked in."""
    made = tmp_path / "workbench-abc"
    made.mkdir()
    aged(made, 3601)
    monkeypatch.setattr(quota, "_places", lambda: [tmp_path, tmp_path / "same"])
    (tmp_path / "other").mkdir()
    (tmp_path / "workbench-file").touch()
    (tmp_path / "workbench-link").symlink_to("/etc")
    return made


def aged(folder, seconds):
    os.utime(folder, 2 * (time.time() - seconds,))


def test_an_old_folder_is_found_that_no_process_names(folder):
    aged(folder, 3500)
    assert left_over() == ()  # it may still be in the making
    aged(folder, 3601)
    command = [sys.executable, "-c", "print('begun', flush=True); input()", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"begun\n"
        assert left_over() == ()
        process.communicate(b"\n")
    assert left_over() == (folder,)


def test_a_place_with_two_names_is_looked_at_once_and_another_users_is_not_yours_to_remove(folder, monkeypatch):
    (folder.parent / "same").symlink_to(folder.parent)
    assert left_over() == (folder,)
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert left_over() == ()


def test_the_command_removes_folders_with_their_files_and_control_groups_without(folder):
    (folder / "state").touch()
    more = folder.with_name("workbench-of two")
    more.mkdir()
    subprocess.run(["/bin/sh", "-c", removal([folder, more])], check=True)
    assert not folder.exists()
    assert not more.exists()
    group = Path("/sys/fs/cgroup/cpu/workbench-1-a")
    assert removal([more, group]) == f"rm -r '{more}' && rmdir {group}"


def test_the_doctor_counts_what_is_left_and_names_the_command(folder, monkeypatch):
    monkeypatch.setattr(doctor, "left_over", lambda: (folder,))
    found = next(one for one in doctor.examine() if one.thing == "clean")
    assert found.found == "1 folder left of killed runs"
    assert found.command == f"rm -r {folder}"
