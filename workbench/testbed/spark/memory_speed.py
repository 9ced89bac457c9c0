"""How fast memory answers while a query is observed.

Other tenants of a machine share its last cache and its memory. What they take of these shows in no counter of the
processor's time: a query's seconds of CPU per row rise, and neither steal nor other load does. Here some thousand cells
of a table larger than the caches are read at random places, a few times a second, beside the driver. On a virtual
machine (2 cores of an AMD EPYC) windows in which these reads took 14 to 70 % longer were those in which q5 took 12
to 28 % more CPU per row; the query's own load did not show in them.
"""

import time
from collections.abc import Callable, Sequence

import numpy as np

READ_EVERY_S = 0.25
_CELLS = 8 * 2**20  # of 8 bytes: larger than a core's share of any last cache
_READS = 20_000
_STRIDE = 1_299_709  # a prime: the next reads are of other cells, which no cache holds
_COMPARABLE = 0.8  # of the rate: a query under less load leaves memory freer


class MemoryReader:
    """Reads cells of a table at random places.

    Parameters
    ----------
    cpu_s
        CPU seconds of the calling thread.
    cells, seed
        Size of the table, and which places are read.
    """

    def __init__(self, cpu_s: Callable[[], float] = time.thread_time, cells: int = _CELLS, seed: int = 0) -> None:
        self._cpu_s = cpu_s
        self._table = np.ones(cells)
        self._places = np.random.default_rng(seed).integers(0, cells, _READS)

    def read_s(self) -> float:
        """Seconds of CPU that one read takes now."""
        self._places = (self._places + _STRIDE) % len(self._table)
        begun = self._cpu_s()
        self._table.take(self._places).sum()
        return (self._cpu_s() - begun) / _READS


def slowdown(seen: Sequence[tuple[float, float]]) -> float:
    """Share by which reads took longer in the last observation than in the quickest that is comparable.

    Parameters
    ----------
    seen
        Of each observation of a deployment, oldest first: the commanded rate (records/s; inf for as much as fits) and
        the mean seconds of a read. Comparable are those at no less than 0.8 of the last one's rate.
    """
    if not seen:
        return 0.0
    rate, last_s = seen[-1]
    quickest_s = min(read_s for other, read_s in seen if other >= _COMPARABLE * rate)
    return last_s / quickest_s - 1 if quickest_s > 0 else 0.0
