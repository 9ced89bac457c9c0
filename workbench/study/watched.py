"""A running query as it is watched: what its log shows so far, as gauges."""

from collections.abc import Mapping

from workbench.errors import WorkbenchError
from workbench.observing import RunningQuery, ending_runs, headroom
from workbench.records import Gauge
from workbench.study.observed import Observed, shown_interval

RECENT_S = 60.0
"""The last minute of batches: what arrives now, and how long a batch takes now."""


def gauges(running: RunningQuery, interval_s: float | None, outage_s: float) -> Mapping[Gauge, float | None]:
    """Give what is served of a query with at least one batch that counts, and of an outage of `outage_s` seconds.

    Without a trigger interval, seconds, it is as the log shows, and nothing that needs it is known until it does.
    """
    ending = ending_runs(running.runs, running.batches) if running.ends else None
    try:
        interval_s = shown_interval(running, ending, interval_s)
    except WorkbenchError:  # it may show later
        interval_s = None
    found = headroom(running.batches, interval_s)
    last = running.batches[-1]
    recent = [one for one in running.batches if one.start_s + one.batch_s >= last.start_s + last.batch_s - RECENT_S]
    passed_s = sum(one.since_s for one in recent if one.since_s < float("inf"))
    is_known = found.rate is not None
    states = running.states
    return {
        Gauge.HEADROOM: found.left,
        Gauge.CAPACITY: found.rate,
        Gauge.CAPACITY_LOW: found.low if is_known else None,
        Gauge.CAPACITY_HIGH: found.high if is_known else None,
        Gauge.CAPACITY_AT_LEAST: found.at_least or None,
        Gauge.RATE: sum(one.rows for one in recent if one.since_s < float("inf")) / passed_s if passed_s else None,
        Gauge.PEAK: found.peak_rate,
        Gauge.BATCH_S: sum(one.batch_s for one in recent) / len(recent),
        Gauge.INTERVAL_S: interval_s,
        Gauge.DRIFT: found.drift.per_day_s if found.drift is not None else 0.0,
        Gauge.STATE_ROWS: sum(one.rows for one in states) if states else None,
        Gauge.STATE_BYTES: sum(one.memory_bytes for one in states) if states else None,
        Gauge.STATE_GROWTH: sum(one.memory_per_day for one in states) if states else None,
        Gauge.CATCH_UP_S: Observed(running, found, None).catch_up_s(outage_s),
        Gauge.LAST_BATCH: running.ended_s,
    }
