"""Random numbers that depend only on a seed, an event and the purpose of the draw.

A counter-based generator (splitmix64 over ``64 * event id + draw``): any partition can make any range of events, a
replay gives the same numbers, and a change in the draws of one record does not affect other records.
"""

from enum import IntEnum

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]

GOLDEN = 0x9E3779B97F4A7C15
DRAWS_PER_EVENT = 64
_MASK = (1 << 64) - 1
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


Draw = IntEnum(
    "Draw",
    "LATE LATE_DELAY FIRST_NAME LAST_NAME EMAIL CARD CITY STATE HOT_SELLER SELLER CATEGORY INITIAL_BID EXPIRY ITEM "
    "DESCRIPTION RESERVE HOT_AUCTION AUCTION HOT_BIDDER BIDDER PRICE HOT_CHANNEL CHANNEL EXTRA",
    start=0,
)
"""The purpose of a random number of an event; the value is its index among the event's numbers."""


def mix(word: int) -> int:
    """Apply the finalizer of splitmix64 to one 64-bit word."""
    word = ((word ^ (word >> 30)) * _FIRST) & _MASK
    word = ((word ^ (word >> 27)) * _SECOND) & _MASK
    return word ^ (word >> 31)


class Draws:
    """The random numbers of many events at once, in the order of `event_ids`."""

    def __init__(self, seed: int, event_ids: Integers) -> None:
        self._base = event_ids.astype(np.uint64)
        self._base *= np.uint64(DRAWS_PER_EVENT * GOLDEN & _MASK)
        self._base += np.uint64(mix(seed))

    def words(self, draw: int) -> Words:
        """Return 64 random bits for each event."""
        words = self._base + np.uint64(draw * GOLDEN & _MASK)
        words ^= words >> np.uint64(30)
        words *= np.uint64(_FIRST)
        words ^= words >> np.uint64(27)
        words *= np.uint64(_SECOND)
        words ^= words >> np.uint64(31)
        return words

    def below(self, draw: int, bound: "int | Integers") -> Integers:
        """Return a uniform integer in [0, bound) for each event; bounds up to 2^32."""
        return below(self.words(draw), bound)

    def uniform(self, draw: int) -> npt.NDArray[np.float64]:
        """Return a uniform float in [0, 1) for each event."""
        return (self.words(draw) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def below(words: Words, bound: "int | Integers") -> Integers:
    """Return a uniform integer in [0, bound) from the upper half of each word; bounds up to 2^32."""
    high = words >> np.uint64(32)
    high *= np.asarray(bound).astype(np.uint64)
    high >>= np.uint64(32)
    return high.view(np.int64)


def below_low(words: Words, bound: int) -> Integers:
    """Return a uniform integer in [0, bound) from the lower half of each word; bounds up to 2^32."""
    low = words & np.uint64(0xFFFFFFFF)
    low *= np.uint64(bound)
    low >>= np.uint64(32)
    return low.view(np.int64)
