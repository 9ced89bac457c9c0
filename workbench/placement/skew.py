"""Placement groups for skewed operators (CAPSys, section 5.2).

The tasks of a skewed operator have unequal shares of its load, so they are not interchangeable. They are divided into
groups of about equal load, each of which is placed like an operator of its own.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from workbench.checks import entries, finite, shown, within
from workbench.errors import WorkbenchError
from workbench.placement.problem import PlacementProblem


@dataclass(frozen=True)
class PlacementGroups:
    """A problem with its skewed operators divided."""

    problem: PlacementProblem  # groups are operators named ``operator/1``, ``operator/2``, ..., heaviest first
    # for every operator of `problem` the operator it belongs to and its subtasks there
    members: Mapping[str, tuple[str, tuple[int, ...]]]


def placement_groups(
    problem: PlacementProblem, shares: Mapping[str, Sequence[float]], tolerance: float = 0.1
) -> PlacementGroups:
    """Divide skewed operators into groups of tasks with about equal load.

    The loads of `problem` are those of the average task of an operator. `shares` has for every skewed operator the load
    of each of its tasks, in any unit (measured records, say). A forward edge carries the records of one task to one
    task, and with them the skew: its other end is divided alike. A group holds tasks whose share is at least
    ``1 - tolerance`` of its largest; all count as their mean.
    """
    within("tolerance", tolerance, 0, 1, ends="[)")
    skew = _spread(problem, dict(_checked(problem, name, given) for name, given in shares.items()))
    members: dict[str, tuple[str, tuple[int, ...]]] = {}
    parts: list[list[str]] = []
    loads = []
    for operator, (name, count) in enumerate(zip(problem.operators, problem.parallelism, strict=True)):
        given = skew.get(operator, (1.0,) * count)
        runs = _runs(given, tolerance)
        parts.append([f"{name}/{index}" for index in range(1, len(runs) + 1)] if len(runs) > 1 else [name])
        for part, subtasks in zip(parts[operator], runs, strict=True):
            if part in members:
                raise WorkbenchError(
                    f"Operators {members[part][0]!r} and {name!r} would both be called {part!r} once they are divided "
                    "into groups; rename one of them."
                )
            members[part] = (name, subtasks)
            mean = math.fsum(given[subtask] for subtask in subtasks) / len(subtasks)
            loads.append(problem.loads[:, operator] * (mean * count / math.fsum(given)))
    cpu, io, net = np.transpose(loads).tolist()
    tasks = {part: len(subtasks) for part, (_, subtasks) in members.items()}
    edges: list[tuple[str, str, str]] = []
    for up, down, way in problem.edges:  # all parts with all, or those of a forward edge in turn
        ends = zip(parts[up], parts[down], strict=True) if way == "forward" else product(parts[up], parts[down])
        edges += [(u, v, way) for u, v in ends]
    divided = PlacementProblem(tasks, edges, problem.workers, problem.slots, cpu, io, net, problem.speeds)
    return PlacementGroups(divided, members)


def _checked(problem: PlacementProblem, name: str, shares: Sequence[float]) -> tuple[int, tuple[float, ...]]:
    if name not in problem.operators:
        raise WorkbenchError(
            f"Shares are given for the unknown operator {name!r}; the operators are {', '.join(problem.operators)}."
        )
    operator = problem.operators.index(name)
    count = problem.parallelism[operator]
    given = entries(f"The shares of operator {name!r}", shares)
    if len(given) != count or not all(finite(share) and share >= 0 for share in given) or math.fsum(given) <= 0:
        raise WorkbenchError(
            f"The {len(given):,} shares of operator {name!r} are {shown(list(given))}; give a finite number from 0 "
            f"on for each of its {count} tasks, not all 0."
        )
    return operator, tuple(map(float, given))


def _spread(problem: PlacementProblem, shares: dict[int, tuple[float, ...]]) -> dict[int, tuple[float, ...]]:
    """Return the shares of all operators, carried along the forward edges."""
    known = dict(shares)
    waiting = list(known)
    forward = [(u, v) for u, v, partitioning in problem.edges if partitioning == "forward"]
    while waiting:
        operator = waiting.pop()
        for u, v in (edge for edge in forward if operator in edge):
            other = v if operator == u else u
            if other not in known:
                known[other] = known[operator]
                waiting.append(other)
            elif _normalised(known[other]) != _normalised(known[operator]):
                raise WorkbenchError(
                    f"Operators {problem.operators[u]!r} and {problem.operators[v]!r} are joined by a forward edge but "
                    "given unequal shares; give the shares of one of them."
                )
    return known


def _normalised(shares: tuple[float, ...]) -> list[float]:
    total = math.fsum(shares)
    return [round(share / total, 9) for share in shares]


def _runs(shares: tuple[float, ...], tolerance: float) -> list[tuple[int, ...]]:
    """Divide the tasks, heaviest first, where the share falls below the tolerance of the group's largest."""
    runs: list[list[int]] = []
    for task in sorted(range(len(shares)), key=lambda task: -shares[task]):
        if runs and shares[task] >= shares[runs[-1][0]] * (1 - tolerance):
            runs[-1].append(task)
        else:
            runs.append([task])
    return [tuple(run) for run in runs]
