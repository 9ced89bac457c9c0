"""Checks of values that a user gives; every message names the thing, the value got and what is allowed."""

import math
from collections.abc import Iterable, Sequence
from typing import SupportsFloat

from workbench.errors import WorkbenchError

_LONGEST = 60


def require(condition: bool, message: str) -> None:
    """Raise a ``WorkbenchError`` with `message` unless `condition` holds."""
    if not condition:
        raise WorkbenchError(message)


def shown(value: object) -> str:
    """Show a value in an error message, cut where it is long."""
    try:
        text = repr(value)
    except ValueError:  # Python writes no integer of thousands of digits
        return "a number of thousands of digits"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def positive(thing: str, value: SupportsFloat, unit: str = "") -> float:
    """`value` as a float, finite and above 0."""
    number = float(value)
    require(
        math.isfinite(number) and number > 0,
        f"{thing} is {shown(value)}{_after(unit)}; it must be a finite number above 0.",
    )
    return number


def not_negative(thing: str, value: SupportsFloat, unit: str = "") -> float:
    """`value` as a float, finite and at least 0."""
    number = float(value)
    require(
        math.isfinite(number) and number >= 0,
        f"{thing} is {shown(value)}{_after(unit)}; it must be a finite number of at least 0.",
    )
    return number


def whole(thing: str, value: SupportsFloat, least: int = 1) -> int:
    """`value` as an int, at least `least`."""
    number = float(value)
    require(
        math.isfinite(number) and number == int(number) and number >= least,
        f"{thing} is {shown(value)}; it must be a whole number of at least {least}.",
    )
    return int(number) if isinstance(value, float) else int(value)  # type: ignore[call-overload]


def within(
    thing: str,
    value: float,
    low: float,
    high: float,
    unit: str = "",
    *,
    low_allowed: bool = False,
    high_allowed: bool = False,
) -> float:
    """`value`, between `low` and `high`; the ends themselves only where they are allowed."""
    above = value >= low if low_allowed else value > low
    below = value <= high if high_allowed else value < high
    require(
        above and below,
        f"{thing} is {shown(value)}{_after(unit)}; allowed is from {low} "
        f"({'included' if low_allowed else 'excluded'}) to {high} ({'included' if high_allowed else 'excluded'}). "
        "Set it within.",
    )
    return value


def not_negatives(thing: str, values: Iterable[float]) -> list[float]:
    """Finite numbers of at least 0; `thing` names one of them, with ``{}`` for its index."""
    return [not_negative(thing.format(index), value) for index, value in enumerate(values)]


def wholes(thing: str, values: Iterable[float], least: int) -> list[int]:
    """Whole numbers of at least `least`; `thing` names one of them, with ``{}`` for its index."""
    return [whole(thing.format(index), value, least) for index, value in enumerate(values)]


def same_length(what: str, count: int, **vectors: Sequence[object]) -> None:
    """Require every vector to have `count` entries, one per `what`."""
    for name, vector in vectors.items():
        require(
            len(vector) == count,
            f"{name} has {len(vector)} entries for {count} {what}s; give one per {what}, in the same order.",
        )


def _after(unit: str) -> str:
    return f" {unit}" if unit else ""
