"""CBC, run quietly and the same way every time.

One thread, no log, tolerances at 1e-9: models should be scaled so that what matters is far larger.
"""

import pulp

from workbench.errors import WorkbenchError
from workbench.records import Status

_TOLERANCES = ["primalTolerance 1e-9", "integerTolerance 1e-9"]


def solve(problem: pulp.LpProblem, time_limit_s: float | None = None) -> Status:
    """Solve `problem` in place; ``"feasible"`` is an incumbent that the time limit left unproven.

    Without a time limit the outcome is deterministic.
    """
    solver = pulp.COIN_CMD(
        path=pulp.PULP_CBC_CMD.pulp_cbc_path, msg=False, threads=1, timeLimit=time_limit_s, options=_TOLERANCES
    )
    try:
        problem.solve(solver)
    except pulp.PulpSolverError as error:
        raise WorkbenchError(
            f"CBC could not be run on {problem.name} ({error}); check that this machine may execute it."
        ) from error
    if problem.sol_status == pulp.LpSolutionOptimal:
        return "optimal"
    if problem.sol_status == pulp.LpSolutionIntegerFeasible:
        return "feasible"
    limit = "" if time_limit_s is None else f" within {time_limit_s:g} s; raise the time limit"
    raise WorkbenchError(f"CBC found no solution of {problem.name}{limit} ({pulp.LpStatus[problem.status]}).")
