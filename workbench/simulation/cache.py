"""State against memory: how often a cache of a given size answers, and what a read then takes.

A cache that keeps the most read part of a working set answers the share (cache / working set) ** (1 - locality) of the
reads. With locality 0 every key is read equally often and the hit rate is the share that fits; with keys read by
Zipf's law of exponent locality < 1 the first n of N keys get (n / N) ** (1 - locality) of the reads (the integral of
the law). This gives the shapes of Justin's Figure 4: reads gain from memory until the working set fits, then nothing.
"""

import numpy as np
from numpy.typing import NDArray

from workbench.simulation.model import StateModel

Floats = NDArray[np.float64]


def hit_rate(memory_mb: float, state: StateModel, shares: Floats) -> Floats:
    """Share of the reads that the cache answers, for each task.

    Parameters
    ----------
    memory_mb
        Memory of one slot, MB.
    state
        The operator's state.
    shares
        Share of the operator's keys on each task, shape (tasks,).
    """
    working_set = state.working_set_mb * shares
    cache = np.full_like(working_set, memory_mb * state.cache_share)
    fits = cache >= working_set
    held = np.divide(cache, working_set, out=np.ones_like(cache), where=~fits)
    return np.asarray(held ** (1.0 - state.locality))


def read_latency_s(state: StateModel, hits: Floats) -> Floats:
    """Mean seconds of one state read at these hit rates."""
    return state.hit_s * hits + state.miss_s * (1.0 - hits)
