"""How fast cores are, whatever they run: CPU seconds of fixed pieces of work, and the cores of two machines compared.

A deployment times arithmetic and random reads a few times a second while a query is observed
(`workbench.testbed.spark.machine.disturbance`), `measure_speed` does so without Spark. CPU seconds of the thread are
counted, so a neighbour that only takes turns on the core changes little. A figure says how fast cores are, not how fast
a query is on them: a query whose batches cost fixed work loses more than its cores do, and each query uses the first
cache, the memory and the JVM in its own mixture. So a comparison is an interval.
"""

import os
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import geometric_mean, median
from typing import NamedTuple

import numpy as np

from workbench import units

_TIME_EVERY_S = 0.25  # as a deployment's probe does: between two timings the caches cool down, and the core may sleep
_CELLS = 8 * 2**20  # of 8 bytes: larger than a core's share of any last cache
_READS = 20_000
_STRIDE = 1_299_709  # a prime, so that the next reads hit other cells, which no cache holds
_NUMBERS = 1_000
_ROUNDS = 150
_LEAST_DOUBT = 1.15
_SHORT_MS = 10.0


@dataclass(frozen=True)
class CoreSpeed:
    """How fast cores are: CPU seconds of fixed pieces of work."""

    arithmetic_s: float  # of arithmetic within the first cache
    reads_s: float  # of reads at random places of a table larger than most caches
    warm_batch_s: float | None = None  # of one small Spark batch whose code is compiled; None where no Spark ran

    @property
    def pieces(self) -> dict[str, float]:
        """Seconds of each piece that was timed, by its description; empty if cores are out of reach, as a cluster's."""
        each = {"arithmetic": self.arithmetic_s, "random reads": self.reads_s, "Spark batch": self.warm_batch_s}
        return {name: seconds for name, seconds in each.items() if seconds}

    def __str__(self) -> str:
        return ", ".join(f"{name} {milliseconds(one)}" for name, one in self.pieces.items())


def milliseconds(seconds: float) -> str:
    """Write the time of a piece of work: ``milliseconds(0.00025)`` is ``"0.25 ms"``."""
    took = 1000 * seconds
    return f"{took:.2f} ms" if took < _SHORT_MS else f"{units.number(took)} ms"


REFERENCE = CoreSpeed(0.25e-3, 0.285e-3)
"""The reference machine: the one of the plans that ship with the workbench, ``data/q5.recorded.json``."""


class RelativeSpeed(NamedTuple):
    """How many times as fast some cores are as others, with an interval that allows for the uncertainty."""

    times: float
    low: float
    high: float

    @property
    def differs(self) -> bool:
        """Whether the cores differ by more than the uncertainty."""
        return not self.low <= 1 <= self.high

    def __str__(self) -> str:
        return f"{self.times:.2f} ({self.low:.2f} to {self.high:.2f})"

    def words(self, there: str) -> str:
        """Return the ratio in words; `there` names the other cores, such as ``"those of the recorded run"``."""
        return f"{self.times:.2f} times as fast as {there} ({self.low:.2f} to {self.high:.2f})"


def relative_speed(here: CoreSpeed | None, there: CoreSpeed | None) -> RelativeSpeed | None:
    """Return how many times as fast the cores `here` are as those `there`; None where no piece was timed on both.

    It is the geometric mean over the pieces of work that were timed on both. The interval spans the pieces, because no
    query is known to be like one of them, and is at least 15 % wide to both sides.
    """
    if here is None or there is None:
        return None
    each = [there.pieces[name] / ours for name, ours in here.pieces.items() if name in there.pieces]
    if not each:
        return None
    times = geometric_mean(each)
    return RelativeSpeed(times, min([times / _LEAST_DOUBT, *each]), max([times * _LEAST_DOUBT, *each]))


def typical(timings: Sequence[CoreSpeed]) -> CoreSpeed:
    """Return the median of each piece: one read in a hundred takes a hundred times as long on any machine."""
    batches = [one.warm_batch_s for one in timings if one.warm_batch_s]
    return CoreSpeed(
        median(one.arithmetic_s for one in timings),
        median(one.reads_s for one in timings),
        median(batches) if batches else None,
    )


def typical_of(timings: Iterable[CoreSpeed | None]) -> CoreSpeed | None:
    """Return the `typical` time of those that were timed; None if none was."""
    timed = [one for one in timings if one is not None and one.pieces]
    return typical(timed) if timed else None


def slowness(cores: Sequence[CoreSpeed | None]) -> list[float]:
    """Return how long arithmetic took on each of the `cores`, over their median; all 1 where one was not timed.

    The time of q1's rows rose and fell with it (`workbench.testbed.spark.machine.disturbance`). A window in which the
    cores were 21 % faster than in the others of its deployment had a rate that was otherwise missed by a third.
    """
    timed = [one.arithmetic_s for one in cores if one is not None and one.arithmetic_s > 0]
    if not timed or len(timed) < len(cores):
        return [1.0] * len(cores)
    middle = median(timed)
    return [one / middle for one in timed]


class CoreTimer:
    """Times the arithmetic and the reads on `cores`, to which the calling thread moves; if empty, it does not move."""

    def __init__(
        self,
        cores: Collection[int] = (),
        cpu_s: Callable[[], float] = time.thread_time,  # of the calling thread
        cells: int = _CELLS,  # of the table
    ) -> None:
        self._cores = cores
        self._cpu_s = cpu_s
        self._numbers = np.linspace(1.0, 2.0, _NUMBERS)
        self._table = np.arange(cells, dtype=float)  # distinct values: the host may merge pages with equal content
        self._places = np.random.default_rng(0).integers(0, cells, _READS)

    def time(self) -> CoreSpeed:
        """Do the work once."""
        before = os.sched_getaffinity(0)
        with suppress(OSError):  # the cores were taken away: the thread stays where it is
            os.sched_setaffinity(0, self._cores or before)
        try:
            self._places = (self._places + _STRIDE) % len(self._table)
            begun = self._cpu_s()
            for _ in range(_ROUNDS):
                np.sqrt(self._numbers)
            counted = self._cpu_s()
            self._table.take(self._places).sum()
            return CoreSpeed(counted - begun, self._cpu_s() - counted)
        finally:
            with suppress(OSError):
                os.sched_setaffinity(0, before)


def measure_speed(
    seconds: float = 20.0,
    *,
    time_once: Callable[[], CoreSpeed] | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> CoreSpeed:
    """Time the arithmetic and the reads for about `seconds`, four times a second; return the median of each."""
    time_once = time_once or CoreTimer().time
    time_once()  # the first is cold: pages of the table were only just written
    end, timings = clock() + seconds, [time_once()]
    while clock() + _TIME_EVERY_S <= end:
        sleep(_TIME_EVERY_S)
        timings.append(time_once())
    return typical(timings)
