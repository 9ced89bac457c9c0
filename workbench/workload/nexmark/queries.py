"""Nexmark queries on the one-table row layout, each as a streaming DataFrame built from a streaming DataFrame.

Windows span 10 s of event time (q5 every 2 s) and the watermark trails by 4 s, as in the public Flink suite. Spark
reads the source once for every branch of a plan, so queries are written with a single scan wherever that is
possible; q3 and q6 join two branches and read their input twice.
"""

import difflib
from collections.abc import Callable
from typing import TYPE_CHECKING

from workbench.errors import WorkbenchError
from workbench.workload.nexmark.events import BID, NexmarkGenerator
from workbench.workload.nexmark.settings import DEFAULTS, NexmarkSettings
from workbench.workload.query import Query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WINDOW = "10 seconds"
SLIDE = "2 seconds"
WATERMARK_DELAY = "4 seconds"
EVENT_TIME = "dateTime"


def build_q1(rows: "DataFrame") -> "DataFrame":
    """Currency conversion: every bid with its price times 0.908 as a decimal with three places.

    Stateless.
    """
    from decimal import Decimal

    from pyspark.sql import functions as f

    price = (f.col("bid.price").cast("decimal(20,0)") * f.lit(Decimal("0.908"))).cast("decimal(23,3)")
    return rows.where(f.col("event_type") == BID).select(
        "bid.auction", "bid.bidder", price.alias("price"), EVENT_TIME, "bid.extra"
    )


def build_q2(rows: "DataFrame") -> "DataFrame":
    """Selection: auction and price of the bids on every 123rd auction.

    Stateless.
    """
    from pyspark.sql import functions as f

    chosen = (f.col("event_type") == BID) & (f.col("bid.auction") % 123 == 0)
    return rows.where(chosen).select("bid.auction", "bid.price")


def build_q5(rows: "DataFrame") -> "DataFrame":
    """Hot items: the auctions with the most bids in each sliding window, ties included.

    Two aggregations chained in append mode over one scan: bids are counted by window and auction, then the counts of
    a closed window are collected and those that reach its maximum kept. The original joins the counts with their
    maximum; in Spark a self-join would read and count the input twice, which doubles the load. One group per sliding
    window is had by a tumbling window of the slide, since windows end once per slide.
    """
    from pyspark.sql import functions as f

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


_BUILDS: "dict[str, Callable[[DataFrame], DataFrame]]" = {"q1": build_q1, "q2": build_q2, "q5": build_q5}


def query(name: str, settings: NexmarkSettings = DEFAULTS) -> Query:
    """A query of the catalogue with its generator.

    Parameters
    ----------
    name
        ``"q1"``, ``"q2"``, ``"q3"``, ``"q5"``, ``"q6"``, ``"q8"``, ``"q11"``, ``"q11:tumbling"`` or ``"inference"``.
    settings
        What the stream contains.

    Returns
    -------
    Query
        Named ``"nexmark:"`` and `name`.

    Raises
    ------
    WorkbenchError
        When there is no such query.
    """
    if name not in _BUILDS:
        near = difflib.get_close_matches(name, _BUILDS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        message = f"There is no Nexmark query {name!r}; use one of {', '.join(_BUILDS)}{hint}"
        raise WorkbenchError(message)
    return Query(f"nexmark:{name}", _BUILDS[name], NexmarkGenerator(settings), EVENT_TIME)
