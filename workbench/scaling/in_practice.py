"""Policies in common use, with their defaults: Spark's dynamic allocation, and KEDA's Kafka lag.

Neither knows what a record costs. Dynamic allocation counts waiting tasks, of which a batch has as many as partitions,
whatever its rows; KEDA counts waiting records.

EMR Serverless runs Spark's dynamic allocation with other values, by its scaling profile; give yours as settings.
Databricks documents no thresholds of its enhanced autoscaling, so it cannot be replayed.
"""

import math
from dataclasses import dataclass, replace
from typing import TypeAlias

from workbench.checks import SLACK, not_negative, positive, require, whole
from workbench.defaults import INTERVAL_S
from workbench.scaling.policies import Answer, Window

_TICK_S = 1.0
_SYNC_S, _PODS = 15.0, 4  # of Kubernetes' horizontal autoscaler

Wanted: TypeAlias = tuple[tuple[float, int], ...]
"""Times, in seconds of the replay, with the replicas wanted then."""


@dataclass(frozen=True)
class Allocated:
    """What `DynamicAllocation` remembers."""

    adding: int = 1  # executors in the next request; they double while tasks wait
    waited_s: float = 0.0  # seconds that tasks have waited since the last request
    idle_s: float | None = None  # since when no batch has run, seconds of the replay; None: one runs
    arriving: tuple[tuple[float, int], ...] = ()  # when requested executors will run, with their number


@dataclass(frozen=True)
class DynamicAllocation:
    """Spark's dynamic allocation of executors (``spark.dynamicAllocation``; ExecutorAllocationManager of 3.4 to 4.x).

    While tasks wait for a slot, 1, 2, 4, ... executors are requested, up to those that would run all tasks of a stage
    at once. An executor without a task for `idle_s` goes, and one that holds shuffle files after `shuffle_s`, or where
    the driver has collected garbage since. The query continues while executors come and go. Cached blocks, which hold
    executors as long (cachedExecutorIdleTimeout), do not occur in a streaming query.

    Deviations: at least one executor stays, where Spark's minimum may be 0, and a batch begins at each trigger.
    """

    executor_slots: int = 1  # tasks that an executor runs at once
    tasks: int = 200  # of the largest stage of a batch, by default as many as ``spark.sql.shuffle.partitions``
    shuffle_tasks: int | None = None  # of the stage that writes shuffle files; None: the same
    min_executors: int = 0  # (minExecutors)
    max_executors: float = math.inf  # (maxExecutors, without a bound by default)
    executor_ratio: float = 1.0  # requested executors over those that run all tasks at once (executorAllocationRatio)
    backlog_s: float = 1.0  # that tasks wait before the first request (schedulerBacklogTimeout)
    sustained_s: float = 1.0  # that they wait before each later one (sustainedSchedulerBacklogTimeout)
    idle_s: float = 60.0  # without a task, after which an executor goes (executorIdleTimeout)
    shuffle_s: float = math.inf  # after which one with shuffle files goes (shuffleTracking.timeout)
    cleaned_s: float = 1800.0  # until the driver's garbage collection frees these (spark.cleaner.periodicGC.interval)
    start_s: float = 0.0  # seconds until an executor runs
    interval_s: float = 1.0
    restarts: bool = False

    def __post_init__(self) -> None:
        for name in ("executor_slots", "tasks", "shuffle_tasks", "min_executors"):
            if (value := getattr(self, name)) is not None:
                whole(name, value, 0 if name.startswith(("shuffle", "min")) else 1)
        for name in ("backlog_s", "idle_s", "start_s"):
            not_negative(name, getattr(self, name))
        positive("sustained_s", self.sustained_s, "seconds")
        require(
            self.max_executors >= max(1, self.min_executors),
            f"max_executors is {self.max_executors:g}; it must be at least 1 and min_executors, {self.min_executors}.",
        )
        require(0 < self.executor_ratio <= 1, f"executor_ratio is {self.executor_ratio:g}; it must be a share above 0.")

    def decide(self, window: Window, memory: Allocated | None) -> Answer[Allocated]:
        """Request executors while tasks wait, and release idle ones."""
        running = math.ceil(sum(window.tasks.values()) / self.executor_slots)
        now = memory or Allocated()
        interval_s = window.batch_s or INTERVAL_S
        flows = sum(window.source_rates.values()) + sum(window.backlog.values()) > 0
        lasts_s = max(_TICK_S, window.busy * interval_s)
        for tick in range(max(1, round(window.seconds / _TICK_S))):
            at_s = window.now_s - window.seconds + tick * _TICK_S
            done = math.fmod(at_s, max(interval_s, lasts_s)) / lasts_s if flows else 1.0
            now = self._after_second(now, at_s, done, running)
        come = sum(count for ready_s, count in now.arriving if ready_s <= window.now_s + SLACK)
        now = replace(now, arriving=tuple(one for one in now.arriving if one[0] > window.now_s + SLACK))
        wanted = self._kept(running, now.idle_s, window.now_s) + come
        if wanted == running:
            return None, now
        slots, together = wanted * self.executor_slots, sum(window.tasks.values())
        return {name: max(1, round(count * slots / together)) for name, count in window.tasks.items()}, now

    def _after_second(self, now: Allocated, at_s: float, done: float, running: int) -> Allocated:
        """Advance by a second; `done` is the share of the batch that is done, 1 or more between two batches."""
        left = self.tasks * (1 - done)
        if left <= running * self.executor_slots:  # no task waits
            idle_s = None if left > 0 else at_s if now.idle_s is None else now.idle_s
            return Allocated(idle_s=idle_s, arriving=now.arriving)
        waited_s = now.waited_s + _TICK_S
        if waited_s < (self.backlog_s if now.adding == 1 else self.sustained_s) - SLACK:
            return replace(now, waited_s=waited_s, idle_s=None)
        most = min(math.ceil(left * self.executor_ratio / self.executor_slots - SLACK), self.max_executors)
        more = int(min(now.adding, most - running - sum(count for _, count in now.arriving)))
        if more <= 0:
            return replace(now, waited_s=0.0, idle_s=None)
        return Allocated(2 * now.adding, 0.0, None, (*now.arriving, (at_s + _TICK_S + self.start_s, more)))

    def _kept(self, running: int, since_s: float | None, now_s: float) -> int:
        """Return the executors that stay: those that batches use, and idle ones whose time is not over."""
        holding = math.ceil((self.tasks if self.shuffle_tasks is None else self.shuffle_tasks) / self.executor_slots)
        idle_s = 0.0 if since_s is None else now_s - since_s
        if idle_s < self.idle_s - SLACK:
            used = running if since_s is not None else max(holding, math.ceil(self.tasks / self.executor_slots))
        else:
            freed_s = min(max(self.shuffle_s, self.idle_s), self.cleaned_s + self.idle_s)
            used = holding if idle_s < freed_s - SLACK else 0
        return max(1, self.min_executors, min(running, used))


@dataclass(frozen=True)
class KafkaLag:
    """KEDA's scaler for Apache Kafka (2.15): as many replicas as waiting records fill thresholds.

    Kubernetes' horizontal autoscaler carries it out with its defaults: at most twice the replicas or 4 more every
    15 s, and fewer only where no more were wanted for `stabilization_s`. There are at most as many replicas as
    partitions. Each replica runs a task of every operator. Records of a micro-batch wait until it commits.

    Deviation: one replica stays, where KEDA goes to none after its cooldownPeriod (300 s).
    """

    lag_threshold: float = 10.0  # waiting records for each replica (lagThreshold)
    partitions: int | None = None  # of the topic; None: no bound but `max_replicas`
    max_replicas: int = 100  # most replicas (maxReplicaCount)
    polling_s: float = 30.0  # seconds from one look to the next (pollingInterval)
    stabilization_s: float = 300.0  # that fewer replicas must have been enough for the horizontal autoscaler
    tolerance: float = 0.1  # share of the present ones by which a change is too small for it

    def __post_init__(self) -> None:
        positive("lag_threshold", self.lag_threshold, "records")
        positive("polling_s", self.polling_s, "seconds")
        whole("max_replicas", self.max_replicas, 1)
        if self.partitions is not None:
            whole("partitions", self.partitions, 1)

    @property
    def interval_s(self) -> float:
        """Seconds from one call to the next."""
        return self.polling_s

    def decide(self, window: Window, memory: Wanted | None) -> Answer[Wanted]:
        """Follow the waiting records; remember the wanted replicas, and when."""
        running = max(window.tasks.values())
        lag = sum(window.backlog.values()) + sum(window.source_rates.values()) * window.batch_s
        most = self.max_replicas if self.partitions is None else min(self.max_replicas, self.partitions)
        wanted = min(most, max(1, math.ceil(lag / self.lag_threshold - SLACK)))
        if abs(wanted / running - 1) <= self.tolerance:
            wanted = running
        since_s = window.now_s - self.stabilization_s - SLACK
        recent = (*(one for one in memory or () if one[0] > since_s), (window.now_s, wanted))
        if wanted < running:
            replicas = min(running, max(count for _, count in recent))
        else:
            replicas = running
            for _ in range(math.ceil(self.polling_s / _SYNC_S)):
                replicas = min(wanted, max(2 * replicas, replicas + _PODS))
        return (None if replicas == running else dict.fromkeys(window.tasks, replicas)), recent
