"""Nexmark queries in plain Python, written from their definitions, on rows as dictionaries.

Windowed queries get the rows that are in time; what Spark drops as late is left out by the caller.
"""

from collections import Counter, defaultdict
from datetime import datetime, timedelta
from decimal import Decimal

TEN = timedelta(seconds=10)
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  Spark returns times without a zone


def naive(time):
    return time.replace(tzinfo=None)


def people(rows):
    return [{**row["person"], "time": naive(row["dateTime"])} for row in rows if row["event_type"] == 0]


def auctions(rows):
    return [
        {**row["auction"], "time": naive(row["dateTime"]), "expires": naive(row["auction"]["expires"])}
        for row in rows
        if row["event_type"] == 1
    ]


def bids(rows):
    return [{**row["bid"], "time": naive(row["dateTime"])} for row in rows if row["event_type"] == 2]


def window_starts(time, length, slide):
    """Starts of the windows [start, start + length) that hold `time`, starts being multiples of `slide`."""
    start = EPOCH + (time - EPOCH) // slide * slide
    while start > time - length:
        yield start
        start -= slide


def q1(rows):
    return [(b["auction"], b["bidder"], b["price"] * Decimal("0.908"), b["time"], b["extra"]) for b in bids(rows)]


def q2(rows):
    return [(b["auction"], b["price"]) for b in bids(rows) if b["auction"] % 123 == 0]


def q3(rows):
    by_id = {p["id"]: p for p in people(rows) if p["state"] in {"OR", "ID", "CA"}}
    return [
        (by_id[a["seller"]]["name"], by_id[a["seller"]]["city"], by_id[a["seller"]]["state"], a["id"])
        for a in auctions(rows)
        if a["category"] == 10 and a["seller"] in by_id
    ]


def q5(rows):
    counts = defaultdict(Counter)
    for b in bids(rows):
        for start in window_starts(b["time"], TEN, timedelta(seconds=2)):
            counts[start][b["auction"]] += 1
    return [
        (auction, count)
        for window in counts.values()
        for auction, count in window.items()
        if count == max(window.values())
    ]


def q6(rows):
    """Auction, seller, rounded average of the seller's last ten winning prices, in order of expiry."""
    winners = []
    for a in auctions(rows):
        valid = [
            b for b in bids(rows) if b["auction"] == a["id"] and b["time"] < a["expires"] and b["price"] >= a["reserve"]
        ]
        if valid:
            best = min(valid, key=lambda b: (-b["price"], b["time"]))
            winners.append((a["expires"], a["id"], a["seller"], best["time"], best["price"]))
    results, won = [], defaultdict(list)
    for _, auction, seller, time, price in sorted(winners):
        won[seller].append((time, price))
        last = [p for _, p in sorted(won[seller])[-10:]]
        won[seller] = sorted(won[seller])[-10:]
        results.append((auction, seller, int(Decimal(sum(last)) / len(last) + Decimal("0.5"))))
    return results


def q8(rows):
    sold = {(a["seller"], start) for a in auctions(rows) for start in window_starts(a["time"], TEN, TEN)}
    return list(
        {
            (p["id"], p["name"], start)
            for p in people(rows)
            for start in window_starts(p["time"], TEN, TEN)
            if (p["id"], start) in sold
        }
    )


def q11(rows):
    times = defaultdict(list)
    for b in bids(rows):
        times[b["bidder"]].append(b["time"])
    sessions = []
    for bidder, moments in times.items():
        moments.sort()
        start = last = moments[0]
        count = 0
        for moment in moments:
            if moment - last >= TEN:
                sessions.append((bidder, count, start, last + TEN))
                start, count = moment, 0
            last, count = moment, count + 1
        sessions.append((bidder, count, start, last + TEN))
    return sessions


def q11_tumbling(rows):
    counts = Counter((b["bidder"], start) for b in bids(rows) for start in window_starts(b["time"], TEN, TEN))
    return [(bidder, count, start, start + TEN) for (bidder, start), count in counts.items()]
