"""What the numbers and names of a placement problem may be."""

from collections.abc import Mapping
from typing import cast

from workbench import bounds, units
from workbench.checks import entries, not_negative, positive, whole
from workbench.errors import WorkbenchError

MOST = bounds.TASKS
"""Highest number of workers, slots and tasks: the compiled searches count in 64 bits."""


def operator_names(parallelism: object, operators: object) -> tuple[str, ...]:
    """Names of the operators: those given, those of a mapping, or ``"0"``, ``"1"``, ..."""
    if operators is not None:
        names = entries("operators", operators)
    elif isinstance(parallelism, Mapping):
        names = tuple(parallelism)
    else:
        names = tuple(map(str, range(len(entries("parallelism", parallelism)))))
    if not names:
        raise WorkbenchError("The problem has no operators; give at least one.")
    for name in names:
        if not isinstance(name, str):
            raise WorkbenchError(f"The operator name {name!r} is no text; give each operator a text.")
        if any("\ud800" <= character <= "\udfff" for character in name):
            raise WorkbenchError(
                f"The operator name {name!r} has half a character (a surrogate), which no file can hold; correct it."
            )
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise WorkbenchError(f"Two operators are named {twice!r}; give every operator a name of its own.")
    return cast("tuple[str, ...]", names)


def by_operator(thing: str, values: object, names: tuple[str, ...]) -> tuple[object, ...]:
    """Values in the order of the operators."""
    if isinstance(values, Mapping):
        if set(values) != set(names):
            given = ", ".join(map(str, values)) or "none"
            raise WorkbenchError(f"{thing} is given for {given}; the operators are {', '.join(names)}.")
        return tuple(values[name] for name in names)
    found = entries(thing, values)
    if len(found) != len(names):
        raise WorkbenchError(f"{thing} has {len(found)} entries for {len(names)} operators; give one for each.")
    return found


def tasks_by_operator(values: object, names: tuple[str, ...]) -> tuple[int, ...]:
    """Tasks of every operator."""
    counts = zip(names, by_operator("parallelism", values, names), strict=True)
    return tuple(whole(f"The parallelism of {name!r}", count, most=MOST) for name, count in counts)


def loads_by_operator(dimension: str, values: object, names: tuple[str, ...]) -> tuple[float, ...]:
    """Give the loads of one task of every operator in a dimension."""
    loads = by_operator(dimension, values, names)
    return tuple(
        not_negative(f"The {dimension} load of operator {name!r}", load)
        for name, load in zip(names, loads, strict=True)
    )


def speeds_by_worker(speeds: object, workers: int) -> tuple[float, ...]:
    """Speed of every worker, all 1 if not given."""
    if speeds is None:
        return (1.0,) * workers
    given = entries("speeds", speeds)
    if len(given) != workers:
        said = f"{units.some(len(given), 'speed')} for {units.some(workers, 'worker')}"
        raise WorkbenchError(f"The speeds do not fit the workers: {said}; give one for each.")
    return tuple(positive(f"The speed of worker {worker}", speed) for worker, speed in enumerate(given))
