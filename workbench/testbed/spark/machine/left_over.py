"""What killed deployments and commands left behind: folders and control groups that no process uses."""

import os
import shlex
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from stat import S_ISDIR

from workbench.testbed.spark.machine.limits import GROUPS, PREFIX, outer_limit

_YOUNG_S = 3600.0  # a younger folder may belong to a command that is still making it


def left_over(now_s: float | None = None, places: Iterable[Path] | None = None) -> tuple[Path, ...]:
    """Find the workbench's temporary folders and control groups that no running process names.

    A folder that changed in the hour before `now_s`, seconds since 1970, is passed over. The `places` to look in are by
    default those for temporary files, shared memory and control groups.
    """
    now_s = time.time() if now_s is None else now_s
    found = []
    used = "\0".join(_commands())
    known = tuple(_places() if places is None else places)
    for place in {place.resolve(): place for place in reversed(known)}.values():  # cpu and cpuacct may be one
        for folder in sorted(place.glob(f"{PREFIX}*")):
            with suppress(OSError):  # gone in the meantime
                seen = folder.lstat()
                old = S_ISDIR(seen.st_mode) and now_s - seen.st_mtime > _YOUNG_S
                if old and seen.st_uid == os.getuid() and str(folder) not in used:
                    found.append(folder)
    return tuple(found)


def removal(found: Iterable[Path]) -> str:
    """Return the command that removes what was found; the files of a control group go with it, and not before."""
    commands: dict[str, list[str]] = {}
    for path in found:
        commands.setdefault("rmdir" if path.is_relative_to(GROUPS) else "rm -r", []).append(str(path))
    return " && ".join(f"{command} {shlex.join(paths)}" for command, paths in commands.items())


def _places() -> Iterator[Path]:
    with suppress(FileNotFoundError):  # there may be no folder that can be written to
        yield Path(tempfile.gettempdir())
    yield Path("/dev/shm")  # noqa: S108 - looked at only
    yield from (GROUPS, GROUPS / "cpu", GROUPS / "cpuacct", outer_limit().folder)


def _commands() -> Iterable[str]:
    """Command lines of all processes: a deployment's reaper names its folders and its control groups."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            yield (process / "cmdline").read_bytes().decode("utf-8", "replace")
