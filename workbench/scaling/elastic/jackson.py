"""Latency of a network of elastic executors, and the fewest cores that keep it under a target.

Each executor j is an M/M/k_j station of a Jackson network: records arrive at rate lambda_j, and one core serves mu_j
records/s. The offered load lambda_j / mu_j is the number of busy cores. (L. Wang et al., "Elasticutor: Rapid Elasticity
for Realtime Stateful Stream Processing", SIGMOD 2019, section 4.1, equation 1.)
"""

import heapq
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Literal

from scipy.special import gammaincc

from workbench.checks import SLACK, not_negative, not_negatives, positive, require, same_length, whole

_MOST_STEPS = 50_000  # of the recursion, about; 5 ms
_MOST_BUSY = 1e300  # cores, far from overflow

AllocationStatus = Literal["ok", "exhausted", "insufficient", "unreachable"]


@dataclass(frozen=True)
class CoreAllocation:
    """How many `cores` each executor needs, and the `latency` E[T] with these, seconds.

    They meet the target if the `status` is ``"ok"``. If it is ``"exhausted"``, the next core exceeds the supply. Else
    they are the least stable allocation: it exceeds the supply (``"insufficient"``), or no number of cores meets the
    target, which is below the service times alone (``"unreachable"``).
    """

    cores: tuple[int, ...]
    latency: float
    status: AllocationStatus


def erlang_c(servers: int, offered_load: float) -> float:
    """Return the probability that an arrival waits in an M/M/k queue of k `servers` (Erlang's C formula).

    It is 1.0 if ``offered_load``, lambda / mu, is at least k, when the queue grows forever. Computed from Erlang's B by
    its recursion, whose terms stay in [0, 1] and whose rounding errors shrink from step to step, so any number of
    servers is safe; for loads that would take many steps as a ratio of Poisson probabilities, P(N = k) / P(N <= k).
    """
    servers = whole("servers", servers, 1)
    load = not_negative("offered_load", offered_load)
    if load >= servers:
        return 1.0
    return _waiting(servers, load, _blocking(servers, load))


def jackson_latency(
    arrivals: Sequence[float], service_rates: Sequence[float], source_rate: float, cores: Sequence[int]
) -> float:
    """Return the mean seconds that a record of the input stream spends in all executors together (equation 1).

    They are inf if an executor with arrivals has no more cores than its offered load. Per executor `arrivals` are
    lambda_j, records/s, `service_rates` mu_j, records/s of one core, and `cores` k_j; `source_rate` is lambda_0.
    """
    arrivals, service_rates, loads, source_rate = _checked(arrivals, service_rates, source_rate)
    same_length("executor", len(arrivals), cores=cores)
    total = 0.0
    for arrival, service, load, given in zip(arrivals, service_rates, loads, cores, strict=True):
        k = whole("A number of cores", given, 0)
        if arrival == 0:
            continue
        if k < _least_stable(load):
            return math.inf
        total += arrival * _sojourn(k, load, service, erlang_c(k, load))
    return total / source_rate


def allocate_cores(
    arrivals: Sequence[float], service_rates: Sequence[float], source_rate: float, target_latency: float, cores: int
) -> CoreAllocation:
    """Return the fewest of `cores` that keep the mean latency at or under the target, seconds, or why none do.

    Every executor starts at floor(lambda_j / mu_j) + 1, the least stable number (printed as ``|lambda/mu|`` in the
    paper). Each further core goes where it lowers E[T] most. E[T_j] is convex in k_j, so the greedy choice is optimal.
    Ties go to the lowest index. For the rates see `jackson_latency`.
    """
    arrivals, service_rates, loads, source_rate = _checked(arrivals, service_rates, source_rate)
    target = positive("target_latency", target_latency)
    supply = whole("cores", cores, 0)
    allocated = [_least_stable(load) for load in loads]
    times = [_sojourn_times(load, service) for load, service in zip(loads, service_rates, strict=True)]
    now = [arrival * next(series) for arrival, series in zip(arrivals, times, strict=True)]  # lambda_j E[T_j]

    def given(status: AllocationStatus) -> CoreAllocation:
        return CoreAllocation(tuple(allocated), sum(now) / source_rate, status)

    if target < sum(loads) / source_rate * (1 - SLACK):  # E[T] falls towards the service times, never below
        return given("unreachable")
    if sum(allocated) > supply:
        return given("insufficient")
    if sum(now) / source_rate <= target * (1 + SLACK):
        return given("ok")
    then = [arrival * next(series) for arrival, series in zip(arrivals, times, strict=True)]  # with one core more
    gains = [(b - a, j) for j, (a, b) in enumerate(zip(now, then, strict=True))]  # negated, for the heap
    heapq.heapify(gains)
    for _ in range(supply - sum(allocated)):
        j = gains[0][1]
        allocated[j] += 1
        now[j], then[j] = then[j], arrivals[j] * next(times[j])
        heapq.heapreplace(gains, (then[j] - now[j], j))
        if sum(now) / source_rate <= target * (1 + SLACK):
            return given("ok")
    return given("exhausted")


def _checked(
    arrivals: Sequence[float], service_rates: Sequence[float], source_rate: float
) -> tuple[list[float], list[float], list[float], float]:
    """Return lambda_j, mu_j, the busy cores lambda_j / mu_j, and lambda_0."""
    require(len(arrivals) > 0, "There are no executors; give at least one arrival rate.")
    same_length("executor", len(arrivals), service_rates=service_rates)
    arriving = not_negatives("The arrival rate of executor {}", arrivals)
    served = [positive(f"The service rate of executor {j}", rate) for j, rate in enumerate(service_rates)]
    source = positive("source_rate", source_rate)
    loads = [arrival / service for arrival, service in zip(arriving, served, strict=True)]
    for j, load in enumerate(loads):
        require(
            load <= _MOST_BUSY,
            f"Executor {j} has an arrival rate of {arriving[j]!r} and a service rate of {served[j]!r}; their ratio, "
            f"the number of busy cores, must be at most {_MOST_BUSY:g}.",
        )
    return arriving, served, loads, source


def _least_stable(load: float) -> int:
    return math.floor(load + SLACK * max(1.0, load)) + 1


def _blocking(servers: int, load: float) -> float:
    """Return Erlang B: the share of arrivals that an M/M/k/k queue rejects."""
    if load > _MOST_STEPS:
        # P(N = k) as exp(-a ((1 + x) ln(1 + x) - x)) / sqrt(2 pi k) with k = a (1 + x), after Stirling: C. Loader,
        # "Fast and Accurate Computation of Binomial Probabilities", 2000; its next term is 1 / 12 k.
        k = float(servers)
        x = (k - load) / load
        exponent = load * ((1 + x) * math.log1p(x) - x) + 1 / (12 * k)
        return math.exp(-exponent) / math.sqrt(2 * math.pi * k) / float(gammaincc(k + 1, load))
    blocking = 1.0
    for k in range(1, servers + 1):
        blocking = load * blocking / (k + load * blocking)
        if blocking == 0:  # underflow: it only falls
            break
    return blocking


def _waiting(servers: int, load: float, blocking: float) -> float:
    """Return Erlang C from Erlang B: k b / (k - a (1 - b)), written without a difference of close numbers."""
    return servers * blocking / ((servers - load) + load * blocking)


def _sojourn(servers: int, load: float, service: float, waiting: float) -> float:
    """Return E[T_j] = C / (k mu - lambda) + 1 / mu."""
    return (waiting / (servers - load) + 1) / service


def _sojourn_times(load: float, service: float) -> Iterator[float]:
    """Yield E[T_j](k) for the least stable k, then for one more core each time."""
    first = _least_stable(load)
    blocking = _blocking(first, load)
    for k in count(first):
        yield _sojourn(k, load, service, _waiting(k, load, blocking))
        blocking = load * blocking / (k + 1 + load * blocking)
