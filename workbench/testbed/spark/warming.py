"""Warming up the code of a query before anything is measured."""

from collections.abc import Callable

from workbench.testbed.spark.live import FIRST_BATCH_ROWS, now_s
from workbench.testbed.spark.queries import Queries
from workbench.testbed.spark.spec import DeploymentSpec

# Just-in-time compilation takes minutes: a query that looked steady after 40 s was a quarter faster 40 s later.
# While the compiler is busy, code that would run a third faster is still waiting for it.
_SMALL_BATCHES = 30
_LARGE_BATCHES = 5
_JIT_IDLE = 0.3  # of a core
_FULL = 0.9


def warm_code(queries: Queries, spec: DeploymentSpec, compiler_s: Callable[[], float]) -> int:
    """Run without a quota, on all cores, until the CPU cost of batches is steady and the compiler is nearly idle.

    The JVM compiles code after a number of calls. Code that runs once per batch needs many small batches, and code
    that runs once per record needs large ones. So small batches come first, without a pause, and then they grow until
    they fill the interval.

    Parameters
    ----------
    queries, spec
        What runs, and the query to warm up.
    compiler_s
        CPU seconds that the executor's compiler has used so far.

    Returns
    -------
    int
        Rows that fill one interval afterwards.
    """
    live = queries.start(spec, "warming")
    cap = now_s() + spec.warmup_cap_s
    live.fixed_batches(FIRST_BATCH_ROWS)
    queries.until_steady(live, _SMALL_BATCHES, now_s() + spec.warmup_cap_s / 2)
    rows, last = FIRST_BATCH_ROWS, queries.batches(live, 1)[-1].batch
    full = max(spec.budget.interval_s, 2 * last.duration_s)  # records must be at least half of the work
    while last.duration_s < _FULL * full and now_s() < cap:
        rows = int(rows * min(4.0, max(1.5, full / last.duration_s)))
        live.fixed_batches(rows)
        last = queries.batches(live, 1)[-1].batch
    compiling = 1.0
    while now_s() < cap and compiling > _JIT_IDLE:
        begun, before = now_s(), compiler_s()
        queries.batches(live, _LARGE_BATCHES)
        compiling = (compiler_s() - before) / (now_s() - begun)
    queries.until_steady(live, _LARGE_BATCHES, cap)
    done = live.done[-1].batch
    queries.retire(live)
    return int(done.records * min(1.0, spec.budget.interval_s / done.duration_s))
