"""The load on this machine from others than the measurement, from its CPU counters."""

import os
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from workbench.metrics import Disturbance
from workbench.testbed.spark.machine.limits import TICK_S, outer_limit, throttling


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
        return Disturbance(steal=min(1.0, max(0.0, steal)), other_load=min(1.0, max(0.0, others)), throttled=throttled)


def session_processes(session: int) -> list[int]:
    """Ids of the processes whose session leader is `session`."""
    found = []
    for pid in psutil.pids():
        with suppress(OSError):
            if os.getsid(pid) == session:
                found.append(pid)
    return found


def load(ours: Iterable[int], at_s: float, slots: Collection[int] = (), executor_s: float = 0.0) -> Load:
    """Read the CPU counters, with the processes `ours`; `slots` are cores on which only the executor runs for us."""
    lines = (line.split() for line in Path("/proc/stat").read_text().splitlines() if line.startswith("cpu"))
    times = {name: values[:8] for name, *values in lines}
    user, nice, system, _idle, _iowait, irq, softirq, steal = (int(value) for value in times["cpu"])
    ours_s = 0.0
    for pid in ours:
        with suppress(OSError):
            stat = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            ours_s += sum(int(value) for value in stat[11:15]) * TICK_S  # with those of children that have ended
    busy = (user + nice + system + irq + softirq) * TICK_S
    there = [times[f"cpu{core}"] for core in slots if f"cpu{core}" in times]  # a container may number them differently
    # without interrupts: the executor's own shuffle causes them
    busy_there = sum(int(value) for core in there for value in core[:3]) * TICK_S
    stolen_there = sum(int(core[7]) for core in there) * TICK_S
    periods, throttled = 0, 0
    with suppress(OSError, ValueError):
        periods, throttled = throttling(outer_limit().folder)
    seen = (len(slots), busy_there, executor_s, stolen_there) if there and len(there) == len(slots) else None
    return Load(at_s, busy, steal * TICK_S, ours_s, os.cpu_count() or 1, periods, throttled, seen)
