"""The integer programme of Elasticutor, section 4.2, solved exactly.

The share x_ij / X_j is not linear. It becomes linear by choosing the total: z_jK = 1 if executor j has K cores in all,
and x_ijK is their number on node i. An executor has at most its requirement and all spare cores, so few totals are
possible. HiGHS solves the programme; one version of HiGHS always returns the same result.
"""

import math

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array

from workbench.arrays import Ints
from workbench.errors import WorkbenchError
from workbench.scaling.elastic._core_moves import CoreProblem

_TIME_LIMIT, _INFEASIBLE = 1, 2


def optimum(problem: CoreProblem, threshold: float, timeout_s: float | None) -> tuple[Ints | None, float | None]:
    """Return the cores [node][executor] with the least migrated bytes, and the bound; (None, None) if infeasible."""
    scale = max(problem.state_bytes) or 1.0
    programme = _Programme(problem, problem.intensive(threshold), scale)
    if not programme.feasible:
        return None, None
    options = {"mip_rel_gap": 0.0} | ({} if timeout_s is None else {"time_limit": timeout_s})
    result = milp(
        np.asarray(programme.costs),
        constraints=programme.constraints(),
        integrality=np.asarray(programme.integral),
        bounds=Bounds(np.zeros(len(programme.upper)), np.asarray(programme.upper)),
        options=options,
    )
    if result.status == _INFEASIBLE:
        return None, None
    if result.x is None:
        if result.status == _TIME_LIMIT:
            raise WorkbenchError(
                f"No core assignment was found within timeout_s = {timeout_s}; allow more time or use method='greedy'."
            )
        raise RuntimeError(result.message)
    matrix = np.zeros((len(problem.node_cores), len(problem.required)), dtype=np.int64)
    for (node, j), variable in programme.cores:
        matrix[node, j] += round(result.x[variable])
    return matrix, max(0.0, float(result.mip_dual_bound)) * scale


class _Programme:
    """Variables and rows of the programme; state in units of the largest state."""

    def __init__(self, problem: CoreProblem, intensive: list[bool], scale: float) -> None:
        self.costs: list[float] = []
        self.upper: list[float] = []
        self.integral: list[int] = []
        self.feasible = True
        self.cores: list[tuple[tuple[int, int], int]] = []  # (node, executor) of every x_ijK
        self._rows: list[tuple[dict[int, float], float, float]] = []  # coefficients, low, high
        used: list[dict[int, float]] = [{} for _ in problem.node_cores]
        for j in range(len(problem.required)):
            self._executor(problem, j, home=problem.local_node[j] if intensive[j] else None, scale=scale, used=used)
        for row, cores in zip(used, problem.node_cores, strict=True):  # (a)
            self._rows.append((row, 0.0, float(cores)))

    def constraints(self) -> LinearConstraint:
        """Return all rows as one sparse constraint."""
        entries = [(i, column, value) for i, (row, _, _) in enumerate(self._rows) for column, value in row.items()]
        rows, columns, values = (np.asarray(part) for part in zip(*entries, strict=True))
        matrix = coo_array((values, (rows, columns)), shape=(len(self._rows), len(self.costs)))
        return LinearConstraint(matrix, [low for _, low, _ in self._rows], [high for _, _, high in self._rows])

    def _executor(
        self, problem: CoreProblem, j: int, *, home: int | None, scale: float, used: list[dict[int, float]]
    ) -> None:
        nodes = range(len(problem.node_cores)) if home is None else [home]  # (c)
        room = sum(problem.node_cores[node] for node in nodes)
        spare = sum(problem.node_cores) - sum(problem.required)
        least = problem.required[j]
        if least > room:
            self.feasible = False
        choose_one: dict[int, float] = {}
        shares: list[dict[int, float]] = [{} for _ in problem.node_cores]  # x_ij / X_j, in the variables
        for total in range(least, min(least + spare, room) + 1):  # (b)
            chosen = self._variable(0.0, 1)
            choose_one[chosen] = 1.0
            if total == 0:
                continue
            add_up = {chosen: -float(total)}
            for node in nodes:
                variable = self._variable(0.0, min(total, problem.node_cores[node]))
                self.cores.append(((node, j), variable))
                add_up[variable] = used[node][variable] = 1.0
                shares[node][variable] = 1.0 / total
            self._rows.append((add_up, 0.0, 0.0))
        self._rows.append((choose_one, 1.0, 1.0))
        before = int(problem.current[:, j].sum())
        weight = problem.state_bytes[j] / scale
        for node, row in enumerate(problem.current.tolist()):
            if row[j] and weight:  # what leaves this node: >= s (x~ / X~ - x / X)
                left = self._variable(1.0, math.inf, integral=False)
                terms = {variable: weight * share for variable, share in shares[node].items()}
                self._rows.append(({left: 1.0} | terms, weight * row[j] / before, math.inf))

    def _variable(self, cost: float, upper: float, *, integral: bool = True) -> int:
        self.costs.append(cost)
        self.upper.append(float(upper))
        self.integral.append(int(integral))
        return len(self.costs) - 1
