"""Where placement problems come from: a file, or measured operators and a plan's plain fields.

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
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from workbench import units
from workbench.checks import finite, shown
from workbench.dataflow import Dataflow, Edge, Operator, OperatorProfile
from workbench.errors import WorkbenchError
from workbench.metrics import SOURCE, OperatorMetrics
from workbench.placement.problem import PlacementProblem
from workbench.placement.skew import placement_groups
from workbench.reading import parse_json, parse_yaml, read_text
from workbench.records import (
    CapacityPlan,
    Measurement,
    PlannedStudy,
    measurement_from_document,
    nearest_run,
    planned_from_dict,
)
from workbench.simulation import PRESETS, Worker, preset, short_name

BATCH = "micro-batch"
"""The one operator that all stages of a micro-batch are placed and scaled as."""

_LOADS = ("cpu", "io", "net")
_CAPACITIES = {"cpus": "cpus", "io": "io_bytes_per_s", "net": "net_bytes_per_s"}


@dataclass(frozen=True)
class PlacementInput:
    """What to place.

    Parameters
    ----------
    queries
        Problem of each query, all on the same cluster.
    rate
        Source rate of the loads, records/s; None if it was not said.
    worker
        Capacities of a worker of speed 1.
    basis
        One sentence: what the rates of placements rest on; empty where the problem itself says.
    unit_cpus
        Cores of one unit of CPU. Loads of a plan are in slots, because no task has more than one.
    chosen
        Which of several plans is placed, and the rates of the others; empty where there is no choice.
    """

    queries: Mapping[str, PlacementProblem]
    rate: float | None = None
    worker: Worker = field(default_factory=Worker)
    basis: str = ""
    unit_cpus: float = 1.0
    chosen: str = ""

    @property
    def problem(self) -> PlacementProblem:
        """All queries as one graph; operators keep their names if there is only one."""
        if len(self.queries) == 1:
            return next(iter(self.queries.values()))
        return PlacementProblem.together(self.queries)


@dataclass(frozen=True)
class MeasuredQuery:
    """A query as measured: its dataflow, and unit costs by operator; `guessed` says that its edges were not given."""

    dataflow: Dataflow
    profiles: Mapping[str, OperatorProfile]
    guessed: bool = False

    def problem(
        self,
        rate: float,
        workers: int,
        slots: int,
        *,
        tasks: Mapping[str, int] | None = None,
        speeds: Sequence[float] | None = None,
    ) -> PlacementProblem:
        """Make the placement problem at `rate` records/s: `tasks` as a plan's allocation has them, else the fewest.

        For a ``CapacityPlan`` `plan`: ``measured.problem(plan.rate, workers, slots, tasks=plan.allocation.tasks)``.
        """
        return PlacementProblem.from_dataflow(
            self.dataflow, self.profiles, rate, workers, slots, parallelism=tasks, speeds=speeds
        )


def batch_query(plan: CapacityPlan, seen: Sequence[OperatorMetrics], slot_cpus: float) -> MeasuredQuery:
    """Derive the unit costs of a whole micro-batch, so that the plan's slots carry just the plan's capacity.

    The stages of a micro-batch take all slots in turn, so a slot is what is placed and scaled: one operator, with as
    many tasks as slots. A record costs it all slots over the capacity, which counts the fixed part of a batch, waiting
    and uneven keys in, as no sum of the operators' CPU seconds does.

    Parameters
    ----------
    plan
        Of an engine of micro-batches.
    seen
        Operators of a run of its query; they give the bytes of state and shuffle.
    slot_cpus
        Cores that a slot counts for.
    """
    records = next((one.records_in for one in seen if one.scans), 0) or max((one.records_in for one in seen), default=0)
    state, shuffled = (
        sum(getattr(one, name) or 0 for one in seen) / max(1, records) for name in ("state_bytes", "shuffle_bytes")
    )
    profile = OperatorProfile(plan.budget.slots * slot_cpus / plan.expected_rate, state, shuffled, 1.0)
    operators = (Operator(SOURCE, SOURCE), Operator(BATCH, BATCH, plan.stateful))
    flow = Dataflow(plan.query, operators, (Edge(SOURCE, BATCH),))
    return MeasuredQuery(flow, {BATCH: profile})


def measured_query(
    name: str, operators: Iterable[OperatorMetrics], edges: Iterable[tuple[str, str]] | None = None
) -> MeasuredQuery:
    """Derive unit costs from what was observed (CAPSys, section 5.1: metric / records, here input records).

    Parameters
    ----------
    name
        Of the query.
    operators
        Those of an observation.
    edges
        Between them. If left out: those of the simulated query of this name if it has these operators, else a chain
        in the order observed. Operators that nothing feeds are fed by a source that runs elsewhere.
    """
    seen = list(operators)
    names = [one.operator for one in seen]
    simulated = short_name(name)
    known = preset(simulated).dataflow if simulated in PRESETS else None
    if edges is None and known is not None and {o.name for o in known.operators} - set(known.sources) == set(names):
        flow, guessed = known, False
    else:
        guessed = edges is None
        pairs = list(pairwise(names)) if edges is None else [(u, v) for u, v in edges]
        fed = {downstream for _, downstream in pairs}
        apart = any(one.is_source for one in seen)
        flow = Dataflow(
            name,
            (
                *(() if apart else (Operator(SOURCE, SOURCE),)),
                *(Operator(one.operator, one.kind, one.keeps_state) for one in seen),
            ),
            (
                *(() if apart else (Edge(SOURCE, one) for one in names if one not in fed)),
                *(Edge(upstream, downstream) for upstream, downstream in pairs),
            ),
        )
    return MeasuredQuery(flow, {one.operator: _profile(one) for one in seen}, guessed)


def read_placement_input(
    path: str | os.PathLike[str],
    *,
    workers: int | None = None,
    slots: int | None = None,
    rate: float | None = None,
    speeds: Sequence[float] | None = None,
    room: int | None = None,
) -> PlacementInput:
    """Read a problem document, a measurement, or plans as ``workbench plan`` writes them.

    Parameters
    ----------
    path
        JSON file, or YAML where the name ends in ``.yaml`` or ``.yml``.
    workers, slots, speeds
        The cluster; needed unless the document says.
    rate
        Target rate: of a measurement the sustained one if left out; which of several plans (the last if left out).
        The loads of a problem document are multiplied by rate / its rate.
    room
        Slots of a cluster to make up where neither the arguments nor the file name one. The slots of a problem
        document's worker are never made up: its capacities belong to them.

    Raises
    ------
    WorkbenchError
        When the file cannot be read, is none of these, or lacks something, or a number is out of its range.
    """
    what = f"The placement input {os.fspath(path)}"
    if rate is not None and not (finite(rate) and rate > 0):
        raise WorkbenchError(f"The rate to place for is {shown(rate)}; give a finite number above 0, in records/s.")
    text = read_text(path, what)
    try:
        document = parse_yaml(text) if Path(path).suffix in {".yaml", ".yml"} else parse_json(text, by_hand=True)
    except ValueError as error:
        raise WorkbenchError(f"{what} cannot be read as JSON or YAML: {error}. Correct it.") from error
    if not isinstance(document, dict):
        found = "empty" if document is None else shown(document)
        raise WorkbenchError(f"{what} is {found}; it must be an object with operators.")
    reader = _Reader(what, workers, slots, rate, speeds, room)
    if "plans" not in document and "estimate" not in document:
        return reader.problem(document)
    if "plans" in document:
        return reader.plans(planned_from_dict(document, what))
    return reader.measurement(measurement_from_document(document, what))


class _Cluster(NamedTuple):
    workers: int
    slots: int
    speeds: Sequence[float] | None


@dataclass(frozen=True)
class _Reader:
    what: str
    workers: int | None
    slots: int | None
    rate: float | None
    speeds: Sequence[float] | None
    room: int | None

    def problem(self, document: Mapping[str, Any]) -> PlacementInput:
        self._known(document, {"workers", "slots", "speeds", "rate", "worker", "operators", "edges", "queries"}, "")
        slots = self.slots if self.slots is not None else self._get(document, "slots", int)
        if self.workers is None and self.room is not None and "workers" not in document:
            workers = math.ceil(self.room / max(1, slots))
        else:
            workers = self.workers if self.workers is not None else self._get(document, "workers", int)
        speeds = self.speeds if self.speeds is not None else document.get("speeds")
        if speeds is not None and not (isinstance(speeds, list | tuple) and all(map(_number, speeds))):
            raise WorkbenchError(f"{self.what}: speeds is {shown(speeds)}; it must be a list of numbers.")
        stated = None if "rate" not in document else self._above(document, "rate")
        queries = self._get(document, "queries", dict) if "queries" in document else {"query": document}
        factor = self.rate / stated if self.rate is not None and stated is not None else 1.0
        cluster = _Cluster(workers, slots, speeds)
        if "queries" in document:
            self._known(document, {"workers", "slots", "speeds", "rate", "worker", "queries"}, "")
            for name, query in queries.items():
                self._known(query if isinstance(query, dict) else {}, {"operators", "edges"}, f" of query {name!r}")
        problems = {
            name: self._query(query, f" of query {name!r}" if "queries" in document else "", cluster, factor)
            for name, query in queries.items()
        }
        capacities = self._get(document, "worker", dict) if "worker" in document else {}
        self._known(capacities, set(_CAPACITIES), " of the worker")
        worker = Worker(**{_CAPACITIES[name]: self._above(capacities, name) for name in capacities})
        found = PlacementInput(problems, stated if self.rate is None else self.rate, worker)
        _ = found.problem
        return found

    def _query(self, query: object, of: str, cluster: _Cluster, factor: float) -> PlacementProblem:
        if not isinstance(query, dict):
            raise WorkbenchError(f"{self.what}: {shown(query)}{of} is no object with operators.")
        operators = self._get(query, "operators", dict)
        tasks: dict[str, int] = {}
        loads: dict[str, dict[str, float]] = {load: {} for load in _LOADS}
        for title, operator in operators.items():
            if not (isinstance(operator, dict) and isinstance(title, str)):
                raise WorkbenchError(
                    f"{self.what}: operator {shown(title)}{of} is {shown(operator)}; it must be like "
                    '{"tasks": 4, "cpu": 0.5}.'
                )
            self._known(operator, {"tasks", "shares", *_LOADS}, f" of operator {title!r}")
            tasks[title] = self._get(operator, "tasks", int, f" of operator {title!r}")
            for load in _LOADS:
                value = operator.get(load, 0.0)
                if not _number(value):
                    raise WorkbenchError(
                        f"{self.what}: {load} of operator {title!r} is {shown(value)}; give a number below 1e308."
                    )
                loads[load][title] = value * factor
        edges = query.get("edges", [])
        if not (
            isinstance(edges, list)
            and all(isinstance(edge, list) and all(isinstance(end, str) for end in edge) for edge in edges)
        ):
            raise WorkbenchError(
                f'{self.what}: edges{of} is {shown(edges)}; it must be a list such as [["source", "map"]].'
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
                    f"{self.what}: shares of operator {title!r} is {shown(given)}; it must be a list of one number for "
                    "each task."
                )
        return placement_groups(even, shares).problem if shares else even

    def measurement(self, measured: Measurement, tasks: Mapping[str, int] | None = None) -> PlacementInput:
        seen, budget = measured.estimate.observation, measured.budget
        if seen is None or not seen.operators:
            raise WorkbenchError(f"{self.what} sustained no rate, so its operators' costs are unknown; measure again.")
        query = measured_query(measured.query, seen.operators, seen.edges or None)
        rate = measured.estimate.low if self.rate is None else self.rate
        workers, slots = self._cluster()
        problem = query.problem(rate, workers, slots, tasks=tasks or measured.tasks, speeds=self.speeds)
        basis = (
            f"Rates are bounds: they count CPU, state and shuffle alone. The run itself sustained "
            f"{units.rate(measured.estimate.middle)} on {budget.slots:,} slots."
            if measured.testbed_kind == "spark"
            else ""
        )
        return PlacementInput({measured.query: problem}, rate, Worker(cpus=budget.profile.cpus * slots), basis)

    def plans(self, planned: PlannedStudy) -> PlacementInput:
        if not planned.plans:
            raise WorkbenchError(f"{self.what} has no plans, so there is nothing to place; plan again.")
        found = [one for one in planned.plans if self.rate is None or _same(one.rate, self.rate)]
        if not found:
            rates = ", ".join(f"{one.rate:g}" for one in planned.plans)
            raise WorkbenchError(
                f"{self.what} has no plan for {self.rate:g} records/s; give one of its rates (records/s): {rates}."
            )
        plan = found[-1]
        nearest = nearest_run(planned.measurements, plan.budget)
        if nearest is None and plan.testbed_kind == "recorded":
            raise WorkbenchError(
                f"{self.what} rests on recorded rates, which say nothing of operators, so there is nothing to place. "
                "Measure the query: plan a study without a table."
            )
        if nearest is None:
            raise WorkbenchError(f"{self.what} has no run that sustained a rate, so no costs are known; plan again.")
        chosen = _chosen(plan, planned.plans)
        if plan.has_interval:
            return replace(self._batches(plan, nearest), chosen=chosen)
        tasks = None if plan.allocation is None else plan.allocation.tasks
        unsaid = self.workers is None and self.slots is None and self.room is None
        own = replace(self, workers=plan.executors, slots=plan.executor.slots) if unsaid else self
        measured = replace(own, rate=plan.rate).measurement(replace(nearest, tasks=None), tasks)
        return replace(measured if tasks is None else _as_planned(measured, plan), chosen=chosen)

    def _batches(self, plan: CapacityPlan, nearest: Measurement) -> PlacementInput:
        """Place the slots of a plan on its own executors, unless another cluster is given."""
        seen = nearest.estimate.observation
        slots = self.slots if self.slots is not None else plan.executor.slots
        room = self.room if self.room is not None and self.workers is None else None
        own = plan.executors if self.workers is None else self.workers
        workers = math.ceil(room / max(1, slots)) if room else own
        query = batch_query(plan, seen.operators if seen is not None else (), slot_cpus=1.0)
        problem = query.problem(plan.rate, workers, slots, tasks={BATCH: plan.budget.slots}, speeds=self.speeds)
        unit = plan.budget.profile.cpus
        return PlacementInput({plan.query: problem}, plan.rate, Worker(cpus=float(slots)), _capacity(plan), unit)

    def _cluster(self) -> tuple[int, int]:
        slots = self.slots if self.slots is not None else self.room
        if slots is None or (self.workers is None and self.room is None):
            raise WorkbenchError(
                f"{self.what} says nothing of the workers; give their number and slots.",
                settings=("workers", "slots"),
            )
        if self.workers is not None:
            return self.workers, slots
        return math.ceil((self.room or slots) / max(1, slots)), slots

    def _get(self, document: Mapping[str, Any], key: str, kind: type, of: str = "") -> Any:  # noqa: ANN401 - JSON
        if key not in document:
            raise WorkbenchError(f"{self.what} lacks {key!r}{of}; add it.")
        value = document[key]
        if not isinstance(value, kind) or isinstance(value, bool):
            names = {int: "a whole number", list: "a list", dict: "an object"}
            raise WorkbenchError(f"{self.what}: {key}{of} is {shown(value)}; it must be {names[kind]}.")
        return value

    def _above(self, document: Mapping[str, Any], key: str) -> float:
        value: Any = document.get(key)
        if not finite(value) or value <= 0:
            raise WorkbenchError(f"{self.what}: {key} is {shown(value)}; it must be a finite number above 0.")
        return float(value)

    def _known(self, document: Mapping[str, Any], keys: set[str], of: str) -> None:
        for key in document:
            if key not in keys:
                raise WorkbenchError(
                    f"{self.what} has the unknown key {shown(key)}{of}; known are {', '.join(sorted(keys))}."
                )


def _as_planned(measured: PlacementInput, plan: CapacityPlan) -> PlacementInput:
    """Scale the CPU of the plan's own tasks, in slots, so that the fullest carries just the plan's capacity.

    The run is of another size than the plan, whose model also knows what more slots lose.
    """
    own = measured.problem
    fullest = max(own.cpu)
    factor = plan.rate / plan.expected_rate / fullest if fullest > 0 else 1.0
    cpu = [factor * one for one in own.cpu]
    problem = PlacementProblem(
        own.parallelism, own.edges, own.workers, own.slots, cpu, own.io, own.net, own.speeds, own.operators
    )
    return replace(
        measured,
        queries={plan.query: problem},
        worker=Worker(cpus=float(problem.slots)),
        basis=_capacity(plan),
        unit_cpus=plan.budget.profile.cpus,
    )


def _capacity(plan: CapacityPlan) -> str:
    slots = plan.budget.slots
    return (
        f"The plan's capacity on {'this slot' if slots == 1 else f'these {slots:,} slots'} is "
        f"{units.rate(plan.expected_rate)} (90 % interval {units.rate(plan.low)} to {units.rate(plan.high)}); no "
        "placement sustains more."
    )


def _chosen(plan: CapacityPlan, plans: Sequence[CapacityPlan]) -> str:
    """Say which of several plans is placed, and what the others are for."""
    others = [one.rate for one in plans if not _same(one.rate, plan.rate)]
    if not others:
        return ""
    return f"for {units.rate(plan.rate)}; others: {', '.join(units.scaled(rate, '') for rate in dict.fromkeys(others))}"


def _same(rate: float, other: float) -> bool:
    return math.isclose(rate, other, rel_tol=1e-6)


def _number(value: object) -> bool:
    return finite(value) or isinstance(value, float)  # the problem names the operator of a NaN


def _profile(seen: OperatorMetrics) -> OperatorProfile:
    records = seen.records_in
    if not records:
        return OperatorProfile(0.0, 0.0, 0.0, 0.0)
    return OperatorProfile(
        seen.cpu_s / records, (seen.state_bytes or 0) / records, seen.shuffle_bytes / records, seen.selectivity or 0.0
    )
