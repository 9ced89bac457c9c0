"""Whether a core has so much more work than others that shards should move: noise of a short window is no reason.

Elasticutor moves shards when the fullest core exceeds theta = 1.2 times the mean in a window of 1 s (section 3.1). At
low rates a window contains few records, and perfectly even keys exceed the threshold by chance again and again. So one
of two conditions must hold too. The paper, with saturated sources, does not need them:

- Counting noise does not explain the excess. The CPU time of the records that reach a core in a window is a compound
  Poisson sum, here gamma-distributed: with mean m records and variance m (1 + variation). The fullest of n cores with
  even work exceeds the gamma quantile of 1 - FALSE_ALARM / n with probability of at most FALSE_ALARM.
- The core is nearly saturated: it worked NEAR_SATURATION of the window, so chance alone makes records wait.

Cores are given back by the same measure: if the target is met without them even when the window contained fewer
records than usual by chance.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainccinv

from workbench.arrays import Floats, Ints

FALSE_ALARM = 1e-4
NEAR_SATURATION = 0.9


def overloaded(
    load: Floats | Ints, mean: Floats, *, threshold: float, variation: float, full: float
) -> NDArray[np.bool_]:
    """Return which cores have so much more work than `mean` that shards should move.

    `load` and `mean` are records of mean cost in the window: of each core, and on average over the cores that share
    them, shape (cores,). `threshold` is theta, `variation` the squared coefficient of variation of the CPU time of a
    record, and `full` the records of mean cost that keep a core busy for the whole window.
    """
    explained = by_chance(mean, variation)
    return np.asarray((load > threshold * mean) & ((load > explained) | (load >= NEAR_SATURATION * full)))


def by_chance(mean: Floats, variation: float) -> Floats:
    """Return the work, in records, that any of these exceeds with a probability of at most FALSE_ALARM."""
    scale = 1.0 + variation  # variance / mean
    return np.asarray(scale * gammainccinv(np.maximum(mean, 1e-9) / scale, FALSE_ALARM / len(mean)), dtype=np.float64)
