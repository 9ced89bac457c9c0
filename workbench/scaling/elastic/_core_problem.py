"""The input of a core assignment, in the symbols of Elasticutor, section 4.2."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class CoreProblem:
    """Current cores x~ [node][executor]; k_j, c_i, s_j, I(j) and the data intensity per core of each executor."""

    current: NDArray[np.int64]
    required: Sequence[int]
    node_cores: Sequence[int]
    state_bytes: Sequence[float]
    local_node: Sequence[int]
    data_intensity: Sequence[float]

    def intensive(self, threshold: float) -> list[bool]:
        """E(phi): which executors take local cores only."""
        return [intensity > threshold for intensity in self.data_intensity]
