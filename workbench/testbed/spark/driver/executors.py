"""The executor of a deployment on this machine: where it runs, and the error when it is lost."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import psutil

from workbench.errors import WorkbenchError
from workbench.testbed.spark.driver.live import now_s

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STARTS_S = 60.0


def driver_process(spark: "SparkSession") -> int:
    """Process id of the driver's JVM."""
    jvm = spark._jvm  # noqa: SLF001 - py4j's only door
    return int(jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]


def executor_process(spark: "SparkSession | None") -> int | None:
    """Process id of the executor's JVM; None if there is none."""
    if spark is None:
        return None
    for process in psutil.Process(driver_process(spark)).children(recursive=True):
        try:
            if "CoarseGrainedExecutorBackend" in " ".join(process.cmdline()):
                return process.pid
        except psutil.Error:
            continue
    return None


def await_executor(spark: "SparkSession", let_pass: Callable[[], None]) -> int:
    """Process id of the executor, which may start shortly after the session; `let_pass` lets a moment pass."""
    end = now_s() + STARTS_S
    while now_s() < end:
        let_pass()
        executor = executor_process(spark)
        if executor is not None:
            return executor
    raise WorkbenchError(
        f"Spark started no executor within {STARTS_S:.0f} s, most likely for lack of memory; "
        "free memory or use smaller slots.",
        settings=("memory_mb",),
    )


def lost_executor(query: str, reasons: Mapping[str, str], *, on_cluster: bool) -> WorkbenchError:
    """Return the error for `query`, whose executor was lost; `reasons` are Spark's, by number of the executor."""
    if on_cluster:
        number, reason = next(iter(reasons.items()))
        return WorkbenchError(
            f"Executor {number} was lost while {query!r} ran: {reason.strip().rstrip('.')}. What is "
            "measured on the others is not a measurement of this budget. The log of its worker shows why it ended; "
            "then run the same command again."
        )
    return WorkbenchError(
        f"Spark's executor was lost while {query!r} ran, most likely for lack of memory; "
        "give the slots more of it, then run the same command again.",
        settings=("memory_mb",),
    )
