"""The last winning bids of one seller, kept between batches: the stateful part of Nexmark q6."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.state import GroupState

BID_LEAD = "10 seconds"  # the longest time by which a bid may precede its auction

LONGEST_AUCTION = "60 seconds"  # after this time an auction accepts no more bids

LAST = 10
RESULT = "auction long, seller long, price long"
STATE = "leading string, recent string"


class Candidate(NamedTuple):
    """A bid that meets the reserve of an open auction."""

    auction: int
    expires_us: int
    time_us: int
    price: int


class Winners:
    """The leading bids of a seller's open auctions, and time and price of its latest winning bids, in that order."""

    def __init__(self, leading: "list[Candidate]", recent: "list[tuple[int, int]]") -> None:
        self.leading = {bid.auction: bid for bid in leading}
        self.recent = recent

    def offer(self, bid: Candidate) -> None:
        """Make `bid` the best of its auction if it is higher, or equal and earlier."""
        best = self.leading.get(bid.auction)
        if best is None or (bid.price, -bid.time_us) > (best.price, -best.time_us):
            self.leading[bid.auction] = bid

    def close(self, watermark_us: int) -> "Iterator[tuple[int, int]]":
        """Close the auctions that expire by `watermark_us`, in that order; with the average of the last ten prices."""
        over = [bid for bid in self.leading.values() if bid.expires_us <= watermark_us]
        for bid in sorted(over, key=lambda bid: (bid.expires_us, bid.auction)):
            del self.leading[bid.auction]
            self.recent = sorted([*self.recent, (bid.time_us, bid.price)])[-LAST:]
            total = sum(price for _, price in self.recent)
            yield bid.auction, (2 * total + len(self.recent)) // (2 * len(self.recent))

    def next_expiry_ms(self) -> "int | None":
        """Return the millisecond by which the next auction has expired; None if no auction is open."""
        return min((-(-bid.expires_us // 1000) for bid in self.leading.values()), default=None)


def average_of_last_ten(
    key: "tuple[int]", frames: "Iterator[pd.DataFrame]", state: "GroupState"
) -> "Iterator[pd.DataFrame]":
    """Take a seller's candidate bids and emit its average for every auction that the watermark closes."""
    import pandas as pd  # noqa: PLC0415  only workers need it

    leading, recent = (json.loads(text) for text in state.get) if state.exists else ([], [])
    winners = Winners([Candidate(*bid) for bid in leading], [(time, price) for time, price in recent])
    if not state.hasTimedOut:
        for frame in frames:
            columns = (frame[name].tolist() for name in Candidate._fields)
            for bid in map(Candidate, *columns):
                winners.offer(bid)
    closed = list(winners.close(1000 * state.getCurrentWatermarkMs()))
    state.update((json.dumps(list(winners.leading.values())), json.dumps(winners.recent)))
    expiry = winners.next_expiry_ms()
    if expiry is not None:
        state.setTimeoutTimestamp(expiry)
    if closed:
        seller = [key[0]] * len(closed)
        auctions, averages = zip(*closed, strict=True)
        yield pd.DataFrame({"auction": auctions, "seller": seller, "price": averages})
