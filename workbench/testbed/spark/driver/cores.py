"""The cores and the quota of a deployment's slots on this machine; those of a cluster are its own."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from workbench.dataflow import Budget
from workbench.speed import CoreSpeed, CoreTimer
from workbench.testbed.spark.driver.live import now_s
from workbench.testbed.spark.driver.spec import DeploymentSpec, slot_cores
from workbench.testbed.spark.machine.load import Load, load, session_processes
from workbench.testbed.spark.machine.quota import family, pin, pin_family, threads_cpu_s

_TASKS = ("Executor task",)
COMPILERS = ("C1 Compiler", "C2 Compiler", "Sweeper")
"""Prefixes of the names of the threads of a JVM's just-in-time compiler."""


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
        """Pin the slots to their cores, and everything else to the other cores if there are any.

        This waits until the code is warm, because the driver, the executor and their compilers are busiest before.
        """
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
