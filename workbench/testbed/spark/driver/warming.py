"""Warming up the code of a query before anything is measured."""

from collections.abc import Callable
from statistics import median

from workbench.dataflow import Budget
from workbench.testbed.spark.driver.live import FIRST_BATCH_ROWS, CompletedBatch, now_s
from workbench.testbed.spark.driver.queries import Queries
from workbench.testbed.spark.driver.ramp import fitting_rows
from workbench.testbed.spark.driver.spec import DeploymentSpec

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
    """Seconds of a batch on the slots' cores alone, from those on all cores; at most as many tasks run at once.

    Seconds of the driver are the same there, those of the tasks more.
    """
    tasks_s = done.threads_cpu_s + done.python_cpu_s  # without the compiler's
    more_s = tasks_s * max(0.0, 1 / budget.cpus - 1 / budget.slots)
    return max(done.batch.duration_s + more_s, tasks_s / budget.cpus, _LEAST_S)


def _stopped(values: list[float], count: int, share: float) -> bool:
    """Whether the median of the last `count` values is at least `share` of that of the `count` before."""
    if len(values) < 2 * count or len(values) % count:
        return False
    return median(values[-count:]) > share * median(values[-2 * count : -count])
