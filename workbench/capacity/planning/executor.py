"""Executors: the containers that hold slots, and how many slots a worker has room for.

A slot is what was measured: cores, and memory for heap and RocksDB. A container takes more than its slots, and a worker
gives less than it has, so fewer slots fit on a worker than its size divided by theirs.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence

from workbench.checks import whole
from workbench.dataflow import SlotProfile
from workbench.records import Executor

UNPRICED = (16.0, 65536.0)
"""Cores and MiB of the workers that are assumed without a price list: a common size for all purposes."""

Reserve = Callable[[float, float], tuple[float, float]]
"""Returns the cores and MiB that a worker reserves for itself, from its own cores and MiB."""

_CPU_SHARES = ((1.0, 0.06), (2.0, 0.01), (4.0, 0.005), (math.inf, 0.0025))
_MEMORY_SHARES = ((4096.0, 0.25), (8192.0, 0.20), (16384.0, 0.10), (131072.0, 0.06), (math.inf, 0.02))
_SMALL_MB, _SMALL_RESERVE_MB, _EVICTION_MB = 1024.0, 255.0, 100.0
_SLACK = 1e-6


def kubernetes_reserve(cpus: float, memory_mb: float) -> tuple[float, float]:
    """Return the cores and MiB that Kubernetes reserves on a node for the system, the kubelet and eviction.

    Notes
    -----
    The shares are those of Google Kubernetes Engine, "Plan node sizes"
    (https://cloud.google.com/kubernetes-engine/docs/concepts/plan-node-sizes). CPU: 6 % of the first core, 1 % of the
    second, 0.5 % of the next two, 0.25 % of the rest. Memory: 25 % of the first 4 GiB, 20 % of the next 4, 10 % of the
    next 8, 6 % of the next 112, 2 % of the rest, or 255 MiB below 1 GiB; and 100 MiB for eviction. Pods that run on
    every node are not in them.
    """
    system_mb = _SMALL_RESERVE_MB if memory_mb < _SMALL_MB else _of_ranges(memory_mb, _MEMORY_SHARES)
    return _of_ranges(cpus, _CPU_SHARES), system_mb + _EVICTION_MB


def slots_per_worker(
    cpus: float,
    memory_mb: float,
    profile: SlotProfile,
    reserve: Reserve = kubernetes_reserve,
    executor_slots: int | None = None,
) -> int:
    """Most slots that fit on a worker of these cores and MiB, in executors of `executor_slots` or one; 0 if none."""
    kept_cpus, kept_mb = reserve(cpus, memory_mb)
    room_cpus, room_mb = cpus - kept_cpus, memory_mb - kept_mb
    size = executor_size(executor_slots)
    if size is None:
        return slots_within(math.floor(room_cpus / profile.cpus + _SLACK), profile, room_cpus, room_mb)
    return size * executors_within(Executor(size, profile), room_cpus, room_mb)


def executors_within(one: Executor, cpus: float, memory_mb: float) -> int:
    """Return how many executors like `one` fit into these cores and MiB."""
    return max(0, math.floor(min(1000 * cpus / one.millicores, memory_mb / one.memory_mb) + _SLACK))


def in_executors(slots: int, executor_slots: int | None) -> int:
    """Round `slots` up to whole executors of `executor_slots`; None: executors have any size."""
    size = executor_size(executor_slots) or 1
    return size * math.ceil(slots / size)


def executor_size(slots: int | None) -> int | None:
    """Return the slots of an executor as an int; None, which means any size, stays None."""
    return None if slots is None else whole("The number of slots of an executor", slots)


def slots_within(most: int, profile: SlotProfile, cpus: float, memory_mb: float) -> int:
    """Return the most slots, up to `most`, of an executor that fits into these cores and MiB; 0 if none does."""

    def is_too_large(slots: int) -> bool:
        return not Executor(slots, profile).fits(cpus, memory_mb)

    return bisect_left(range(1, most + 1), True, key=is_too_large)  # noqa: FBT003 - a larger one never fits either


def _of_ranges(amount: float, shares: Sequence[tuple[float, float]]) -> float:
    """Sum the shares of `amount`, each for the range up to its end."""
    kept, start = 0.0, 0.0
    for end, share in shares:
        kept += share * max(0.0, min(amount, end) - start)
        start = end
    return kept
