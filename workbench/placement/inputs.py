"""The entrance of placement: problem files, measurements and plans, alone or several on the same workers."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

from workbench import bounds
from workbench.checks import finite, shown
from workbench.errors import WorkbenchError
from workbench.placement._planned import measurement_from, plan_from
from workbench.placement._problem_file import CAPACITIES, problem_from
from workbench.placement.given import Asked, PlacementInput
from workbench.placement.outcomes import calibrated_worker
from workbench.placement.plan import CostVector
from workbench.placement.problem import PlacementProblem
from workbench.reading import parse_json, parse_yaml, read_text
from workbench.records import measurement_from_document, planned_from_dict
from workbench.simulation import Worker

_SHAPE = re.compile(r"[0-9]{1,6}x[0-9]{1,6}")


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
    if rate is not None and rate > bounds.RATE:
        raise WorkbenchError(f"The rate to place for is {shown(rate)}; it must be at most {bounds.RATE:g} records/s.")
    text = read_text(path, what)
    try:
        document = parse_yaml(text) if Path(path).suffix in {".yaml", ".yml"} else parse_json(text, by_hand=True)
    except ValueError as error:
        raise WorkbenchError(f"{what} cannot be read as JSON or YAML: {error}. Correct it.") from error
    if not isinstance(document, dict):
        found = "empty" if document is None else shown(document)
        raise WorkbenchError(f"{what} is {found}; it must be an object with operators.")
    asked = Asked(what, workers, slots, rate, speeds, room)
    if "plans" not in document and "estimate" not in document:
        return problem_from(asked, document)
    if "plans" in document:
        return plan_from(asked, planned_from_dict(document, what))
    return measurement_from(asked, measurement_from_document(document, what))


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

    Parameters
    ----------
    cpus, io, net
        Cores, bytes/s of state access and bytes/s of network output of a worker; as the files say by default.
    calibrate
        Take workers that the most even plan just fills.
    shapes
        Worker shapes to compare, which make up for workers that nobody names.
    """
    said = {name: value for name, value in {"cpus": cpus, "io": io, "net": net}.items() if value is not None}
    if calibrate and said:
        raise WorkbenchError(
            "Calibrating finds the workers' capacities; leave out calibrating or the capacities.",
            settings=("calibrate", *said),
        )
    room = None
    if shapes and (slots is not None or not said):  # capacities said belong to slots that are said too
        room = max(workers * slots for workers, slots in shapes)
    read = [
        read_placement_input(path, workers=workers, slots=slots, rate=rate, speeds=speeds, room=room) for path in paths
    ]
    units = {one.unit_cpus for one in read}
    if len(units) > 1:
        raise WorkbenchError(
            "The files are placed together, but a plan, which is placed in slots, can only be placed with others of "
            "slots as large. Place the files apart."
        )
    unit = read[0].unit_cpus
    queries = _queries(read)
    if rate is None:
        _alike(paths, "rate", [one.rate for one in read])
    for name, field in CAPACITIES.items():
        if name not in said:
            _alike(paths, name, [getattr(one.worker, field) for one in read])
    if "cpus" in said:
        said["cpus"] /= unit
    given = PlacementInput(
        queries,
        rate if rate is not None else read[0].rate,
        Worker(**(vars(read[0].worker) | {CAPACITIES[name]: value for name, value in said.items()})),
        " ".join(dict.fromkeys(one.basis for one in read if one.basis)),
        unit,
        " and ".join(dict.fromkeys(one.chosen for one in read if one.chosen)),
        speeds is not None or any(one.sized for one in read),
        read[0].alike if len(read) == 1 and not said else "",
    )
    _ = given.problem
    return replace(given, worker=calibrated_worker(given.problem)) if calibrate else given


def thresholds_of(values: Sequence[float] | None) -> CostVector | None:
    """Make thresholds of three numbers; None of none."""
    if not values:
        return None
    if len(values) != len(tuple(CostVector())):
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
                f"{shown(text)} is no shape such as 4x4 (workers x slots, each at most {bounds.TASKS:,}).",
                settings=("shapes",),
            )
        shapes.append((int(workers), int(slots)))
    return tuple(shapes)


def _queries(read: Sequence[PlacementInput]) -> Mapping[str, PlacementProblem]:
    """Give the queries of all files; a name that is there twice gets a number."""
    if len(read) == 1:
        return read[0].queries
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


def _alike(paths: Sequence[str], name: str, values: Sequence[float | None]) -> None:
    if len(set(values)) > 1:
        said = ", ".join(
            f"{path}: {'none' if value is None else f'{value:g}'}" for path, value in zip(paths, values, strict=True)
        )
        raise WorkbenchError(
            f"The files are placed together, but their {name} differs ({said}); make it the same in all, or give one "
            "for all.",
            settings=(name,),
        )
