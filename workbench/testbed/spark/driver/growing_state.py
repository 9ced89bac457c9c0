"""Whether a state has its working size, how it is filled sooner, and what it adds to a batch while it still grows.

The state of a join over ten minutes is not full after the seconds that a reading waits, and a batch takes longer with
each row in it: a join looks through its state for what has expired, and a store in memory copies its map. So a query of
its own lets event time leap, with few rows, until rows leave every stateful operator: this shows how long they stay.
Then the query that is measured takes rows as densely as at its rate, but as fast as all cores let it, until as many
leave as enter. If that would take too long, the rows that still lack are added to its batches, at what a row costs in
batches with fewer and more of them. Ours, in no paper.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import numpy as np

from workbench.arrays import contributions
from workbench.errors import WorkbenchError
from workbench.metrics import HeldRows
from workbench.testbed.spark.driver.live import CompletedBatch, LiveQuery, fitting_rows, now_s
from workbench.testbed.spark.driver.session import DeploymentSpec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from workbench.testbed.spark.driver.queries import Queries

_ROWS = 1_000  # of a batch
_FIRST_LEAP_S, _LAST_LEAP_S = 10.0, 14 * 86_400.0  # of event time in a batch; each leap is twice the one before
_PATIENCE_S = 60.0
_MOST_LEFT = 0.75  # of the rows of a batch, which leave while the next is taken: its leap is longer than they stay
HURRY_S = 60.0  # in which a state is filled on all cores, at most
_STEPS = 4  # batches, at least, in the seconds that rows stay: rows leave a batch late
_COUNTED = "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows"
_ADDING = "Join", "dedupe"  # operators whose every update is a row more
_PARTS = 16  # batches in which all rows of a state change, once it is known roughly how long they stay
_MOST_PARTS = 5 * _PARTS  # rows of before may have passed for these
_EVEN = _PARTS // 2
_OLDER = 20.0  # times the age of a state, up to which it is continued
_CHANGES = "numRowsUpdated", "numRowsRemoved"
_FULL = 0.9  # of the rows that enter: more leave only a full state, or one that a higher rate filled
_UNEVEN = 0.03  # of the rows that enter, by which a full state may grow; next to twice what chance does
_FULL_AFTER = 1.5  # factor: rows of sliding windows leave in parts, within half as much time again
_LEAST = 3  # batches that show whether as many rows leave as enter
_ERRORS = 2.0  # standard errors that a row's cost must exceed


def full(done: Sequence[CompletedBatch], now_s: float) -> bool:
    """Whether a state has its working size: as much leaves as enters, so that a reading compares with later ones.

    Half as much time again must have passed as every state with rows took until the first of them left it, and the
    sides of a join may stay for other times: as many rows leave it as enter. A window's rows stay until the watermark
    has passed its end. Until then the state grows and the query is faster than it will be; what entered at the higher
    rate then leaves at once, and makes it slower, and so on: a swing that takes a minute to calm down. So a state is
    filled at a rate near the one that lasts. Measured on q5 with windows of 10 s, filled at the maximum rate: 287,000
    records/s after 20 s, 188,000 after 30 s, 234,000 from 35 s on.
    """
    begun_s = done[0].release.at_s if done else 0.0
    return _full(done, now_s - begun_s, lambda one: one.release.at_s + one.duration_s - begun_s)


def _full(done: Sequence[CompletedBatch], passed_s: float, after_s: Callable[[CompletedBatch], float]) -> bool:
    """Whether the state is full after `passed_s`, of which a batch ended `after_s`."""
    if not any(one.batch.records > 1 for one in done):  # the first batch may have one row, to start the clock
        return False
    keeps_state, updated = False, set[int]()
    left_s: dict[int, float] = {}
    for one in done:
        for place, state in enumerate(_states(one)):
            keeps_state = True
            if state.get("numRowsUpdated"):
                updated.add(place)
            if state.get("numRowsRemoved"):
                left_s.setdefault(place, after_s(one))
    if keeps_state and not updated:
        return False
    passed = all(passed_s >= _FULL_AFTER * took_s for took_s in left_s.values())
    return updated <= set(left_s) and passed and _balanced(done)


def hurry(queries: "Queries", live: LiveQuery, rate: float, stays: Mapping[int, float], most_s: float) -> bool:
    """Fill the state of `live` with rows as dense as at `rate`, as fast as the cores let it; return whether it is full.

    `stays` says for how many seconds rows stay in an operator. Batches grow until they take an interval; none begins
    after `most_s` seconds.
    """
    begun, end = len(live.done), now_s() + most_s
    rows = rate * live.interval_s
    most = max(1.0, rows, rate * max(stays.values()) / _STEPS)
    while now_s() < end:
        live.fixed_batches(math.ceil(min(rows, most)), rate)
        queries.batches(live, 1)
        done, so_far = live.done[begun:], live.since_empty
        passed_s = partial(_event_s, so_far[0].release.first_us)
        if len(done) >= _LEAST and _full(so_far, passed_s(so_far[-1]), passed_s):
            return True
        rows = fitting_rows([(one.batch.records, one.batch.duration_s) for one in done], live.interval_s)
    return False


def stays(queries: "Queries", spec: DeploymentSpec, spark: "SparkSession") -> dict[int, float]:
    """Return for how many seconds of event time rows stay in each stateful operator, by its place in the progress.

    Empty if rows leave no operator, or not all that receive any, within the seconds that this may take.
    """
    counted = spark.conf.get(_COUNTED, None)
    spark.conf.set(_COUNTED, "true")  # which costs reads, so the measurement does without
    found: dict[int, float] = {}
    live = queries.start(spec, "stays")
    with suppress(WorkbenchError):  # its batches take too long, or it fails where time leaps
        found = _stays(queries, live)
    spark.conf.unset(_COUNTED) if counted is None else spark.conf.set(_COUNTED, counted)
    with suppress(WorkbenchError):
        queries.retire(live)
    return found


def _stays(queries: "Queries", live: LiveQuery) -> dict[int, float]:
    end, leap_s = now_s() + _PATIENCE_S, _FIRST_LEAP_S
    while not _left(live.done):
        if leap_s > _LAST_LEAP_S or now_s() > end:
            return {}
        live.fixed_batches(_ROWS, _ROWS / leap_s)
        queries.batches(live, 1)
        leap_s *= 2
    part_s, before = leap_s / 2 / _PARTS, len(live.done)
    live.fixed_batches(_ROWS, _ROWS / part_s)
    seen: list[CompletedBatch] = []
    while now_s() < end and len(seen) < _MOST_PARTS and not (len(seen) >= 2 * _PARTS and _as_many_leave(seen)):
        queries.tick()
        seen = [one for one in live.done[before:] if one.release.epoch == live.epoch]
    return mean_stays(seen[-_PARTS:]) if len(seen) >= 1.5 * _PARTS else {}


def _as_many_leave(done: Sequence[CompletedBatch]) -> bool:
    """Return whether about as many rows leave each join and deduplication as enter it, in the last of `done`."""
    states = zip(*map(_states, done[-_EVEN:]), strict=False)
    sums = ([sum(one.get(key) or 0 for one in each) for key in _CHANGES] for each in states if _adds(each[-1]))
    return all(left >= _FULL * entered for entered, left in sums)


def mean_stays(done: Sequence[CompletedBatch]) -> dict[int, float]:
    """Return the mean seconds of event time in the state by Little's law: rows in it over rows that pass through.

    Rows come with a batch, and leave in the one after the batch whose watermark passes them: a batch too late. Joins
    and deduplications take and lose rows evenly, so the last batches show it, with the fullest state; groups do not.
    """
    passed_s = _passed_s(done[1:])
    late_s = passed_s / len(done[1:])
    found = {}
    for place, last in enumerate(_states(done[-1])):
        held = [_states(one)[place] for one in done[1:]][-_EVEN if _adds(last) else 0 :]
        entered, left = (sum(state.get(key) or 0 for state in held) for key in _CHANGES)
        passed = entered if _adds(last) else left
        if left and passed:
            seen_s = late_s * sum(state["numRowsTotal"] for state in held) / passed
            found[place] = max(0.0, seen_s - late_s)
    return found


def rows_held(done: Sequence[CompletedBatch], window: int, stays: Mapping[int, float]) -> tuple[HeldRows, ...]:
    """Return what joins and deduplications hold whose stay is known: means over the last `window` batches.

    A source row stays in them as long as the rows that enter, in all of them together. Empty where the state is far
    younger than it will be.
    """
    last = [one for one in done[-window:] if len(_states(one)) > max(stays, default=-1)]
    held = _continued(done, stays) if last else {}
    read = sum(one.batch.records for one in last)
    found: dict[str, tuple[float, float]] = {}
    for place, rows in held.items() if read else ():
        entered = sum(_states(one)[place].get("numRowsUpdated") or 0 for one in last)
        kind = "join" if "Join" in str(_states(last[-1])[place].get("operatorName")) else "deduplicate"
        before = found.get(kind, (0.0, 0.0))
        mean = sum(rows[one.batch_id] for one in last) / len(last)
        found[kind] = before[0] + mean, before[1] + entered * stays[place] / read
    return tuple(HeldRows(kind, *each) for kind, each in found.items())


def lacking_s(done: Sequence[CompletedBatch], window: int, stays: Mapping[int, float]) -> float:
    """Return the seconds that the last `window` batches would take longer with all rows of a full state.

    `done` are all batches since the state was empty; `stays` is by operator. By Little's law, a join and a
    deduplication will hold the rows that enter in a second, as in these batches, times the seconds that they stay.
    Other operators also update rows that they have, so they are left out: how many groups are still to come is
    unknown. 0 where the batches do not show that a row in the state costs anything, where as many rows leave as
    enter, or where the state is far younger than it will be.
    """
    seen = [one for one in done[1:] if one.batch.records > 1 and len(_states(one)) > max(stays, default=-1)]
    seen = [one for one in seen if one.quota == done[-1].quota]  # those of a hurry have all cores
    last = seen[-window:]
    held = _continued(done, stays) if min(window, len(last)) >= 2 else {}
    if not held:
        return 0.0
    span_s = _passed_s(last)
    lacking = 0.0
    for place, rows in held.items():
        entered, left = (sum(_states(one)[place].get(key) or 0 for one in last) for key in _CHANGES)
        if left < _FULL * entered:
            lacking += entered / span_s * stays[place] - sum(rows[one.batch_id] for one in last) / len(last)
    in_all = [sum(rows[one.batch_id] for rows in held.values()) for one in seen]
    return _row_s([one.batch.records for one in seen], in_all, [one.batch.duration_s for one in seen]) * max(0, lacking)


def _row_s(records: Sequence[int], held: Sequence[float], took_s: Sequence[float]) -> float:
    """Return the seconds of a batch for each row that its state holds; 0 where they may be chance."""
    columns = [np.asarray(one, dtype=float) for one in ([1.0] * len(held), records, held)]
    (*_, cost), (*_, error) = contributions(columns, np.asarray(took_s))
    return float(cost) if cost > _ERRORS * error else 0.0


def _continued(done: Sequence[CompletedBatch], stays: Mapping[int, float]) -> dict[int, dict[int, float]]:
    """Return `_held` of the operators of `stays`; empty where a state is far younger than it will be."""
    age_s = _passed_s(done) if done else 0.0
    held = {place: rows for place in stays if age_s and (rows := _held(done, place))}
    return held if max((stays[place] for place in held), default=0.0) <= _OLDER * age_s else {}


def _held(done: Sequence[CompletedBatch], place: int) -> dict[int, float] | None:
    """Return the rows in the state of an operator after each batch, by its number; None if it also updates rows."""
    states = {one.batch_id: _states(one)[place] for one in done if len(_states(one)) > place}
    if not all(map(_adds, states.values())):
        return None
    totals = {number: float(state.get("numRowsTotal") or 0) for number, state in states.items()}
    if any(totals.values()):
        return totals
    changes = [(state.get("numRowsUpdated") or 0) - (state.get("numRowsRemoved") or 0) for state in states.values()]
    return dict(zip(states, map(float, accumulate(changes)), strict=True))


def _states(done: CompletedBatch) -> Sequence[dict]:  # type: ignore[type-arg]
    return done.progress.get("stateOperators") or ()


def _event_s(since_us: int, one: CompletedBatch) -> float:
    """Return the event time that has passed since `since_us` when a batch ended."""
    return (one.release.last_us - since_us) / 1e6


def _passed_s(done: Sequence[CompletedBatch]) -> float:
    """Return the event time of all rows of `done`."""
    return (done[-1].release.last_us - done[0].release.first_us) / 1e6


def _left(done: Sequence[CompletedBatch]) -> bool:
    """Return whether rows left every stateful operator that received any: most of a batch, where that is known."""
    received, left = set(), set()
    for before, one in pairwise(done):
        for place, (earlier, state) in enumerate(zip(_states(before), _states(one), strict=False)):
            entered, gone = earlier.get("numRowsUpdated") or 0, state.get("numRowsRemoved") or 0
            received |= {place} if entered else set()
            left |= {place} if gone > (_MOST_LEFT * entered if _adds(state) else 0) else set()
    return bool(received) and received <= left


def _balanced(done: Sequence[CompletedBatch]) -> bool:
    """Return whether as many rows leave each join and deduplication as enter it, in the last third of all rows."""
    total, begun, rows = sum(one.batch.records for one in done), len(done), 0
    while begun > 0 and (len(done) - begun < _LEAST or rows < total / 3):
        begun -= 1
        rows += done[begun].batch.records
    for place, _ in enumerate(_states(done[-1])):
        if (counts := _held(done, place)) is not None:
            held = list(counts.values())
            entered, left = (sum(_states(one)[place].get(key) or 0 for one in done[begun:]) for key in _CHANGES)
            grown = max(held[begun:]) - max(held[:begun], default=0.0)  # rows of a window leave together
            if min(entered - left, grown) > _UNEVEN * entered + 2 * math.sqrt(entered):
                return False
    return True


def _adds(state: dict) -> bool:  # type: ignore[type-arg]
    """Return whether every update of the operator is a row more."""
    return any(name in str(state.get("operatorName")) for name in _ADDING)
