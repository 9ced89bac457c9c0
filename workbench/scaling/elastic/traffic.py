"""Bytes that elasticity sends over the network: state that migrates, records of remote cores (Elasticutor 4.2).

State moves only between nodes: tasks of one process share theirs (section 3.1). Records of a core outside an
executor's local node pass its main process there on their way in and on their way out.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray


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
    """
    held, kept = np.asarray(current, dtype=float), np.asarray(new, dtype=float)
    # max(1, ...): without cores there is no share, 0 / 1
    leaving = held / np.maximum(1.0, held.sum(axis=0)) - kept / np.maximum(1.0, kept.sum(axis=0))
    return float(np.maximum(0.0, leaving).sum(axis=0) @ np.asarray(state_bytes, dtype=float))


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
    """
    return sum(shard_bytes[shard] for shard, source, target in moves if task_node[source] != task_node[target])


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
    """
    return sum(
        data_intensity[j] * cores
        for node, row in enumerate(matrix)
        for j, cores in enumerate(row)
        if node != local_node[j]
    )
