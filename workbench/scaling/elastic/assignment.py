"""Which core serves which executor: least migrated state, data-intensive executors at home (Elasticutor 4.2).

The number of cores per executor is given. The assignment of cores to executors changes so that little state leaves its
node. An executor is data-intensive if each of its cores moves more than phi bytes/s; such an executor takes cores of
its local node only. If no assignment allows that, phi doubles.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from workbench.arrays import Ints
from workbench.checks import not_negatives, positive, require, same_length, whole, wholes
from workbench.scaling.elastic._core_moves import CoreProblem, greedy
from workbench.scaling.elastic._core_optimum import optimum

AssignmentMethod = Literal["greedy", "optimal"]
DEFAULT_THRESHOLD = 512 * 1024.0


@dataclass(frozen=True)
class Assignment:
    """Cores of every executor on every node.

    Parameters
    ----------
    matrix
        Shape (nodes, executors).
    migrated_bytes
        State that leaves its node with this change, C(X | current).
    threshold
        phi that was finally used, bytes/s per core.
    bound
        Proven lower bound of the migrated bytes at that threshold; None from the greedy method.
    """

    matrix: tuple[tuple[int, ...], ...]
    migrated_bytes: float
    threshold: float
    bound: float | None = None


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

    ``"greedy"`` is Algorithm 1 of the paper with corrections: it also uses free cores, releases the remote cores of
    data-intensive executors first, takes cores only where an executor has some, and serves executors that lost a core.
    ``"optimal"`` solves the integer programme of section 4.2 exactly.

    Parameters
    ----------
    current
        Cores now, shape (nodes, executors).
    required
        k_j, the minimum number of cores per executor; executors may keep more.
    node_cores
        c_i, cores per node.
    state_bytes
        State of each executor.
    local_node
        I(j), the node of each executor's main process.
    data_intensity
        Bytes/s in and out per core of each executor.
    threshold
        Initial phi, bytes/s; 512 KiB/s in the paper.
    method
        ``"greedy"`` or ``"optimal"``.
    timeout_s
        Time limit of one exact solution. At the limit the best assignment found is returned, and `bound` limits its
        distance to the optimum.

    Raises
    ------
    WorkbenchError
        When the executors need more cores than there are, `current` does not fit the nodes, lengths or ranges are
        wrong, or `timeout_s` ends before any assignment is found.
    """
    methods = get_args(AssignmentMethod)
    require(method in methods, f"method is {method!r}; use one of {', '.join(map(repr, methods))}.")
    problem = _checked(current, required, node_cores, state_bytes, local_node, data_intensity)
    phi = positive("threshold", threshold)
    while True:
        bound = None
        if method == "greedy":
            matrix = greedy(problem, phi)
        else:
            matrix, bound = optimum(problem, phi, timeout_s)
        if matrix is not None:
            moved = migrated_bytes(problem.current, matrix, problem.state_bytes)
            return Assignment(tuple(map(tuple, matrix.tolist())), moved, phi, bound)
        phi *= 2  # ends: above the largest intensity only the number of cores binds, which was checked


def migrated_bytes(
    current: Sequence[Sequence[int]] | Ints,
    new: Sequence[Sequence[int]] | Ints,
    state_bytes: Sequence[float],
) -> float:
    """Return the state that leaves its node when cores move: C(new | current) of section 4.2.

    State moves only between nodes, because tasks of one process share theirs (section 3.1). Shards are spread evenly
    over an executor's cores, so a node holds the share x_ij / X_j of its state; without cores it counts as 0.
    """
    state = not_negatives("The state of executor {}", state_bytes)
    nodes, executors = len(current), len(state)
    held, kept = (_core_matrix(name, one, nodes, executors) for name, one in (("current", current), ("new", new)))
    # max(1, ...): without cores there is no share, 0 / 1
    leaving = held / np.maximum(1.0, held.sum(axis=0)) - kept / np.maximum(1.0, kept.sum(axis=0))
    return float(np.maximum(0.0, leaving).sum(axis=0) @ np.asarray(state))


def _checked(  # noqa: PLR0917 - the arguments of `assign_cores`
    current: Sequence[Sequence[int]],
    required: Sequence[int],
    node_cores: Sequence[int],
    state_bytes: Sequence[float],
    local_node: Sequence[int],
    data_intensity: Sequence[float],
) -> CoreProblem:
    """Check lengths and ranges, and return the problem in plain numbers."""
    executors, nodes = len(required), len(node_cores)
    require(executors > 0, "There are no executors; give at least one.")
    same_length("executor", executors, state_bytes=state_bytes, local_node=local_node, data_intensity=data_intensity)
    held = _core_matrix("current", current, nodes, executors)
    required = wholes("The number of cores executor {} requires", required, 0)
    node_cores = wholes("The number of cores of node {}", node_cores, 0)
    local_node = wholes("The local node of executor {}", local_node, 0)
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
    return CoreProblem(
        held,
        required,
        node_cores,
        not_negatives("The state of executor {}", state_bytes),
        local_node,
        not_negatives("The data intensity of executor {}", data_intensity),
    )


def _core_matrix(name: str, matrix: Sequence[Sequence[float]] | Ints, nodes: int, executors: int) -> Ints:
    """Check the shape and the numbers of a matrix of cores."""
    rows = list(matrix)
    same_length("node", nodes, **{name: rows})
    for node, row in enumerate(rows):
        if len(row) != executors:
            same_length("executor", executors, **{f"{name}[{node}]": row})
    held = np.asarray(rows, dtype=float).reshape(nodes, executors)
    wrong = np.argwhere(~((held >= 0) & (held == np.floor(held)) & (held < np.inf)))
    if wrong.size:
        node, executor = map(int, wrong[0])
        whole(f"The number of cores of executor {executor} on node {node} in {name}", rows[node][executor], 0)
    return held.astype(np.int64)
