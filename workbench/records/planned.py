"""A planned study: its settings, runs and plans, stored as one versioned JSON file."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from workbench.errors import WorkbenchError
from workbench.files import write_whole
from workbench.reading import parse_json, read_text
from workbench.records.documents import check_version, structure, unstructure
from workbench.records.measurement import FailedRun, Measurement, Run
from workbench.records.plan import CapacityPlan, plan_from_dict, plan_to_dict
from workbench.records.plan_parts import InstanceType

FormRule = Literal["halves", "leave-one-out", "first"]
FormEvidence = Literal["set", "too few", "alike", "law", "form"]


@dataclass(frozen=True)
class FormTarget:
    """A target rate, records/s, at a memory per slot, MiB; and the plan for it.

    `slots` and `expected_rate` (records/s) are the plan's; None without one at the trigger interval explored.
    """

    rate: float
    memory_mb: float
    slots: int | None = None
    expected_rate: float | None = None


@dataclass(frozen=True)
class FormFit:
    """One form, fitted to all runs, and its errors, records/s and relative to the rates; None: not defined."""

    form: str  # its name; ``"scaling"`` is the workbench's law
    # a, b and c of Equations 6 to 8; of the law, the expected exponents of memory and slots
    coefficients: tuple[float, ...]
    # left_out, left_out_share: mean absolute error at a run when the form is fitted to the others; mean of the relative
    # ones
    left_out: float | None
    left_out_share: float | None
    # upper_half, upper_half_share: root-mean-square error on the upper half of the runs when the form is fitted to the
    # lower half; relative to the mean rate there
    upper_half: float | None
    upper_half_share: float | None
    # by target, fewest slots that carry StreamBed's margin of 1.10 times the rate; None: no number does
    slots: tuple[int | None, ...]
    predicted: tuple[float | None, ...]  # by target, capacity at the plan's slots, records/s; None without a plan


@dataclass(frozen=True)
class FormComparison:
    """The paper's three forms and the law on the same runs."""

    runs: int
    targets: tuple[FormTarget, ...]
    fits: tuple[FormFit, ...]  # those that can be fitted: the paper's, others that the plan uses, the law
    chosen: str | None  # the paper's choice; None where two runs are missing
    # what chose it: StreamBed's halves; with fewer than two runs left to test, the leave-one-out error; where that is
    # not defined, the first form
    rule: FormRule
    used: str
    # for the law against the paper's choice: ``"law"`` or ``"form"`` misses a run left out by clearly less (a paired
    # t-test, 95 % one-sided); ``"alike"``: neither does; ``"too few"``: there are fewer than four runs, or no such
    # errors; ``"set"``: the plan uses a form that the study sets
    evidence: FormEvidence

    def fit_of(self, form: str | None) -> FormFit | None:
        """Return the fit of `form`; None if there is none."""
        return next((fit for fit in self.fits if fit.form == form), None)


VERSION = 3


class Refusal(NamedTuple):
    """A target rate (records/s) without a plan, and the reason."""

    rate: float
    reason: str


@dataclass(frozen=True)
class PlannedStudy:
    """The stored result of a study."""

    study: Mapping[str, Any]  # its settings by name, as a study file has them
    reason: str
    plans: tuple[CapacityPlan, ...]  # plans that were made, in the order of the targets
    refused: tuple[Refusal, ...] = ()
    runs: tuple[Run, ...] = ()  # runs of the exploration, in order, failed ones included
    sweep: tuple[Run, ...] = ()  # runs of one budget at several trigger intervals
    instances: tuple[InstanceType, ...] = ()
    # how the forms of the model compare; written for other programs, and not read back, since it follows from the runs
    forms: FormComparison | None = None

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """Runs that did not fail."""
        return tuple(run for run in self.runs if isinstance(run, Measurement))

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write the study to `path`, all of it or nothing."""
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


def planned_from_dict(document: Any, path: str) -> PlannedStudy:  # noqa: ANN401 - JSON
    """Build a planned study from plain JSON values; `path` names it in errors."""
    what = f"A run in {path}"
    try:
        check_version(document["version"], VERSION, f"The plans {path} have", "Plan again with workbench plan.")
        runs, sweep = (
            tuple(
                structure(run, FailedRun, what) if "failure" in run else structure(run, Measurement, what)
                for run in document.get(name, ())
            )
            for name in ("runs", "sweep")
        )
        instances = document.get("instances", ())
        return PlannedStudy(
            study=dict(document["study"]),
            reason=str(document["reason"]),
            plans=tuple(plan_from_dict(one, f"A plan in {path}") for one in document["plans"]),
            refused=tuple(Refusal(float(one["rate"]), str(one["reason"])) for one in document.get("refused", ())),
            runs=runs,
            sweep=sweep,
            instances=tuple(structure(one, InstanceType, f"An instance type in {path}") for one in instances),
        )
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        raise WorkbenchError(f"{path} holds no plans ({error}); make them with workbench plan.") from error
