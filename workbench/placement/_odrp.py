"""ODRP: replication and placement at once, by an integer linear programme (Cardellini et al.).

CAPSys compares with it in section 6.3; only that account is at hand, so this is a reconstruction. The score weighs
response time, cost (slots), traffic and availability, each between its best and its worst value. Nothing demands that
the rate be sustained: an operator with too few replicas only counts as slow, which is why ODRP under-provisions when
slots are worth something.

Choices of ours, where the account is silent: execution time is that of a queue, service / (1 - utilisation), at most
`congestion` times the service time, and when overloaded that times the utilisation, for otherwise one replica would do
as well as nearly enough; a link's delay and traffic count for the share of task pairs on different workers; the bytes
that an operator sends are in equal copies for its consumers; an operator is up while all workers that run it are.
The programme counts replicas per worker instead of naming every multiset of workers as the published one does: the
same plans and the same optimum with fewer variables, so decision times are lower than the published programme's.
"""

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np

from workbench import units
from workbench.checks import whole
from workbench.dataflow import Dataflow, OperatorProfile
from workbench.errors import WorkbenchError
from workbench.placement._effort import deadline
from workbench.placement._odrp_model import Replication, solve
from workbench.placement.plan import Counts
from workbench.placement.problem import PlacementProblem, arriving_rates, source_rates

Setting = Literal["default", "weighted", "latency"]


@dataclass(frozen=True)
class OdrpWeights:
    """What a better value is worth, each between the worst and the best possible."""

    response: float = 0.25
    cost: float = 0.25
    traffic: float = 0.25
    availability: float = 0.25

    def __post_init__(self) -> None:
        values = astuple(self)
        if not all(math.isfinite(value) and value >= 0 for value in values) or sum(values) == 0:
            raise WorkbenchError(f"The weights of ODRP are {values}; give finite numbers from 0 on, not all 0.")


ODRP_SETTINGS: Mapping[str, OdrpWeights] = MappingProxyType(
    {
        "default": OdrpWeights(),
        # The paper's hand-tuned weights are unpublished; these stress response time, then slots, as it says.
        "weighted": OdrpWeights(response=0.8, cost=0.15, traffic=0.05, availability=0.0),
        "latency": OdrpWeights(response=1.0, cost=0.0, traffic=0.0, availability=0.0),
    }
)


@dataclass(frozen=True)
class OdrpPlan:
    """What ODRP decides."""

    problem: PlacementProblem  # of the parallelism chosen, for costs and rates
    counts: Counts  # shape (operators, workers), operators as in `problem`
    response_s: float  # longest path of execution times and link delays
    traffic: float  # bytes/s between workers
    availability: float  # probability that all operators are up
    score: float  # the objective reached
    bound: float  # what no plan exceeds
    seconds: float  # decision time, building the programme included

    @property
    def gap(self) -> float:
        """How far the score may be from the best; 0 if proven optimal."""
        return self.bound - self.score

    @property
    def slots(self) -> int:
        """Slots used: the cost."""
        return self.problem.tasks


def odrp(
    dataflow: Dataflow,
    profiles: Mapping[str, OperatorProfile],
    rate: float | Mapping[str, float],
    workers: int,
    slots: int,
    *,
    weights: Setting | OdrpWeights = "default",
    most: int | Mapping[str, int] | None = None,
    fixed: Mapping[str, int] | None = None,
    link_delay_s: float = 0.001,
    congestion: float = 10.0,
    availability: float = 1.0,
    speeds: Sequence[float] | None = None,
    timeout_s: float | None = None,
) -> OdrpPlan:
    """Choose parallelism and placement by ODRP.

    Parameters
    ----------
    dataflow, profiles, rate
        The query, its unit costs, and the records/s of its sources; the true rate of one task is 1 / cpu_s. A source
        without profile runs elsewhere and is not placed.
    workers, slots
        The cluster: workers, which ODRP takes for equal, and slots on each; equal links.
    weights
        A setting of CAPSys 6.3, or weights.
    most, fixed
        Highest number of replicas, of all or by operator (`slots` if left out), and operators of a given number.
    link_delay_s
        Delay between two workers.
    congestion
        Longest execution time of a replica that is not overloaded, in service times.
    availability
        Probability that a worker is up.
    speeds
        Of every worker, all 1 if left out: those of the problem returned, for costs and rates. ODRP knows no
        capacities, so they do not change what it decides; but its fullest worker is the fastest.
    timeout_s
        Time limit of the solver; then the best plan found is returned with the gap. Without it the answer is always
        the same, but may take very long.

    Raises
    ------
    WorkbenchError
        For unknown operators, too few slots, or numbers out of range.
    """
    begin = time.monotonic()
    deadline(timeout_s)
    if not isinstance(weights, OdrpWeights):
        if weights not in ODRP_SETTINGS:
            raise WorkbenchError(f"The weights are {weights!r}; use one of {', '.join(ODRP_SETTINGS)}, or OdrpWeights.")
        weights = ODRP_SETTINGS[weights]
    for thing, value, least in (("link_delay_s", link_delay_s, 0.0), ("congestion", congestion, 1.0)):
        if not (math.isfinite(value) and value >= least):
            raise WorkbenchError(f"{thing} is {value!r}; give a finite number from {least:g} on.")
    if not 0 < availability <= 1:
        raise WorkbenchError(f"availability is {availability!r}; give a probability above 0.")
    arriving = arriving_rates(dataflow, profiles, source_rates(dataflow, rate))
    names = [name for name in dataflow.topological_order() if name in profiles or name not in dataflow.sources]
    for name in names:
        if name not in profiles:
            raise WorkbenchError(
                f"Operator {name!r} of dataflow {dataflow.name!r} has no profile; those given are "
                f"{', '.join(profiles) or 'none'}."
            )
    sizes = _sizes(names, workers, slots, most, fixed or {})
    links = dict.fromkeys((edge.upstream, edge.downstream) for edge in dataflow.edges)
    consumers = Counter(upstream for upstream, _ in links)
    query = Replication(
        tuple((names.index(upstream), names.index(downstream)) for upstream, downstream in links if upstream in names),
        tuple(_execution(profiles[name].cpu_s, arriving[name], sizes[name], congestion) for name in names),
        tuple(arriving[name] * profiles[name].output_bytes / max(1, consumers[name]) for name in names),
        workers,
        slots,
        link_delay_s,
        -math.log(availability),
    )
    aims = astuple(weights)
    counts, least_loss = solve(query, aims, timeout_s)
    if (counts.sum(axis=1) == 0).any():  # nothing was found in time
        counts = query.smallest()
    response, _, traffic, outage = values = query.values(counts)
    total = math.fsum(aims)
    score = total - query.loss(values, aims)
    problem = PlacementProblem.from_dataflow(
        dataflow,
        profiles,
        rate,
        workers,
        slots,
        parallelism={name: int(row.sum()) for name, row in zip(names, counts, strict=True)},
        speeds=speeds,
    )
    if len(problem.classes) > 1:
        fullest = np.argsort(-counts.sum(axis=0), kind="stable")
        counts[:, [worker for members in problem.classes for worker in members]] = counts[:, fullest]
    return OdrpPlan(
        problem,
        counts[[names.index(name) for name in problem.operators]],
        response,
        traffic,
        math.exp(-outage),
        score,
        min(total, max(score, total - least_loss)),
        time.monotonic() - begin,
    )


def _sizes(
    names: Sequence[str], workers: int, slots: int, most: int | Mapping[str, int] | None, fixed: Mapping[str, int]
) -> dict[str, range]:
    """Give the allowed numbers of replicas of every operator."""
    for thing, value in (("workers", workers), ("slots", slots)):
        whole(thing, value)
    for table in (fixed, most if isinstance(most, Mapping) else {}):
        for name in table:
            if name not in names:
                raise WorkbenchError(
                    f"Replicas are given for the unknown operator {name!r}; there are {', '.join(names)}."
                )
    sizes = {}
    for name in names:
        highest = most.get(name, slots) if isinstance(most, Mapping) else slots if most is None else most
        if name in fixed:
            exactly = whole(f"The replicas of {name!r}", fixed[name])
            sizes[name] = range(exactly, exactly + 1)
        else:
            sizes[name] = range(1, min(whole(f"The replicas of {name!r}", highest), workers * slots) + 1)
    needed = sum(min(allowed) for allowed in sizes.values())
    if needed > workers * slots:
        raise WorkbenchError(
            f"The operators need {units.some(needed, 'slot')} at least, but {units.some(workers, 'worker')} of "
            f"{units.some(slots, 'slot')} cannot hold more than {workers * slots:,}; add workers or slots, "
            "or fix fewer replicas."
        )
    return sizes


def _execution(service_s: float, arriving: float, sizes: Sequence[int], congestion: float) -> dict[int, float]:
    """Seconds a record stays with an operator of p replicas: 1 / (mu - lambda / p), limited."""
    seconds = {}
    for size in sizes:
        utilisation = arriving * service_s / size
        slowed = min(1.0 / (1.0 - utilisation), congestion) if utilisation < 1 else congestion * utilisation
        seconds[size] = service_s * slowed
    return seconds
