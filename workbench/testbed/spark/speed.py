"""How fast the slots' cores are while a query is observed.

Other tenants of a machine share its last cache and its memory, and often the other half of a core. What they take of
these shows in no counter of the processor's time: a query's seconds of CPU per row rise, and neither steal nor other
load does. So a small piece of work is timed on the slots' cores a few times a second: arithmetic within the first
cache, and reads at random places of a table larger than most caches. On a virtual machine (2 cores of an AMD EPYC) the
arithmetic's time and q1's CPU time per row went up and down together over 26 windows of 10 s (correlation 0.92): where
the one took 29 % longer, the other took 60 % more. Windows in which the reads took 14 to 70 % longer were those in
which q5 took 12 to 28 % more CPU per row. Neither took longer under the queries' own load than on an idle machine.

Such neighbours come for seconds or stay for minutes. After an observation that they disturbed one can wait until the
cores are as quick and free again as they were: of a probe made in between nothing is learnt.
"""

import os
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import median

import numpy as np

_TIME_EVERY_S = 0.25
_QUIET_S = 4.0  # what lasts shorter is a gap between two bursts
_NOTABLE = 0.05  # as much as a verdict allows by default
_CELLS = 8 * 2**20  # of 8 bytes: larger than a core's share of any last cache
_READS = 20_000
_STRIDE = 1_299_709  # a prime: the next reads are of other cells, which no cache holds
_NUMBERS = 1_000
_ROUNDS = 150
_COMPARABLE = 0.8  # of the rate: under less load a query leaves caches and memory freer
# What slower reads cost a query that keeps much state, at the least that was seen: see the module's text.
_OF_READS = 0.5


@dataclass(frozen=True)
class Timing:
    """CPU seconds that the two halves of the work took."""

    arithmetic_s: float
    reads_s: float


def typical(timings: Sequence[Timing]) -> Timing:
    """Median of each half: one read in a hundred takes a hundred times as long, whatever the neighbours do."""
    return Timing(median(one.arithmetic_s for one in timings), median(one.reads_s for one in timings))


class Stopwatch:
    """Times the work on some cores.

    Parameters
    ----------
    cores
        Where; the calling thread is moved there meanwhile. Empty: where it is.
    cpu_s
        CPU seconds of the calling thread.
    cells, seed
        Size of the table, and which places are read.
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
        self._table = np.arange(cells, dtype=float)  # pages of one content may be merged by the host
        self._places = np.random.default_rng(seed).integers(0, cells, _READS)

    def time(self) -> Timing:
        """Do the work once."""
        before = os.sched_getaffinity(0)
        with suppress(OSError):  # cores that have been taken away: the work is timed where the thread is
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
    """Share by which the slots' cores were slower in the last observation than in the quickest that is comparable.

    Parameters
    ----------
    seen
        Of each observation of a deployment, oldest first: the commanded rate (records/s; inf for as much as fits) and
        the typical timing. Comparable are those at no less than 0.8 of the last one's rate.

    Returns
    -------
    float
        The larger of what the arithmetic took longer and half of what the reads did; at most 1.
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


class Pace:
    """The speed of a deployment's cores, observation by observation.

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
        """Time the work, if it is time again."""
        if self._clock() >= self._due_s:
            self._now.append(self._time_once())
            self._due_s = self._clock() + _TIME_EVERY_S

    def end(self, rate: float) -> float:
        """End an observation at `rate` (records/s): its slowdown."""
        self._now = self._now or [self._time_once()]
        self._seen.append((rate, typical(self._now)))
        self._now = []
        return slowdown(self._seen)

    def wait(self, rate: float, most_s: float, tick: Callable[[], None], others: Callable[[], float]) -> None:
        """Wait until the cores have been quick and free for some seconds, about `most_s` seconds at most.

        Parameters
        ----------
        rate
            At which the query runs meanwhile, records/s.
        tick
            Called over and over; must take a moment.
        others
            Gives the share of the machine that others took since it was called before.
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
