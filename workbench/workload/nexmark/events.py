"""Nexmark events: a pure function from an event number to a row, many rows at a time.

One table as in the public Flink suite: ``event_type`` (0 person, 1 auction, 2 bid), the nested records ``person``,
``auction`` and ``bid`` of which one is present, and the event time ``dateTime``. Differences from the public
generators, with the reasons:

- rows depend on (seed, event id) only, so runs repeat and any partition can make any range (the Flink generator has
  no seed);
- the first person and auction id is added to a bidder once (Flink adds it twice);
- the first event id is 0, so the first person and auction exist (Flink starts at 2);
- the event-time spacing comes from a clock, in fractions of a microsecond, and is independent of the emission rate;
- texts are picked from pools that are made once per settings: 4,096 addresses, card numbers, item names and
  descriptions; every channel with its url; and for each length of `extra` up to 64 variants. Lengths and characters
  have the original's distributions, but texts repeat. With pools, one core makes millions of rows a second.

Random numbers depend on a seed, an event and the purpose of the draw. Their generator is counter-based (splitmix64 over
``64 * event id + draw``): any partition can make any range of events, a replay gives the same numbers, and a change in
the draws of one record does not affect other records.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workbench.checks import require
from workbench.workload.nexmark.settings import DEFAULTS, ORDER_STEP, Characters, NexmarkSettings
from workbench.workload.query import EventClock

PERSON, AUCTION, BID = 0, 1, 2

FIRST_CATEGORY, CATEGORIES = 10, 5
ID_LEAD = 10  # events may refer to people and auctions this many ids before they appear

HOT_CHANNEL_RATIO = 2
BASE_TIME_US = 1_436_918_400_000_000  # 2015-07-15T00:00:00Z, the base time of the Beam suite

DEFAULT_CLOCK = EventClock(BASE_TIME_US, 0, 100.0)  # 10,000 events a second from the base time

BATCH_ROWS = 20_000

_TIME = pa.timestamp("us", "UTC")
_NUMBER, _TEXT = pa.int64(), pa.string()
_PERSON = pa.struct(
    {"id": _NUMBER, **dict.fromkeys(("name", "emailAddress", "creditCard", "city", "state", "extra"), _TEXT)}
)
_AUCTION = pa.struct({
    "id": _NUMBER, "itemName": _TEXT, "description": _TEXT, "initialBid": _NUMBER, "reserve": _NUMBER,
    "expires": _TIME, "seller": _NUMBER, "category": _NUMBER, "extra": _TEXT,
})  # fmt: skip
_BID = pa.struct(
    {**dict.fromkeys(("auction", "bidder", "price"), _NUMBER), "channel": _TEXT, "url": _TEXT, "extra": _TEXT}
)
SCHEMA = pa.schema(
    [("event_type", pa.int32()), ("person", _PERSON), ("auction", _AUCTION), ("bid", _BID), ("dateTime", _TIME)]
)

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
    """Texts to pick from, and their lengths; all characters are ASCII.

    Texts that fill records up have every length that a kind of record can need, from the `shortest` on, with `copies`.
    """

    texts: pa.StringArray
    lengths: Integers
    shortest: int = 0
    copies: int = 1

    @classmethod
    def of(cls, texts: "list[str] | tuple[str, ...]") -> "Pool":
        """Make a pool of `texts`."""
        return cls(pa.array(texts, pa.string()), np.array([len(text) for text in texts], dtype=np.int64))

    def pick(self, indices: Integers) -> pa.StringArray:
        """Pick the texts at `indices`."""
        return self.texts.take(pa.array(indices))

    def fill(self, lengths: Integers, words: Words) -> pa.StringArray:
        """Pick texts of the given lengths, the copy chosen by the lower half of `words`."""
        return self.pick((lengths - self.shortest) * self.copies + below_low(words, self.copies))


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

    def words(self, count: int) -> Words:
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
def _extra(seed: int, average: int, smallest: int, largest: int, which: Characters) -> Pool:
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
    return Pool(texts, all_lengths, shortest, copies)


@lru_cache(maxsize=32)
def pools(settings: NexmarkSettings) -> dict[str, Pool]:
    """Make the texts for `settings`, the same in every process; the four hot channels and their urls are first."""
    texts = _texts(settings.seed)

    def filler(average: int, fixed: int, *parts: str) -> Pool:
        smallest = fixed + sum(int(texts[part].lengths.min()) for part in parts)
        largest = fixed + sum(int(texts[part].lengths.max()) for part in parts)
        return _extra(settings.seed, average, smallest, largest, settings.characters)

    return {
        **texts,
        "person_extra": filler(
            settings.person_bytes, PERSON_FIXED_BYTES, "names", "emails", "cards", "cities", "states"
        ),
        "auction_extra": filler(settings.auction_bytes, AUCTION_FIXED_BYTES, "items", "descriptions"),
        "bid_extra": filler(settings.bid_bytes, BID_FIXED_BYTES),
    }


@dataclass(frozen=True)
class NexmarkGenerator:
    """Makes Nexmark events from their numbers."""

    settings: NexmarkSettings = DEFAULTS

    def schema(self) -> pa.Schema:
        """Columns of the batches."""
        return SCHEMA

    def batches(self, first: int, last: int, clock: EventClock) -> Iterator[pa.RecordBatch]:
        """Events `first` to `last` (exclusive) as emitted; times are in the order before shuffling, less delays."""
        for start in range(first, last, BATCH_ROWS):
            yield _batch(np.arange(start, min(start + BATCH_ROWS, last), dtype=np.int64), clock, self.settings)


def events(first: int, last: int, settings: NexmarkSettings = DEFAULTS) -> pa.Table:
    """Nexmark events `first` to `last` (exclusive), 10,000 in a second of event time, with the columns of `SCHEMA`."""
    require(
        0 <= first <= last, f"The range of Nexmark events is {first} to {last}; it must satisfy 0 <= first <= last."
    )
    return pa.Table.from_batches(NexmarkGenerator(settings).batches(first, last, DEFAULT_CLOCK), SCHEMA)


def adjusted_numbers(numbers: Integers, group_size: int) -> Integers:
    """Return the place each event would have in order; a permutation within each group."""
    if group_size == 1:
        return numbers
    place = numbers % group_size
    return numbers - place + place * ORDER_STEP % group_size


def last_ids(event_ids: Integers, settings: NexmarkSettings) -> tuple[Integers, Integers]:
    """Return the latest person and auction at each event, before the first ids are added."""
    epoch, offset = np.divmod(event_ids, settings.total)
    people, auctions = settings.people, settings.auctions
    person = epoch * people + np.minimum(offset, people - 1)
    # before its first auction an epoch still has the last auction of the epoch before: offset - people clips to -1
    auction = epoch * auctions + np.clip(offset - people, -1, auctions - 1)
    return person, auction


def hot_id(last: Integers, batch: int) -> Integers:
    """Return the first id of the hot batch that contains `last`."""
    return last // batch * batch


class _Spread:
    """Puts the values of one kind of record into the rows of that kind, and nulls into the other rows."""

    def __init__(self, mask: npt.NDArray[np.bool_]) -> None:
        self.positions = np.flatnonzero(mask)
        self._rows = len(mask)
        self._valid = pa.py_buffer(np.packbits(mask, bitorder="little"))
        self._before = np.zeros(self._rows + 1, dtype=np.int64)
        np.cumsum(mask, out=self._before[1:])

    def _column(self, kind: pa.DataType, values: "Integers | pa.StringArray") -> pa.Array:
        if isinstance(values, pa.StringArray):  # offsets repeat over rows of other kinds, so the text is shared
            _, offsets, data = values.buffers()
            spread = np.frombuffer(offsets, dtype=np.int32, count=len(values) + 1)[self._before]
            buffers = [self._valid, pa.py_buffer(spread), data if data is not None else pa.py_buffer(b"")]
            return pa.Array.from_buffers(kind, self._rows, buffers)
        numbers = np.zeros(self._rows, dtype=np.int64)
        numbers[self.positions] = values
        return pa.Array.from_buffers(kind, self._rows, [self._valid, pa.py_buffer(numbers)])

    def record(self, kind: pa.StructType, values: "Sequence[Integers | pa.StringArray]") -> pa.StructArray:
        """Build the struct column of this kind of record, from one value per present record and field."""
        columns = [self._column(field.type, column) for field, column in zip(kind, values, strict=True)]
        return pa.Array.from_buffers(kind, self._rows, [self._valid], children=columns)


class _Rows:
    """The events of one kind within a batch."""

    def __init__(self, event_ids: Integers, settings: NexmarkSettings) -> None:
        self.settings = settings
        self.draws = Draws(settings.seed, event_ids)
        self.last_person, self.last_auction = last_ids(event_ids, settings)

    def price(self, draw: int) -> Integers:
        """Return log-uniform prices from 100 to 1e8 cents."""
        return np.floor(np.exp(self.draws.uniform(draw) * _SIX_DECADES) * 100 + 0.5).astype(np.int64)

    def hot(self, draw: int, ratio: int) -> npt.NDArray[np.bool_]:
        return self.draws.below(draw, ratio) > 0

    def any_person(self, draw: int) -> Integers:
        people = self.last_person + 1
        active = np.minimum(people, self.settings.active_people)
        return people - active + self.draws.below(draw, active + ID_LEAD)

    def any_auction(self, draw: int) -> Integers:
        low = np.maximum(self.last_auction - self.settings.auctions_in_flight, 0)
        return low + self.draws.below(draw, self.last_auction - low + 1 + ID_LEAD)

    def filler(self, pool: Pool, average: int, size: Integers) -> pa.StringArray:
        words = self.draws.words(Draw.EXTRA)
        low, steps = extra_bounds(average, size)
        return pool.fill(low + below(words, steps), words)

    def people(self) -> "list[Integers | pa.StringArray]":
        texts, draws = pools(self.settings), self.draws
        name = draws.below(Draw.FIRST_NAME, len(FIRST_NAMES)) * len(LAST_NAMES)
        picks = [
            (texts["names"], name + draws.below(Draw.LAST_NAME, len(LAST_NAMES))),
            (texts["emails"], draws.below(Draw.EMAIL, POOL_SIZE)),
            (texts["cards"], draws.below(Draw.CARD, POOL_SIZE)),
            (texts["cities"], draws.below(Draw.CITY, len(CITIES))),
            (texts["states"], draws.below(Draw.STATE, len(STATES))),
        ]
        size = PERSON_FIXED_BYTES + sum(pool.lengths[index] for pool, index in picks)
        return [
            self.last_person + self.settings.first_person_id,
            *(pool.pick(index) for pool, index in picks),
            self.filler(texts["person_extra"], self.settings.person_bytes, size),
        ]

    def auctions(self, times: Integers, lifetimes_ms: Integers) -> "list[Integers | pa.StringArray]":
        texts, draws, settings = pools(self.settings), self.draws, self.settings
        item, description = draws.below(Draw.ITEM, POOL_SIZE), draws.below(Draw.DESCRIPTION, POOL_SIZE)
        seller = np.where(
            self.hot(Draw.HOT_SELLER, settings.hot_seller_ratio),
            hot_id(self.last_person, settings.hot_batch),
            self.any_person(Draw.SELLER),
        )
        initial = self.price(Draw.INITIAL_BID)
        lifetime = 1 + draws.below(Draw.EXPIRY, np.maximum(2 * lifetimes_ms, 1))
        size = AUCTION_FIXED_BYTES + texts["items"].lengths[item] + texts["descriptions"].lengths[description]
        return [
            self.last_auction + settings.first_auction_id,
            texts["items"].pick(item),
            texts["descriptions"].pick(description),
            initial,
            initial + self.price(Draw.RESERVE),
            times + 1000 * lifetime,
            seller + settings.first_person_id,
            FIRST_CATEGORY + draws.below(Draw.CATEGORY, CATEGORIES),
            self.filler(texts["auction_extra"], settings.auction_bytes, size),
        ]

    def bids(self) -> "list[Integers | pa.StringArray]":
        texts, draws, settings = pools(self.settings), self.draws, self.settings
        auction = np.where(
            self.hot(Draw.HOT_AUCTION, settings.hot_auction_ratio),
            hot_id(self.last_auction, settings.hot_batch),
            self.any_auction(Draw.AUCTION),
        )
        bidder = np.where(
            self.hot(Draw.HOT_BIDDER, settings.hot_bidder_ratio),
            hot_id(self.last_person, settings.hot_batch) + 1,
            self.any_person(Draw.BIDDER),
        )
        hot_channel = self.hot(Draw.HOT_CHANNEL, HOT_CHANNEL_RATIO)
        channel = draws.below(Draw.CHANNEL, np.where(hot_channel, len(HOT_CHANNELS), CHANNELS))
        channel += np.where(hot_channel, 0, len(HOT_CHANNELS))
        return [
            auction + settings.first_auction_id,
            bidder + settings.first_person_id,
            self.price(Draw.PRICE),
            texts["channels"].pick(channel),
            texts["urls"].pick(channel),
            self.filler(texts["bid_extra"], settings.bid_bytes, np.array(BID_FIXED_BYTES)),
        ]


_SIX_DECADES = 6 * float(np.log(10))


def _batch(numbers: Integers, clock: EventClock, settings: NexmarkSettings) -> pa.RecordBatch:
    adjusted = adjusted_numbers(numbers, settings.group_size)
    event_ids = adjusted + settings.first_event_id
    on_time = clock.times_us(adjusted)
    times = on_time
    if settings.late_probability > 0:
        draws = Draws(settings.seed, event_ids)
        late = draws.uniform(Draw.LATE) < settings.late_probability
        times = on_time - np.where(late, 1000 * (1 + draws.below(Draw.LATE_DELAY, settings.late_delay_ms)), 0)
    place = event_ids % settings.total
    kinds = (place >= settings.people).astype(np.int32) + (place >= settings.people + settings.auctions)
    people, auctions, bids = (_Spread(kinds == kind) for kind in (PERSON, AUCTION, BID))
    # the events until that many auctions have appeared, 1,666 by default
    ahead = adjusted[auctions.positions] + settings.auctions_in_flight * settings.total // settings.auctions
    lifetimes = clock.times_us(ahead) // 1000 - on_time[auctions.positions] // 1000
    rows = [_Rows(event_ids[spread.positions], settings) for spread in (people, auctions, bids)]
    columns = [
        pa.array(kinds),
        people.record(_PERSON, rows[PERSON].people()),
        auctions.record(_AUCTION, rows[AUCTION].auctions(times[auctions.positions], lifetimes)),
        bids.record(_BID, rows[BID].bids()),
        pa.array(times).view(_TIME),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
