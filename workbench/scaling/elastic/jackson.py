"""Latency of a network of elastic executors, and the fewest cores that keep it under a target.

Each executor j is an M/M/k_j station of a Jackson network [1]_: records arrive at rate lambda_j, one core serves
mu_j of them a second. The offered load lambda_j / mu_j is the number of cores kept busy.

References
----------
.. [1] L. Wang et al., "Elasticutor: Rapid Elasticity for Realtime Stateful Stream Processing", SIGMOD 2019, section
   4.1, equation 1.
"""

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Literal

from workbench.scaling._validation import SLACK, not_negative, not_negatives, positive, require, same_length, whole

AllocationStatus = Literal["ok", "exhausted", "insufficient", "unreachable"]


@dataclass(frozen=True)
class CoreAllocation:
    """How many cores each executor needs.

    Parameters
    ----------
    cores
        Cores per executor: the allocation that meets the target (``"ok"``), the last one within the supply
        (``"exhausted"``), or the least stable one (``"insufficient"``, ``"unreachable"``).
    latency
        E[T] with these cores, seconds.
    status
        ``"ok"``; ``"exhausted"`` when the next core exceeds the supply; ``"insufficient"`` when the least stable
        allocation already does; ``"unreachable"`` when the target is below the service times alone, so that no
        number of cores meets it.
    """

    cores: tuple[int, ...]
    latency: float
    status: AllocationStatus


def erlang_c(servers: int, offered_load: float) -> float:
    """Probability that an arrival waits in an M/M/k queue (Erlang's C formula).

    Computed from Erlang's B by its recursion, whose terms stay in [0, 1] and whose rounding errors shrink from step
    to step, so that any number of servers is safe.

    Parameters
    ----------
    servers
        k, at least 1.
    offered_load
        a = lambda / mu, at least 0.

    Returns
    -------
    float
        In [0, 1]; 1.0 when ``offered_load >= servers``, where the queue grows for ever.

    Raises
    ------
    WorkbenchError
        When `servers` is not a whole number of at least 1 or the load is negative or not finite.
    """
    servers = whole("servers", servers, 1)
    load = not_negative("offered_load", offered_load)
    if load >= servers:
        return 1.0
    blocking = 1.0
    for k in range(1, servers + 1):
        blocking = load * blocking / (k + load * blocking)
    return _waiting(servers, load, blocking)


def jackson_latency(
    arrivals: Sequence[float], service_rates: Sequence[float], source_rate: float, cores: Sequence[int]
) -> float:
    """Mean seconds a record of the input stream spends in all executors together (equation 1).

    Parameters
    ----------
    arrivals, service_rates, cores
        lambda_j (records/s), mu_j (records/s of one core) and k_j per executor.
    source_rate
        lambda_0, records/s of the input stream.

    Returns
    -------
    float
        Seconds; inf when an executor with arrivals has no more cores than its offered load.

    Raises
    ------
    WorkbenchError
        When lengths differ or a rate is negative, zero where it must not be, or not finite.
    """
    arrivals, service_rates, source_rate = _checked(arrivals, service_rates, source_rate)
    same_length("executor", len(arrivals), cores=cores)
    total = 0.0
    for arrival, service, given in zip(arrivals, service_rates, cores, strict=True):
        k = whole("A number of cores", given, 0)
        if arrival == 0:
            continue
        if k < _least_stable(arrival / service):
            return math.inf
        total += arrival * _sojourn(k, arrival / service, service, erlang_c(k, arrival / service))
    return total / source_rate


def allocate_cores(
    arrivals: Sequence[float], service_rates: Sequence[float], source_rate: float, target_latency: float, cores: int
) -> CoreAllocation:
    """Fewest cores that keep the mean latency at or under the target (Elasticutor, section 4.1).

    Every executor starts at floor(lambda_j / mu_j) + 1, the least stable number (the paper prints ``|lambda/mu|``,
    which is a floor); each further core goes where it lowers E[T] most. E[T_j] is convex in k_j, so the greedy
    choice is optimal. Ties go to the lowest index.

    Parameters
    ----------
    arrivals, service_rates
        lambda_j (records/s) and mu_j (records/s of one core) per executor.
    source_rate
        lambda_0, records/s of the input stream.
    target_latency
        T_max, seconds.
    cores
        Cores there are.

    Raises
    ------
    WorkbenchError
        When lengths differ or a number is out of its range. A target that cannot be met is an answer, see
        ``CoreAllocation.status``.
    """
    arrivals, service_rates, source_rate = _checked(arrivals, service_rates, source_rate)
    target = positive("target_latency", target_latency)
    supply = whole("cores", cores, 0)
    loads = [arrival / service for arrival, service in zip(arrivals, service_rates, strict=True)]
    allocated = [_least_stable(load) for load in loads]
    times = [_sojourn_times(load, service) for load, service in zip(loads, service_rates, strict=True)]
    now = [arrival * next(series) for arrival, series in zip(arrivals, times, strict=True)]  # lambda_j E[T_j]

    if target < sum(loads) / source_rate * (1 - SLACK):  # E[T] falls towards the service times, never below
        return CoreAllocation(tuple(allocated), sum(now) / source_rate, "unreachable")
    if sum(allocated) > supply:
        return CoreAllocation(tuple(allocated), sum(now) / source_rate, "insufficient")

    if sum(now) / source_rate <= target * (1 + SLACK):
        return CoreAllocation(tuple(allocated), sum(now) / source_rate, "ok")

    then = [arrival * next(series) for arrival, series in zip(arrivals, times, strict=True)]  # with one core more
    gains = [(b - a, j) for j, (a, b) in enumerate(zip(now, then, strict=True))]  # negated, for the heap
    heapq.heapify(gains)
    free = supply - sum(allocated)
    while sum(now) / source_rate > target * (1 + SLACK):
        if free == 0:
            return CoreAllocation(tuple(allocated), sum(now) / source_rate, "exhausted")
        _, j = gains[0]
        allocated[j] += 1
        free -= 1
        now[j], then[j] = then[j], arrivals[j] * next(times[j])
        heapq.heapreplace(gains, (then[j] - now[j], j))
    return CoreAllocation(tuple(allocated), sum(now) / source_rate, "ok")


def _checked(
    arrivals: Sequence[float], service_rates: Sequence[float], source_rate: float
) -> tuple[list[float], list[float], float]:
    require(len(arrivals) > 0, "There are no executors; give at least one arrival rate.")
    same_length("executor", len(arrivals), service_rates=service_rates)
    return (
        not_negatives("The arrival rate of executor {}", arrivals),
        [
            float(rate) if 0 < rate < math.inf else positive(f"The service rate of executor {j}", rate)
            for j, rate in enumerate(service_rates)
        ],
        positive("source_rate", source_rate),
    )


def _least_stable(load: float) -> int:
    return math.floor(load + SLACK * max(1.0, load)) + 1


def _waiting(servers: int, load: float, blocking: float) -> float:
    """Erlang C from Erlang B: k b / (k - a (1 - b)), written without a difference of near numbers."""
    return servers * blocking / ((servers - load) + load * blocking)


def _sojourn(servers: int, load: float, service: float, waiting: float) -> float:
    """E[T_j] = C / (k mu - lambda) + 1 / mu."""
    return (waiting / (servers - load) + 1) / service


def _sojourn_times(load: float, service: float) -> Iterator[float]:
    """E[T_j](k) for the least stable k, then one core more each."""
    blocking, first = 1.0, _least_stable(load)
    for k in count(1):
        blocking = load * blocking / (k + load * blocking)
        if k >= first:
            yield _sojourn(k, load, service, _waiting(k, load, blocking))
