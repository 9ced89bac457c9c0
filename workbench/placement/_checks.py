"""What the numbers and names of a placement problem may be."""

import math
from collections.abc import Iterable, Mapping
from typing import cast

import numpy as np

from workbench.errors import WorkbenchError

MOST = 1_000_000
"""Highest number of workers, slots and tasks: the compiled searches count in 64 bits."""

_LONGEST = 60


def shown(value: object) -> str:
    """Show a value in an error message, cut where it is long."""
    try:
        text = repr(value)
    except ValueError:  # Python writes no integer of thousands of digits
        return "a number of thousands of digits"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def integer(value: object) -> int | None:
    """Give a whole number as an int; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return None
    try:
        number = int(value)
    except (ValueError, OverflowError):  # NaN, infinity
        return None
    return number if number == value else None


def finite(value: object) -> bool:
    """Whether `value` is a number that a float can hold."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def whole(thing: str, value: object) -> int:
    """Refuse what is no whole number from 1 to `MOST`."""
    number = integer(value)
    if number is None or number < 1:
        raise WorkbenchError(f"{thing} is {shown(value)}; give a whole number from 1 on.")
    if number > MOST:
        raise WorkbenchError(f"{thing} is {shown(value)}; give at most {MOST:,}.")
    return number


def entries(thing: str, values: object) -> tuple[object, ...]:
    """Refuse what is no sequence; a text is none."""
    try:
        found = None if isinstance(values, str | bytes) else tuple(cast("Iterable[object]", values))
    except TypeError:
        found = None
    if found is None:
        raise WorkbenchError(f"{thing} is {shown(values)}; give a sequence of numbers, one for each.")
    return found


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
    return tuple(whole(f"The parallelism of {name!r}", count) for name, count in counts)


def loads_by_operator(dimension: str, values: object, names: tuple[str, ...]) -> tuple[float, ...]:
    """Give the loads of one task of every operator in a dimension."""
    loads = by_operator(dimension, values, names)
    for name, load in zip(names, loads, strict=True):
        if not (finite(load) and cast("float", load) >= 0):
            raise WorkbenchError(
                f"The {dimension} load of operator {name!r} is {shown(load)}; give a finite number from 0 on."
            )
    return tuple(float(cast("float", load)) for load in loads)


def speeds_by_worker(speeds: object, workers: int) -> tuple[float, ...]:
    """Speed of every worker, all 1 if not given."""
    if speeds is None:
        return (1.0,) * workers
    given = entries("speeds", speeds)
    if len(given) != workers:
        raise WorkbenchError(f"There are {len(given)} speeds for {workers} workers; give one for each.")
    for worker, speed in enumerate(given):
        if not (finite(speed) and cast("float", speed) > 0):
            raise WorkbenchError(f"The speed of worker {worker} is {shown(speed)}; give a finite number above 0.")
    return tuple(float(cast("float", speed)) for speed in given)
