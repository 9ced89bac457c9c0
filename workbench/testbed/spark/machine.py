"""Facts about this machine, and the load on it that is not the measurement's."""

import math
import os
import platform
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from workbench.metrics import Disturbance
from workbench.records import Machine

GROUPS = Path("/sys/fs/cgroup")
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Load:
    """CPU seconds since boot of all `cores`: busy in total, stolen by other virtual machines, used by us.

    `slots` describes the cores on which only the executor runs for us: their number, and their seconds busy, used by
    the executor and stolen. It is None if the driver has no core apart from the slots. The interference probe (see
    ``speed``) runs on these cores too, for less than half a percent of the time.
    """

    at_s: float
    busy_s: float
    steal_s: float
    ours_s: float
    cores: int
    periods: int = 0
    throttled: int = 0
    slots: tuple[int, float, float, float] | None = None

    def disturbance_since(self, earlier: "Load") -> Disturbance:
        """Shares taken by others since `earlier`: of all cores, or of the slots' cores if that is more."""
        capacity = (self.at_s - earlier.at_s) * self.cores
        periods = self.periods - earlier.periods
        throttled = (self.throttled - earlier.throttled) / periods if periods > 0 else 0.0
        if capacity <= 0:
            return Disturbance(throttled=throttled)
        others = ((self.busy_s - earlier.busy_s) - (self.ours_s - earlier.ours_s)) / capacity
        steal = (self.steal_s - earlier.steal_s) / capacity
        if self.slots and earlier.slots:
            count, *after = self.slots
            busy_s, ours_s, steal_s = (now - then for now, then in zip(after, earlier.slots[1:], strict=True))
            there = (self.at_s - earlier.at_s) * count
            others = max(others, (busy_s - ours_s) / there)
            steal = max(steal, steal_s / there)
        return Disturbance(
            steal=min(1.0, max(0.0, steal)),
            other_load=min(1.0, max(0.0, others)),
            throttled=throttled,
        )


def session_processes(session: int) -> list[int]:
    """Ids of the processes whose session leader is `session`."""
    found = []
    for pid in psutil.pids():
        try:
            if os.getsid(pid) == session:
                found.append(pid)
        except OSError:
            continue
    return found


def load(ours: Iterable[int], at_s: float, slots: Collection[int] = (), executor_s: float = 0.0) -> Load:
    """Read the CPU counters.

    Parameters
    ----------
    ours
        Ids of the measurement's processes.
    at_s
        The current time, seconds.
    slots, executor_s
        Cores on which only the executor runs for us, if there are any, and the CPU seconds it has used.
    """
    times = {
        line.split()[0]: line.split()[1:9] for line in Path("/proc/stat").read_text().splitlines() if line[:3] == "cpu"
    }
    user, nice, system, _idle, _iowait, irq, softirq, steal = (int(value) for value in times["cpu"])
    ours_s = 0.0
    for pid in ours:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        ours_s += sum(int(value) for value in stat[11:15]) * _TICK_S  # with the children it has waited for
    busy = (user + nice + system + irq + softirq) * _TICK_S
    there = [times[f"cpu{core}"] for core in slots if f"cpu{core}" in times]  # a container may number them differently
    # interrupts are left out here: the executor's own shuffle causes them
    busy_there = sum(int(value) for core in there for value in core[:3]) * _TICK_S
    stolen_there = sum(int(core[7]) for core in there) * _TICK_S
    periods, throttled = outer_throttling()
    return Load(
        at_s,
        busy,
        steal * _TICK_S,
        ours_s,
        os.cpu_count() or 1,
        periods,
        throttled,
        (len(slots), busy_there, executor_s, stolen_there) if there and len(there) == len(slots) else None,
    )


def usable_cores() -> float:
    """Cores this process may use: those it may run on, or fewer if an outer quota limits it."""
    return min(float(len(os.sched_getaffinity(0))), outer_limit().cores)


@dataclass(frozen=True)
class Limit:
    """The control group that limits this process most, and its quota in cores; inf where nothing limits it."""

    folder: Path
    cores: float


def outer_limit(base: Path = GROUPS, own: Path = Path("/proc/self/cgroup")) -> Limit:
    """Find what limits the CPU time of this process, such as a container's limit: its own group, or one above it."""
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


def outer_throttling() -> tuple[int, int]:
    """Quota periods of the control group that limits this process, and those in which it was throttled."""
    try:
        stat = dict(line.split() for line in (outer_limit().folder / "cpu.stat").read_text().splitlines())
    except (OSError, ValueError):
        return 0, 0
    return int(stat.get("nr_periods", 0)), int(stat.get("nr_throttled", 0))


def describe() -> Machine:
    """Return facts about the machine for reports, without host name, user or path."""
    found: dict[str, str] = {}
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        found.setdefault(key.strip(), value.strip())
    return Machine(
        processor=found.get("model name") or platform.processor() or platform.machine(),
        virtual=_virtual(found.get("flags")),
        cores=usable_cores(),
        memory_gib=psutil.virtual_memory().total / 2**30,
        system=f"{platform.system()} {platform.release()}",
        facts={"Python": platform.python_version()},
    )


def _virtual(flags: str | None) -> bool | None:
    """Whether this is a virtual machine, from the processor's flags, which exist on x86 only."""
    return None if flags is None else "hypervisor" in flags.split()
