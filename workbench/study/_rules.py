"""What each key of a study may hold, whatever the other keys hold."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

from workbench import bounds, units
from workbench.capacity.explore import Choice
from workbench.capacity.model import FORMS, Growth
from workbench.checks import shown, whole, within
from workbench.errors import WorkbenchError
from workbench.study.catalogue import SOURCES
from workbench.workload import OutputMode

_Check = Callable[[str, Any], Any]


def _number(low: float, high: float, unit: str = "", ends: Literal["()", "[)", "(]", "[]"] = "[]") -> _Check:
    return lambda name, value: within(name, value, low, high, unit, ends=ends)


def _rate(name: str, value: object) -> float:
    if isinstance(value, str):
        try:
            value = units.read_rate(value)
        except WorkbenchError:
            raise WorkbenchError(f"{name} is {shown(value)}; write records/s above 0, such as 60000 or 60k.") from None
    return within(name, value, bounds.LEAST_RATE, bounds.RATE, "records/s", ends="[]")


def _rows(name: str, value: object) -> float:
    if isinstance(value, str):
        try:
            value = units.read_rate(value)
        except WorkbenchError:
            raise WorkbenchError(f"{name} is {shown(value)}; write a number above 0, such as 4e8 or 400M.") from None
    return within(name, value, 1, bounds.NUMBER, "rows", ends="[]")


def _whole(least: int, most: int) -> _Check:
    return lambda name, value: whole(name, value, least, most)


def _list(item: _Check, most: int, allowed: str) -> _Check:
    def check(name: str, value: object) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple) or not value:
            raise WorkbenchError(f"{name} is {shown(value)}; it must be a list of {allowed}.")
        if len(value) > most:
            raise WorkbenchError(f"{name} has {len(value):,} entries; it must have at most {most:,}.")
        return tuple(item(f"{name}[{place}]", one) for place, one in enumerate(value))

    return check


def _text(allowed: str) -> _Check:
    def check(name: str, value: object) -> str:
        if not isinstance(value, str) or not value.strip() or "\0" in value or len(value) > bounds.TEXT:
            raise WorkbenchError(
                f"{name} is {shown(value)}; it must be {allowed}, of at most {bounds.TEXT:,} characters."
            )
        return value

    return check


def _one_of(*allowed: str) -> _Check:
    def check(name: str, value: object) -> str:
        if not isinstance(value, str) or value not in allowed:
            raise WorkbenchError(f"{name} is {shown(value)}; it must be one of {', '.join(allowed)}.")
        return value

    return check


def _or_none(check: _Check) -> _Check:
    return lambda name, value: None if value is None else check(name, value)


def _settings(name: str, value: object) -> dict[str, str]:
    """Take Spark's settings as YAML has them: texts, numbers, true and false."""
    if not isinstance(value, Mapping):
        raise WorkbenchError(f"{name} is {shown(value)}; it must be a mapping, such as spark.some.name: value.")
    if len(value) > bounds.GRID:
        raise WorkbenchError(f"{name} has {len(value):,} entries; it must have at most {bounds.GRID:,}.")
    return {key: str(one).lower() if isinstance(one, bool) else _plain(key, one) for key, one in value.items()}


def _plain(key: object, value: object) -> str:
    if not isinstance(value, str | int | float):
        raise WorkbenchError(f"spark: {shown(key)} is {shown(value)}; it must be a text, a number, true or false.")
    return str(value)


def _checkpoint(name: str, value: object) -> str:
    return "" if value == "memory" else _text("memory, or the path or URI of a folder")(name, value)


def _texts(allowed: str) -> _Check:
    return _list(_text(allowed), bounds.GRID, f"texts, each {allowed}")


def _inputs(name: str, value: object) -> dict[str, dict[str, Any]]:
    """Take the data set of each argument of a query."""
    if not isinstance(value, Mapping) or len(value) > bounds.GRID:
        raise WorkbenchError(
            f"{name} is {shown(value)}; it must name the data set of each argument of the query's function, such as "
            "orders: {dataset: orders.parquet, event_time: time}."
        )
    return {key: _input(f"{name}: {shown(key)}", key, one) for key, one in value.items()}


def _input(name: str, key: object, value: object) -> dict[str, Any]:
    argument = isinstance(key, str) and key.isidentifier()
    if not (argument and isinstance(value, Mapping) and "dataset" in value and value.keys() <= _INPUT.keys()):
        raise WorkbenchError(
            f"{name} is {shown(value)}; it must be an argument of the query's function, with its dataset, and may "
            f"have {', '.join([*_INPUT][1:])}."
        )
    return {key: check(f"{name}: {key}", value[key]) for key, check in _INPUT.items() if value.get(key) is not None}


_INPUT: Mapping[str, _Check] = {
    "dataset": _text("the path of a file or folder"),
    "event_time": _text("the name of a column"),
    "share": _number(0, 1, ends="()"),
    "renew": _list(_text("the name of a column"), bounds.GRID, "names of columns"),
}
_SLOTS = _list(_whole(1, bounds.TASKS), bounds.GRID, "whole numbers above 0, ascending")
_MEMORY = _list(_whole(1, bounds.MEMORY_MB), bounds.GRID, "whole numbers of MiB above 0, ascending")
_SECONDS = _number(bounds.LEAST_S, bounds.SECONDS, "seconds")
_NO_SECONDS = _number(0, bounds.SECONDS, "seconds")
_CSV = _or_none(_text("the path of a CSV file"))
RULES: Mapping[str, _Check] = {
    "query": _text("a text such as nexmark:q5 or jobs:orders"),
    "targets": _list(_rate, bounds.TARGETS, "rates above 0, records/s"),
    "slots": _SLOTS,
    "memory_mb": _MEMORY,
    "dataset": _or_none(_text("the path of a file or folder")),
    "event_time": _or_none(_text("the name of a column")),
    "inputs": _inputs,
    "source": _one_of(*SOURCES),
    "schema": _or_none(_text("the path of a file")),
    "output_mode": _or_none(_one_of(*get_args(OutputMode))),
    "testbed": _one_of("spark", "fluid", "recorded", "observed"),
    "master": _text("local, spark://HOST:PORT, k8s://https://HOST:PORT or yarn"),
    "sink": _text("a sink, such as parquet /data/out"),
    "checkpoint": _checkpoint,
    "executor_slots": _whole(1, bounds.TASKS),
    "python": _or_none(_text("the path or name of an interpreter")),
    "environment": _or_none(_text("the path of an archive")),
    "driver_host": _or_none(_text("the name or address of this machine")),
    "event_log": _or_none(_text("the URI of a folder")),
    "allocation_s": _SECONDS,
    "spark": _settings,
    "packages": _texts("Maven coordinates"),
    "jars": _texts("the path of a jar"),
    "py_files": _texts("the path of a .py, .zip or .egg file"),
    "files": _texts("the path of a file"),
    "table": _CSV,
    "log": _or_none(_text("the path of an event log")),
    "slot_cpus": _number(bounds.LEAST_CPUS, bounds.CPUS, "cores"),
    "interval_s": _SECONDS,
    "intervals": _list(_SECONDS, bounds.INTERVALS, "seconds above 0"),
    "latency_s": _or_none(_SECONDS),
    "tolerance": _number(0.001, 1, ends="[)"),
    "warmup_s": _SECONDS,
    "patience_s": _NO_SECONDS,
    "max_repeats": _whole(0, bounds.RUNS),
    "plan_memory_mb": _MEMORY,
    "margin": _or_none(_number(0, bounds.MARGIN, ends="(]")),
    "risk": _or_none(_number(1e-6, 1, ends="[)")),
    "low_rate": _or_none(_rate),
    "outage_s": _or_none(_SECONDS),
    "catch_up_s": _or_none(_SECONDS),
    "rows": _or_none(_rows),
    "deadline_s": _or_none(_SECONDS),
    "start_s": _NO_SECONDS,
    "day": _CSV,
    "keys": _or_none(_text("the path of a file that workbench keys --json printed")),
    "prices": _CSV,
    "form": _one_of(*FORMS, "halves"),
    "most_runs": _whole(3, bounds.RUNS),
    "minutes": _or_none(_number(1, bounds.MINUTES, "minutes")),
    "most_calls": _or_none(_whole(3, bounds.RUNS)),
    "choice": _one_of(*get_args(Choice)),
    "estimates": _whole(1, bounds.RUNS),
    "seed": _whole(0, bounds.SEED),
    "growth": _or_none(_one_of(*get_args(Growth))),
    "deployment": _or_none(_one_of("shared", "separate")),
    "file": _or_none(_text("the path of a study")),
}
