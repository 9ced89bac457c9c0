"""Placement groups for skewed operators (CAPSys, section 5.2).

The tasks of a skewed operator have unequal shares of its load, so they are not interchangeable. They are divided into
groups of about equal load, each of which is placed like an operator of its own.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from workbench.checks import shown
from workbench.errors import WorkbenchError
from workbench.placement.problem import Link, PlacementProblem


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
    if not 0 <= tolerance < 1:
        raise WorkbenchError(f"tolerance is {tolerance!r}; give a number from 0 to below 1.")
    skew = _spread(problem, {_position(problem, name): _checked(problem, name, s) for name, s in shares.items()})
    groups = {operator: _runs(shares, tolerance) for operator, shares in skew.items()}
    tasks: dict[str, int] = {}
    factor: dict[str, float] = {}
    members: dict[str, tuple[str, tuple[int, ...]]] = {}
    parts: list[list[str]] = []
    for operator, (name, count) in enumerate(zip(problem.operators, problem.parallelism, strict=True)):
        parts.append([])
        for index, subtasks in enumerate(groups.get(operator, [tuple(range(count))]), start=1):
            part = f"{name}/{index}" if operator in groups and len(groups[operator]) > 1 else name
            if part in tasks:
                raise WorkbenchError(
                    f"Operators {members[part][0]!r} and {name!r} would both be called {part!r} once they are divided "
                    "into groups; rename one of them."
                )
            parts[operator].append(part)
            tasks[part] = len(subtasks)
            members[part] = (name, subtasks)
            given = skew.get(operator, (1.0,) * count)
            mean = math.fsum(given[subtask] for subtask in subtasks) / len(subtasks)
            factor[part] = mean * count / math.fsum(given)
    operators = {part: operator for operator, names in enumerate(parts) for part in names}
    return PlacementGroups(
        PlacementProblem(
            tasks,
            [edge for link in problem.edges for edge in _edges(link, parts)],
            problem.workers,
            problem.slots,
            {part: problem.cpu[operators[part]] * factor[part] for part in tasks},
            {part: problem.io[operators[part]] * factor[part] for part in tasks},
            {part: problem.net[operators[part]] * factor[part] for part in tasks},
            problem.speeds,
        ),
        members,
    )


def _edges(link: Link, parts: list[list[str]]) -> list[tuple[str, str, str]]:
    """Connect the parts of both ends: all with all, or those of a forward edge in turn."""
    upstream, downstream = parts[link.upstream], parts[link.downstream]
    if link.partitioning == "forward":
        return [(u, v, "forward") for u, v in zip(upstream, downstream, strict=True)]
    return [(u, v, "shuffle") for u in upstream for v in downstream]


def _position(problem: PlacementProblem, name: str) -> int:
    if name not in problem.operators:
        raise WorkbenchError(
            f"Shares are given for the unknown operator {name!r}; the operators are {', '.join(problem.operators)}."
        )
    return problem.operators.index(name)


def _checked(problem: PlacementProblem, name: str, shares: Sequence[float]) -> tuple[float, ...]:
    count = problem.parallelism[_position(problem, name)]
    good = all(math.isfinite(share) and share >= 0 for share in shares)
    if len(shares) != count or not good or math.fsum(shares) <= 0:
        raise WorkbenchError(
            f"The {len(shares):,} shares of operator {name!r} are {shown(list(shares))}; give a finite number from 0 "
            f"on for each of its {count} tasks, not all 0."
        )
    return tuple(float(share) for share in shares)


def _spread(problem: PlacementProblem, shares: dict[int, tuple[float, ...]]) -> dict[int, tuple[float, ...]]:
    """Carry the shares along the forward edges."""
    known = dict(shares)
    waiting = list(known)
    while waiting:
        operator = waiting.pop()
        for u, v, partitioning in problem.edges:
            if partitioning != "forward" or operator not in {u, v}:
                continue
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
