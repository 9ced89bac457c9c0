"""One Nexmark event in plain Python, written from the definition, not for speed.

It shares only the random words and the pools of texts with the fast generator, so a comparison of the two checks the
arithmetic of both.
"""

import math
from datetime import UTC, datetime, timedelta
from typing import Any

from workbench.workload.nexmark.events import DRAWS_PER_EVENT, GOLDEN, Draw, Pool, mix, pools
from workbench.workload.nexmark.settings import DEFAULTS, NexmarkSettings
from workbench.workload.query import EventClock

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_KINDS = ("person", "auction", "bid")


def event(number: int, settings: NexmarkSettings = DEFAULTS, clock: EventClock | None = None) -> dict[str, Any]:
    """Return event `number`, from 0 in order of emission, as a row: nested dictionaries, None for absent records.

    Without a clock there are 10,000 events a second from 2015-07-15.
    """
    clock = clock or EventClock(1_436_918_400_000_000, 0, 100.0)
    size = settings.group_size
    base = number // size * size
    adjusted = base + number * 953 % size
    one = _Event(adjusted + settings.first_event_id, settings)
    due_us = _time_us(adjusted, clock)
    late = one.uniform(Draw.LATE) < settings.late_probability
    time_us = due_us - (1000 * (1 + one.below(Draw.LATE_DELAY, settings.late_delay_ms)) if late else 0)
    row: dict[str, Any] = {"event_type": one.kind, "person": None, "auction": None, "bid": None}
    if one.kind == 0:
        record = one.person()
    elif one.kind == 1:
        lookahead = settings.auctions_in_flight * settings.total // settings.auctions
        horizon = _time_us(adjusted + lookahead, clock) // 1000 - due_us // 1000
        record = one.auction(time_us, horizon)
    else:
        record = one.bid()
    row[_KINDS[one.kind]] = record
    row["dateTime"] = _moment(time_us)
    return row


def draw_one(seed: int, event_id: int, draw: int) -> int:
    """Return the 64-bit random number `draw` of one event."""
    return mix((mix(seed) + (event_id * DRAWS_PER_EVENT + draw) * GOLDEN) % 2**64)


def _time_us(number: int, clock: EventClock) -> int:
    return clock.origin_us + math.floor((number - clock.first) * clock.spacing_us)


def _moment(time_us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=time_us)


def _text(pool: Pool, index: int) -> str:
    return str(pool.texts[index].as_py())


class _Event:
    def __init__(self, event_id: int, settings: NexmarkSettings) -> None:
        self.event_id, self.settings = event_id, settings
        people, auctions = settings.people, settings.auctions
        epoch, offset = divmod(event_id, people + auctions + settings.bids)
        self.last_person = epoch * people + min(offset, people - 1)
        if offset < people:
            self.kind, self.last_auction = 0, (epoch - 1) * auctions + auctions - 1
        elif offset < people + auctions:
            self.kind, self.last_auction = 1, epoch * auctions + offset - people
        else:
            self.kind, self.last_auction = 2, epoch * auctions + auctions - 1

    def word(self, draw: Draw) -> int:
        return draw_one(self.settings.seed, self.event_id, draw)

    def below(self, draw: Draw, bound: int) -> int:
        return (self.word(draw) >> 32) * bound >> 32

    def uniform(self, draw: Draw) -> float:
        return (self.word(draw) >> 11) / (1 << 53)

    def price(self, draw: Draw) -> int:
        return math.floor(10 ** (6 * self.uniform(draw)) * 100 + 0.5)

    def any_person(self, draw: Draw) -> int:
        people = self.last_person + 1
        active = min(people, self.settings.active_people)
        return people - active + self.below(draw, active + 10)

    def any_auction(self, draw: Draw) -> int:
        low = max(self.last_auction - self.settings.auctions_in_flight, 0)
        return low + self.below(draw, self.last_auction - low + 1 + 10)

    def hot(self, last: int) -> int:
        return last // self.settings.hot_batch * self.settings.hot_batch

    def filler(self, pool: Pool, average: int, size: int) -> str:
        if size > average:
            return ""
        missing = average - size
        delta = round(missing / 5)
        word = self.word(Draw.EXTRA)
        length = missing - delta + (((word >> 32) * (2 * delta) >> 32) if delta else 0)
        copy = (word & 0xFFFFFFFF) * pool.copies >> 32
        text = _text(pool, (length - pool.shortest) * pool.copies + copy)
        if len(text) != length:
            raise AssertionError((len(text), length))
        return text

    def person(self) -> dict[str, Any]:
        texts = pools(self.settings)
        record = {
            "name": _text(texts["names"], self.below(Draw.FIRST_NAME, 11) * 9 + self.below(Draw.LAST_NAME, 9)),
            "emailAddress": _text(texts["emails"], self.below(Draw.EMAIL, 4096)),
            "creditCard": _text(texts["cards"], self.below(Draw.CARD, 4096)),
            "city": _text(texts["cities"], self.below(Draw.CITY, 10)),
            "state": _text(texts["states"], self.below(Draw.STATE, 6)),
        }
        size = 8 + sum(map(len, record.values()))
        extra = self.filler(texts["person_extra"], self.settings.person_bytes, size)
        return {"id": self.last_person + self.settings.first_person_id, **record, "extra": extra}

    def auction(self, time_us: int, horizon_ms: int) -> dict[str, Any]:
        texts, settings = pools(self.settings), self.settings
        hot = self.below(Draw.HOT_SELLER, settings.hot_seller_ratio) > 0
        seller = self.hot(self.last_person) if hot else self.any_person(Draw.SELLER)
        initial = self.price(Draw.INITIAL_BID)
        lifetime_ms = 1 + self.below(Draw.EXPIRY, max(2 * horizon_ms, 1))
        item = _text(texts["items"], self.below(Draw.ITEM, 4096))
        description = _text(texts["descriptions"], self.below(Draw.DESCRIPTION, 4096))
        return {
            "id": self.last_auction + settings.first_auction_id,
            "itemName": item,
            "description": description,
            "initialBid": initial,
            "reserve": initial + self.price(Draw.RESERVE),
            "expires": _moment(time_us + 1000 * lifetime_ms),
            "seller": seller + settings.first_person_id,
            "category": 10 + self.below(Draw.CATEGORY, 5),
            "extra": self.filler(texts["auction_extra"], settings.auction_bytes, 48 + len(item) + len(description)),
        }

    def bid(self) -> dict[str, Any]:
        texts, settings = pools(self.settings), self.settings
        hot_auction = self.below(Draw.HOT_AUCTION, settings.hot_auction_ratio) > 0
        hot_bidder = self.below(Draw.HOT_BIDDER, settings.hot_bidder_ratio) > 0
        auction = self.hot(self.last_auction) if hot_auction else self.any_auction(Draw.AUCTION)
        bidder = self.hot(self.last_person) + 1 if hot_bidder else self.any_person(Draw.BIDDER)
        if self.below(Draw.HOT_CHANNEL, 2) > 0:
            channel = self.below(Draw.CHANNEL, 4)
        else:
            channel = 4 + self.below(Draw.CHANNEL, 10_000)
        return {
            "auction": auction + settings.first_auction_id,
            "bidder": bidder + settings.first_person_id,
            "price": self.price(Draw.PRICE),
            "channel": _text(texts["channels"], channel),
            "url": _text(texts["urls"], channel),
            "extra": self.filler(texts["bid_extra"], settings.bid_bytes, 32),
        }
