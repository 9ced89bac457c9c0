"""Nexmark queries on the one-table row layout, each as a streaming DataFrame built from a streaming DataFrame.

Windows span 10 s of event time (q5 every 2 s) and the watermark trails by 4 s, as in the public Flink suite. Spark
reads the source once for every branch of a plan, so queries use a single scan if possible; q3 and q6 join two branches
and read their input twice.

PySpark is imported when a query is built; the generator and the catalogue work without it.
"""

import difflib
import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from workbench.errors import WorkbenchError
from workbench.workload.nexmark.events import AUCTION, BID, FIRST_CATEGORY, PERSON, NexmarkGenerator
from workbench.workload.nexmark.inference import ImageGenerator, build_inference
from workbench.workload.nexmark.settings import DEFAULTS, NexmarkSettings
from workbench.workload.query import Query

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.state import GroupState

WINDOW = "10 seconds"
SLIDE = "2 seconds"
WATERMARK_DELAY = "4 seconds"
EVENT_TIME = "dateTime"

BID_LEAD = "10 seconds"  # the longest time by which a bid may precede its auction
LONGEST_AUCTION = "60 seconds"  # after this time an auction accepts no more bids
_LATEST = 10
_AVERAGES, _WINNERS = "auction long, seller long, price long", "leading string, recent string"


def build_q1(rows: "DataFrame") -> "DataFrame":
    """Convert currency: every bid with its price times 0.908 as a decimal with three places. Stateless."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    price = (f.col("bid.price").cast("decimal(20,0)") * f.lit(Decimal("0.908"))).cast("decimal(23,3)")
    return rows.where(f.col("event_type") == BID).select(
        "bid.auction", "bid.bidder", price.alias("price"), EVENT_TIME, "bid.extra"
    )


def build_q2(rows: "DataFrame") -> "DataFrame":
    """Select auction and price of the bids on every 123rd auction. Stateless."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    chosen = (f.col("event_type") == BID) & (f.col("bid.auction") % 123 == 0)
    return rows.where(chosen).select("bid.auction", "bid.price")


def build_q3(rows: "DataFrame") -> "DataFrame":
    """Find local items: name, city, state and auction of category 10 whose seller lives in OR, ID or CA.

    An unbounded join as specified: every such person and auction stays in the state. A streaming aggregation cannot
    emit a pair exactly once, when its second half arrives, so this query joins two branches and reads its input twice.
    It has no watermark and never drops late rows.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415

    people = rows.where((f.col("event_type") == PERSON) & f.col("person.state").isin("OR", "ID", "CA")).select(
        f.col("person.id").alias("person_id"), "person.name", "person.city", "person.state"
    )
    auctions = rows.where((f.col("event_type") == AUCTION) & (f.col("auction.category") == FIRST_CATEGORY)).select(
        "auction.id", "auction.seller"
    )
    return auctions.join(people, f.col("seller") == f.col("person_id")).select("name", "city", "state", "id")


def build_q5(rows: "DataFrame") -> "DataFrame":
    """Find hot items: the auctions with the most bids in each sliding window, ties included.

    Two aggregations chained in append mode over one scan: bids are counted by window and auction, then the counts of
    a closed window are collected, and the counts that equal its maximum are kept. The original joins the counts with
    their maximum; in Spark a self-join would read and count the input twice, which doubles the load. Windows end once
    per slide, so a tumbling window of the slide gives one group per sliding window.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415

    counts = (
        rows.where(f.col("event_type") == BID)
        .withWatermark(EVENT_TIME, WATERMARK_DELAY)
        .groupBy(f.window(EVENT_TIME, WINDOW, SLIDE), f.col("bid.auction").alias("auction"))
        .agg(f.count("*").alias("num"))
    )
    closed = counts.groupBy(f.window("window", SLIDE).alias("closing")).agg(
        f.collect_list(f.struct("auction", "num")).alias("counts"), f.max("num").alias("most")
    )
    hottest = f.filter("counts", lambda count: count["num"] == f.col("most"))
    return closed.select(f.explode(hottest).alias("hot")).select("hot.auction", "hot.num")


def build_q6(rows: "DataFrame") -> "DataFrame":
    """Average the prices of each seller's last ten winning bids, whenever one of its auctions closes.

    The definition of the Beam suite: among the bids before an auction's expiry that meet its reserve, the highest wins,
    and among equal bids the earliest. The last ten are the latest by time, then price. The average is rounded. A bid
    may precede its auction.

    A bid does not name the seller, so auctions and bids are joined on the auction (two branches: the input is read
    twice) before the winners are kept per seller by an operator with arbitrary state. The join's state is bounded by
    event time: a bid counts from 10 s before its auction starts and auctions are cut after 60 s. Generated bids
    precede their auction by a few hundred events at most, and generated auctions last at most 2 * 1,666 event
    spacings, so nothing is lost from about 60 events a second of event time upwards. A row appears once the watermark,
    less these bounds, has passed the auction's expiry.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415

    timely = rows.withWatermark(EVENT_TIME, WATERMARK_DELAY)
    auctions = timely.where(f.col("event_type") == AUCTION).select(
        f.col("auction.id").alias("auction_id"),
        "auction.seller",
        "auction.reserve",
        "auction.expires",
        f.col(EVENT_TIME).alias("start"),
    )
    bids = timely.where(f.col("event_type") == BID).select(
        "bid.auction", "bid.price", f.col(EVENT_TIME).alias("bid_time")
    )
    valid = (
        (f.col("auction_id") == f.col("auction"))
        & (f.col("bid_time") < f.col("expires"))
        & (f.col("price") >= f.col("reserve"))
        & (f.col("bid_time") >= f.col("start") - f.expr(f"interval {BID_LEAD}"))
        & (f.col("bid_time") <= f.col("start") + f.expr(f"interval {LONGEST_AUCTION}"))
    )
    candidates = auctions.join(bids, valid).select(
        "seller",
        "auction",
        "price",
        f.unix_micros("expires").alias("expires_us"),
        f.unix_micros("bid_time").alias("time_us"),
        "bid_time",  # carries the watermark to the next operator
    )
    return candidates.groupBy("seller").applyInPandasWithState(
        average_of_last_ten, _AVERAGES, _WINNERS, "append", "EventTimeTimeout"
    )


def build_q8(rows: "DataFrame") -> "DataFrame":
    """Monitor new users: people who appear and sell in the same tumbling window, distinct by id, name and window.

    The original joins two windowed aggregates; a single windowed aggregation keyed by the person's id or the
    auction's seller finds the same rows with one scan.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415

    return (
        rows.where(f.col("event_type") != BID)
        .withWatermark(EVENT_TIME, WATERMARK_DELAY)
        .groupBy(f.window(EVENT_TIME, WINDOW), f.coalesce("person.id", "auction.seller").alias("id"))
        .agg(f.collect_set("person.name").alias("names"), f.count("auction.seller").alias("sold"))
        .where(f.col("sold") > 0)
        .select("id", f.explode("names").alias("name"), f.col("window.start").alias("starttime"))
    )


def build_q11(rows: "DataFrame", window: str = "session_window") -> "DataFrame":
    """Count the bids of each bidder's session, which ends after 10 s without a bid; with its start and end.

    The `window` named ``window`` is a tumbling one of 10 s: q11 without sessions, for comparison.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415

    return (
        rows.where(f.col("event_type") == BID)
        .withWatermark(EVENT_TIME, WATERMARK_DELAY)
        .groupBy(getattr(f, window)(EVENT_TIME, WINDOW).alias("span"), f.col("bid.bidder").alias("bidder"))
        .agg(f.count("*").alias("bid_count"))
        .select("bidder", "bid_count", f.col("span.start").alias("starttime"), f.col("span.end").alias("endtime"))
    )


class Candidate(NamedTuple):
    """A bid that meets the reserve of an open auction."""

    auction: int
    expires_us: int
    time_us: int
    price: int


class Winners:
    """The state of q6: best bids of a seller's open auctions; time and price of its latest winning bids, in order."""

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
            self.recent = sorted([*self.recent, (bid.time_us, bid.price)])[-_LATEST:]
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


_BUILDS: "dict[str, Callable[[DataFrame], DataFrame]]" = {
    "q1": build_q1,
    "q2": build_q2,
    "q3": build_q3,
    "q5": build_q5,
    "q6": build_q6,
    "q8": build_q8,
    "q11": build_q11,
    "q11:tumbling": partial(build_q11, window="window"),
    "inference": build_inference,
}
_UNBOUNDED = frozenset({"q3"})
NAMES = tuple(_BUILDS)  # the queries of the catalogue


def query(name: str, settings: NexmarkSettings = DEFAULTS) -> Query:
    """Return the query ``"nexmark:"`` and `name` with its generator; the one of images uses only the settings' seed."""
    if name not in _BUILDS:
        near = difflib.get_close_matches(name, NAMES, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise WorkbenchError(f"There is no Nexmark query {name!r}; use one of {', '.join(NAMES)}{hint}")
    rows = ImageGenerator(settings.seed) if name == "inference" else NexmarkGenerator(settings)
    return Query(f"nexmark:{name}", _BUILDS[name], rows, EVENT_TIME, unbounded_state=name in _UNBOUNDED)
