"""Nexmark events: a pure function from an event number to a row, many rows at a time.

One table as in the public Flink suite: ``event_type`` (0 person, 1 auction, 2 bid), the nested records ``person``,
``auction`` and ``bid`` of which one is present, and the event time ``dateTime``. Differences from the public
generators, with the reasons:

- rows depend on (seed, event id) only, so runs repeat and any partition can make any range (the Flink generator has
  no seed);
- the first person and auction id is added to a bidder once (Flink adds it twice);
- the first event id is 0, so the first person and auction exist (Flink starts at 2);
- the event-time spacing comes from a clock, in fractions of a microsecond, and is independent of the emission rate;
- texts are picked from pools (see `workbench.workload.nexmark.pools`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from workbench.checks import require
from workbench.workload.nexmark.pools import (
    AUCTION_FIXED_BYTES,
    BID_FIXED_BYTES,
    CHANNELS,
    CITIES,
    FIRST_NAMES,
    HOT_CHANNELS,
    LAST_NAMES,
    PERSON_FIXED_BYTES,
    POOL_SIZE,
    STATES,
    Draw,
    Draws,
    ExtraPool,
    Integers,
    below,
    extra_bounds,
    pools,
)
from workbench.workload.nexmark.settings import DEFAULTS, ORDER_STEP, NexmarkSettings
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

    def filler(self, pool: ExtraPool, average: int, size: Integers) -> pa.StringArray:
        words = self.draws.words(Draw.EXTRA)
        low, steps = extra_bounds(average, size)
        return pool.pool.pick(pool.index(low + below(words, steps), words))

    def people(self) -> "list[Integers | pa.StringArray]":
        texts, draws = pools(self.settings), self.draws
        name = draws.below(Draw.FIRST_NAME, len(FIRST_NAMES)) * len(LAST_NAMES)
        picks = [
            (texts.names, name + draws.below(Draw.LAST_NAME, len(LAST_NAMES))),
            (texts.emails, draws.below(Draw.EMAIL, POOL_SIZE)),
            (texts.cards, draws.below(Draw.CARD, POOL_SIZE)),
            (texts.cities, draws.below(Draw.CITY, len(CITIES))),
            (texts.states, draws.below(Draw.STATE, len(STATES))),
        ]
        size = PERSON_FIXED_BYTES + sum(pool.lengths[index] for pool, index in picks)
        return [
            self.last_person + self.settings.first_person_id,
            *(pool.pick(index) for pool, index in picks),
            self.filler(texts.person_extra, self.settings.person_bytes, size),
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
        size = AUCTION_FIXED_BYTES + texts.items.lengths[item] + texts.descriptions.lengths[description]
        return [
            self.last_auction + settings.first_auction_id,
            texts.items.pick(item),
            texts.descriptions.pick(description),
            initial,
            initial + self.price(Draw.RESERVE),
            times + 1000 * lifetime,
            seller + settings.first_person_id,
            FIRST_CATEGORY + draws.below(Draw.CATEGORY, CATEGORIES),
            self.filler(texts.auction_extra, settings.auction_bytes, size),
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
            texts.channels.pick(channel),
            texts.urls.pick(channel),
            self.filler(texts.bid_extra, settings.bid_bytes, np.array(BID_FIXED_BYTES)),
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
    ahead = adjusted[auctions.positions] + settings.lookahead
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
