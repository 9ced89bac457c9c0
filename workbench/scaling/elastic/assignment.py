"""Which core serves which executor: least migrated state, data-intensive executors at home (Elasticutor 4.2).

Each executor gets a given number of cores, so that little state leaves its node. An executor is data-intensive if each
of its cores moves more than phi bytes/s; it takes cores of its local node only. If no assignment allows that, phi
doubles.

In the integer programme (section 4.2) the share x_ij / X_j is not linear. It becomes linear by choosing the total: z_jK
= 1 if executor j has K cores in all, and x_ijK is their number on node i. An executor has at most its requirement and
all spare cores, so few totals are possible. One version of HiGHS always returns the same result.

Corrections of the printed Algorithm 1, which moves one core at a time, the cheapest move first: the loop runs by
descending intensity (printed: "non-descending"); over- and under-provisioned executors are determined again after every
move; free cores are used; a core is taken only where its executor has one; remote cores of data-intensive executors are
released first, because constraint (c) stays violated otherwise; an executor that gave up a core is served again.
"""

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from workbench.arrays import Ints
from workbench.checks import SLACK, not_negatives, one_of, positive, require, same_length, whole, wholes
from workbench.errors import WorkbenchError

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
        if (donor := self.donors[node]) is None:  # a core that another executor needs, but not its last core
            others = (q for q in self.on_node[node] if not self.intensive[q] and self.totals[q] > 1)
            donor = min(((self._release_cost(node, q), q) for q in others), default=None)
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
        for node, held in enumerate(self.on_node):
            matrix[node, list(held)] = list(held.values())
        return matrix

    def _spare_core(self, node: int) -> _Donor | None:
        """Return the cheapest core on `node` of an over-provisioned executor."""
        held, required, totals = self.on_node[node], self.problem.required, self.totals
        return min(((self._release_cost(node, q), q) for q in held if totals[q] > required[q]), default=None)

    def _release_cost(self, node: int, q: int) -> float:
        """Return C-_iq = s_q (X_q - x_iq) / (X_q (X_q - 1)); all state leaves with the last core."""
        state, total = self.problem.state_bytes[q], self.totals[q]
        return state * (total - self.on_node[node][q]) / (total * (total - 1)) if total > 1 else state


_TIME_LIMIT, _INFEASIBLE = 1, 2


def optimum(problem: CoreProblem, threshold: float, timeout_s: float | None) -> tuple[Ints | None, float | None]:
    """Return the cores [node][executor] with the least migrated bytes, and the bound; (None, None) if infeasible."""
    homes = [home if few else None for home, few in zip(problem.local_node, problem.intensive(threshold), strict=True)]
    if any(home is not None and k > problem.node_cores[home] for k, home in zip(problem.required, homes, strict=True)):
        return None, None
    scale = max(problem.state_bytes) or 1.0
    variables, places, sums = _programme(problem, homes, scale)
    costs, upper, integral = np.array(variables).T
    entries = [(i, column, value) for i, (row, _, _) in enumerate(sums) for column, value in row.items()]
    rows, columns, values = (np.asarray(part) for part in zip(*entries, strict=True))
    matrix = coo_array((values, (rows, columns)), shape=(len(sums), len(costs)))
    result = milp(
        costs,
        constraints=LinearConstraint(matrix, *np.array([ends for _, *ends in sums]).T),
        integrality=integral,
        bounds=Bounds(np.zeros(len(upper)), upper),
        options={"mip_rel_gap": 0.0} | ({} if timeout_s is None else {"time_limit": timeout_s}),
    )
    if result.status == _INFEASIBLE:
        return None, None
    if result.x is None:
        if result.status == _TIME_LIMIT:
            raise WorkbenchError(
                f"No core assignment was found within timeout_s = {timeout_s}; allow more time or use method='greedy'."
            )
        raise RuntimeError(result.message)
    cores = np.zeros((len(problem.node_cores), len(problem.required)), dtype=np.int64)
    for variable, place in places.items():
        cores[place] += round(result.x[variable])
    return cores, max(0.0, float(result.mip_dual_bound)) * scale


_Row = tuple[dict[int, float], float, float]  # coefficients by variable, lowest and highest sum


def _programme(
    problem: CoreProblem, homes: Sequence[int | None], scale: float
) -> tuple[list[tuple[float, float, bool]], dict[int, tuple[int, int]], list[_Row]]:
    """Return the variables (cost, upper bound, whether integral), of every x_ijK its node and executor, and the rows.

    State is in units of `scale`; `homes` has the only node of an executor (c).
    """
    variables: list[tuple[float, float, bool]] = []
    cores: dict[int, tuple[int, int]] = {}
    rows: list[_Row] = []
    used: list[dict[int, float]] = [{} for _ in problem.node_cores]
    spare = sum(problem.node_cores) - sum(problem.required)
    for j, (home, least) in enumerate(zip(homes, problem.required, strict=True)):
        nodes = range(len(problem.node_cores)) if home is None else [home]
        choose_one: dict[int, float] = {}
        shares: list[dict[int, float]] = [{} for _ in problem.node_cores]  # x_ij / X_j
        for total in range(least, min(least + spare, sum(problem.node_cores[node] for node in nodes)) + 1):  # (b)
            choose_one[len(variables)] = 1.0
            add_up = {len(variables): -float(total)}
            variables.append((0.0, 1, True))
            if total == 0:
                continue
            for node in nodes:
                x = len(variables)
                cores[x], add_up[x], used[node][x], shares[node][x] = (node, j), 1.0, 1.0, 1.0 / total
                variables.append((0.0, min(total, problem.node_cores[node]), True))
            rows.append((add_up, 0.0, 0.0))
        rows.append((choose_one, 1.0, 1.0))
        before, weight = int(problem.current[:, j].sum()), problem.state_bytes[j] / scale
        for node, held in enumerate(problem.current[:, j].tolist()):
            if held and weight:  # what leaves this node: >= s (x~ / X~ - x / X)
                terms = {x: weight * share for x, share in shares[node].items()}
                rows.append(({len(variables): 1.0} | terms, weight * held / before, math.inf))
                variables.append((1.0, math.inf, False))
    rows += [(row, 0.0, float(available)) for row, available in zip(used, problem.node_cores, strict=True)]  # (a)
    return variables, cores, rows


AssignmentMethod = Literal["greedy", "optimal"]
DEFAULT_THRESHOLD = 512 * 1024.0


@dataclass(frozen=True)
class Assignment:
    """Cores of every executor on every node."""

    matrix: tuple[tuple[int, ...], ...]  # shape (nodes, executors)
    migrated_bytes: float  # state that leaves its node with this change, C(X | current)
    threshold: float  # phi that was finally used, bytes/s per core
    bound: float | None = None  # proven lower bound of the migrated bytes at it; None from the greedy method


def assign_cores(  # noqa: PLR0917 - the arguments of the paper's Algorithm 1 and three more
    current: Sequence[Sequence[int]],
    required: Sequence[int],
    node_cores: Sequence[int],
    state_bytes: Sequence[float],
    local_node: Sequence[int],
    data_intensity: Sequence[float],
    threshold: float = DEFAULT_THRESHOLD,
    method: AssignmentMethod = "greedy",
    *,
    timeout_s: float | None = None,
) -> Assignment:
    """Assign every executor the cores that it needs.

    ``"greedy"`` is Algorithm 1 of the paper with the corrections that the module states. ``"optimal"`` solves the
    integer programme of section 4.2 exactly. After `timeout_s` of one solution the best assignment found is
    returned, and its `bound` limits the distance to the optimum.

    Parameters
    ----------
    current, required, node_cores
        Cores now, shape (nodes, executors); k_j, the minimum of each executor, which may keep more; c_i of each node.
    state_bytes, local_node, data_intensity
        Of each executor: its state; I(j), the node of its main process; bytes/s in and out per core.
    threshold
        Initial phi, bytes/s; 512 KiB/s in the paper.

    Raises
    ------
    WorkbenchError
        When the cores do not suffice, lengths or ranges are wrong, or `timeout_s` ends before any assignment is found.
    """
    one_of("method", method, get_args(AssignmentMethod))
    executors, nodes = len(required), len(node_cores)
    require(executors > 0, "There are no executors; give at least one.")
    same_length("executor", executors, state_bytes=state_bytes, local_node=local_node, data_intensity=data_intensity)
    held = _core_matrix(current, nodes, executors)
    required = wholes("The number of cores executor {} requires", required)
    node_cores = wholes("The number of cores of node {}", node_cores)
    local_node = wholes("The local node of executor {}", local_node)
    for executor, home in enumerate(local_node):
        require(home < nodes, f"The local node of executor {executor} is {home}; the nodes are 0 to {nodes - 1}.")
    for node, (used, available) in enumerate(zip(held.sum(axis=1).tolist(), node_cores, strict=True)):
        require(
            used <= available,
            f"The current assignment uses {used:g} cores of node {node}, which has {available}; "
            "remove missing cores from `current` first.",
        )
    require(
        sum(required) <= sum(node_cores),
        f"The executors require {sum(required)} cores and the nodes have {sum(node_cores)}; "
        "add nodes, or allocate fewer cores (a higher latency target).",
    )
    state_bytes = not_negatives("The state of executor {}", state_bytes)
    data_intensity = not_negatives("The data intensity of executor {}", data_intensity)
    problem = CoreProblem(held, required, node_cores, state_bytes, local_node, data_intensity)
    phi = positive("threshold", threshold)
    while True:
        matrix, bound = (greedy(problem, phi), None) if method == "greedy" else optimum(problem, phi, timeout_s)
        if matrix is not None:
            moved = migrated_bytes(problem.current, matrix, problem.state_bytes)
            return Assignment(tuple(map(tuple, matrix.tolist())), moved, phi, bound)
        phi *= 2  # ends: above the largest intensity only the number of cores binds, which was checked


def migrated_bytes(current: Ints, new: Ints, state_bytes: Sequence[float]) -> float:
    """Return the state that leaves its node when cores move: C(new | current) of section 4.2.

    State moves only between nodes, because tasks of one process share theirs (section 3.1). Shards are spread evenly
    over an executor's cores, so a node holds the share x_ij / X_j of its state; without cores it counts as 0.
    """
    # max(1, ...): without cores there is no share, 0 / 1
    held, kept = (cores / np.maximum(1.0, cores.sum(axis=0)) for cores in (current, new))
    return float(np.maximum(0.0, held - kept).sum(axis=0) @ np.asarray(state_bytes))


def _core_matrix(current: Sequence[Sequence[float]], nodes: int, executors: int) -> Ints:
    same_length("node", nodes, current=current)
    for node, row in enumerate(current):
        if len(row) != executors:
            same_length("executor", executors, **{f"current[{node}]": row})
    held = np.asarray(current, dtype=float).reshape(nodes, executors)
    wrong = np.argwhere(~((held >= 0) & (held == np.floor(held)) & (held < np.inf)))
    if wrong.size:
        node, executor = map(int, wrong[0])
        whole(f"The number of cores of executor {executor} on node {node} in current", current[node][executor], 0)
    return held.astype(np.int64)
