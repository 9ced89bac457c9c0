"""Problem files: JSON or YAML, loads per task in cores, bytes/s of state and bytes/s of output.

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

from collections.abc import Mapping, Sequence
from typing import Any

from workbench import bounds
from workbench.checks import finite, positive, shown, within
from workbench.errors import WorkbenchError
from workbench.placement.problem import DIMENSIONS, PlacementProblem
from workbench.placement.request import PlacementInput, Request
from workbench.placement.skew import placement_groups
from workbench.simulation import Worker

CAPACITIES = {"cpus": "cpus", "io": "io_bytes_per_s", "net": "net_bytes_per_s"}  # fields of a worker, as users say


def read_problem(asked: Request, document: Mapping[str, Any]) -> PlacementInput:
    """Read a problem document."""
    together = "queries" in document
    own = {"queries"} if together else {"operators", "edges", "queries"}
    _known(asked, document, {"workers", "slots", "speeds", "rate", "worker"} | own)
    slots = asked.slots if asked.slots is not None else _get(asked, document, "slots", int)
    workers = asked.workers if "workers" in document else asked.workers_of(slots)
    if workers is None:
        workers = _get(asked, document, "workers", int)
    speeds = asked.speeds if asked.speeds is not None else document.get("speeds")
    stated = None if "rate" not in document else _above(asked, document, "rate")
    queries = _get(asked, document, "queries", dict) if together else {"query": document}
    factor = 1.0 if asked.rate is None or stated is None else asked.rate / stated
    problems = {
        name: _query(asked, query, f" of query {name!r}" if together else "", factor, workers, slots, speeds)
        for name, query in queries.items()
    }
    capacities = _get(asked, document, "worker", dict) if "worker" in document else {}
    _known(asked, capacities, set(CAPACITIES), " of the worker")
    worker = Worker(**{CAPACITIES[name]: _above(asked, capacities, name) for name in capacities})
    found = PlacementInput(problems, stated if asked.rate is None else asked.rate, worker, sized=speeds is not None)
    _ = found.problem
    return found


def _query(  # noqa: PLR0917
    asked: Request, query: object, of: str, factor: float, workers: int, slots: int, speeds: Sequence[float] | None
) -> PlacementProblem:
    """Read a query of a problem document, its loads times `factor`."""
    if not isinstance(query, dict):
        raise WorkbenchError(f"{asked.what}: {shown(query)}{of} is not an object with operators.")
    if of:
        _known(asked, query, {"operators", "edges"}, of)
    operators = _get(asked, query, "operators", dict)
    tasks: dict[str, int] = {}
    loads: dict[str, dict[str, float]] = {load: {} for load in DIMENSIONS}
    for title, operator in operators.items():
        if not (isinstance(operator, dict) and isinstance(title, str)):
            raise WorkbenchError(
                f"{asked.what}: operator {shown(title)}{of} is {shown(operator)}; it must be like "
                '{"tasks": 4, "cpu": 0.5}.'
            )
        _known(asked, operator, {"tasks", "shares", *DIMENSIONS}, f" of operator {title!r}")
        tasks[title] = _get(asked, operator, "tasks", int, f" of operator {title!r}")
        for load in DIMENSIONS:
            value = operator.get(load, 0.0)
            # the problem names the operator of a NaN
            if not (finite(value) or isinstance(value, float)) or value > bounds.NUMBER:
                raise WorkbenchError(
                    f"{asked.what}: {load} of operator {title!r} is {shown(value)}; it must be a number of at most "
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
    cpu, io, net = loads.values()
    even = PlacementProblem(tasks, [tuple(edge) for edge in edges], workers, slots, cpu, io, net, speeds)
    shares = {title: operator["shares"] for title, operator in operators.items() if "shares" in operator}
    return placement_groups(even, shares).problem if shares else even


def _get(asked: Request, document: Mapping[str, Any], key: str, kind: type, of: str = "") -> Any:  # noqa: ANN401 - JSON
    if key not in document:
        raise WorkbenchError(f"{asked.what} lacks {key!r}{of}; add it.")
    value = document[key]
    if not isinstance(value, kind) or isinstance(value, bool):
        allowed = "a whole number" if kind is int else "an object"
        raise WorkbenchError(f"{asked.what}: {key}{of} is {shown(value)}; it must be {allowed}.")
    return value


def _above(asked: Request, document: Mapping[str, Any], key: str) -> float:
    value = positive(f"{asked.what}: {key}", document.get(key))
    most = bounds.RATE if key == "rate" else bounds.NUMBER
    return within(f"{asked.what}: {key}", value, bounds.LEAST_NUMBER, most, ends="[]")


def _known(asked: Request, document: Mapping[str, Any], keys: set[str], of: str = "") -> None:
    for key in document:
        if key not in keys:
            raise WorkbenchError(
                f"{asked.what} has the unknown key {shown(key)}{of}; known are {', '.join(sorted(keys))}."
            )
