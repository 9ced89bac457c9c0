"""What may differ in a Nexmark stream: its seed, the size of bids, skew, order and lateness.

The defaults are the public generators', with first event id 0 and every event in order.
"""

from dataclasses import dataclass

from workbench.checks import require, within

ORDER_STEP = 953
"""Step of the out-of-order permutation; a group size that it divides would give all events of a group one id."""

_RANGES = {
    "seed": (0, 2**63 - 1),
    "bid_bytes": (0, 8192),
    "hot_batch": (1, 10**6),
    "active_people": (1, 10**8),
    "group_size": (1, 10**6),
    "first_event_id": (0, 2**53),
}


@dataclass(frozen=True)
class NexmarkSettings:
    """Settings of the Nexmark generator; two streams with the same settings are equal, row for row.

    As in the original the channel and the url of a bid are not counted, so a row is about 70 bytes longer. Ids of
    events decide their kind and content, numbers their time.
    """

    seed: int = 0
    bid_bytes: int = 100  # average record size that `extra` fills bids up to
    hot_batch: int = 100  # ids after which the hot auction, seller and bidder change
    active_people: int = 1000  # latest people among whom other bidders and sellers are, or a few future ones
    group_size: int = 1  # of events that are shuffled; 1, and divisors of 952, leave them in order
    first_event_id: int = 0  # of event number 0
    late_probability: float = 0.0  # share of the events whose event time is before their due time
    late_delay_s: float = 3.0  # the largest lateness of these; uniform from 1 ms

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

    @property
    def late_delay_ms(self) -> int:
        """The largest lateness of an event, in milliseconds."""
        return max(1, round(self.late_delay_s * 1000))


DEFAULTS = NexmarkSettings()  # the settings of the public generators, in order and without late events
