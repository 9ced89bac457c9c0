"""Algorithm 1 of Elasticutor, repaired: one core at a time, the cheapest move first.

Faults of the printed algorithm, and what is done instead: the loop runs by intensity descending (printed: "non-
descending"); over- and under-provisioned executors are found anew after every move; free cores are used; a core is
taken only where its executor has one; remote cores of data-intensive executors are released first, or constraint (c)
stays violated; an executor that had to give up a core it needs is served again later.
"""

import heapq
import math

import numpy as np
from numpy.typing import NDArray

from workbench.checks import SLACK
from workbench.scaling.elastic._core_problem import CoreProblem

_Donor = tuple[float, int]  # cost of taking a core, and from whom


def greedy(problem: CoreProblem, threshold: float) -> NDArray[np.int64] | None:
    """Cores [node][executor], or None when an executor finds no core (FAIL): phi is too low.

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
        """X_j < k_j."""
        return self.totals[j] < self.problem.required[j]

    def local_core(self, j: int) -> tuple[int, int | None] | None:
        """Where a data-intensive executor gets its next core: its local node, from whom (None: a free core)."""
        node = self.problem.local_node[j]
        if self.free[node]:
            return node, None
        donor = self.donors[node] or self._victim(node)
        return None if donor is None else (node, donor[1])

    def cheapest_core(self, j: int) -> tuple[int, int | None] | None:
        """Least C-_iq + C+_ij over free cores and cores to spare; ties by node, free cores first, then executor."""
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
        """One core of `node` passes from `donor` (None: a free one) to `taker`, which lacks cores."""
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
        for other in affected:  # its cores cost something else now, on every node
            self.donors[other] = self._spare_core(other)

    def matrix(self) -> NDArray[np.int64]:
        """X, shape (nodes, executors)."""
        matrix = np.zeros((len(self.on_node), len(self.totals)), dtype=np.int64)
        entries = [(node, j, cores) for node, held in enumerate(self.on_node) for j, cores in held.items()]
        if entries:
            nodes, executors, cores = np.array(entries).T
            matrix[nodes, executors] = cores
        return matrix

    def _spare_core(self, node: int) -> _Donor | None:
        """Cheapest core on `node` of an over-provisioned executor."""
        held, required, totals = self.on_node[node], self.problem.required, self.totals
        return min(((self._release_cost(node, q), q) for q in held if totals[q] > required[q]), default=None)

    def _victim(self, node: int) -> _Donor | None:
        """Cheapest core on `node` that another executor needs, but not its last one."""
        held = self.on_node[node]
        others = (q for q in held if not self.intensive[q] and self.totals[q] > 1)
        return min(((self._release_cost(node, q), q) for q in others), default=None)

    def _release_cost(self, node: int, q: int) -> float:
        """C-_iq = s_q (X_q - x_iq) / (X_q (X_q - 1)); the last core takes all state along."""
        state, total = self.problem.state_bytes[q], self.totals[q]
        return state * (total - self.on_node[node][q]) / (total * (total - 1)) if total > 1 else state
