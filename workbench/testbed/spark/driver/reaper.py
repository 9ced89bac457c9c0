"""Clean up after a deployment when its driver process ends, for any reason.

``python reaper.py FD SESSION FOLDER ... -- [GROUP ...] -- [ABOVE ...]`` waits until the pipe FD closes (the driver
process holds its other end), ends every process of the driver's session, and removes its control groups and folders,
and those above them that are empty then.
"""

import os
import shutil
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

GRACE_S = 5.0


def _session(leader: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if os.getsid(int(entry.name)) == leader and _alive(int(entry.name)):
                    found.append(int(entry.name))
    return found


def _kill(leader: int, groups: list[Path]) -> None:
    signals = [signal.SIGTERM, signal.SIGKILL]
    while True:
        left = set(_session(leader))
        for group in groups:
            with suppress(OSError):
                left |= {int(pid) for pid in (group / "cgroup.procs").read_text().split()}
        if not left:
            return
        wanted = signals.pop(0) if signals else signal.SIGKILL
        for pid in left:
            with suppress(OSError):
                os.kill(pid, wanted)
        end = time.monotonic() + GRACE_S
        while time.monotonic() < end and any(map(_alive, left)):
            time.sleep(0.05)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def reap(descriptor: int, leader: int, folders: list[Path], groups: list[Path], above: list[Path]) -> None:
    """Wait until the driver ends, then clean up after it."""
    os.read(descriptor, 1)  # returns at the end of the pipe
    _kill(leader, groups)
    for group in groups:
        for _ in range(100):  # the kernel needs a moment after the last process ends
            try:
                group.rmdir()
            except FileNotFoundError:
                break
            except OSError:
                time.sleep(0.05)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    for folder in above:
        with suppress(OSError):  # another run's folder is in it
            folder.rmdir()


if __name__ == "__main__":
    for ignored in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(ignored, signal.SIG_IGN)
    named: list[list[Path]] = [[]]
    for place in sys.argv[3:]:
        named.append([]) if place == "--" else named[-1].append(Path(place))
    reap(int(sys.argv[1]), int(sys.argv[2]), *named)
