"""How long rows stay in the state, and what a state that still grows will add to a batch.

The state of a join over ten minutes is not full after the seconds that a reading waits, and a batch takes longer with
each row in it: a join looks through its state for what has expired, and a store in memory copies its map. So a query of
its own lets event time leap, with few rows, until rows leave every stateful operator: this shows how long they stay.
What a row in the state costs is in the batches of the measurement, during which the state grows. Ours, in no paper.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from workbench.errors import WorkbenchError
from workbench.testbed.spark.driver.live import CompletedBatch, LiveQuery, now_s
from workbench.testbed.spark.driver.queries import Queries
from workbench.testbed.spark.driver.session import DeploymentSpec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROWS = 1_000  # of a batch
_FIRST_LEAP_S, _LAST_LEAP_S = 10.0, 14 * 86_400.0  # of event time in a batch; each leap is twice the one before
_PATIENCE_S = 60.0
_COUNTED = "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows"
_ADDING = "Join", "dedupe"  # operators whose every update is a row more
_PARTS = 8  # batches in which all rows of a state change, once it is known roughly how long they stay
_OLDER = 20.0  # times the age of a state, up to which it is continued
_CHANGES = "numRowsUpdated", "numRowsRemoved"
_FULL = 0.9  # of the rows that enter: more leave only a full state, or one that a higher rate filled
_ERRORS = 2.0  # standard errors that a row's cost must exceed


def stays(queries: Queries, spec: DeploymentSpec, spark: "SparkSession") -> dict[int, float]:
    """Return for how many seconds of event time rows stay in each stateful operator, by its place in the progress.

    Empty if rows leave no operator, or not all that receive any, within the seconds that this may take.
    """
    counted = spark.conf.get(_COUNTED, None)
    spark.conf.set(_COUNTED, "true")  # which costs reads, so the measurement does without
    live = queries.start(spec, "stays")
    try:
        return _stays(queries, live)
    except WorkbenchError:  # its batches take too long
        return {}
    finally:
        spark.conf.unset(_COUNTED) if counted is None else spark.conf.set(_COUNTED, counted)
        queries.retire(live)


def _stays(queries: Queries, live: LiveQuery) -> dict[int, float]:
    end, leap_s = now_s() + _PATIENCE_S, _FIRST_LEAP_S
    while not _left(live.done):
        if leap_s > _LAST_LEAP_S or now_s() > end:
            return {}
        live.fixed_batches(_ROWS, _ROWS / leap_s)
        queries.batches(live, 1)
        leap_s *= 2
    part_s, before = _passed_s(live.done) / _PARTS, len(live.done)
    live.fixed_batches(_ROWS, _ROWS / part_s)
    while len(live.done) < before + 3 * _PARTS and now_s() < end:
        queries.tick()
    seen = [one for one in live.done[before:] if one.release.epoch == live.epoch][_PARTS:]
    return mean_stays(seen) if len(seen) >= _PARTS else {}


def mean_stays(done: Sequence[CompletedBatch]) -> dict[int, float]:
    """Return the mean seconds of event time in the state by Little's law: rows in it over rows that leave it.

    Rows come with a batch, and leave in the one after the batch whose watermark passes them: a batch too late.
    """
    passed_s = _passed_s(done[1:])
    late_s = passed_s / len(done[1:])
    found = {}
    for place, _ in enumerate(_states(done[-1])):
        held = [_states(one)[place] for one in done[1:]]
        removed = sum(state.get("numRowsRemoved") or 0 for state in held)
        if removed:
            seen_s = late_s * sum(state["numRowsTotal"] for state in held) / removed
            found[place] = max(0.0, seen_s - late_s)
    return found


def lacking_s(done: Sequence[CompletedBatch], window: int, stays: Mapping[int, float]) -> float:
    """Return the seconds that the last `window` batches would take longer with all rows of a full state.

    `done` are all batches since the state was empty; `stays` is by operator. By Little's law, a join and a
    deduplication will hold the rows that enter in a second, as in these batches, times the seconds that they stay.
    Other operators also update rows that they have, so they are left out: how many groups are still to come is
    unknown. 0 where the batches do not show that a row in the state costs anything, where as many rows leave as
    enter, or where the state is far younger than it will be.
    """
    seen = [one for one in done[1:] if one.batch.records > 1 and len(_states(one)) > max(stays, default=-1)]
    last, age_s = seen[-window:], _passed_s(done) if done else 0.0
    if min(window, len(last)) < 2 or not stays or not age_s:
        return 0.0
    held = {place: rows for place in stays if (rows := _held(done, place))}
    if not held or max(stays[place] for place in held) > _OLDER * age_s:
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
    from scipy.optimize import nnls  # noqa: PLC0415 - slow to import

    parts = np.column_stack((np.ones(len(held)), records, held)).astype(float)
    scale = np.maximum(parts.max(axis=0), 1.0)
    costs, left = nnls(parts / scale, np.asarray(took_s, dtype=float))
    inverse = np.linalg.pinv((parts / scale).T @ (parts / scale))
    error = left * np.sqrt(max(0.0, inverse[2, 2]) / max(1, len(held) - 3))
    return float(costs[2] / scale[2]) if costs[2] > _ERRORS * error else 0.0


def _held(done: Sequence[CompletedBatch], place: int) -> dict[int, float] | None:
    """Return the rows in the state of an operator after each batch, by its number; None if it also updates rows."""
    states = {one.batch_id: _states(one)[place] for one in done if len(_states(one)) > place}
    if not all(any(name in str(state.get("operatorName")) for name in _ADDING) for state in states.values()):
        return None
    if any(state["numRowsTotal"] for state in states.values()):
        return {number: float(state["numRowsTotal"]) for number, state in states.items()}
    changes = [(state.get("numRowsUpdated") or 0) - (state.get("numRowsRemoved") or 0) for state in states.values()]
    return dict(zip(states, map(float, accumulate(changes)), strict=True))


def _states(done: CompletedBatch) -> Sequence[dict]:  # type: ignore[type-arg]
    return done.progress.get("stateOperators") or ()


def _passed_s(done: Sequence[CompletedBatch]) -> float:
    """Return the event time of all rows of `done`."""
    return (done[-1].release.last_us - done[0].release.first_us) / 1e6


def _left(done: Sequence[CompletedBatch]) -> bool:
    """Return whether rows left every stateful operator that received any."""
    received, left = set(), set()
    for one in done:
        for place, state in enumerate(_states(one)):
            received |= {place} if state.get("numRowsUpdated") else set()
            left |= {place} if state.get("numRowsRemoved") else set()
    return bool(received) and received <= left
