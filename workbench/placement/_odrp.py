"""ODRP: replication and placement at once, by an integer linear programme (Cardellini et al.).

Only CAPSys's account of it (section 6.3) is at hand, so this is a reconstruction. The score weighs response time, cost
(slots), traffic and availability, each between its best and its worst value. Nothing demands that the rate be
sustained: too few replicas only count as slow, so ODRP under-provisions when slots are worth something.

Choices of ours, where the account is silent: execution time is that of a queue, service / (1 - utilisation), at most
`congestion` times the service time, and when overloaded that times the utilisation, for otherwise one replica would do
as well as nearly enough; a link's delay and traffic count for the share of task pairs on different workers; the bytes
that an operator sends are in equal copies for its consumers; an operator is up while all workers that run it are.
The programme counts replicas per worker instead of naming every multiset of workers as the published one does: the
same plans and the same optimum with fewer variables, so decision times are lower than the published programme's.
"""

import math
import re
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from itertools import pairwise, product
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import numpy as np
import pulp

from workbench import units
from workbench.checks import not_negative, whole, within
from workbench.dataflow import Dataflow, OperatorProfile
from workbench.errors import WorkbenchError
from workbench.placement._effort import deadline
from workbench.placement.problem import Counts, PlacementProblem
from workbench.placement.unit_costs import arriving_rates, require_each

_SCALE = 1000.0  # CBC prints its bound with three decimals
_ROUNDED = 1e-6
_VARIABLES = 100_000  # of a programme; half a million take gigabytes, and half a minute before CBC begins


_Places = list[dict[tuple[int, int], pulp.LpVariable]]  # by worker: p replicas in all, k of them there
Objectives = tuple[float, ...]
"""Response time (s), cost (slots), traffic (bytes/s) and -log of the availability of a plan; or their weights."""


@dataclass(frozen=True)
class Replication:
    """What ODRP decides on: operators in topological order, equal workers."""

    edges: tuple[tuple[int, int], ...]  # pairs of positions
    execution: tuple[Mapping[int, float], ...]  # by operator: seconds of a record, by the allowed numbers of replicas
    sent: tuple[float, ...]  # by operator: bytes/s to each consumer
    workers: int
    slots: int
    link_delay_s: float  # between two workers
    outage: float  # -log of the probability that a worker is up

    def values(self, counts: Counts) -> Objectives:
        """Return the objectives of a plan: `counts`, shape (operators, workers)."""
        share = counts / counts.sum(axis=1, keepdims=True)
        remote = {(i, j): max(0.0, 1.0 - float(share[i] @ share[j])) for i, j in self.edges}
        seconds = [times[int(row.sum())] for times, row in zip(self.execution, counts, strict=True)]
        return self._objectives(seconds, remote, int(counts.sum()), int((counts > 0).sum()))

    @cached_property
    def best(self) -> Objectives:
        """The lowest possible value of each objective, whatever the others."""
        fastest = [min(times.values()) for times in self.execution]
        fewest = sum(min(times) for times in self.execution)
        return self._objectives(fastest, dict.fromkeys(self.edges, 0.0), fewest, len(self.execution))

    @cached_property
    def worst(self) -> Objectives:
        """The highest possible value of each objective, whatever the others."""
        slowest = [max(times.values()) for times in self.execution]
        most = [max(times) for times in self.execution]
        hosts = sum(min(replicas, self.workers) for replicas in most)
        together = min(sum(most), self.workers * self.slots)
        return self._objectives(slowest, dict.fromkeys(self.edges, 1.0), together, hosts)

    def _objectives(
        self, seconds: Sequence[float], remote: Mapping[tuple[int, int], float], replicas: int, hosts: int
    ) -> Objectives:
        """Return the objectives of execution times, the remote share of each edge, and replicas; `hosts` run them."""
        finish = list(seconds)
        for j, own in enumerate(seconds):
            into = (finish[i] + self.link_delay_s * part for (i, end), part in remote.items() if end == j)
            finish[j] = own + max(into, default=0.0)
        traffic = math.fsum(self.sent[i] * part for (i, _), part in remote.items())
        return max(finish), float(replicas), traffic, self.outage * hosts

    @cached_property
    def spans(self) -> Objectives:
        """Worst less best."""
        return tuple(worst - best for worst, best in zip(self.worst, self.best, strict=True))

    def loss(self, values: Objectives, weights: Objectives) -> float:
        """Weighted distances from the best values, each as a share of the span; 0 where all plans are alike."""
        return math.fsum(
            weight * (value - best) / span
            for weight, value, best, span in zip(weights, values, self.best, self.spans, strict=True)
            if span > 0
        )

    def smallest(self) -> Counts:
        """Return the plan of the fewest replicas, on one worker after the other."""
        sizes = [min(times) for times in self.execution]
        owners = np.repeat(np.arange(self.workers), self.slots)[: sum(sizes)]
        counts = np.zeros((len(sizes), self.workers), dtype=np.int64)
        np.add.at(counts, (np.repeat(np.arange(len(sizes)), sizes), owners), 1)
        return counts


def solve(query: Replication, weights: Objectives, timeout_s: float | None) -> tuple[Counts, float]:
    """Find the plan of the least loss, and a loss that no plan undercuts.

    Variables: `size[i][p]`, operator i has p replicas; `here[i][w][p, k]`, and k of them are on worker w. Together they
    choose the multiset of workers of the paper's x[i, U], without naming each. The share of local pairs of an edge is
    the sum over the workers of (share of i there) x (share of j there); the first share takes few values f, each with
    an indicator, so the product becomes f x v with v at most the indicator and at most the second share.
    """
    placed = [sum(min(p, query.slots) + 1 for p in times) for times in query.execution]
    variables = query.workers * (sum(placed) + sum(placed[i] for i, _ in query.edges))  # `here`, and pairs that meet
    if variables > _VARIABLES:
        raise WorkbenchError(
            f"ODRP's programme would have up to {variables:,} variables; at most {_VARIABLES:,} are solved. Use "
            "fewer workers, slots or edges, or another method."
        )
    programme = pulp.LpProblem("odrp", pulp.LpMinimize)
    size = [
        {p: programme.add_variable(f"size_{i}_{p}", cat=pulp.LpBinary) for p in times}
        for i, times in enumerate(query.execution)
    ]
    here: list[_Places] = [[{} for _ in range(query.workers)] for _ in size]
    for i, sizes in enumerate(size):
        for p, w in product(sizes, range(query.workers)):
            for k in range(min(p, query.slots) + 1):
                here[i][w][p, k] = programme.add_variable(f"here_{i}_{p}_{w}_{k}", cat=pulp.LpBinary)
    loss = programme.add_variable("loss", lowBound=0)  # a variable: solvers leave the constant of an objective out
    programme += _SCALE * loss
    programme += loss >= _loss(programme, query, weights, size, here)
    for sizes, places in zip(size, here, strict=True):
        programme += pulp.lpSum(sizes.values()) == 1
        for p, chosen in sizes.items():
            numbers = range(min(p, query.slots) + 1)
            programme += pulp.lpSum(k * there[p, k] for there in places for k in numbers) == p * chosen
            for there in places:
                programme += pulp.lpSum(there[p, k] for k in numbers) == chosen
    used = [pulp.lpSum(k * x for places in here for (_, k), x in places[w].items()) for w in range(query.workers)]
    for slots in used:
        programme += slots <= query.slots
    for fuller, emptier in pairwise(used):  # workers are equal: take them in this order
        programme += fuller >= emptier
    bound = _run(programme, timeout_s)
    counts = [[sum(k * round(x.value() or 0.0) for (_, k), x in there.items()) for there in places] for places in here]
    return np.array(counts, dtype=np.int64), bound


def _loss(
    programme: pulp.LpProblem,
    query: Replication,
    weights: Objectives,
    size: list[dict[int, pulp.LpVariable]],
    here: list[_Places],
) -> pulp.LpAffineExpression:
    """Return the loss; leave out objectives that do not count, or are the same for all plans."""
    longest_span, slots_span, bytes_span, outage_span = query.spans
    timed, priced, sent, reliable = (w > 0 and span > 0 for w, span in zip(weights, query.spans, strict=True))
    terms = []
    remote = {edge: pulp.LpAffineExpression(constant=1.0) for edge in query.edges}
    if sent or (timed and query.link_delay_s > 0):
        remote = {(i, j): 1 - _local(programme, f"{i}_{j}", here[i], here[j]) for i, j in query.edges}
    if timed:  # in units of the span
        finish = [programme.add_variable(f"finish_{i}", lowBound=0) for i in range(len(size))]
        longest = programme.add_variable("response", lowBound=0)
        for j, times in enumerate(query.execution):
            own = pulp.lpSum(times[p] / longest_span * x for p, x in size[j].items())
            programme += finish[j] >= own
            programme += longest >= finish[j]
            for i, end in query.edges:
                if end == j:
                    programme += finish[j] >= finish[i] + query.link_delay_s / longest_span * remote[i, j] + own
        terms.append(weights[0] * (longest - query.best[0] / longest_span))
    if priced:
        slots = pulp.lpSum(p * x for sizes in size for p, x in sizes.items())
        terms.append(weights[1] / slots_span * (slots - query.best[1]))
    if sent:
        traffic = pulp.lpSum(query.sent[i] * part for (i, _), part in remote.items())
        terms.append(weights[2] / bytes_span * traffic)
    if reliable:
        hosts = pulp.lpSum(x for places in here for there in places for (_, k), x in there.items() if k > 0)
        terms.append(weights[3] / outage_span * (query.outage * hosts - query.best[3]))
    return pulp.lpSum(terms)


def _local(programme: pulp.LpProblem, name: str, upstream: _Places, downstream: _Places) -> pulp.LpAffineExpression:
    """Share of the pairs of tasks of two operators that share a worker; more of it is never worse."""
    local = []
    for w, (here, there) in enumerate(zip(upstream, downstream, strict=True)):
        by_share: dict[float, list[pulp.LpVariable]] = {}
        for (p, k), x in here.items():
            if k > 0:
                by_share.setdefault(k / p, []).append(x)
        products = []
        for number, (share, indicators) in enumerate(sorted(by_share.items())):
            both = programme.add_variable(f"local_{name}_{w}_{number}", lowBound=0)
            programme += both <= pulp.lpSum(indicators)
            products.append(both)
            local.append(share * both)
        programme += pulp.lpSum(products) <= pulp.lpSum(k / p * x for (p, k), x in there.items())
    return pulp.lpSum(local)


def _run(programme: pulp.LpProblem, timeout_s: float | None) -> float:
    """Solve; return the lower bound of the loss, or -inf if none came in time."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "cbc.log"
        solver = pulp.COIN_CMD(
            path=pulp.PULP_CBC_CMD.pulp_cbc_path, msg=False, threads=1, timeLimit=timeout_s, logPath=str(log)
        )
        try:
            programme.solve(solver)
        except pulp.PulpSolverError as error:
            raise WorkbenchError(
                f"CBC could not be run on ODRP's programme ({error}); check that this machine may execute it."
            ) from error
        said = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    if programme.sol_status == pulp.LpSolutionOptimal:
        return float(pulp.value(programme.objective)) / _SCALE
    bound = re.search(r"^Lower bound:\s+(\S+)", said, re.MULTILINE)
    return float(bound.group(1)) / _SCALE - _ROUNDED if bound else -math.inf


Setting = Literal["default", "weighted", "latency"]


@dataclass(frozen=True)
class OdrpWeights:
    """Weights of an improvement of each objective, from the worst to the best possible value."""

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
    """The decision of ODRP."""

    problem: PlacementProblem  # of the parallelism chosen, for costs and rates
    counts: Counts  # shape (operators, workers), operators as in `problem`
    response_s: float  # longest path of execution times and link delays
    traffic: float  # bytes/s between workers
    availability: float  # probability that all operators are up
    score: float  # the objective reached
    bound: float  # upper bound of the score of any plan
    seconds: float  # decision time, including the building of the programme

    @property
    def gap(self) -> float:
        """Distance of the score from the best, at most; 0 if proven optimal."""
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

    Raises `WorkbenchError` for unknown operators, too few slots, or numbers out of range.

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
    link_delay_s, congestion, availability
        Delay between two workers; longest execution time of a replica that is not overloaded, in service times;
        probability that a worker is up.
    speeds
        Of every worker, all 1 if left out, for the costs of the problem returned: ODRP knows none, but its fullest
        worker is the fastest.
    timeout_s
        Time limit of the solver; then the best plan found is returned with the gap. Without it the answer is always
        the same, but may take very long.
    """
    begin = time.monotonic()
    deadline(timeout_s)
    if not isinstance(weights, OdrpWeights):
        if weights not in ODRP_SETTINGS:
            raise WorkbenchError(f"The weights are {weights!r}; use one of {', '.join(ODRP_SETTINGS)}, or OdrpWeights.")
        weights = ODRP_SETTINGS[weights]
    not_negative("link_delay_s", link_delay_s, "seconds")
    within("congestion", congestion, 1, math.inf, "service times", ends="[)")
    within("availability", availability, 0, 1, "a probability", ends="(]")
    arriving = arriving_rates(dataflow, profiles, rate)
    names = [name for name in dataflow.topological_order() if name in profiles or name not in dataflow.sources]
    require_each("profile", profiles, names, dataflow)
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
    tasks = {name: int(row.sum()) for name, row in zip(names, counts, strict=True)}
    problem = PlacementProblem.from_dataflow(dataflow, profiles, rate, workers, slots, parallelism=tasks, speeds=speeds)
    if len(problem.classes) > 1:
        fullest = np.argsort(-counts.sum(axis=0), kind="stable")
        counts[:, problem.fastest_first] = counts[:, fullest]
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
    """Return the allowed numbers of replicas of every operator."""
    for thing, value in (("workers", workers), ("slots", slots)):
        whole(thing, value)
    for table in (fixed, most if isinstance(most, Mapping) else {}):
        for name in table:
            if name not in names:
                raise WorkbenchError(
                    f"Replicas are given for the unknown operator {name!r}; there are {', '.join(names)}."
                )
    if not isinstance(most, Mapping):
        most = dict.fromkeys(names, slots if most is None else most)
    sizes = {}
    for name in names:
        highest = whole(f"The replicas of {name!r}", fixed.get(name, most.get(name, slots)))
        least = highest if name in fixed else 1
        sizes[name] = range(least, max(least, min(highest, workers * slots)) + 1)
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
    used = {size: arriving * service_s / size for size in sizes}
    return {
        size: service_s * (min(1.0 / (1.0 - share), congestion) if share < 1 else congestion * share)
        for size, share in used.items()
    }
