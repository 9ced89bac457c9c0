"""Bytes that elasticity sends over the network: state that migrates, records of remote cores (Elasticutor 4.2).

State moves only between nodes: tasks of one process share theirs (section 3.1). Records of a core outside an
executor's local node pass its main process there on their way in and on their way out.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from workbench.checks import not_negatives, require, same_length, wholes
from workbench.scaling.elastic._core_problem import core_matrix, local_nodes


def migrated_bytes(
    current: Sequence[Sequence[int]] | NDArray[np.int64],
    new: Sequence[Sequence[int]] | NDArray[np.int64],
    state_bytes: Sequence[float],
) -> float:
    """State that leaves its node when the cores move: C(new | current) of section 4.2.

    Parameters
    ----------
    current, new
        Cores, shape (nodes, executors). Shards are spread evenly over an executor's cores, so a node holds the share
        x_ij / X_j of its state; a share of an executor without cores counts 0.
    state_bytes
        Per executor.

    Raises
    ------
    WorkbenchError
        When the lengths differ, or a number of cores or bytes is out of its range.
    """
    state = not_negatives("The state of executor {}", state_bytes)
    nodes, executors = len(current), len(state)
    held, kept = (core_matrix(name, one, nodes, executors) for name, one in (("current", current), ("new", new)))
    # max(1, ...): without cores there is no share, 0 / 1
    leaving = held / np.maximum(1.0, held.sum(axis=0)) - kept / np.maximum(1.0, kept.sum(axis=0))
    return float(np.maximum(0.0, leaving).sum(axis=0) @ np.asarray(state))


def shard_migration_bytes(
    moves: Iterable[tuple[int, int, int]], task_node: Sequence[int], shard_bytes: Sequence[float]
) -> float:
    """State that changes its node with moved shards.

    Parameters
    ----------
    moves
        ``(shard, from task, to task)``, as in ``ShardPlan.moves``.
    task_node
        Node of each task.
    shard_bytes
        State of each shard.

    Raises
    ------
    WorkbenchError
        When a move names a shard or a task that does not exist, or a number is out of its range.
    """
    state, nodes = not_negatives("The state of shard {}", shard_bytes), wholes("The node of task {}", task_node, 0)
    moved = 0.0
    for number, (shard, source, target) in enumerate(moves):
        for what, named, there in (("shard", shard, state), ("task", source, nodes), ("task", target, nodes)):
            require(
                named == int(named) and 0 <= named < len(there),
                f"Move {number} names {what} {named!r}; there are {len(there)} {what}s, numbered from 0.",
            )
        moved += state[shard] if nodes[source] != nodes[target] else 0.0
    return moved


def remote_transfer_rate(
    matrix: Sequence[Sequence[int]], local_node: Sequence[int], data_intensity: Sequence[float]
) -> float:
    """Bytes/s between the executors and their cores on other nodes.

    Parameters
    ----------
    matrix
        Cores, shape (nodes, executors).
    local_node
        Node of each executor's main process.
    data_intensity
        Bytes/s in and out per core of each executor.

    Raises
    ------
    WorkbenchError
        When the lengths differ, or a number of cores, a node or an intensity is out of its range.
    """
    intensity = not_negatives("The data intensity of executor {}", data_intensity)
    same_length("executor", len(intensity), local_node=local_node)
    cores = core_matrix("matrix", matrix, len(matrix), len(intensity))
    away = cores.sum(axis=0) - cores[local_nodes(local_node, len(matrix)), range(len(intensity))]
    return float(away @ np.asarray(intensity))
