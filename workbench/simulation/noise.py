"""Random numbers that depend on what is measured, not on when.

A stream is named by a key: the seed, the configuration, the number of the repeat. The same key gives the same numbers
in any order of measurements and in any process, so an exploration that was killed and resumed sees what an undisturbed
one sees.
"""

import hashlib
import math

import numpy as np

_LIMIT = 3.0


def stream(*key: str | float | None) -> np.random.Generator:
    """Return the random numbers that belong to `key`."""
    digest = hashlib.blake2b(repr(key).encode(), digest_size=16).digest()
    return np.random.default_rng(int.from_bytes(digest, "big"))


def speed_factor(random: np.random.Generator, deviation: float) -> float:
    """Draw a speed around 1: log-normal with mean 1, cut off at three standard deviations of its logarithm."""
    normal = float(np.clip(random.standard_normal(), -_LIMIT, _LIMIT))
    spread = math.sqrt(math.log1p(deviation * deviation))
    return math.exp(spread * normal - spread * spread / 2)
