"""Where to begin in each partition of a topic, so that its newest records are read, of all since one moment."""

from collections.abc import Callable, Mapping

_NEAR = 0.02  # of the rows that are wanted: within it, partitions are cut in proportion
_FIRST_STEP_MS = 1000

Ends = Mapping[int, tuple[int, int]]
"""First offset, and that after the last, of each partition."""


def newest(
    offsets_at: Callable[[int], dict[int, int]], rows: int, begin: Mapping[int, int], ends: Ends, now_ms: int
) -> dict[int, int]:
    """Give where to begin so that the newest `rows` records are read, of all partitions those since one moment.

    Parameters
    ----------
    offsets_at
        Gives the offsets at a time, ms since 1970.
    begin
        Where more than as many records begin.
    """

    def at(at_ms: int) -> dict[int, int]:
        return {number: max(begin[number], offset) for number, offset in offsets_at(at_ms).items()}

    late_ms, back_ms = now_ms + 1, _FIRST_STEP_MS
    late, early_ms, early = at(late_ms), 0, dict(begin)
    if behind(late, ends) > rows:  # stamped in the future
        return _between(late, {number: high for number, (_, high) in ends.items()}, rows, ends)
    while now_ms > back_ms:
        tried = at(now_ms - back_ms)
        if behind(tried, ends) > rows:
            early_ms, early = now_ms - back_ms, tried
            break
        late_ms, late = now_ms - back_ms, tried
        back_ms *= 2
    while late_ms - early_ms > 1 and behind(early, ends) - behind(late, ends) > _NEAR * rows:
        middle_ms = (early_ms + late_ms) // 2
        tried = at(middle_ms)
        if behind(tried, ends) > rows:
            early_ms, early = middle_ms, tried
        else:
            late_ms, late = middle_ms, tried
    return _between(early, late, rows, ends)


def _between(early: Mapping[int, int], late: Mapping[int, int], rows: int, ends: Ends) -> dict[int, int]:
    """Give the offsets with `rows` records behind them, between `early` ones with more and `late` ones with fewer."""
    before, after = behind(early, ends), behind(late, ends)
    share = (rows - after) / max(1, before - after)
    return {number: late[number] - int(share * (late[number] - early[number])) for number in ends}


def behind(begin: Mapping[int, int], ends: Ends) -> int:
    """Count the offsets of all partitions from `begin` on."""
    return sum(high - begin[number] for number, (_, high) in ends.items())
