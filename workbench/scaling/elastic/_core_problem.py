"""The input of a core assignment, in the symbols of Elasticutor, section 4.2."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workbench.arrays import Ints
from workbench.checks import require, same_length, whole, wholes


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


def core_matrix(name: str, matrix: Sequence[Sequence[float]] | Ints, nodes: int, executors: int) -> Ints:
    """Return `matrix` as integers, after checks of its shape and of its numbers."""
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


def local_nodes(local_node: Sequence[float], nodes: int) -> list[int]:
    """Return every executor's local node, after a check that it is one of `nodes`."""
    homes = wholes("The local node of executor {}", local_node, 0)
    for executor, home in enumerate(homes):
        require(home < nodes, f"The local node of executor {executor} is {home}; the nodes are 0 to {nodes - 1}.")
    return homes
