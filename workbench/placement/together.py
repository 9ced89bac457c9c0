"""Several files placed together, on the workers that are asked for."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count

from workbench import bounds
from workbench.checks import shown
from workbench.errors import WorkbenchError
from workbench.placement.given import PlacementInput
from workbench.placement.inputs import read_placement_input
from workbench.placement.outcomes import calibrated_worker
from workbench.placement.plan import CostVector
from workbench.placement.problem import PlacementProblem
from workbench.simulation import Worker

_CAPACITIES = {"cpus": "cpus", "io": "io_bytes_per_s", "net": "net_bytes_per_s"}  # by what they are asked as

_SHAPE = re.compile(r"[0-9]{1,6}x[0-9]{1,6}")


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
    unit = _unit_cpus(read)
    queries = _queries(read)
    if rate is None:
        _alike(paths, "rate", [one.rate for one in read])
    for name, field in _CAPACITIES.items():
        if name not in said:
            _alike(paths, name, [getattr(one.worker, field) for one in read])
    if "cpus" in said:
        said["cpus"] /= unit
    given = PlacementInput(
        queries,
        rate if rate is not None else read[0].rate,
        Worker(**(vars(read[0].worker) | {_CAPACITIES[name]: value for name, value in said.items()})),
        " ".join(dict.fromkeys(one.basis for one in read if one.basis)),
        unit,
        " and ".join(dict.fromkeys(one.chosen for one in read if one.chosen)),
        speeds is not None or any(one.sized for one in read),
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


def _unit_cpus(read: Sequence[PlacementInput]) -> float:
    """Give the cores of one unit of CPU, the same in all files."""
    found = sorted({one.unit_cpus for one in read})
    if len(found) > 1:
        raise WorkbenchError(
            "The files are placed together, but a plan, which is placed in slots, can only be placed with others of "
            "slots as large. Place the files apart."
        )
    return found[0]


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
