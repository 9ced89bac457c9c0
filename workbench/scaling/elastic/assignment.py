"""Which core serves which executor: least migrated state, data-intensive executors at home (Elasticutor 4.2).

The number of cores per executor is given; the assignment of cores to executors changes from the current one so that
little state leaves its node. An executor is data-intensive when each of its cores moves more than a threshold phi of
bytes/s; such an executor takes cores of its local node only. When no assignment allows that, phi doubles.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from workbench.checks import not_negatives, positive, require, same_length, wholes
from workbench.scaling.elastic._core_moves import greedy
from workbench.scaling.elastic._core_optimum import optimum
from workbench.scaling.elastic._core_problem import CoreProblem, core_matrix, local_nodes
from workbench.scaling.elastic.traffic import migrated_bytes

Method = Literal["greedy", "optimal"]
DEFAULT_THRESHOLD = 512 * 1024.0


@dataclass(frozen=True)
class Assignment:
    """Cores of every executor on every node.

    Parameters
    ----------
    matrix
        Shape (nodes, executors).
    migrated_bytes
        State that leaves its node on the way here, C(X | current).
    threshold
        phi, bytes/s per core, that was finally used.
    bound
        Proven least migrated bytes at that threshold; None from the greedy method.
    """

    matrix: tuple[tuple[int, ...], ...]
    migrated_bytes: float
    threshold: float
    bound: float | None = None


def assign_cores(  # noqa: PLR0917 - the arguments of the paper's Algorithm 1, and three more
    current: Sequence[Sequence[int]],
    required: Sequence[int],
    node_cores: Sequence[int],
    state_bytes: Sequence[float],
    local_node: Sequence[int],
    data_intensity: Sequence[float],
    threshold: float = DEFAULT_THRESHOLD,
    method: Method = "greedy",
    *,
    timeout_s: float | None = None,
) -> Assignment:
    """Give every executor the cores it needs.

    ``"greedy"`` is Algorithm 1 of the paper, repaired: it also uses free cores, releases the remote cores of
    data-intensive executors first, takes cores only where there are some, and serves executors that lost a core.
    ``"optimal"`` solves the integer programme of section 4.2 exactly.

    Parameters
    ----------
    current
        Cores now, shape (nodes, executors).
    required
        k_j, the least number of cores per executor; executors may keep more.
    node_cores
        c_i, cores per node.
    state_bytes
        State per executor.
    local_node
        I(j), the node of each executor's main process.
    data_intensity
        Bytes/s in and out per core of each executor.
    threshold
        phi to start with, bytes/s; 512 KiB/s in the paper.
    method
        ``"greedy"`` or ``"optimal"``.
    timeout_s
        Longest time of one exact solution; when it ends, the best assignment found is returned and `bound` says how
        far from the optimum it can be.

    Raises
    ------
    WorkbenchError
        When the executors need more cores than there are, `current` does not fit the nodes, or lengths and ranges
        are wrong; also when `timeout_s` ends before any assignment is found.
    """
    require(method in get_args(Method), f"method is {method!r}; use one of {', '.join(map(repr, get_args(Method)))}.")
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
        phi *= 2  # ends: at phi >= the largest intensity nothing but the number of cores binds, which was checked


def _checked(  # noqa: PLR0917 - the arguments of `assign_cores`
    current: Sequence[Sequence[int]],
    required: Sequence[int],
    node_cores: Sequence[int],
    state_bytes: Sequence[float],
    local_node: Sequence[int],
    data_intensity: Sequence[float],
) -> CoreProblem:
    """Return the problem in plain numbers, its lengths and ranges verified."""
    executors, nodes = len(required), len(node_cores)
    require(executors > 0, "There are no executors; give at least one.")
    same_length("executor", executors, state_bytes=state_bytes, local_node=local_node, data_intensity=data_intensity)
    held = core_matrix("current", current, nodes, executors)
    required = wholes("The number of cores executor {} requires", required, 0)
    node_cores = wholes("The number of cores of node {}", node_cores, 0)
    local_node = local_nodes(local_node, nodes)
    for node, (used, available) in enumerate(zip(held.sum(axis=1).tolist(), node_cores, strict=True)):
        require(
            used <= available,
            f"The current assignment uses {used:g} cores of node {node}, which has {available}; "
            "take the cores that are gone out of `current` first.",
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
