"""What a Nexmark stream contains: proportions, skew, sizes, order and lateness.

The defaults are the public generators' (1 : 3 : 46 people, auctions and bids; hot ratios 2, 4, 4; 200, 500 and 100
bytes), with first event id 0 and every event in order.
"""

from dataclasses import dataclass
from typing import Literal, get_args

from workbench.checks import one_of, require, within

Characters = Literal["letters", "original"]

ORDER_STEP = 953
"""Step of the out-of-order permutation; a group size that it divides would give all events of a group one id."""

_RANGES = {
    "seed": (0, 2**63 - 1),
    **dict.fromkeys(("people", "auctions"), (1, 10_000)),
    "bids": (0, 10_000),
    **dict.fromkeys(("person_bytes", "auction_bytes", "bid_bytes"), (0, 8192)),
    **dict.fromkeys(("hot_auction_ratio", "hot_seller_ratio", "hot_bidder_ratio", "hot_batch"), (1, 10**6)),
    **dict.fromkeys(("auctions_in_flight", "group_size"), (1, 10**6)),
    "active_people": (1, 10**8),
    **dict.fromkeys(("first_event_id", "first_person_id", "first_auction_id"), (0, 2**53)),
}


@dataclass(frozen=True)
class NexmarkSettings:
    """Settings of the Nexmark generator; two streams with the same settings are equal, row for row.

    As in the original the channel and the url of a bid are not counted, so a row is about 70 bytes longer. Ids of
    events decide their kind and content, numbers their time. The original's characters are an uneven set from H to z,
    of which about 48 % lie below "a".
    """

    seed: int = 0
    people: int = 1  # in the repeating pattern of events, as of
    auctions: int = 3
    bids: int = 46
    person_bytes: int = 200  # average record size that `extra` fills up to, as of
    auction_bytes: int = 500
    bid_bytes: int = 100
    hot_auction_ratio: int = 2  # one in N references is not to the hot one; 1: there is no hot one; as of
    hot_seller_ratio: int = 4
    hot_bidder_ratio: int = 4
    hot_batch: int = 100  # ids after which the hot auction, seller and bidder change
    auctions_in_flight: int = 100  # latest auctions among which other bids choose, or a few future ones
    active_people: int = 1000  # latest people among whom other bidders and sellers are, or a few future ones
    group_size: int = 1  # of events that are shuffled; 1, and divisors of 952, leave them in order
    first_event_id: int = 0  # of event number 0
    first_person_id: int = 1000  # added once to every one
    first_auction_id: int = 1000  # added once to every one
    late_probability: float = 0.0  # share of the events whose event time is before their due time
    late_delay_s: float = 3.0  # the largest lateness of these; uniform from 1 ms
    characters: Characters = "letters"  # of `extra`: a to z, or as the original

    def __post_init__(self) -> None:
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            require(
                isinstance(value, int) and not isinstance(value, bool) and low <= value <= high,
                f"Nexmark setting {name} is {value!r}; give a whole number from {low:,} to {high:,}.",
            )
        require(
            self.group_size % ORDER_STEP != 0,
            f"Nexmark setting group_size is {self.group_size}, a multiple of {ORDER_STEP}: all events of a group "
            f"would get the same id; use a size that is not a multiple of {ORDER_STEP}, such as {self.group_size + 1}.",
        )
        within("Nexmark setting late_probability", self.late_probability, 0, 1, ends="[]")
        within("Nexmark setting late_delay_s", self.late_delay_s, 0.001, 10**6, "seconds", ends="[]")
        one_of("Nexmark setting characters", self.characters, get_args(Characters))

    @property
    def total(self) -> int:
        """Length of the repeating pattern of kinds (50 by default)."""
        return self.people + self.auctions + self.bids

    @property
    def late_delay_ms(self) -> int:
        """The largest lateness of an event, in milliseconds."""
        return max(1, round(self.late_delay_s * 1000))


DEFAULTS = NexmarkSettings()  # the settings of the public generators, in order and without late events
