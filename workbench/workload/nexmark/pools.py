"""Random numbers that depend on a seed, an event and the purpose of the draw, and the texts of records made of them.

The generator is counter-based (splitmix64 over ``64 * event id + draw``): any partition can make any range of events,
a replay gives the same numbers, and a change in the draws of one record does not affect other records.

The original draws a new text for every record. Here each text is picked from a pool that is made once per settings:
4,096 addresses, card numbers, item names and descriptions; every channel with its url; and for each length of `extra`
up to 64 variants. Lengths and characters have the original's distributions, but texts repeat. With pools, one core
makes millions of rows a second.
"""

from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workbench.workload.nexmark.settings import Characters, NexmarkSettings

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


FIRST_NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
CITIES = (
    *("Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland"),
    *("Bend", "Redmond", "Seattle", "Kent", "Cheyenne"),
)
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
CHANNELS = 10_000
POOL_SIZE = 4096

PERSON_FIXED_BYTES, AUCTION_FIXED_BYTES, BID_FIXED_BYTES = 8, 48, 32
_EXTRA_COPIES = 64
_EXTRA_POOL_BYTES = 1 << 20

_Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Pool:
    """Texts to pick from, and their lengths; all characters are ASCII."""

    texts: pa.StringArray
    lengths: Integers

    @classmethod
    def of(cls, texts: "list[str] | tuple[str, ...]") -> "Pool":
        """Make a pool of `texts`."""
        return cls(pa.array(texts, pa.string()), np.array([len(text) for text in texts], dtype=np.int64))

    def pick(self, indices: Integers) -> pa.StringArray:
        """Pick the texts at `indices`."""
        return self.texts.take(pa.array(indices))


@dataclass(frozen=True, eq=False)
class ExtraPool:
    """Filling texts of every length that a kind of record can need, by length: `copies` of each from `shortest`."""

    pool: Pool
    shortest: int
    copies: int

    def index(self, lengths: Integers, words: npt.NDArray[np.uint64]) -> Integers:
        """Return indices of texts of the given lengths, the copy chosen by the lower half of `words`."""
        return (lengths - self.shortest) * self.copies + below_low(words, self.copies)


@dataclass(frozen=True, eq=False)
class Pools:
    """All texts of a stream; channels and urls go together, the four hot channels first."""

    names: Pool
    emails: Pool
    cards: Pool
    cities: Pool
    states: Pool
    items: Pool
    descriptions: Pool
    channels: Pool
    urls: Pool
    person_extra: ExtraPool
    auction_extra: ExtraPool
    bid_extra: ExtraPool


def extra_bounds(average: int, size: Integers) -> tuple[Integers, Integers]:
    """Shortest length of `extra` for records of `size` bytes, and how many lengths are possible."""
    missing = np.maximum(average - size, 0)
    delta = (2 * missing + 5) // 10  # 20 %, rounded
    return missing - delta, np.maximum(2 * delta, 1)


def channel_id(number: int) -> int:
    """Return the ``channel_id`` in the url of channel `number`: its 32 bits reversed, as the size of a signed integer.

    As in the original, ids collide (2 and 3) and the absolute value of the least 32-bit integer (1) is itself.
    """
    value = int(f"{number & 0xFFFFFFFF:032b}"[::-1], 2)
    if value > 1 << 31:
        return (1 << 32) - value
    return -value if value == 1 << 31 else value


class _Maker:
    """Random words for one purpose, as a separate stream for each seed."""

    def __init__(self, seed: int, purpose: str) -> None:
        self._seed, self._next = mix(seed) ^ crc32(purpose.encode()), 0

    def words(self, count: int) -> npt.NDArray[np.uint64]:
        counters = np.arange(self._next, self._next + count, dtype=np.int64)
        self._next += count
        return Draws(self._seed, counters).words(63)

    def below(self, bound: int, count: int) -> Integers:
        return below(self.words(count), bound)

    def texts(self, bound: int, count: int, special: str = " ") -> list[str]:
        """`count` times rand(bound): 3 to bound - 1 characters, 1 in 13 special, else a to z, then trimmed."""
        lengths = 3 + self.below(bound - 3, count)
        words = self.words(int(lengths.sum()))
        letters = (97 + below(words, 26)).astype(np.uint8)
        letters[below_low(words, 13) == 0] = ord(special)
        ends = np.cumsum(lengths)
        whole = letters.tobytes().decode("ascii")
        return [whole[end - length : end].strip(" ") for end, length in zip(ends, lengths, strict=True)]

    def characters(self, count: int, which: Characters) -> _Bytes:
        if which == "letters":
            return (97 + self.below(26, count)).astype(np.uint8)
        numbers = (self.words(count // 6 + 1) >> np.uint64(32)).astype(np.uint32).view(np.int32).astype(np.int64)
        peeled = np.empty((len(numbers), 6), dtype=np.uint8)
        for column in range(6):  # remainder and quotient keep the sign, as in C and Java
            peeled[:, column] = 97 + np.fmod(numbers, 26)
            numbers = np.sign(numbers) * (np.abs(numbers) // 26)
        return peeled.reshape(-1)[:count]


@lru_cache(maxsize=8)
def _texts(seed: int) -> dict[str, Pool]:
    """Make the texts that depend on the seed only."""
    make = _Maker(seed, "texts")
    addresses = zip(make.texts(7, POOL_SIZE), make.texts(5, POOL_SIZE), strict=True)
    groups = make.below(10_000, 4 * POOL_SIZE).reshape(-1, 4).tolist()
    paths = [make.texts(5, len(HOT_CHANNELS) + CHANNELS, "_") for _ in range(3)]
    with_id = [False] * len(HOT_CHANNELS) + (make.below(10, CHANNELS) > 0).tolist()
    urls = [
        f"https://www.nexmark.com/{a}/{b}/{c}/item.htm?query=1"
        + (f"&channel_id={channel_id(place - len(HOT_CHANNELS))}" if identified else "")
        for place, (a, b, c, identified) in enumerate(zip(*paths, with_id, strict=True))
    ]
    return {
        "names": Pool.of([f"{first} {last}" for first in FIRST_NAMES for last in LAST_NAMES]),
        "emails": Pool.of([f"{user}@{host}.com" for user, host in addresses]),
        "cards": Pool.of([" ".join(f"{group:04d}" for group in card) for card in groups]),
        "cities": Pool.of(CITIES),
        "states": Pool.of(STATES),
        "items": Pool.of(make.texts(20, POOL_SIZE)),
        "descriptions": Pool.of(make.texts(100, POOL_SIZE)),
        "channels": Pool.of([*HOT_CHANNELS, *(f"channel-{number}" for number in range(CHANNELS))]),
        "urls": Pool.of(urls),
    }


@lru_cache(maxsize=32)
def _extra(seed: int, average: int, smallest: int, largest: int, which: Characters) -> ExtraPool:
    """Make the filling texts that bring records of `smallest` to `largest` bytes to `average` bytes."""
    make = _Maker(seed, f"extra {average} {smallest} {largest}")
    low, steps = extra_bounds(average, np.arange(smallest, largest + 1))
    shortest, longest = int(low.min()), int((low + steps - 1).max())
    lengths = np.arange(shortest, longest + 1)
    copies = int(np.clip(_EXTRA_POOL_BYTES // max(1, lengths.sum()), 1, _EXTRA_COPIES))
    all_lengths = np.repeat(lengths, copies)
    offsets = np.concatenate([[0], np.cumsum(all_lengths)]).astype(np.int32)
    data = make.characters(int(offsets[-1]), which)
    texts = pa.StringArray.from_buffers(len(all_lengths), pa.py_buffer(offsets), pa.py_buffer(data))
    return ExtraPool(Pool(texts, all_lengths), shortest, copies)


@lru_cache(maxsize=32)
def pools(settings: NexmarkSettings) -> Pools:
    """Make the texts for `settings`, the same in every process."""
    texts = _texts(settings.seed)

    def filler(average: int, fixed: int, *parts: Pool) -> ExtraPool:
        smallest = fixed + sum(int(part.lengths.min()) for part in parts)
        largest = fixed + sum(int(part.lengths.max()) for part in parts)
        return _extra(settings.seed, average, smallest, largest, settings.characters)

    person = (texts[name] for name in ("names", "emails", "cards", "cities", "states"))
    auction = (texts[name] for name in ("items", "descriptions"))
    return Pools(
        **texts,
        person_extra=filler(settings.person_bytes, PERSON_FIXED_BYTES, *person),
        auction_extra=filler(settings.auction_bytes, AUCTION_FIXED_BYTES, *auction),
        bid_extra=filler(settings.bid_bytes, BID_FIXED_BYTES),
    )
