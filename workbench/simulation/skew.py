"""How the records of an operator spread over its tasks.

The most frequent key goes to one task, whatever the parallelism. The other keys are many; hashing spreads them not
quite evenly. The tasks' shares are the quantiles of a normal distribution, not draws from it: the same parallelism
always has the same shares, and the fullest of p tasks has the share that the fullest of p draws typically has.
"""

from functools import lru_cache
from statistics import NormalDist

import numpy as np

from workbench.arrays import Floats

_LIMIT = 3.0


def task_shares(tasks: int, hot_share: float = 0.0, imbalance: float = 0.0, partitions: int | None = None) -> Floats:
    """Share of the records each of `tasks` tasks receives, shape (tasks,), adding up to 1, the fullest last.

    Parameters
    ----------
    hot_share
        Share of the records with the most frequent key.
    imbalance
        Relative standard deviation of the shares of the other keys, cut off at three of them.
    partitions
        Partitions that the keys are in for good: a task takes whole ones, and with more tasks than partitions some
        take none. None: as many as tasks.
    """
    shares = (1.0 - hot_share) * (1.0 + imbalance * _quantiles(tasks)) / tasks
    if partitions is not None and hot_share < 1:
        shares *= (partitions + np.arange(tasks)) // tasks
        shares *= (1.0 - hot_share) / shares.sum()
    shares[-1] += hot_share
    return shares


@lru_cache(maxsize=1024)
def _quantiles(tasks: int) -> Floats:
    """Middle quantiles of the standard normal distribution; they are symmetric and add up to 0."""
    half = [max(-_LIMIT, NormalDist().inv_cdf((i + 0.5) / tasks)) for i in range(tasks // 2)]
    middle = [0.0] if tasks % 2 else []
    quantiles = np.array(half + middle + [-z for z in reversed(half)])
    quantiles.flags.writeable = False
    return quantiles
