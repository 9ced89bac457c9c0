"""Measure the speed of the slots' cores while a query is observed.

Other tenants of a machine share its last-level cache and its memory, and often the second thread of a core. No CPU
counter shows this interference: a query's CPU seconds per row rise, but steal and other load do not. So a probe runs
on the slots' cores a few times a second and times two things: arithmetic within the first cache, and reads at random
places of a table larger than most caches.

On a virtual machine (2 cores of an AMD EPYC) the arithmetic's time and q1's CPU time per row rose and fell together
over 26 windows of 10 s (correlation 0.92): when the arithmetic took 29 % longer, q1 took 60 % more. In the windows in
which the reads took 14 to 70 % longer, q5 took 12 to 28 % more CPU per row. Neither took longer under the queries' own
load than on an idle machine.

Such interference lasts for seconds or minutes. After a disturbed observation, `InterferenceProbe.wait` waits until the
cores are fast and free again, because a probe during the interference would give no result.
"""

import os
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from statistics import median

import numpy as np

from workbench.metrics import Timing

_TIME_EVERY_S = 0.25
_QUIET_S = 4.0  # a shorter quiet time is a gap between two bursts
_NOTABLE = 0.05  # a verdict allows this much by default
_CELLS = 8 * 2**20  # of 8 bytes: larger than a core's share of any last cache
_READS = 20_000
_STRIDE = 1_299_709  # a prime, so that the next reads hit other cells, which no cache holds
_NUMBERS = 1_000
_ROUNDS = 150
_COMPARABLE = 0.8  # of the rate: at a lower load the query itself uses less of the caches and the memory
# The least that slower reads cost a query with a large state, as measured (see the module's docstring).
_OF_READS = 0.5


def typical(timings: Sequence[Timing]) -> Timing:
    """Return the median of each half: one read in a hundred takes a hundred times as long on any machine."""
    return Timing(median(one.arithmetic_s for one in timings), median(one.reads_s for one in timings))


class CoreTimer:
    """Times the probe's work on some cores.

    Parameters
    ----------
    cores
        Cores that the calling thread moves to for the work; empty: it stays where it is.
    cpu_s
        CPU seconds of the calling thread.
    cells, seed
        Size of the table, and the seed of the places that are read.
    """

    def __init__(
        self,
        cores: Collection[int] = (),
        cpu_s: Callable[[], float] = time.thread_time,
        cells: int = _CELLS,
        seed: int = 0,
    ) -> None:
        self._cores = cores
        self._cpu_s = cpu_s
        self._numbers = np.linspace(1.0, 2.0, _NUMBERS)
        self._table = np.arange(cells, dtype=float)  # distinct values: the host may merge pages with equal content
        self._places = np.random.default_rng(seed).integers(0, cells, _READS)

    def time(self) -> Timing:
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
            return Timing(counted - begun, self._cpu_s() - counted)
        finally:
            with suppress(OSError):
                os.sched_setaffinity(0, before)


def slowdown(seen: Sequence[tuple[float, Timing]]) -> float:
    """Return the share by which the slots' cores were slower in the last observation than in the fastest comparable.

    Parameters
    ----------
    seen
        The commanded rate (records/s; inf for the maximum rate) and the typical timing of each observation of a
        deployment, oldest first. Observations at 0.8 of the last one's rate or more are comparable.

    Returns
    -------
    float
        The larger of the arithmetic's slowdown and half of the reads' slowdown; at most 1.
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
    """Tracks the speed of a deployment's cores, observation by observation.

    Parameters
    ----------
    time_once
        Times the work once.
    clock
        Seconds.
    """

    def __init__(self, time_once: Callable[[], Timing], clock: Callable[[], float]) -> None:
        self._time_once, self._clock = time_once, clock
        self._seen: list[tuple[float, Timing]] = []
        self._now: list[Timing] = []
        self._due_s = 0.0

    def sample(self) -> None:
        """Time the work if the next sample is due."""
        if self._clock() >= self._due_s:
            self._now.append(self._time_once())
            self._due_s = self._clock() + _TIME_EVERY_S

    def end(self, rate: float) -> tuple[float, Timing]:
        """End an observation at `rate` (records/s); return its slowdown, and how fast the cores were."""
        self._now = self._now or [self._time_once()]
        self._seen.append((rate, typical(self._now)))
        self._now = []
        return slowdown(self._seen), self._seen[-1][1]

    def wait(self, rate: float, most_s: float, tick: Callable[[], None], others: Callable[[], float]) -> None:
        """Wait until the cores have been fast and free for some seconds, about `most_s` seconds at most.

        Parameters
        ----------
        rate
            Rate at which the query runs in the meantime, records/s.
        tick
            Called repeatedly; must take a moment.
        others
            Returns the share of the machine that others took since its last call.
        """
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
