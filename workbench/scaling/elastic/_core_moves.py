"""Algorithm 1 of Elasticutor with corrections: one core at a time, the cheapest move first.

Corrections of the printed algorithm: the loop runs by descending intensity (printed: "non-descending"); over- and
under-provisioned executors are determined again after every move; free cores are used; a core is taken only where its
executor has one; remote cores of data-intensive executors are released first, because constraint (c) stays violated
otherwise; an executor that had to give up a core it needs is served again later.
"""

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.arrays import Ints
from workbench.checks import SLACK

_Donor = tuple[float, int]  # cost of taking a core, and from whom


@dataclass(frozen=True)
class CoreProblem:
    """Current cores x~ [node][executor]; k_j, c_i, s_j, I(j) and the data intensity per core of each executor."""

    current: Ints
    required: Sequence[int]
    node_cores: Sequence[int]
    state_bytes: Sequence[float]
    local_node: Sequence[int]
    data_intensity: Sequence[float]

    def intensive(self, threshold: float) -> list[bool]:
        """Return E(phi): which executors take local cores only."""
        return [intensity > threshold for intensity in self.data_intensity]


def greedy(problem: CoreProblem, threshold: float) -> Ints | None:
    """Return cores [node][executor], or None if an executor finds no core (FAIL): phi is too low.

    Takes O(cores moved x nodes) steps: the cheapest donor of a node is kept until one of its executors changes.
    """
    work = _Work(problem, threshold)
    order = [-intensity for intensity in problem.data_intensity]  # the data-intensive ones come first
    waiting = [(order[j], j) for j in range(len(problem.required)) if work.lacks(j)]
    heapq.heapify(waiting)
    while waiting:
        j = waiting[0][1]
        if not work.lacks(j):
            heapq.heappop(waiting)
            continue
        move = work.local_core(j) if work.intensive[j] else work.cheapest_core(j)
        if move is None:
            return None
        node, donor = move
        work.move(node, donor, j)
        if donor is not None and work.lacks(donor):
            heapq.heappush(waiting, (order[donor], donor))
    return work.matrix()


class _Work:
    """The assignment X while it changes."""

    def __init__(self, problem: CoreProblem, threshold: float) -> None:
        self.problem = problem
        self.intensive = problem.intensive(threshold)
        self.on_node: list[dict[int, int]] = [{} for _ in problem.node_cores]
        self.totals = [0] * len(problem.required)
        self.free = list(problem.node_cores)
        held = np.nonzero(problem.current)
        for node, j, cores in zip(held[0].tolist(), held[1].tolist(), problem.current[held].tolist(), strict=True):
            if self.intensive[j] and problem.local_node[j] != node:
                continue  # locality first: remote cores of data-intensive executors are released
            self.on_node[node][j] = cores
            self.totals[j] += cores
            self.free[node] -= cores
        self.donors: list[_Donor | None] = [self._spare_core(node) for node in range(len(self.on_node))]

    def lacks(self, j: int) -> bool:
        """Return whether X_j < k_j."""
        return self.totals[j] < self.problem.required[j]

    def local_core(self, j: int) -> tuple[int, int | None] | None:
        """Return the local node of a data-intensive executor and the donor of its next core (None: a free core)."""
        node = self.problem.local_node[j]
        if self.free[node]:
            return node, None
        donor = self.donors[node] or self._victim(node)
        return None if donor is None else (node, donor[1])

    def cheapest_core(self, j: int) -> tuple[int, int | None] | None:
        """Return the least C-_iq + C+_ij over free and spare cores; ties by node, free cores first, then executor."""
        total = self.totals[j]
        # C+_ij = s_j (X_j - x_ij) / (X_j (X_j + 1)); no state yet: nothing moves
        state = self.problem.state_bytes[j] / (total * (total + 1)) if total else 0.0
        best: tuple[int, int | None] | None = None
        limit = math.inf
        for node, (held, free, donor) in enumerate(zip(self.on_node, self.free, self.donors, strict=True)):
            if free:
                cost, giver = state * (total - held.get(j, 0)), None
            elif donor is not None:
                cost, giver = donor[0] + state * (total - held.get(j, 0)), donor[1]
            else:
                continue
            if cost < limit:
                best, limit = (node, giver), cost - SLACK * max(1.0, cost)
        return best

    def move(self, node: int, donor: int | None, taker: int) -> None:
        """Move one core of `node` from `donor` (None: a free core) to `taker`, which lacks cores."""
        held = self.on_node[node]
        self.totals[taker] += 1
        held[taker] = held.get(taker, 0) + 1
        if donor is None:
            self.free[node] -= 1
            return
        self.totals[donor] -= 1
        affected = [other for other, there in enumerate(self.on_node) if donor in there]
        held[donor] -= 1
        if not held[donor]:
            del held[donor]
        for other in affected:  # the cost of its cores has changed on every node
            self.donors[other] = self._spare_core(other)

    def matrix(self) -> Ints:
        """Return X, shape (nodes, executors)."""
        matrix = np.zeros((len(self.on_node), len(self.totals)), dtype=np.int64)
        entries = [(node, j, cores) for node, held in enumerate(self.on_node) for j, cores in held.items()]
        if entries:
            nodes, executors, cores = np.array(entries).T
            matrix[nodes, executors] = cores
        return matrix

    def _spare_core(self, node: int) -> _Donor | None:
        """Return the cheapest core on `node` of an over-provisioned executor."""
        held, required, totals = self.on_node[node], self.problem.required, self.totals
        return min(((self._release_cost(node, q), q) for q in held if totals[q] > required[q]), default=None)

    def _victim(self, node: int) -> _Donor | None:
        """Return the cheapest core on `node` that another executor needs, but not its last core."""
        held = self.on_node[node]
        others = (q for q in held if not self.intensive[q] and self.totals[q] > 1)
        return min(((self._release_cost(node, q), q) for q in others), default=None)

    def _release_cost(self, node: int, q: int) -> float:
        """Return C-_iq = s_q (X_q - x_iq) / (X_q (X_q - 1)); all state leaves with the last core."""
        state, total = self.problem.state_bytes[q], self.totals[q]
        return state * (total - self.on_node[node][q]) / (total * (total - 1)) if total > 1 else state
