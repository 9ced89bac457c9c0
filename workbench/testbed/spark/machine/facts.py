"""Facts about this machine, for reports."""

import platform
from pathlib import Path

import psutil

from workbench.records import Machine
from workbench.testbed.spark.machine.limits import usable_cores


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
