"""The machine here: its facts and limits, slots as fractions of its cores, and what killed deployments left behind.

Slots that are fractions of a core share a control group with a CPU quota, which holds the executor's JVM and its Python
workers. The driver stays outside, so its fixed cost per batch is not charged to the slots. Version 1 of Linux control
groups can also move single threads, so there the JVM's compiler stays outside too: during a measurement it would take
about a fifth of a small slot, a different share in every deployment.

A quota is a limit, not a promise: while others use the cores, slots get less, and more so the more slots there are. So
the slots, and the driver in a group of its own, go before the other processes of this machine.
"""

import math
import os
import platform
import shlex
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISDIR

import psutil

from workbench.records import Machine

GROUPS = Path("/sys/fs/cgroup")
PREFIX = "workbench-"  # prefix of the names of folders and control groups of a deployment
TICK_S = 1 / os.sysconf("SC_CLK_TCK")  # unit of the CPU times that the kernel reports of processes, seconds


def usable_cores() -> float:
    """Cores this process may use: those it may run on, or fewer if an outer quota limits it."""
    return min(float(len(os.sched_getaffinity(0))), outer_limit().cores)


@dataclass(frozen=True)
class Limit:
    """The control group that limits this process most, and its quota in cores; inf where nothing limits it."""

    folder: Path
    cores: float


def outer_limit(base: Path = GROUPS, own: Path = Path("/proc/self/cgroup")) -> Limit:
    """Find what limits the CPU time of this process, such as a container's limit: its own group, or a parent of it."""
    v1 = (base / "cpu" / "cgroup.procs").exists()
    root = base / "cpu" if v1 else base
    inner = root / _own_path(own, v1)
    above = [root, *(folder for folder in (inner, *inner.parents) if root in folder.parents)]
    return min((Limit(folder, _quota_of(folder)) for folder in above), key=lambda limit: limit.cores)


def _own_path(own: Path, v1: bool) -> str:
    try:
        groups = [line.split(":", 2) for line in own.read_text().splitlines()]
    except OSError:
        return ""
    paths = [path for _, names, path in groups if ("cpu" in names.split(",") if v1 else not names)]
    return paths[0].lstrip("/") if paths and ".." not in paths[0] else ""


def _quota_of(group: Path) -> float:
    """Cores that a group of either version allows."""
    with suppress(OSError, ValueError, IndexError):
        v2 = (group / "cpu.max").read_text().split()
        return math.inf if v2[0] == "max" else int(v2[0]) / int(v2[1])
    with suppress(OSError, ValueError):
        quota = int((group / "cpu.cfs_quota_us").read_text())
        return quota / int((group / "cpu.cfs_period_us").read_text()) if quota > 0 else math.inf
    return math.inf


def throttling(group: Path) -> tuple[int, int]:
    """Quota periods of a control group so far, and those in which it was throttled."""
    stat = dict(line.split() for line in (group / "cpu.stat").read_text().splitlines())
    return int(stat.get("nr_periods", 0)), int(stat.get("nr_throttled", 0))


def describe() -> Machine:
    """Return facts about the machine for reports, without host name, user or path."""
    found: dict[str, str] = {}
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        found.setdefault(key.strip(), value.strip())
    flags = found.get("flags")  # which exist on x86 only
    return Machine(
        processor=found.get("model name") or platform.processor() or platform.machine(),
        virtual=None if flags is None else "hypervisor" in flags.split(),
        cores=usable_cores(),
        memory_gib=psutil.virtual_memory().total / 2**30,
        system=f"{platform.system()} {platform.release()}",
        facts={"Python": platform.python_version()},
    )


PERIOD_US = 100_000
_PREFERRED = 16  # factor over the share of a core of other groups, and of processes outside of groups


@dataclass(frozen=True)
class CpuQuota:
    """The slots' control group, and the driver's next to it."""

    folders: tuple[Path, ...]  # of the slots' group, one for each hierarchy that it is in (version 1 has two)
    v1: bool
    driver: Path  # folder of the driver's group, which has no quota

    @classmethod
    def create(cls, name: str, base: Path = GROUPS) -> "CpuQuota":
        """Create the group `name`, and `name`-driver, inside the group that limits this process, which it stays in."""
        v1, account = (base / "cpu" / "cgroup.procs").exists(), base / "cpuacct"
        roots = [outer_limit(base).folder]
        if not v1:
            if "cpu" not in (roots[0] / "cgroup.subtree_control").read_text().split():
                (roots[0] / "cgroup.subtree_control").write_text("+cpu")
        elif (account / "cgroup.procs").exists() and account.resolve() != (base / "cpu").resolve():
            roots.append(account)
        group = cls(tuple(root / name for root in roots), v1, roots[0] / f"{name}-driver")
        try:
            for folder in group.all_folders:
                folder.mkdir()
            group.limit(None)
            share, usual = ("cpu.shares", 1024) if v1 else ("cpu.weight", 100)
            for folder in (group.folders[0], group.driver):
                (folder / share).write_text(str(_PREFERRED * usual))
        except OSError:
            with suppress(OSError):
                group.remove()
            raise
        return group

    @property
    def all_folders(self) -> tuple[Path, ...]:
        """Folders of both groups."""
        return (*self.folders, self.driver)

    def add_driver(self, pid: int) -> None:
        """Put process `pid`, and all its future children, into the driver's group."""
        with suppress(ProcessLookupError, FileNotFoundError):  # ended in the meantime
            (self.driver / "cgroup.procs").write_text(str(pid))

    def add(self, pid: int) -> None:
        """Put process `pid`, its children and all their future children into the group."""
        todo = [pid]
        for process in todo:  # the list grows: children are added
            with suppress(ProcessLookupError, FileNotFoundError):  # ended in the meantime
                for folder in self.folders:
                    (folder / "cgroup.procs").write_text(str(process))
                todo += children(process)

    def exempt(self, pid: int, names: tuple[str, ...]) -> bool:
        """Move threads of `pid` named like one of `names` to the driver; False: version 2 keeps them together."""
        if not self.v1:
            return False
        for thread in threads(pid, names):
            with suppress(ProcessLookupError, FileNotFoundError):  # ended in the meantime
                (self.driver / "tasks").write_text(str(thread))
                for folder in self.folders[1:]:
                    (folder.parent / "tasks").write_text(str(thread))
        return True

    def limit(self, cores: float | None) -> None:
        """Limit the group to `cores` cores in each period; None removes the limit."""
        quota = None if cores is None else max(1000, round(cores * PERIOD_US))
        folder = self.folders[0]
        if self.v1:
            (folder / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (folder / "cpu.cfs_quota_us").write_text(str(-1 if quota is None else quota))
        else:
            (folder / "cpu.max").write_text(f"{'max' if quota is None else quota} {PERIOD_US}")

    def periods(self) -> tuple[int, int]:
        """Return the number of quota periods so far, and of those in which the group was throttled."""
        return throttling(self.folders[0])

    def processes(self) -> list[int]:
        """Process ids in the group."""
        with suppress(OSError):
            return [int(pid) for pid in (self.folders[0] / "cgroup.procs").read_text().split()]
        return []

    def used_s(self) -> float:
        """CPU seconds the group has used."""
        folder = self.folders[-1]
        if self.v1:
            usage = folder / "cpuacct.usage"
            return int(usage.read_text()) / 1e9 if usage.exists() else sum(map(process_cpu_s, self.processes()))
        stat = dict(line.split() for line in (folder / "cpu.stat").read_text().splitlines())
        return int(stat["usage_usec"]) / 1e6

    def remove(self) -> None:
        """Move the remaining processes out of the groups and remove them."""
        for folder in self.all_folders:
            with suppress(FileNotFoundError):
                for pid in (folder / "cgroup.procs").read_text().split():
                    with suppress(OSError):
                        (folder.parent / "cgroup.procs").write_text(pid)
                folder.rmdir()


def _of_threads(pid: int, name: str) -> dict[int, str]:
    """Content of the kernel's file `name` for each thread of `pid`, by the thread's id."""
    found: dict[int, str] = {}
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                found[int(task.name)] = (task / name).read_text()
    return found


def threads(pid: int, names: tuple[str, ...]) -> list[int]:
    """Ids of the threads of `pid` whose names begin with one of `names`."""
    return [thread for thread, name in _of_threads(pid, "comm").items() if name.startswith(names)]


def children(pid: int) -> list[int]:
    """Process ids of the children of all threads of `pid`."""
    return [int(child) for listed in _of_threads(pid, "children").values() for child in listed.split()]


def family(pid: int) -> list[int]:
    """`pid` and all its descendants."""
    members = [pid]
    for member in members:  # the list grows
        members += children(member)
    return members


def pin(pid: int, cores: Collection[int], names: tuple[str, ...] = ("",)) -> None:
    """Pin `pid`, or its threads whose names begin with one of `names`, and their future children to `cores`."""
    for thread in threads(pid, names):
        with suppress(OSError):
            os.sched_setaffinity(thread, cores)


def pin_family(pid: int, cores: Collection[int]) -> None:
    """Pin `pid`, its descendants and their future children to `cores`."""
    pinned: set[int] = set()
    while fresh := set(family(pid)) - pinned:  # again, for processes that were forked in the meantime
        for process in fresh:
            pin(process, cores)
        pinned |= fresh


def process_cpu_s(pid: int) -> float:
    """User and system CPU seconds of a live process; 0 if it has ended."""
    return _cpu_s(Path(f"/proc/{pid}/stat"))


def threads_cpu_s(pid: int, names: tuple[str, ...]) -> float:
    """User and system CPU seconds of the threads of `pid` whose names begin with one of `names`."""
    return sum(_cpu_s(Path(f"/proc/{pid}/task/{thread}/stat")) for thread in threads(pid, names))


def _cpu_s(stat: Path) -> float:
    try:
        fields = stat.read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) * TICK_S


def quota_permitted() -> bool:
    """Whether a control group with a CPU quota can be made here."""
    try:
        CpuQuota.create(f"workbench-{os.getpid()}-permitted").remove()
    except OSError:
        return False
    return True


_YOUNG_S = 3600.0  # a younger folder may belong to a command that is still making it


def left_over() -> tuple[Path, ...]:
    """Find the workbench's temporary folders and control groups that are an hour old and no running process names."""
    found, commands = [], []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # of a deployment, the reaper's names its folders and its control groups
            commands.append((process / "cmdline").read_bytes().decode("utf-8", "replace"))
    used = "\0".join(commands)
    for place in {place.resolve(): place for place in reversed([*_places()])}.values():  # cpu and cpuacct may be one
        for folder in sorted(place.glob(f"{PREFIX}*")):
            with suppress(OSError):  # gone in the meantime
                seen = folder.lstat()
                old = S_ISDIR(seen.st_mode) and time.time() - seen.st_mtime > _YOUNG_S
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
