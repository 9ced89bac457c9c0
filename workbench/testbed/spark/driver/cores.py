"""The slots of a deployment on this machine: their executor, their cores and quota, and those that are held.

The slots of a cluster are its own.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from workbench import units
from workbench.dataflow import Budget
from workbench.errors import WorkbenchError
from workbench.speed import CoreSpeed, CoreTimer
from workbench.testbed.spark.driver.live import now_s
from workbench.testbed.spark.driver.session import DeploymentSpec, slot_cores
from workbench.testbed.spark.machine.disturbance import Load, load, session_processes
from workbench.testbed.spark.machine.quota import family, pin, pin_family, threads_cpu_s

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TASKS = ("Executor task",)
COMPILERS = ("C1 Compiler", "C2 Compiler", "Sweeper")
"""Prefixes of the names of the threads of a JVM's just-in-time compiler."""
STARTS_S = 60.0  # longest time for an executor to start
_HELD_S = 30.0  # longest time for slots to be held
_LOOK_S = 0.25


class Cores:
    """Divides this machine's cores between the slots and everything else, and sees how busy they are."""

    def __init__(self, spec: DeploymentSpec) -> None:
        self._here, self._quota = spec.cluster is None, spec.quota
        self._allowed = frozenset(os.sched_getaffinity(0))  # before this process is pinned
        self._executor: int | None = None
        self._driver: int | None = None
        self._divided = False
        self._timers: dict[frozenset[int], CoreTimer] = {}
        self.give(spec.budget)

    def give(self, budget: Budget) -> None:
        """Choose the cores of the slots of `budget`."""
        self._budget = budget
        self._slots = slot_cores(budget, self._allowed)
        self._others = self._allowed - self._slots

    def hold(self, executor: int, driver: int) -> None:
        """Put the slots' executor under the quota; it and the driver's JVM are given by their process ids."""
        self._executor, self._driver = executor, driver
        if self._quota:
            self._quota.add(executor)

    @property
    def at_once(self) -> int:
        """Slots that can run at once without a quota."""
        return min(self._budget.slots, len(self._allowed))

    def limit(self, *, quota: bool) -> None:
        """Limit the slots to their quota, or lift it."""
        if self._quota:
            self._quota.limit(self._budget.cpus if quota else None)

    @contextmanager
    def unlimited(self) -> Iterator[None]:
        """Lift the quota meanwhile."""
        self.limit(quota=False)
        try:
            yield
        finally:
            self.limit(quota=True)

    def divide(self) -> None:
        """Pin the slots to their cores, all else to others if any; once the code is warm, as all are busiest before."""
        executor = self._executor
        if executor is None:
            return
        apart = COMPILERS if self._quota and self._quota.exempt(executor, COMPILERS) else ()
        pin_family(executor, self._slots)  # its Python workers too: they started before
        if self._others or self._divided:  # with none left, everything shares the slots' cores again
            others = self._others or self._allowed
            pin(executor, others, apart)
            for process in set(family(os.getpid())) - set(family(executor)):
                pin(process, others)
        self._divided = True

    def timer(self) -> Callable[[], CoreSpeed]:
        """Return a function that times the slots' cores; those of a cluster cannot be reached."""
        if not self._here:
            return lambda: CoreSpeed(0.0, 0.0)
        if self._slots not in self._timers:  # each has a table larger than the caches
            self._timers[self._slots] = CoreTimer(self._slots)
        return self._timers[self._slots].time

    def load(self, executor_s: float) -> Load:
        """Read the CPU counters; `executor_s` is what the executor has used. Those of a cluster are not seen."""
        if not self._here:
            return Load(now_s(), 0.0, 0.0, 0.0, 0)
        return load(session_processes(os.getsid(0)), now_s(), self._slots if self._others else (), executor_s)

    def periods(self) -> tuple[int, int]:
        """Periods of the quota, and those in which it was used up."""
        return self._quota.periods() if self._quota else (0, 0)

    def compiler_s(self) -> float:
        """CPU seconds that the executor's compiler has used so far; a cluster's is asked by `cluster.compilers`."""
        return 0.0 if self._executor is None else threads_cpu_s(self._executor, COMPILERS)

    def tasks_s(self) -> float:
        """CPU seconds that the threads of the executor's tasks have used so far; a cluster's are not seen."""
        return 0.0 if self._executor is None else threads_cpu_s(self._executor, _TASKS)

    def all_compilers_s(self) -> float:
        """CPU seconds that the compilers of the executor and of the driver have used; 0 on a cluster."""
        return sum(threads_cpu_s(jvm, COMPILERS) for jvm in (self._executor, self._driver) if jvm is not None)


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


class HeldSlots:
    """Holds slots that a smaller budget does not have: tasks sleep in them until a file in `folder` is gone."""

    def __init__(self, spark: "SparkSession", folder: Path) -> None:
        self._context = spark.sparkContext
        self._flag = folder / "held"
        self._thread: threading.Thread | None = None

    def hold(self, count: int) -> None:
        """Hold `count` slots instead of those held now, and return when they are taken."""
        self.release()
        if count < 1:
            return
        self._flag.touch()
        flag = str(self._flag)
        job = self._context.parallelize(range(count), count)
        self._thread = threading.Thread(
            target=lambda: job.foreachPartition(lambda _: _sleep_while(flag)), name="held slots", daemon=True
        )
        self._thread.start()
        end = now_s() + _HELD_S
        while self._running() < count:
            if now_s() > end or not self._thread.is_alive():
                raise WorkbenchError(
                    f"Spark did not give {units.some(count, 'slot')} to the tasks that hold them within "
                    f"{_HELD_S:.0f} s, so no smaller budget can be measured in this deployment. Measure each budget in "
                    "its own (in a study deployment: separate)."
                )
            time.sleep(_LOOK_S)

    def release(self) -> None:
        """Release all slots that are held."""
        self._flag.unlink(missing_ok=True)
        if self._thread is not None:
            self._thread.join(_HELD_S)
            self._thread = None

    def _running(self) -> int:
        tracker = self._context.statusTracker()
        stages = (tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds())
        return sum(stage.numActiveTasks for stage in stages if stage is not None)


def _sleep_while(flag: str) -> None:
    """Sleep until the file `flag` is gone; a task's body."""
    while Path(flag).exists():
        time.sleep(_LOOK_S)
