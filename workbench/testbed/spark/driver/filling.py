"""When a query's state has its working size: as much leaves it as enters, so a reading compares with later ones.

A window's rows stay until the watermark has passed its end. Until the first leave, the state grows and the query is
faster than it will be; what entered at the higher rate then leaves at once, and makes it slower, and so on: a swing
that takes a minute to calm down. So a state is filled at a rate near the one that lasts. Measured on q5 with windows of
10 s, filled at the maximum rate: 287,000 records/s after 20 s, 188,000 after 30 s, 234,000 from 35 s on.
"""

from collections.abc import Sequence

from workbench.testbed.spark.driver.live import CompletedBatch

_TIMES = 1.5  # rows of sliding windows leave in parts, in half as much time again


def full(done: Sequence[CompletedBatch], now_s: float) -> bool:
    """Whether half as much time again has passed as every state with rows took until the first of them left it."""
    if not any(one.batch.records > 1 for one in done):  # the first batch may have one row, to start the clock
        return False
    begun = done[0].release.at_s
    keeps_state, updated = False, set[int]()
    left_s: dict[int, float] = {}
    for one in done:
        for place, state in enumerate(one.progress.get("stateOperators") or ()):
            keeps_state = True
            if state.get("numRowsUpdated"):
                updated.add(place)
            if state.get("numRowsRemoved"):
                left_s.setdefault(place, one.release.at_s + one.duration_s - begun)
    if keeps_state and not updated:
        return False
    return updated <= set(left_s) and all(now_s >= begun + _TIMES * took for took in left_s.values())
