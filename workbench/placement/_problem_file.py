"""A placement problem from its file.

A problem file is JSON or YAML, loads per task: cores, bytes/s of state, bytes/s of output:

    {"workers": 4, "slots": 4,
     "operators": {"source": {"tasks": 1, "cpu": 0.2, "net": 4e5}, "window": {"tasks": 8, "cpu": 0.5, "io": 2e7}},
     "edges": [["source", "window"]],
     "rate": 14000,
     "worker": {"cpus": 2, "io": 2e8, "net": 1.25e8}}

``rate`` (source records/s of the loads), ``worker`` (what one can give, else no limit) and ``speeds`` (one per worker)
may be left out, loads that are 0 too; an edge may have a third entry, ``"forward"``. An operator whose tasks are
unequal has ``"shares"``, the load of each of its tasks in any unit; its tasks are divided into placement groups.
Several queries stand under ``"queries"``, each by its name with operators and edges; they share the workers (CAPSys,
section 6.2.2).
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from workbench import bounds
from workbench.checks import finite, shown
from workbench.errors import WorkbenchError
from workbench.placement.given import Asked, PlacementInput
from workbench.placement.problem import PlacementProblem
from workbench.placement.skew import placement_groups
from workbench.simulation import Worker

_LOADS = ("cpu", "io", "net")
CAPACITIES = {"cpus": "cpus", "io": "io_bytes_per_s", "net": "net_bytes_per_s"}
"""Fields of a worker, by the names that users give them."""


class _Cluster(NamedTuple):
    workers: int
    slots: int
    speeds: Sequence[float] | None


def problem_from(asked: Asked, document: Mapping[str, Any]) -> PlacementInput:
    """Read a problem document."""
    _known(asked, document, {"workers", "slots", "speeds", "rate", "worker", "operators", "edges", "queries"}, "")
    slots = asked.slots if asked.slots is not None else _get(asked, document, "slots", int)
    if asked.workers is None and asked.room is not None and "workers" not in document:
        workers = math.ceil(asked.room / max(1, slots))
    else:
        workers = asked.workers if asked.workers is not None else _get(asked, document, "workers", int)
    speeds = asked.speeds if asked.speeds is not None else document.get("speeds")
    if speeds is not None and not (isinstance(speeds, list | tuple) and all(map(_number, speeds))):
        raise WorkbenchError(f"{asked.what}: speeds is {shown(speeds)}; it must be a list of numbers.")
    stated = None if "rate" not in document else _above(asked, document, "rate")
    queries = _get(asked, document, "queries", dict) if "queries" in document else {"query": document}
    factor = asked.rate / stated if asked.rate is not None and stated is not None else 1.0
    cluster = _Cluster(workers, slots, speeds)
    if "queries" in document:
        _known(asked, document, {"workers", "slots", "speeds", "rate", "worker", "queries"}, "")
        for name, query in queries.items():
            _known(asked, query if isinstance(query, dict) else {}, {"operators", "edges"}, f" of query {name!r}")
    problems = {
        name: _query(asked, query, f" of query {name!r}" if "queries" in document else "", cluster, factor)
        for name, query in queries.items()
    }
    capacities = _get(asked, document, "worker", dict) if "worker" in document else {}
    _known(asked, capacities, set(CAPACITIES), " of the worker")
    worker = Worker(**{CAPACITIES[name]: _above(asked, capacities, name) for name in capacities})
    found = PlacementInput(problems, stated if asked.rate is None else asked.rate, worker, sized=speeds is not None)
    _ = found.problem
    return found


def _query(asked: Asked, query: object, of: str, cluster: _Cluster, factor: float) -> PlacementProblem:
    if not isinstance(query, dict):
        raise WorkbenchError(f"{asked.what}: {shown(query)}{of} is no object with operators.")
    operators = _get(asked, query, "operators", dict)
    tasks: dict[str, int] = {}
    loads: dict[str, dict[str, float]] = {load: {} for load in _LOADS}
    for title, operator in operators.items():
        if not (isinstance(operator, dict) and isinstance(title, str)):
            raise WorkbenchError(
                f"{asked.what}: operator {shown(title)}{of} is {shown(operator)}; it must be like "
                '{"tasks": 4, "cpu": 0.5}.'
            )
        _known(asked, operator, {"tasks", "shares", *_LOADS}, f" of operator {title!r}")
        tasks[title] = _get(asked, operator, "tasks", int, f" of operator {title!r}")
        for load in _LOADS:
            value = operator.get(load, 0.0)
            if not _number(value):
                raise WorkbenchError(
                    f"{asked.what}: {load} of operator {title!r} is {shown(value)}; give a number below 1e308."
                )
            if value > bounds.NUMBER:
                raise WorkbenchError(
                    f"{asked.what}: {load} of operator {title!r} is {shown(value)}; it must be at most "
                    f"{bounds.NUMBER:g}."
                )
            loads[load][title] = value * factor
    edges = query.get("edges", [])
    if not (
        isinstance(edges, list)
        and all(isinstance(edge, list) and all(isinstance(end, str) for end in edge) for edge in edges)
    ):
        raise WorkbenchError(
            f'{asked.what}: edges{of} is {shown(edges)}; it must be a list such as [["source", "map"]].'
        )
    even = PlacementProblem(
        tasks,
        [tuple(edge) for edge in edges],
        cluster.workers,
        cluster.slots,
        loads["cpu"],
        loads["io"],
        loads["net"],
        cluster.speeds,
    )
    shares = {title: operator["shares"] for title, operator in operators.items() if "shares" in operator}
    for title, given in shares.items():
        if not (isinstance(given, list) and all(map(_number, given))):
            raise WorkbenchError(
                f"{asked.what}: shares of operator {title!r} is {shown(given)}; it must be a list of one number for "
                "each task."
            )
    return placement_groups(even, shares).problem if shares else even


def _get(asked: Asked, document: Mapping[str, Any], key: str, kind: type, of: str = "") -> Any:  # noqa: ANN401 - JSON
    if key not in document:
        raise WorkbenchError(f"{asked.what} lacks {key!r}{of}; add it.")
    value = document[key]
    if not isinstance(value, kind) or isinstance(value, bool):
        names = {int: "a whole number", list: "a list", dict: "an object"}
        raise WorkbenchError(f"{asked.what}: {key}{of} is {shown(value)}; it must be {names[kind]}.")
    return value


def _above(asked: Asked, document: Mapping[str, Any], key: str) -> float:
    value: Any = document.get(key)
    if not finite(value) or value <= 0:
        raise WorkbenchError(f"{asked.what}: {key} is {shown(value)}; it must be a finite number above 0.")
    most = bounds.RATE if key == "rate" else bounds.NUMBER
    if not bounds.LEAST_NUMBER <= value <= most:
        raise WorkbenchError(
            f"{asked.what}: {key} is {shown(value)}; it must be at least {bounds.LEAST_NUMBER:g} and at most {most:g}."
        )
    return float(value)


def _known(asked: Asked, document: Mapping[str, Any], keys: set[str], of: str) -> None:
    for key in document:
        if key not in keys:
            raise WorkbenchError(
                f"{asked.what} has the unknown key {shown(key)}{of}; known are {', '.join(sorted(keys))}."
            )


def _number(value: object) -> bool:
    return finite(value) or isinstance(value, float)  # the problem names the operator of a NaN
