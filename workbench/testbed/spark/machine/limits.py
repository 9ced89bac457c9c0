"""Facts about this machine, and the limits of this process's CPU time: its cores and control groups."""

import math
import os
import platform
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from workbench.records import Machine

GROUPS = Path("/sys/fs/cgroup")
PREFIX = "workbench-"
"""Prefix of the names of folders and control groups of a deployment."""
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
"""Unit of the CPU times that the kernel reports of processes, seconds."""


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
