"""Checks of values that you give; every message names the thing, the value and what is allowed."""

import math
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from numbers import Real
from typing import Any, Literal, cast

from workbench.errors import WorkbenchError

SLACK = 1e-9  # difference up to which two calculated numbers count as equal

_LONGEST = 60


def require(condition: bool, message: str) -> None:
    """Raise a ``WorkbenchError`` with `message` unless `condition` holds."""
    if not condition:
        raise WorkbenchError(message)


def one_of(thing: str, value: object, allowed: Sequence[str]) -> None:
    """Require `value` to be one of the `allowed` ones."""
    require(value in allowed, f"{thing} is {value!r}; use one of {', '.join(map(repr, allowed))}.")


def shown(value: object) -> str:
    """Show a value in an error message, numbers with commas; a long one is cut."""
    try:
        text = f"{value:,}" if type(value) in {int, float} else repr(value)
    except ValueError:  # Python writes no integer of thousands of digits
        return "a number of thousands of digits"
    except RecursionError:
        return f"a {type(value).__name__} that is nested too deeply"
    except Exception:  # noqa: BLE001 - of a user's object
        return f"a {type(value).__name__} that cannot be shown"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def meant(word: str, known: Iterable[str]) -> str:
    """Ask for the one of the `known` words that is almost `word`, after a blank; empty where none is."""
    near = get_close_matches(word, known, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def finite(value: object) -> bool:
    """Whether `value` is a number that a float can hold."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def integer(value: object) -> int | None:
    """Return a whole number as an int; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        number = int(cast("float", value))
    except (ValueError, OverflowError):  # NaN, infinity
        return None
    return number if number == value else None


def entries(thing: str, values: object) -> tuple[Any, ...]:
    """Return the entries of a sequence; a text is not a sequence here."""
    try:
        found = None if isinstance(values, str | bytes) else tuple(cast("Iterable[object]", values))
    except TypeError:
        found = None
    if found is None:
        raise WorkbenchError(f"{thing} is {shown(values)}; give a sequence of numbers, one for each.")
    return found


def within(
    thing: str, value: object, low: float, high: float, unit: str = "", *, ends: Literal["()", "[)", "(]", "[]"] = "()"
) -> float:
    """Return a finite `value` between `low` and `high` as a float; a square bracket in `ends` includes that end."""
    if finite(value):
        number = float(cast("float", value))
        if (low < number < high) or (number == low and ends[0] == "[") or (number == high and ends[1] == "]"):
            return number
    above = "at least" if ends[0] == "[" else "above"
    if math.isinf(high):
        allowed = f"a finite number {'of ' if ends[0] == '[' else ''}{above} {low:g}"
    else:
        allowed = f"{above} {low:g} and {'at most' if ends[1] == ']' else 'below'} {high:g}"
    raise WorkbenchError(
        f"{thing} is {shown(value)}; it must be {allowed}{f' ({unit})' if unit else ''}.{_comma(value)}"
    )


def positive(thing: str, value: object, unit: str = "") -> float:
    """Return a finite `value` above 0 as a float."""
    return within(thing, value, 0, math.inf, unit)


def not_negative(thing: str, value: object, unit: str = "") -> float:
    """Return a finite `value` of at least 0 as a float."""
    return within(thing, value, 0, math.inf, unit, ends="[)")


def whole(thing: str, value: object, least: int = 1, most: int | None = None) -> int:
    """Return a whole number from `least` to `most` as an int."""
    number = integer(value)
    if number is None or number < least:
        raise WorkbenchError(
            f"{thing} is {shown(value)}; it must be a whole number of at least {least}.{_comma(value)}"
        )
    if most is not None and number > most:
        raise WorkbenchError(f"{thing} is {shown(value)}; it must be at most {most:,}.")
    return number


def _comma(value: object) -> str:
    """Return what is wrong with a text such as ``"1,024"``."""
    written = isinstance(value, str) and "," in value and value.replace(",", "").replace(".", "").strip().isdigit()
    return " Write it without quotes and commas." if written else ""


def not_negatives(thing: str, values: Iterable[float]) -> list[float]:
    """Return finite numbers of at least 0; `thing` names one of them, with ``{}`` for its index."""
    return [not_negative(thing.format(index), value) for index, value in enumerate(values)]


def wholes(thing: str, values: Iterable[float]) -> list[int]:
    """Return whole numbers of at least 0; `thing` names one of them, with ``{}`` for its index."""
    return [whole(thing.format(index), value, 0) for index, value in enumerate(values)]


def same_length(what: str, count: int, **vectors: Sequence[object]) -> None:
    """Require every vector to have `count` entries, one for each `what`."""
    for name, vector in vectors.items():
        require(
            len(vector) == count,
            f"{name} has {len(vector)} entries for {count} {what}s; give one per {what}, in the same order.",
        )
