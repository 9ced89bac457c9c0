"""Checks of vectors that users hand to the scaling policies; every message says what to change."""

import math
from collections.abc import Iterable, Sequence

from workbench.errors import WorkbenchError

SLACK = 1e-9


def require(condition: bool, message: str) -> None:
    """Raise a ``WorkbenchError`` with `message` unless `condition` holds."""
    if not condition:
        raise WorkbenchError(message)


def positive(thing: str, value: float) -> float:
    """`value` as a float, finite and above 0."""
    number = float(value)
    require(math.isfinite(number) and number > 0, f"{thing} is {value!r}; it must be a finite number above 0.")
    return number


def not_negative(thing: str, value: float) -> float:
    """`value` as a float, finite and at least 0."""
    number = float(value)
    require(math.isfinite(number) and number >= 0, f"{thing} is {value!r}; it must be a finite number of at least 0.")
    return number


def whole(thing: str, value: float, lowest: int) -> int:
    """`value` as an int, at least `lowest`."""
    number = float(value)
    require(
        math.isfinite(number) and number == int(number) and number >= lowest,
        f"{thing} is {value!r}; it must be a whole number of at least {lowest}.",
    )
    return int(value)


def not_negatives(thing: str, values: Iterable[float]) -> list[float]:
    """Finite numbers of at least 0; `thing` names one of them, with ``{}`` for its index."""
    numbers = [float(value) for value in values]
    for index, value in enumerate(numbers):
        if not 0 <= value < math.inf:
            not_negative(thing.format(index), value)
    return numbers


def wholes(thing: str, values: Iterable[float], lowest: int) -> list[int]:
    """Whole numbers of at least `lowest`; `thing` names one of them, with ``{}`` for its index."""
    given = list(values)
    for index, value in enumerate(given):
        if not (lowest <= value < math.inf and value == int(value)):
            whole(thing.format(index), value, lowest)
    return [int(value) for value in given]


def same_length(what: str, count: int, **vectors: Sequence[object]) -> None:
    """Require every vector to have `count` entries, one per `what`."""
    for name, vector in vectors.items():
        require(
            len(vector) == count,
            f"{name} has {len(vector)} entries for {count} {what}s; give one per {what}, in the same order.",
        )
