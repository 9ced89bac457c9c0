import os
import subprocess

import pytest

from workbench.errors import WorkbenchError
from workbench.files import _HOST, write_whole


@pytest.fixture
def ended():
    """Process id of a process that has ended."""
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path, ended):
    target = tmp_path / "plan[1].json"
    torn = tmp_path / f".plan[1].json.{_HOST}.{ended}-x1y2.tmp"
    under_way = tmp_path / f".plan[1].json.{_HOST}.{os.getppid()}-x1y2.tmp"
    another = tmp_path / f".plan.json.{_HOST}.{ended}-x1y2.tmp"
    elsewhere = tmp_path / f".plan[1].json.another{_HOST}.{ended}-x1y2.tmp"  # whose processes are not known here
    for file in (torn, under_way, another, elsewhere):
        file.write_text("half")
    write_whole(target, "whole")
    assert target.read_text() == "whole"
    left = {target.name, under_way.name, another.name, elsewhere.name}
    assert {path.name for path in tmp_path.iterdir()} == left


@pytest.mark.fault(
    "the disk is full while a report is written",
    sees="'report.html' cannot be written: No space left on device. Choose another place.",
)
def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    target = tmp_path / "report.html"
    target.write_text("old")

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("workbench.files.os.fsync", full)
    with pytest.raises(WorkbenchError, match=r"report.html' cannot be written: No space left on device"):
        write_whole(target, "new")
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


@pytest.mark.parametrize("mask", [0, 0o077, 0o777])
@pytest.mark.parametrize("mode", [0o600, 0o644])
def test_bytes_are_written_as_they_are_and_who_may_read_them_does_not_depend_on_the_umask(tmp_path, mask, mode):
    before = os.umask(mask)
    try:
        write_whole(tmp_path / "x.zip", b"\x00\xff", mode)
    finally:
        os.umask(before)
    assert (tmp_path / "x.zip").stat().st_mode & 0o777 == mode
    (tmp_path / "x.zip").chmod(0o600)
    assert (tmp_path / "x.zip").read_bytes() == b"\x00\xff"
