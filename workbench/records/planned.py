"""A planned study: its settings, runs and plans, stored as one versioned JSON file."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from workbench.errors import WorkbenchError
from workbench.files import write_whole
from workbench.reading import parse_json, read_text
from workbench.records.documents import check_version, structure, unstructure
from workbench.records.forms import FormComparison
from workbench.records.measurement import Measurement, Run, run_from_dict
from workbench.records.plan import CapacityPlan, plan_from_dict, plan_to_dict
from workbench.records.plan_parts import InstanceType

VERSION = 3


class Refusal(NamedTuple):
    """A target rate (records/s) without a plan, and why."""

    rate: float
    reason: str


@dataclass(frozen=True)
class PlannedStudy:
    """What a study found, as it is stored.

    Parameters
    ----------
    study
        Its settings by name, as a study file has them.
    plans
        Plans that were made, in the order of the targets.
    runs
        Runs of the exploration, in order, failed ones included.
    sweep
        Runs of one budget at several trigger intervals.
    forms
        How the forms of the model compare; written for other programs, and not read back, since it follows from the
        runs.
    """

    study: Mapping[str, Any]
    reason: str
    plans: tuple[CapacityPlan, ...]
    refused: tuple[Refusal, ...] = ()
    runs: tuple[Run, ...] = ()
    sweep: tuple[Run, ...] = ()
    instances: tuple[InstanceType, ...] = ()
    forms: FormComparison | None = None

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """Runs that did not fail."""
        return tuple(run for run in self.runs if isinstance(run, Measurement))

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write it to `path`, all of it or nothing."""
        write_whole(path, json.dumps(planned_to_dict(self), allow_nan=False, ensure_ascii=False, indent=1) + "\n")

    @classmethod
    def from_json(cls, path: str | os.PathLike[str]) -> "PlannedStudy":
        """Read a planned study."""
        text = read_text(path, f"The plans {path}")
        try:
            document = parse_json(text)
        except ValueError as error:
            raise WorkbenchError(f"{path} holds no plans ({error}); make them with workbench plan.") from error
        return planned_from_dict(document, str(path))


def planned_to_dict(planned: PlannedStudy) -> dict[str, Any]:
    """Plain JSON values of `planned`."""
    return {
        "version": VERSION,
        "study": dict(planned.study),
        "reason": planned.reason,
        "plans": [plan_to_dict(one) for one in planned.plans],
        "refused": [one._asdict() for one in planned.refused],
        **{name: list(map(unstructure, getattr(planned, name))) for name in ("runs", "sweep", "instances")},
        **({} if planned.forms is None else {"forms": unstructure(planned.forms)}),
    }


def planned_from_dict(document: object, path: str) -> PlannedStudy:
    """Build a planned study from plain JSON values; `path` names it in errors."""
    try:
        return _read(document, path)
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        raise WorkbenchError(f"{path} holds no plans ({error}); make them with workbench plan.") from error


def _read(document: Any, path: str) -> PlannedStudy:  # noqa: ANN401 - JSON
    check_version(document["version"], VERSION, f"The plans {path} have", "Plan again with workbench plan.")
    runs, sweep = (
        tuple(run_from_dict(run, f"A run in {path}") for run in document.get(name, ())) for name in ("runs", "sweep")
    )
    return PlannedStudy(
        study=dict(document["study"]),
        reason=str(document["reason"]),
        plans=tuple(plan_from_dict(one, f"A plan in {path}") for one in document["plans"]),
        refused=tuple(Refusal(float(one["rate"]), str(one["reason"])) for one in document.get("refused", ())),
        runs=runs,
        sweep=sweep,
        instances=tuple(
            structure(one, InstanceType, f"An instance type in {path}") for one in document.get("instances", ())
        ),
    )
