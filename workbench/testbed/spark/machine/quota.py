"""Slots as fractions of a core: a control group with a CPU quota around the executor.

The group holds the executor's JVM and its Python workers. The driver stays outside, so its fixed cost per batch is not
charged to the slots. Version 1 of Linux control groups can also move single threads, so there the JVM's compiler stays
outside too: during a measurement it would take about a fifth of a small slot, a different share in every deployment.

A quota is a limit, not a promise: while others use the cores, slots get less, and more so the more slots there are. So
the slots, and the driver in a group of its own, go before the other processes of this machine.
"""

import os
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from workbench.testbed.spark.machine.limits import GROUPS, TICK_S, outer_limit, throttling

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
        made: list[Path] = []
        try:
            for folder in group.all_folders:
                folder.mkdir()
                made.append(folder)
            group.limit(None)
            share, usual = ("cpu.shares", 1024) if v1 else ("cpu.weight", 100)
            for folder in (group.folders[0], group.driver):
                (folder / share).write_text(str(_PREFERRED * usual))
        except OSError:
            for folder in made:
                with suppress(OSError):
                    folder.rmdir()
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
        """Move the threads of `pid` whose names begin with one of `names` to the driver; return whether it worked.

        Version 2 keeps all threads of a process together, so there it does nothing.
        """
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
