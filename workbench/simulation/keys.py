"""Which keys are popular, and how that changes: abruptly by shuffles, or by a hot key that wanders.

A key stays on its task, by a hash, so tasks become hot and cool down although no key moves (Elasticutor, section 5.1).

The most frequent key goes to one task, whatever the parallelism. Hashing spreads the many others not quite evenly: the
tasks' shares are the quantiles of a normal distribution, not draws from it, so that the same parallelism always has the
same shares, and the fullest of p tasks has the share that the fullest of p draws typically has.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import Literal, get_args

import numpy as np

from workbench import units
from workbench.arrays import Floats, Ints
from workbench.checks import not_negative, one_of, require, whole, within

_LIMIT = 3.0


def task_shares(tasks: int, hot_share: float = 0.0, imbalance: float = 0.0, partitions: int | None = None) -> Floats:
    """Share of the records each of `tasks` tasks receives, shape (tasks,), adding up to 1, the fullest last.

    The most frequent key has `hot_share` of the records; `imbalance` is the relative standard deviation of the shares
    of the others, cut off at three of them. `partitions` are those that the keys are in for good: a task takes whole
    ones, and with more tasks than partitions some take none. None: as many as tasks.
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


Change = Literal["shuffle", "wander"]
_MOST_UNTRACKED = 1_000_000


@dataclass(frozen=True, eq=False)
class KeyTrace:
    """Popularity of every key over time, constant between its changes."""

    shares: Floats  # weight of each key, at least 0, in any unit (such as counts); kept adding up to 1, shape (keys,)
    changes_per_minute: float = 0.0  # omega of Elasticutor, section 5.1; 0: the popularity never changes
    # ``"shuffle"``: all keys exchange their popularity at random; ``"wander"``: only the most popular key does, with a
    # key drawn at random
    change: Change = "shuffle"
    seed: int = 0  # of the random draws, and of the hash. Change n depends on the seed and n alone

    def __post_init__(self) -> None:
        weights = np.array(self.shares, dtype=float)
        require(
            weights.ndim == 1 and weights.size > 0 and bool(np.isfinite(weights).all() and (weights >= 0).all()),
            "The weights of a key trace must be finite numbers of at least 0, one for each of its keys.",
        )
        require(weights.max() > 0, "A key trace has no key with a weight above 0; count the keys first.")
        not_negative("changes_per_minute", self.changes_per_minute)
        one_of("change", self.change, get_args(Change))
        with np.errstate(over="ignore"):
            total = float(weights.sum())
        require(
            math.isfinite(total),
            f"The weights of a key trace of {units.some(weights.size, 'key')} add up to {total}; scale them.",
        )
        shares = weights / total
        shares.flags.writeable = False
        object.__setattr__(self, "shares", shares)
        object.__setattr__(self, "seed", whole("The seed of a key trace", self.seed, 0))

    @classmethod
    def zipf(cls, keys: int, exponent: float, changes_per_minute: float = 0.0, seed: int = 0) -> "KeyTrace":
        """Zipf's law: the r-th most popular of `keys` keys has a share in proportion to ``r ** -exponent``."""
        keys = whole("The number of keys of a key trace", keys)
        not_negative("The exponent of Zipf's law", exponent)
        return cls(np.arange(1, keys + 1, dtype=float) ** -exponent, changes_per_minute, seed=seed)

    @classmethod
    def hot_key(cls, keys: int, hot_share: float, changes_per_minute: float = 0.0, seed: int = 0) -> "KeyTrace":
        """One key that wanders has `hot_share` of the records; the others share the rest evenly."""
        keys = whole("The number of keys of a key trace with a hot key", keys, 2)
        within("hot_share", hot_share, 0, 1, "share of the records", ends="[]")
        shares = np.full(keys, (1.0 - hot_share) / (keys - 1))
        shares[0] = hot_share
        return cls(shares, changes_per_minute, "wander", seed)

    @classmethod
    def from_counts(  # noqa: PLR0917 - what was counted, then what every key trace takes
        cls,
        counts: Sequence[float],
        untracked_keys: int = 0,
        untracked_records: float = 0.0,
        changes_per_minute: float = 0.0,
        change: Change = "shuffle",
        seed: int = 0,
    ) -> "KeyTrace":
        """Take the user's own keys: counted ones, and `untracked_keys` more that share `untracked_records` evenly.

        Of the untracked keys at most a million are kept apart: that many small ones spread evenly, as more do.
        """
        not_negative("The number of records of untracked keys", untracked_records)
        counted = np.asarray(counts, dtype=float)
        require(counted.ndim == 1, f"The counts of keys have the shape {counted.shape}; give one number for each key.")
        apart = min(whole("The number of untracked keys", untracked_keys, 0), _MOST_UNTRACKED)
        rest = np.full(apart, untracked_records / max(1, apart))
        return cls(np.concatenate([counted, rest]), changes_per_minute, change, seed)

    @property
    def period_s(self) -> float:
        """Seconds between two changes; inf without any."""
        return 60.0 / self.changes_per_minute if self.changes_per_minute else math.inf

    def epoch_at(self, time_s: float) -> int:
        """Count the changes until `time_s`."""
        return 0 if math.isinf(self.period_s) else int(time_s / self.period_s + 1e-9)

    def popularity(self, epoch: int) -> Floats:
        """Share of the records of each key after `epoch` changes, shape (keys,)."""
        if epoch == 0:
            return self.shares
        rng = np.random.default_rng([self.seed, epoch])
        if self.change == "shuffle":
            return rng.permutation(self.shares)
        hot, other = int(self.shares.argmax()), int(rng.integers(len(self.shares)))
        shares = self.shares.copy()
        shares[[hot, other]] = shares[[other, hot]]
        return shares

    def task_of(self, tasks: int) -> Ints:
        """Task (or shard) of each key, shape (keys,): even ranges of a hash, as Flink's key groups."""
        return (self._hashes * tasks).astype(np.int64)

    def task_shares(self, epoch: int, tasks: int) -> Floats:
        """Share of the records of each task (or shard) after `epoch` changes, shape (tasks,)."""
        return np.asarray(np.bincount(self.task_of(tasks), self.popularity(epoch), tasks), dtype=np.float64)

    @cached_property
    def _hashes(self) -> Floats:
        return np.random.default_rng([self.seed, len(self.shares)]).random(len(self.shares))
