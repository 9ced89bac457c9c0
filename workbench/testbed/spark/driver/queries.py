"""The streaming queries of one deployment: started, warmed up, waited for and ended."""

import math
from collections.abc import Callable
from statistics import median
from typing import TYPE_CHECKING

from workbench.dataflow import Budget
from workbench.errors import WorkbenchError
from workbench.testbed.spark.driver.feed import ReplayFeed, TopicFeed, TopicRows
from workbench.testbed.spark.driver.growing_state import full
from workbench.testbed.spark.driver.live import FIRST_BATCH_ROWS, CompletedBatch, LiveQuery, Meter, fitting_rows, now_s
from workbench.testbed.spark.driver.session import DeploymentSpec
from workbench.testbed.spark.log.event_log import EventLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

READ_INTERVAL_S = 0.05  # the trigger of queries whose batches follow each other without a pause
_PATIENCE_S = 240.0
_DRAIN_S = 30.0
_QUIET_S = 1.0
_FITS, _FIT_BATCHES, _FITTED = 6, 2, 0.15


class Queries:
    """All queries that run in a deployment; `wait` lets a moment pass, and raises when the deployment must end."""

    def __init__(self, spark: "SparkSession", events: EventLog, meter: Meter, wait: Callable[[], None]) -> None:
        self._spark = spark
        self._events = events
        self._meter = meter
        self._wait = wait
        self._running: list[LiveQuery] = []

    def start(self, spec: DeploymentSpec, folder: str, interval_s: float = READ_INTERVAL_S) -> LiveQuery:
        """Start the query of `spec` in a folder of its own."""
        place, rows = spec.folder / folder, spec.generator
        feed: ReplayFeed | TopicFeed = ReplayFeed(place)
        if isinstance(rows, TopicRows):
            feed = TopicFeed(rows, self._spark._jvm)  # noqa: SLF001
        live = LiveQuery(spec, place, interval_s, self._events, feed, self._spark)
        live.start()
        self._running.append(live)
        return live

    def pump(self) -> None:
        """Pass newly committed batches to their queries."""
        for query_id, log in self._events.poll():
            executor_s, python_s = self._meter.lap()
            for live in self._running:
                if live.query is not None and live.query.id == query_id:
                    live.take(log, executor_s, python_s)

    def tick(self) -> None:
        """Let a moment pass, and raise the error of a query that failed."""
        self.pump()
        self._wait()  # a loss explains more than the failure that it causes
        for query in self._running:
            query.check()

    def settle(self, seconds: float) -> None:
        """Let `seconds` pass."""
        end = now_s() + seconds
        while now_s() < end:
            self.tick()

    def fill(self, live: LiveQuery, least_s: float, most_s: float) -> bool:
        """Let the state of `live` reach its working size, within `least_s` to `most_s` seconds; return if it has."""
        begun = now_s()
        while True:
            self.tick()
            filled = full(live.since_empty, now_s())
            passed = now_s() - begun
            if passed >= most_s or (passed >= least_s and filled):
                return filled

    def batches(self, live: LiveQuery, count: int) -> list[CompletedBatch]:
        """Wait until `count` more batches of the current command are committed."""
        seen = len(live.done)
        give_up = now_s() + _PATIENCE_S + 10 * live.interval_s
        while True:
            fresh = [done for done in live.done[seen:] if done.release.epoch == live.epoch]
            if len(fresh) >= count:
                return fresh
            if now_s() > give_up:
                raise WorkbenchError(
                    f"Query {live.spec.name!r} completed {len(fresh)} of {count} batches in {_PATIENCE_S:.0f} s. "
                    "Its batches take too long to measure: give it more slots, or check what it waits for."
                )
            self.tick()

    def fit(self, live: LiveQuery) -> None:
        """Offer the maximum rate to a query that starts again for every batch size: choose the size first."""
        seen: list[tuple[int, float]] = []
        for _ in range(_FITS):
            live.command(math.inf)
            tried = live.rows_fitting
            seen += [(done.batch.records, done.batch.duration_s) for done in self.batches(live, _FIT_BATCHES)]
            rows = fitting_rows(seen, live.interval_s)
            if abs(rows / tried - 1) < _FITTED:
                return
            live.expect(rows)
        live.command(math.inf)

    def drain(self, live: LiveQuery) -> None:
        """Offer nothing more, and wait until the batches are complete."""
        live.command(0.0)
        if live.paused:
            return
        end = now_s() + _DRAIN_S
        quiet_since = now_s()
        while now_s() < end and now_s() < quiet_since + _QUIET_S:
            self.tick()
            if live.query.status["isTriggerActive"] or live.query.status["isDataAvailable"]:
                quiet_since = now_s()

    def retire(self, live: LiveQuery) -> None:
        """End a query once its batches are complete: cancelled tasks may hold their slots for a minute or more."""
        try:
            self.drain(live)
        finally:
            live.stop()
            self._running.remove(live)

    def stop(self) -> None:
        """Stop all queries at once."""
        for query in self._running:
            query.pause()


# Just-in-time compilation takes minutes: a query that looked steady after 40 s was a quarter faster 40 s later.
# While the compiler is busy, code that would run a third faster still waits for it.
_SMALL_BATCHES, _DRIVER_STEADY = 8, 0.9
_LARGE_BATCHES, _ROWS_STEADY = 3, 0.95
_JIT_IDLE = 0.3  # of a core
_FULL = 0.8
_LEAST_S = 1e-3
_ALL = 0.98  # of the rows asked for: a topic's batches are a few rows larger or smaller


def warm_code(queries: Queries, spec: DeploymentSpec, compiler_s: Callable[[], float]) -> int:
    """Run without a quota, on all cores, until neither batches nor rows get faster; at most `spec.warmup_cap_s`.

    The JVM compiles code after a number of calls, so batches are counted and not seconds. For the code that runs once
    per batch, small batches come first, without a pause, until their seconds stop falling. For the code of records they
    then grow until they fill the interval, and go on until the CPU seconds of a row stop falling, or the compiler is
    nearly idle.

    If only given rates are tested (`spec.asked_rate` is the highest), it ends as soon as a batch at that rate would
    be sustained: code that gets faster still would sustain it as well. Batches grow no further than that.

    It returns the rows that fill one interval afterwards, on all cores; if given rates are tested, on the slots' alone,
    at least.
    """
    live = queries.start(spec, "warming")
    begun = now_s()
    cap = begun + spec.warmup_cap_s
    asked = int(spec.asked_rate * spec.budget.interval_s)
    live.fixed_batches(FIRST_BATCH_ROWS)
    first = queries.batches(live, 1)[-1].batch  # starts Python and compiles the plan
    small: list[float] = []
    while now_s() < begun + spec.warmup_cap_s / 2:
        small.append(queries.batches(live, 1)[-1].batch.duration_s)
        if asked or _stopped(small, _SMALL_BATCHES, _DRIVER_STEADY):
            break
    base_s = median(small[-_SMALL_BATCHES:] or [first.duration_s])
    full_s = max(spec.budget.interval_s, 2 * base_s)  # records must be at least half of the work
    seen = [(FIRST_BATCH_ROWS, base_s)]
    while seen[-1][1] < _FULL * full_s and now_s() < cap:
        rows = fitting_rows(seen, full_s)
        live.fixed_batches(min(rows, asked) if asked else rows)
        grown = queries.batches(live, 1)[-1].batch
        seen.append((grown.records, grown.duration_s))
        if asked and grown.records >= _ALL * asked:
            break
    costs: list[float] = []
    at_s, before_s = now_s(), compiler_s()
    while now_s() < cap and not _stopped(costs, _LARGE_BATCHES, _ROWS_STEADY):
        done = queries.batches(live, 1)[-1]
        costs.append((done.executor_cpu_s or done.batch.duration_s) / max(1, done.batch.records))
        if len(costs) % _LARGE_BATCHES == 0:
            idle = compiler_s() - before_s < _JIT_IDLE * (now_s() - at_s)
            at_s, before_s = now_s(), compiler_s()
            if idle and len(costs) > _LARGE_BATCHES:
                break
        # The requested rows would be done within the interval on the slots' cores alone, as they were on all.
        if 0 < _ALL * asked <= done.batch.records and _on_slots_s(done, spec.budget) < spec.budget.interval_s:
            break
    done = live.done[-1]
    queries.retire(live)
    if asked:
        return int(done.batch.records * spec.budget.interval_s / _on_slots_s(done, spec.budget))
    return int(done.batch.records * min(1.0, spec.budget.interval_s / done.batch.duration_s))


def _on_slots_s(done: CompletedBatch, budget: Budget) -> float:
    """Seconds of a batch on the slots' cores, from those on all: the same of the driver, more of the tasks."""
    tasks_s = done.threads_cpu_s + done.python_cpu_s  # without the compiler's
    more_s = tasks_s * max(0.0, 1 / budget.cpus - 1 / budget.slots)
    return max(done.batch.duration_s + more_s, tasks_s / budget.cpus, _LEAST_S)


def _stopped(values: list[float], count: int, share: float) -> bool:
    """Whether the median of the last `count` values is at least `share` of that of the `count` before."""
    if len(values) < 2 * count or len(values) % count:
        return False
    return median(values[-count:]) > share * median(values[-2 * count : -count])
