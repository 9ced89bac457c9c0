"""The integer linear programme of ODRP, and what its four objectives are worth for a given plan."""

import math
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pulp

from workbench.errors import WorkbenchError
from workbench.placement.plan import Counts

_SCALE = 1000.0  # CBC prints its bound with three decimals
_ROUNDED = 1e-6
_VARIABLES = 100_000  # of a programme; half a million take gigabytes and half a minute before CBC begins


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

    @property
    def variables(self) -> int:
        """Most variables of the programme: where how many replicas are, and for each edge how many meet."""
        here = [sum(min(p, self.slots) + 1 for p in times) for times in self.execution]
        return self.workers * (sum(here) + sum(here[i] for i, _ in self.edges))

    def values(self, counts: Counts) -> Objectives:
        """Work out what a plan is worth: `counts`, shape (operators, workers)."""
        share = counts / counts.sum(axis=1, keepdims=True)
        remote = {(i, j): max(0.0, 1.0 - float(share[i] @ share[j])) for i, j in self.edges}
        seconds = [times[int(row.sum())] for times, row in zip(self.execution, counts, strict=True)]
        return (
            self._longest_path(seconds, {edge: self.link_delay_s * part for edge, part in remote.items()}),
            float(counts.sum()),
            math.fsum(self.sent[i] * part for (i, _), part in remote.items()),
            self.outage * int((counts > 0).sum()),
        )

    @cached_property
    def best(self) -> Objectives:
        """The lowest each objective could be, the others apart."""
        least = [min(times.values()) for times in self.execution]
        return (
            self._longest_path(least, dict.fromkeys(self.edges, 0.0)),
            float(sum(min(times) for times in self.execution)),
            0.0,
            self.outage * len(self.execution),
        )

    @cached_property
    def worst(self) -> Objectives:
        """The highest each objective could be, the others apart."""
        most = [max(times.values()) for times in self.execution]
        return (
            self._longest_path(most, dict.fromkeys(self.edges, self.link_delay_s)),
            float(min(sum(max(times) for times in self.execution), self.workers * self.slots)),
            math.fsum(self.sent[i] for i, _ in self.edges),
            self.outage * sum(min(max(times), self.workers) for times in self.execution),
        )

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
        """Give the plan of the fewest replicas, on one worker after the other."""
        sizes = [min(times) for times in self.execution]
        owners = np.repeat(np.arange(self.workers), self.slots)[: sum(sizes)]
        counts = np.zeros((len(sizes), self.workers), dtype=np.int64)
        np.add.at(counts, (np.repeat(np.arange(len(sizes)), sizes), owners), 1)
        return counts

    def _longest_path(self, seconds: Sequence[float], delays: Mapping[tuple[int, int], float]) -> float:
        finish = list(seconds)
        for j, own in enumerate(seconds):
            finish[j] = own + max((finish[i] + delay for (i, end), delay in delays.items() if end == j), default=0.0)
        return max(finish)


def solve(query: Replication, weights: Objectives, timeout_s: float | None) -> tuple[Counts, float]:
    """Find the plan of the least loss, and a loss that no plan undercuts.

    Variables: `size[i][p]`, operator i has p replicas; `here[i][w][p, k]`, and k of them are on worker w. Together they
    choose the multiset of workers of the paper's x[i, U], without naming each. The share of local pairs of an edge is
    the sum over the workers of (share of i there) x (share of j there); the first share takes few values f, each with
    an indicator, so the product becomes f x v with v at most the indicator and at most the second share.
    """
    if query.variables > _VARIABLES:
        raise WorkbenchError(
            f"ODRP's programme would have up to {query.variables:,} variables; at most {_VARIABLES:,} are solved. Use "
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
    """State the loss; objectives that do not count, or are the same for all plans, are left out."""
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
    """Solve; give the lower bound of the loss, or -inf where none came in time."""
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
