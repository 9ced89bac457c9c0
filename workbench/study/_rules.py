"""Checks of single values of a study, as its fields name them: each takes the key and the value, and returns it."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

from workbench import bounds, units
from workbench.checks import shown, whole, within
from workbench.errors import WorkbenchError

Check = Callable[[str, Any], Any]


def number(low: float, high: float, unit: str = "", ends: Literal["()", "[)", "(]", "[]"] = "[]") -> Check:
    """Allow numbers from `low` to `high`, with the `ends` that belong to them."""
    return lambda name, value: within(name, value, low, high, unit, ends=ends)


def amount(least: float, most: float, unit: str, example: str) -> Check:
    """Allow numbers, also as texts with a suffix, such as 60k."""

    def check(name: str, value: object) -> float:
        if isinstance(value, str):
            try:
                value = units.read_rate(value)
            except WorkbenchError:
                raise WorkbenchError(f"{name} is {shown(value)}; write {example}.") from None
        return within(name, value, least, most, unit, ends="[]")

    return check


def count(least: int, most: int) -> Check:
    """Allow whole numbers."""
    return lambda name, value: whole(name, value, least, most)


def list_of(item: Check, most: int, allowed: str) -> Check:
    """Allow lists of at most `most` entries."""

    def check(name: str, value: object) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple) or not value:
            raise WorkbenchError(f"{name} is {shown(value)}; it must be a list of {allowed}.")
        if len(value) > most:
            raise WorkbenchError(f"{name} has {len(value):,} entries; it must have at most {most:,}.")
        return tuple(item(f"{name}[{place}]", one) for place, one in enumerate(value))

    return check


def _must(fits: Callable[[Any], bool], allowed: str) -> Check:
    def check(name: str, value: object) -> object:
        if not fits(value):
            raise WorkbenchError(f"{name} is {shown(value)}; it must be {allowed}.")
        return value

    return check


def text(allowed: str) -> Check:
    """Allow texts that are not empty."""
    return _must(
        lambda one: isinstance(one, str) and one.strip() != "" and "\0" not in one and len(one) <= bounds.TEXT,
        f"{allowed}, of at most {bounds.TEXT:,} characters",
    )


def one_of(*allowed: str) -> Check:
    """Allow only these texts."""
    return _must(lambda one: isinstance(one, str) and one in allowed, f"one of {', '.join(allowed)}")


def settings(name: str, value: object) -> dict[str, str]:
    """Accept Spark's settings as YAML has them: texts, numbers, true and false."""
    if not isinstance(value, Mapping):
        raise WorkbenchError(f"{name} is {shown(value)}; it must be a mapping, such as spark.some.name: value.")
    if len(value) > bounds.GRID:
        raise WorkbenchError(f"{name} has {len(value):,} entries; it must have at most {bounds.GRID:,}.")
    for key, one in value.items():
        if not isinstance(one, str | int | float):
            raise WorkbenchError(f"spark: {shown(key)} is {shown(one)}; it must be a text, a number, true or false.")
    return {key: str(one).lower() if isinstance(one, bool) else str(one) for key, one in value.items()}


def place_or_memory(name: str, value: object) -> str:
    """Accept a place, or ``memory``."""
    return "" if value == "memory" else text("memory, or the path or URI of a folder")(name, value)


def texts(allowed: str) -> Check:
    """Allow lists of texts."""
    return list_of(text(allowed), bounds.GRID, f"texts, each {allowed}")


def inputs_by_argument(name: str, value: object) -> dict[str, dict[str, Any]]:
    """Accept the data set of each argument of a query."""
    if not isinstance(value, Mapping) or len(value) > bounds.GRID:
        raise WorkbenchError(
            f"{name} is {shown(value)}; it must name the data set of each argument of the query's function, such as "
            "orders: {dataset: orders.parquet, event_time: time}."
        )
    found = {}
    for argument, one in value.items():
        what = f"{name}: {shown(argument)}"
        known = isinstance(one, Mapping) and "dataset" in one and one.keys() <= _INPUT.keys()
        if not (known and isinstance(argument, str) and argument.isidentifier()):
            raise WorkbenchError(
                f"{what} is {shown(one)}; it must be an argument of the query's function, with its dataset, and may "
                f"have {', '.join([*_INPUT][1:])}."
            )
        given = ((key, check) for key, check in _INPUT.items() if one.get(key) is not None)
        found[argument] = {key: check(f"{what}: {key}", one[key]) for key, check in given}
    return found


_INPUT: Mapping[str, Check] = {
    "dataset": text("the path of a file or folder"),
    "event_time": text("the name of a column"),
    "share": number(0, 1, ends="()"),
    "renew": list_of(text("the name of a column"), bounds.GRID, "names of columns"),
}
