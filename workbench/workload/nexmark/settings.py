"""What a Nexmark stream contains: proportions, skew, sizes, order and lateness.

The defaults are the public generators' (1 : 3 : 46 people, auctions and bids; hot ratios 2, 4, 4; 200, 500 and 100
bytes), with first event id 0 and every event in order.
"""

import math
from dataclasses import dataclass, fields
from typing import Literal, get_args

from workbench.errors import WorkbenchError

Characters = Literal["letters", "original"]

ORDER_STEP = 953
"""Step of the out-of-order permutation; a group size that it divides would give all events of a group one id."""

_RANGES = {
    "seed": (0, 2**63 - 1),
    "people": (1, 10_000),
    "auctions": (1, 10_000),
    "bids": (0, 10_000),
    "person_bytes": (0, 8192),
    "auction_bytes": (0, 8192),
    "bid_bytes": (0, 8192),
    "hot_auction_ratio": (1, 10**6),
    "hot_seller_ratio": (1, 10**6),
    "hot_bidder_ratio": (1, 10**6),
    "hot_batch": (1, 10**6),
    "auctions_in_flight": (1, 10**6),
    "active_people": (1, 10**8),
    "group_size": (1, 10**6),
    "first_event_id": (0, 2**53),
    "first_person_id": (0, 2**53),
    "first_auction_id": (0, 2**53),
}


@dataclass(frozen=True)
class NexmarkSettings:
    """Settings of the Nexmark generator.

    Parameters
    ----------
    seed
        Two streams with the same settings and seed are equal, row for row.
    people, auctions, bids
        Number of each in the repeating pattern of events.
    person_bytes, auction_bytes, bid_bytes
        Average record size that `extra` fills up to. As in the original the channel and the url of a bid are not
        counted, so a row is about 70 bytes longer.
    hot_auction_ratio, hot_seller_ratio, hot_bidder_ratio
        One in `ratio` references is not to the hot one; 1 means that there is no hot one.
    hot_batch
        The hot auction, seller and bidder change after this many ids.
    auctions_in_flight
        A bid that is not hot goes to one of this many latest auctions (or a few future ones).
    active_people
        A bidder or seller that is not hot is one of this many latest people (or a few future ones).
    group_size
        Events are shuffled within groups of this size; 1 means in order. Multiples of 953, the shuffle's step, are
        refused, and a divisor of 952 (2, 4, 7, 8, 14, ...) also leaves the events in order.
    first_event_id
        Id of event number 0. Ids decide kind and content, numbers decide the time.
    first_person_id, first_auction_id
        Added once to every person and auction id.
    late_probability
        Share of the events whose event time is before their due time.
    late_delay_s
        The largest lateness of such an event; uniform from 1 ms.
    characters
        Of `extra`: ``"letters"`` (a to z) or ``"original"`` (the original's uneven set from H to z, in which about
        48 % of the characters lie below "a").
    """

    seed: int = 0
    people: int = 1
    auctions: int = 3
    bids: int = 46
    person_bytes: int = 200
    auction_bytes: int = 500
    bid_bytes: int = 100
    hot_auction_ratio: int = 2
    hot_seller_ratio: int = 4
    hot_bidder_ratio: int = 4
    hot_batch: int = 100
    auctions_in_flight: int = 100
    active_people: int = 1000
    group_size: int = 1
    first_event_id: int = 0
    first_person_id: int = 1000
    first_auction_id: int = 1000
    late_probability: float = 0.0
    late_delay_s: float = 3.0
    characters: Characters = "letters"

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.name in _RANGES:
                self._check_integer(field.name)
        if self.group_size % ORDER_STEP == 0:
            message = (
                f"Nexmark setting group_size is {self.group_size}, a multiple of {ORDER_STEP}: all events of a group "
                f"would get the same id; use a size that is not a multiple of {ORDER_STEP}, such as "
                f"{self.group_size + 1}."
            )
            raise WorkbenchError(message)
        if not 0 <= self.late_probability <= 1:
            message = f"Nexmark setting late_probability is {self.late_probability!r}; give a share from 0 to 1."
            raise WorkbenchError(message)
        if not (math.isfinite(self.late_delay_s) and 0.001 <= self.late_delay_s <= 10**6):
            message = f"Nexmark setting late_delay_s is {self.late_delay_s!r}; give seconds from 0.001 to 1,000,000."
            raise WorkbenchError(message)
        if self.characters not in get_args(Characters):
            allowed = " or ".join(repr(name) for name in get_args(Characters))
            message = f"Nexmark setting characters is {self.characters!r}; use {allowed}."
            raise WorkbenchError(message)

    def _check_integer(self, name: str) -> None:
        value = getattr(self, name)
        low, high = _RANGES[name]
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            message = f"Nexmark setting {name} is {value!r}; give a whole number from {low:,} to {high:,}."
            raise WorkbenchError(message)

    @property
    def total(self) -> int:
        """Length of the repeating pattern of kinds (50 by default)."""
        return self.people + self.auctions + self.bids

    @property
    def lookahead(self) -> int:
        """Events until `auctions_in_flight` auctions have appeared (1,666 by default)."""
        return self.auctions_in_flight * self.total // self.auctions

    @property
    def late_delay_ms(self) -> int:
        """The largest lateness of an event, in milliseconds."""
        return max(1, round(self.late_delay_s * 1000))


DEFAULTS = NexmarkSettings()
"""The settings of the public generators, in order and without late events."""
