"""State against memory: how often a cache of a given size answers, and what a read then takes.

A cache that keeps the most read part of a working set answers the share (cache / working set) ** (1 - locality) of the
reads. With locality 0 every key is read equally often and the hit rate is the share that fits; with keys read by
Zipf's law of exponent locality < 1 the first n of N keys get (n / N) ** (1 - locality) of the reads (the integral of
the law). This gives the shapes of Justin's Figure 4: reads gain from memory until the working set fits, then nothing.
"""

import math

import numpy as np

from workbench.arrays import Floats
from workbench.simulation.model import StateModel

_MEMTABLE_MB = 64.0


def block_cache_mb(managed_mb: float) -> float:
    """Compute what managed memory leaves for caching reads, MB, as Flink sets up RocksDB (Justin, section 3).

    Writes are buffered in a power of two of MB, at most 64, that is less than half: 128 MB leave 96 for the cache,
    256 leave 192, 512 leave 448.
    """
    if managed_mb <= 0:
        return 0.0
    if math.isinf(managed_mb):
        return math.inf
    return managed_mb - min(_MEMTABLE_MB, 2.0 ** (math.ceil(math.log2(managed_mb)) - 2))


def hit_rate(cache_mb: float, state: StateModel, shares: Floats) -> Floats:
    """Share of the reads that a cache of `cache_mb` answers, by the share of the keys on each task, shape (tasks,)."""
    working_set = state.working_set_mb * shares
    cache = np.full_like(working_set, cache_mb)
    fits = cache >= working_set
    held = np.divide(cache, working_set, out=np.ones_like(cache), where=~fits)
    return np.asarray(held ** (1.0 - state.locality))


def read_latency_s(state: StateModel, hits: Floats) -> Floats:
    """Mean seconds of one state read at these hit rates."""
    return state.hit_s * hits + state.miss_s * (1.0 - hits)
