"""Where placement problems come from: a problem file, a measurement, or plans."""

import os
from collections.abc import Sequence
from pathlib import Path

from workbench import bounds
from workbench.checks import finite, shown
from workbench.errors import WorkbenchError
from workbench.placement._planned import measurement_from, plan_from
from workbench.placement._problem_file import problem_from
from workbench.placement.given import Asked, PlacementInput
from workbench.reading import parse_json, parse_yaml, read_text
from workbench.records import measurement_from_document, planned_from_dict


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
