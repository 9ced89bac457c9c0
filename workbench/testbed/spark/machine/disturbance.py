"""What disturbs an observation: the load on this machine from others, and slower cores of the slots.

CPU counters show the load. Other tenants of a machine share its last-level cache and its memory, and often the second
thread of a core. No counter shows this interference, but a query's CPU seconds per row rise. So a few times a second
two pieces of work are timed on the slots' cores (`workbench.speed`): arithmetic within the first cache, and reads at
random places of a table larger than most caches.

On a virtual machine (2 cores of an AMD EPYC) the arithmetic's time and q1's CPU time per row rose and fell together
over 26 windows of 10 s (correlation 0.92): when the arithmetic took 29 % longer, q1 took 60 % more. In the windows in
which the reads took 14 to 70 % longer, q5 took 12 to 28 % more CPU per row. Neither took longer under the queries' own
load than on an idle machine. Such interference lasts for seconds or minutes.
"""

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from workbench.metrics import Disturbance
from workbench.speed import CoreSpeed, typical
from workbench.testbed.spark.machine.quota import TICK_S, outer_limit, throttling

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TIME_EVERY_S = 0.25
_QUIET_S = 4.0  # a shorter quiet time is a gap between two bursts
_NOTABLE = 0.05  # a verdict allows this much by default
_COMPARABLE = 0.8  # of the rate: at a lower load the query itself uses less of the caches and the memory
_BATCH_ROWS, _BATCH_KEYS = 1_000_000, 1_000
# Those timed, and those before, which compile the batch's code. The fourth to eighth took 22 ms on a quiet machine, but
# 26 next to bursts of load and 36 under a quota, which only delay the compiler; from the sixteenth on, 18 and 20 ms.
_BATCHES, _COLD = 10, 15
# The least that slower reads cost a query with a large state, as measured (see the module's docstring).
_OF_READS = 0.5


def slowdown(seen: Sequence[tuple[float, CoreSpeed]]) -> float:
    """Return the share by which the slots' cores were slower in the last observation than in the fastest comparable.

    It is the larger of the arithmetic's slowdown and half of the reads' slowdown, at most 1. Of each observation of a
    deployment, oldest first, `seen` has the commanded rate and the typical timing.
    """
    if not seen:
        return 0.0
    rate, last = seen[-1]
    comparable = [timing for other, timing in seen if other >= _COMPARABLE * rate]
    arithmetic_s = min(timing.arithmetic_s for timing in comparable)
    reads_s = min(timing.reads_s for timing in comparable)
    longer = last.arithmetic_s / arithmetic_s - 1 if arithmetic_s > 0 else 0.0
    reads_longer = last.reads_s / reads_s - 1 if reads_s > 0 else 0.0
    return min(1.0, max(longer, _OF_READS * reads_longer))


class InterferenceProbe:
    """Tracks the speed of a deployment's cores, observation by observation; `time_once` times the work once."""

    def __init__(self, time_once: Callable[[], CoreSpeed], clock: Callable[[], float]) -> None:
        self._time_once, self._clock = time_once, clock
        self._seen: list[tuple[float, CoreSpeed]] = []
        self._now: list[CoreSpeed] = []
        self._due_s = 0.0

    def sample(self) -> None:
        """Time the work if the next sample is due."""
        if self._clock() >= self._due_s:
            self._now.append(self._time_once())
            self._due_s = self._clock() + _TIME_EVERY_S

    def end(self, rate: float) -> tuple[float, CoreSpeed]:
        """End an observation at `rate` (records/s); return its slowdown, and how fast the cores were."""
        self._now = self._now or [self._time_once()]
        self._seen.append((rate, typical(self._now)))
        self._now = []
        return slowdown(self._seen), self._seen[-1][1]

    def wait(self, rate: float, most_s: float, tick: Callable[[], None], others: Callable[[], float]) -> None:
        """Wait until the cores have been fast and free for some seconds, about `most_s` seconds at most."""
        end = self._clock() + most_s
        while self._clock() < end:
            self._now = []
            others()
            until = self._clock() + _QUIET_S
            while self._clock() < until:
                tick()
                self.sample()
            slower = slowdown([*self._seen, (rate, typical(self._now))]) if self._now else 0.0
            if max(slower, others()) <= _NOTABLE:
                break
        self._now = []


def spark_batch_s(spark: "SparkSession", task_cpu_s: Callable[[], float]) -> float | None:
    """Return the CPU seconds that tasks take for a fixed batch, a million rows hashed and counted by key.

    Unlike arithmetic and reads it runs in the slots' JVM, with its code, its memory and its garbage collector, as a
    query's rows do. The JVM must be warm. It is the mean of several; None where no CPU seconds were seen.
    """
    rows = spark.range(0, _BATCH_ROWS, 1, 1).selectExpr(f"hash(id) % {_BATCH_KEYS} AS k").groupBy("k").count()
    before = 0.0
    for number in range(_COLD + _BATCHES):
        if number == _COLD:
            before = task_cpu_s()
        rows.write.format("noop").mode("overwrite").save()
    took_s = task_cpu_s() - before  # in one piece: a clock tick is a tenth of a batch
    return took_s / _BATCHES if took_s > 0 else None  # a thread that was idle for long may end, with its seconds


@dataclass(frozen=True)
class Load:
    """CPU seconds since boot of all `cores`: busy in total, stolen by other virtual machines, used by us."""

    at_s: float
    busy_s: float
    steal_s: float
    ours_s: float
    cores: int
    periods: int = 0
    throttled: int = 0
    # Of the cores on which only the executor runs for us (and the interference probe, for less than half a percent of
    # the time): number, seconds busy, used by the executor, stolen. None if the driver has no core apart from them.
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
