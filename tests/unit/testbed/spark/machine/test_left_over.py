import os
import subprocess
import sys
from pathlib import Path

import pytest

from workbench import doctor
from workbench.testbed.spark import left_over, removal

HOUR_AGO = 3601


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "workbench-abc"
    made.mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "workbench-file").touch()
    (tmp_path / "workbench-link").symlink_to("/etc")
    return made


def found(folder, later_s=HOUR_AGO):
    return left_over(folder.stat().st_mtime + later_s, [folder.parent])


def test_an_old_folder_is_found_that_no_process_names(folder):
    assert found(folder, 3599) == ()  # it may still be in the making
    command = [sys.executable, "-c", "print('begun', flush=True); input()", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"begun\n"
        assert found(folder) == ()
        process.communicate(b"\n")
    assert found(folder) == (folder,)


def test_a_place_with_two_names_is_looked_at_once_and_another_users_is_not_yours_to_remove(folder, monkeypatch):
    (folder.parent / "same").symlink_to(folder.parent)
    assert left_over(folder.stat().st_mtime + HOUR_AGO, [folder.parent, folder.parent / "same"]) == (folder,)
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert found(folder) == ()


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
