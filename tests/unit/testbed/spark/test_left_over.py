import os
import subprocess
import sys

import pytest

from workbench.testbed.spark import left_over

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


def test_an_old_folder_that_nobody_uses_is_found(folder):
    assert found(folder) == (folder,)


def test_a_young_one_may_still_be_in_the_making(folder):
    assert found(folder, 3599) == ()


def test_one_that_a_process_names_is_in_use(folder):
    command = [sys.executable, "-c", "print('begun', flush=True); input()", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"begun\n"
        assert found(folder) == ()
        process.communicate(b"\n")
    assert found(folder) == (folder,)


def test_a_place_with_two_names_is_looked_at_once(folder):
    (folder.parent / "same").symlink_to(folder.parent)
    assert left_over(folder.stat().st_mtime + HOUR_AGO, [folder.parent, folder.parent / "same"]) == (folder,)


def test_one_of_another_user_is_not_yours_to_remove(folder, monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert found(folder) == ()
