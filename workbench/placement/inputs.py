"""What to place: problem files, measurements and plans, alone or several on the same workers.

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
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, pairwise
from pathlib import Path
from statistics import median_low
from typing import Any

from workbench import bounds, units
from workbench.checks import finite, positive, shown, within
from workbench.dataflow import Dataflow, Edge, Operator, OperatorProfile
from workbench.errors import WorkbenchError
from workbench.metrics import SOURCE, OperatorMetrics
from workbench.placement.problem import DIMENSIONS, CostVector, PlacementProblem
from workbench.placement.skew import placement_groups
from workbench.placement.throughput import calibrated_worker
from workbench.reading import parse_json, parse_yaml, read_text
from workbench.records import (
    CapacityPlan,
    Measurement,
    PlannedStudy,
    deployed,
    measurement_from_document,
    nearest_run,
    planned_from_dict,
)
from workbench.simulation import PRESETS, Worker, preset, short_name

BATCH = "micro-batch"
"""Name of the single operator as which all stages of a micro-batch are placed and scaled."""

_SHAPE = re.compile(r"[0-9]{1,6}x[0-9]{1,6}")
_CAPACITIES = {"cpus": "cpus", "io": "io_bytes_per_s", "net": "net_bytes_per_s"}  # fields of a worker, as users say


@dataclass(frozen=True)
class PlacementInput:
    """The problem to place, and what is known about it."""

    queries: Mapping[str, PlacementProblem]  # problem of each query, all on the same cluster
    rate: float | None = None  # source rate of the loads, records/s; None if unknown
    worker: Worker = field(default_factory=Worker)  # capacities of a worker of speed 1
    basis: str = ""  # one sentence on what the rates of placements rest on; empty if the problem itself has them
    unit_cpus: float = 1.0  # cores per unit of CPU. Loads of a plan are in slots, because no task has more than one.
    chosen: str = ""  # which of several plans is placed, and the rates of the others; empty where there is no choice
    sized: bool = False  # whether speeds of the workers were given, so that another number of workers needs others
    alike: str = ""  # why any placement carries the same rate, and what is left to choose; empty if placements differ

    @property
    def speeds_with_one_more(self) -> tuple[float, ...]:
        """Speeds of the workers and of one more; empty where none need to be given.

        The one more is as fast as the middle one, of an even number the slower of the two.
        """
        speeds = self.problem.speeds
        return (*speeds, median_low(speeds)) if self.sized else ()

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


@dataclass(frozen=True)
class _Request:
    """Parameters of `read_placement_input`, with `what` as the file's name in errors; None: as in the file."""

    what: str
    workers: int | None
    slots: int | None
    rate: float | None
    speeds: Sequence[float] | None
    room: int | None

    @property
    def anywhere(self) -> bool:
        """Whether the workers are unspecified."""
        return self.workers is self.slots is self.room is None

    def workers_of(self, slots: int) -> int | None:
        """Return the requested workers, or as many as the room takes."""
        if self.workers is not None or self.room is None:
            return self.workers
        return math.ceil(self.room / max(1, slots))

    def problem(
        self, query: MeasuredQuery, rate: float, tasks: Mapping[str, int] | None, cluster: tuple[int, int]
    ) -> PlacementProblem:
        flow, profiles = query.dataflow, query.profiles
        return PlacementProblem.from_dataflow(flow, profiles, rate, *cluster, parallelism=tasks, speeds=self.speeds)


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

    Raises `WorkbenchError` for a file that cannot be read or lacks something, and a number out of its range.

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
        Slots of an invented cluster, if none is named; never those of a problem document's worker.
    """
    what = f"The placement input {os.fspath(path)}"
    if rate is not None:
        within("The rate to place for", rate, 0, bounds.RATE, "records/s", ends="(]")
    text = read_text(path, what)
    try:
        document = parse_yaml(text) if Path(path).suffix in {".yaml", ".yml"} else parse_json(text, by_hand=True)
    except ValueError as error:
        raise WorkbenchError(f"{what} cannot be read as JSON or YAML: {error}. Correct it.") from error
    if not isinstance(document, dict):
        found = "empty" if document is None else shown(document)
        raise WorkbenchError(f"{what} is {found}; it must be an object with operators.")
    asked = _Request(what, workers, slots, rate, speeds, room)
    if "plans" in document:
        return _plan(asked, planned_from_dict(document, what))
    if "estimate" in document:
        return _measurement(asked, measurement_from_document(document, what))
    return _problem(asked, document)


def placed_together(
    paths: Sequence[str],
    *,
    workers: int | None = None,
    slots: int | None = None,
    rate: float | None = None,
    speeds: Sequence[float] | None = None,
    cpus: float | None = None,
    io: float | None = None,
    net: float | None = None,
    calibrate: bool = False,
    shapes: Sequence[tuple[int, int]] = (),
) -> PlacementInput:
    """Read what to place from files, see `read_placement_input`, on the same workers.

    A worker has `cpus` cores and `io` and `net` bytes/s of state access and network output, by default as the files
    say; or, to `calibrate`, what the most even plan just fills. The `shapes` to compare make up for workers that nobody
    names.
    """
    said = {name: value for name, value in {"cpus": cpus, "io": io, "net": net}.items() if value is not None}
    if calibrate and said:
        raise WorkbenchError(
            "Calibrating finds the workers' capacities; leave out calibrating or the capacities.",
            settings=("calibrate", *said),
        )
    room = None
    if shapes and (slots is not None or not said):  # given capacities belong to given slots
        room = max(workers * slots for workers, slots in shapes)
    read = [
        read_placement_input(path, workers=workers, slots=slots, rate=rate, speeds=speeds, room=room) for path in paths
    ]
    first, *others = read
    if any(one.unit_cpus != first.unit_cpus for one in others):
        raise WorkbenchError(
            "The files are placed together, but a plan, which is placed in slots, can only be placed with others of "
            "slots as large. Place the files apart."
        )
    if rate is None:
        _require_same(paths, "rate", [one.rate for one in read])
    for name, capacity in _CAPACITIES.items():
        if name not in said:
            _require_same(paths, name, [getattr(one.worker, capacity) for one in read])
    if "cpus" in said:
        said["cpus"] /= first.unit_cpus
    given = PlacementInput(
        _named_apart(read),
        first.rate if rate is None else rate,
        replace(first.worker, **{_CAPACITIES[name]: value for name, value in said.items()}),
        " ".join(dict.fromkeys(one.basis for one in read if one.basis)),
        first.unit_cpus,
        " and ".join(dict.fromkeys(one.chosen for one in read if one.chosen)),
        speeds is not None or any(one.sized for one in read),
        "" if others or said else first.alike,
    )
    _ = given.problem
    return replace(given, worker=calibrated_worker(given.problem)) if calibrate else given


def _named_apart(read: Sequence[PlacementInput]) -> Mapping[str, PlacementProblem]:
    """Return the queries of all files; a name that occurs twice gets a number."""
    queries: dict[str, PlacementProblem] = {}
    taken = {name for one in read for name in one.queries}
    for one in read:
        for name, problem in one.queries.items():
            own = name
            if name in queries:
                own = next(free for free in (f"{name}-{number}" for number in count(2)) if free not in taken)
                taken.add(own)
            queries[own] = problem
    return queries


def _require_same(paths: Sequence[str], name: str, values: Sequence[float | None]) -> None:
    if len(set(values)) > 1:
        texts = ("none" if value is None else f"{value:g}" for value in values)
        said = ", ".join(f"{path}: {text}" for path, text in zip(paths, texts, strict=True))
        raise WorkbenchError(
            f"The files are placed together, but their {name} differs ({said}); make it the same in all, or give one "
            "for all.",
            settings=(name,),
        )


def thresholds_of(values: Sequence[float] | None) -> CostVector | None:
    """Make thresholds of three numbers; None if there are none."""
    if not values:
        return None
    if len(values) != len(DIMENSIONS):
        raise WorkbenchError(
            f"The thresholds have {len(values)} entries; give three: cpu, io, net, such as 0.1, 0.2, inf.",
            settings=("thresholds",),
        )
    return CostVector(*values)


def shapes_of(texts: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """Read worker shapes: ``4x8`` is four workers of eight slots."""
    shapes = []
    for text in texts:
        workers, _, slots = text.strip().partition("x")
        if not (_SHAPE.fullmatch(text.strip()) and 0 < int(workers) <= bounds.TASKS and 0 < int(slots) <= bounds.TASKS):
            raise WorkbenchError(
                f"{shown(text)} is not a shape such as 4x4 (workers x slots, each at most {bounds.TASKS:,}).",
                settings=("shapes",),
            )
        shapes.append((int(workers), int(slots)))
    return tuple(shapes)


def _problem(asked: _Request, document: Mapping[str, Any]) -> PlacementInput:
    """Read a problem document."""
    alone = "queries" not in document
    common = {"workers", "slots", "speeds", "rate", "worker"}
    _known(asked, document, {*common, "operators", "edges", "queries"})
    slots = asked.slots if asked.slots is not None else _get(asked, document, "slots", int)
    workers = asked.workers if "workers" in document else asked.workers_of(slots)
    if workers is None:
        workers = _get(asked, document, "workers", int)
    speeds = asked.speeds if asked.speeds is not None else document.get("speeds")
    stated = None if "rate" not in document else _above(asked, document, "rate")
    queries = {"query": document} if alone else _get(asked, document, "queries", dict)
    factor = 1.0 if asked.rate is None or stated is None else asked.rate / stated
    if not alone:
        _known(asked, document, {*common, "queries"})
        for name, query in queries.items():
            _known(asked, query if isinstance(query, dict) else {}, {"operators", "edges"}, f" of query {name!r}")
    problems = {
        name: _query(asked, query, "" if alone else f" of query {name!r}", factor, workers, slots, speeds)
        for name, query in queries.items()
    }
    capacities = _get(asked, document, "worker", dict) if "worker" in document else {}
    _known(asked, capacities, set(_CAPACITIES), " of the worker")
    worker = Worker(**{_CAPACITIES[name]: _above(asked, capacities, name) for name in capacities})
    found = PlacementInput(problems, stated if asked.rate is None else asked.rate, worker, sized=speeds is not None)
    _ = found.problem
    return found


def _query(  # noqa: PLR0917
    asked: _Request, query: object, of: str, factor: float, workers: int, slots: int, speeds: Sequence[float] | None
) -> PlacementProblem:
    """Read a query of a problem document, its loads times `factor`."""
    if not isinstance(query, dict):
        raise WorkbenchError(f"{asked.what}: {shown(query)}{of} is not an object with operators.")
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


def _get(asked: _Request, document: Mapping[str, Any], key: str, kind: type, of: str = "") -> Any:  # noqa: ANN401 - JSON
    if key not in document:
        raise WorkbenchError(f"{asked.what} lacks {key!r}{of}; add it.")
    value = document[key]
    if not isinstance(value, kind) or isinstance(value, bool):
        allowed = "a whole number" if kind is int else "an object"
        raise WorkbenchError(f"{asked.what}: {key}{of} is {shown(value)}; it must be {allowed}.")
    return value


def _above(asked: _Request, document: Mapping[str, Any], key: str) -> float:
    value = positive(f"{asked.what}: {key}", document.get(key))
    most = bounds.RATE if key == "rate" else bounds.NUMBER
    return within(f"{asked.what}: {key}", value, bounds.LEAST_NUMBER, most, ends="[]")


def _known(asked: _Request, document: Mapping[str, Any], keys: set[str], of: str = "") -> None:
    for key in document:
        if key not in keys:
            raise WorkbenchError(
                f"{asked.what} has the unknown key {shown(key)}{of}; known are {', '.join(sorted(keys))}."
            )


def _measurement(asked: _Request, measured: Measurement, tasks: Mapping[str, int] | None = None) -> PlacementInput:
    """Place the operators of a measurement, with `tasks` instead of its own.

    Without requested workers, micro-batches are placed as in a plan: on the measured slots.
    """
    seen, budget = measured.estimate.observation, measured.budget
    if measured.testbed_kind in {"spark", "observed"} and tasks is None and asked.anywhere:
        return _batches(asked, deployed(measured, asked.rate), measured)
    if seen is None or not seen.operators:
        raise WorkbenchError(f"{asked.what} sustained no rate, so its operators' costs are unknown; measure again.")
    query = measured_query(measured.query, seen.operators, seen.edges or None)
    rate = measured.estimate.low if asked.rate is None else asked.rate
    slots = asked.slots if asked.slots is not None else asked.room
    workers = None if slots is None else asked.workers_of(slots)
    if slots is None or workers is None:
        raise WorkbenchError(
            f"{asked.what} says nothing of the workers; give their number and slots.", settings=("workers", "slots")
        )
    problem = asked.problem(query, rate, tasks or measured.tasks, (workers, slots))
    basis = ""
    if measured.testbed_kind == "spark":
        basis = (
            f"Rates are bounds: they count CPU, state and shuffle alone. The run itself sustained "
            f"{units.rate(measured.estimate.middle)} on {units.some(budget.slots, 'slot')}."
        )
    return PlacementInput({measured.query: problem}, rate, Worker(cpus=budget.profile.cpus * slots), basis)


def _plan(asked: _Request, planned: PlannedStudy) -> PlacementInput:
    """Place the plan for the requested rate, else the last; on its own workers unless others are requested."""
    if not planned.plans:
        raise WorkbenchError(f"{asked.what} has no plans, so there is nothing to place; plan again.")
    found = [one for one in planned.plans if asked.rate is None or _same(one.rate, asked.rate)]
    if not found:
        rates = ", ".join(f"{one.rate:g}" for one in planned.plans)
        raise WorkbenchError(
            f"{asked.what} has no plan for {asked.rate:g} records/s; give one of its rates (records/s): {rates}."
        )
    plan = found[-1]
    nearest = nearest_run(planned.measurements, plan.budget)
    if nearest is None and plan.testbed_kind == "recorded":
        raise WorkbenchError(
            f"{asked.what} rests on recorded rates, which say nothing of operators, so there is nothing to place. "
            "Measure the query: plan a study without a table."
        )
    if nearest is None:
        raise WorkbenchError(f"{asked.what} has no run that sustained a rate, so no costs are known; plan again.")
    others = dict.fromkeys(one.rate for one in planned.plans if not _same(one.rate, plan.rate))
    chosen = ""
    if others:
        chosen = f"for {units.rate(plan.rate)}; others: {', '.join(units.scaled(rate, '') for rate in others)}"
    if plan.has_interval:
        return replace(_batches(asked, plan, nearest), chosen=chosen)
    tasks = None if plan.allocation is None else plan.allocation.tasks
    own = replace(asked, rate=plan.rate)
    if asked.anywhere:
        workers, slots = _own_workers(plan)
        own = replace(own, workers=workers, slots=slots)
    measured = replace(_measurement(own, replace(nearest, tasks=None), tasks), chosen=chosen)
    if tasks is None:
        return measured
    # The run is of another size than the plan, whose model also knows what more slots lose: scale the CPU of the
    # plan's own tasks, in slots, so that the fullest carries just the plan's capacity.
    placed = measured.problem
    fullest = max(placed.cpu)
    factor = plan.rate / plan.expected_rate / fullest if fullest > 0 else 1.0
    return replace(
        measured,
        queries={plan.query: replace(placed, cpu=tuple(factor * one for one in placed.cpu))},
        worker=Worker(cpus=float(placed.slots)),
        basis=_capacity(plan),
        unit_cpus=plan.budget.profile.cpus,
    )


def _batches(asked: _Request, plan: CapacityPlan, nearest: Measurement) -> PlacementInput:
    """Place the slots of a plan on its own workers, unless another cluster is given."""
    seen = nearest.estimate.observation
    own_workers, slots = _own_workers(plan)
    slots = slots if asked.slots is None else asked.slots
    workers = asked.workers_of(slots)
    query = batch_query(plan, seen.operators if seen is not None else (), slot_cpus=1.0)
    cluster = own_workers if workers is None else workers, slots
    problem = asked.problem(query, plan.rate, {BATCH: plan.budget.slots}, cluster)
    shape = "name a price list in the study (prices: FILE), and the plan says which workers are the cheapest"
    if plan.price is not None:
        shape = f"the plan's, the cheapest of its price list, is {plan.price.workers:,} x {plan.price.instance.name}"
    carries = f"carries {units.rate(plan.rate)}" if plan.rate <= plan.expected_rate else "sustains the same"
    alike = (
        f"Any placement {carries}: the {units.some(plan.budget.slots, 'task')} of a micro-batch are alike, Spark "
        f"assigns them itself, and the workers are equal. Choose the worker shape: {shape}."
    )
    return PlacementInput(
        {plan.query: problem},
        plan.rate,
        Worker(cpus=float(slots)),
        _capacity(plan),
        plan.budget.profile.cpus,
        alike="" if asked.speeds else alike,
    )


def _own_workers(plan: CapacityPlan) -> tuple[int, int]:
    """Return the number of a plan's workers, and the slots of the executors on each; without a price each has one."""
    workers = plan.executors if plan.price is None else plan.price.workers
    return workers, math.ceil(plan.executors / workers) * plan.executor.slots


def _capacity(plan: CapacityPlan) -> str:
    slots = plan.budget.slots
    return (
        f"The plan's capacity on {'this slot' if slots == 1 else f'these {slots:,} slots'} is "
        f"{units.rate(plan.expected_rate)} (90 % interval {units.rate(plan.low)} to {units.rate(plan.high)}); no "
        "placement sustains more."
    )


def _same(rate: float, other: float) -> bool:
    return math.isclose(rate, other, rel_tol=1e-6)


def batch_query(plan: CapacityPlan, seen: Sequence[OperatorMetrics], slot_cpus: float) -> MeasuredQuery:
    """Derive the unit costs of a whole micro-batch, so that the plan's slots carry just the plan's capacity.

    The stages of a micro-batch take all slots in turn, so a slot is what is placed and scaled: one operator, with as
    many tasks as slots. A record costs it all slots over the capacity, which counts the fixed part of a batch, waiting
    and uneven keys in, as no sum of the operators' CPU seconds does.
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

    Without edges, they are those of the simulated query of this name if it has these operators, else a chain in the
    order observed. Operators that nothing feeds are fed by a source that runs elsewhere.
    """
    seen = list(operators)
    names = [one.operator for one in seen]
    simulated = short_name(name)
    known = preset(simulated).dataflow if simulated in PRESETS else None
    if edges is None and known is not None and {o.name for o in known.operators} - set(known.sources) == set(names):
        flow, guessed = known, False
    else:
        guessed = edges is None
        pairs = list(pairwise(names) if edges is None else edges)
        fed = {downstream for _, downstream in pairs}
        nodes = [Operator(one.operator, one.kind, one.keeps_state) for one in seen]
        if not any(one.is_source for one in seen):
            nodes.insert(0, Operator(SOURCE, SOURCE))
            pairs = [*((SOURCE, one) for one in names if one not in fed), *pairs]
        flow = Dataflow(name, tuple(nodes), tuple(Edge(*pair) for pair in pairs))
    return MeasuredQuery(flow, {one.operator: _profile(one) for one in seen}, guessed)


def _profile(seen: OperatorMetrics) -> OperatorProfile:
    records = seen.records_in
    if not records:
        return OperatorProfile(0.0, 0.0, 0.0, 0.0)
    return OperatorProfile(
        seen.cpu_s / records, (seen.state_bytes or 0) / records, seen.shuffle_bytes / records, seen.selectivity or 0.0
    )
