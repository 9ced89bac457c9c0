"""What to place: problem files, measurements and plans, alone or several on the same workers."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

from workbench import bounds
from workbench.checks import shown, within
from workbench.errors import WorkbenchError
from workbench.placement.plans import read_measurement, read_plan
from workbench.placement.problem import DIMENSIONS, CostVector, PlacementProblem
from workbench.placement.problem_file import CAPACITIES, read_problem
from workbench.placement.request import PlacementInput, Request
from workbench.placement.throughput import calibrated_worker
from workbench.reading import parse_json, parse_yaml, read_text
from workbench.records import measurement_from_document, planned_from_dict

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
    asked = Request(what, workers, slots, rate, speeds, room)
    if "plans" in document:
        return read_plan(asked, planned_from_dict(document, what))
    if "estimate" in document:
        return read_measurement(asked, measurement_from_document(document, what))
    return read_problem(asked, document)


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
    for name, capacity in CAPACITIES.items():
        if name not in said:
            _require_same(paths, name, [getattr(one.worker, capacity) for one in read])
    if "cpus" in said:
        said["cpus"] /= first.unit_cpus
    given = PlacementInput(
        _named_apart(read),
        first.rate if rate is None else rate,
        replace(first.worker, **{CAPACITIES[name]: value for name, value in said.items()}),
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
