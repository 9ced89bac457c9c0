"""A finished study: its plans, the document that keeps them, and the error where a measurement failed."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from workbench.capacity import Exploration, compare_forms
from workbench.capacity.explore import conclude
from workbench.capacity.model import Asked, advise, describe_runs
from workbench.errors import WorkbenchError
from workbench.records import CapacityPlan, FailedRun, FormComparison, InstanceType, PlannedStudy, Refusal, Run
from workbench.spelling import short, short_options
from workbench.study.spec import Study, study_from

# Of a stored study, no keys of its file.
_HOW: Mapping[str, Any] = {"file": None, "options": {}, "scheduled": False, "stop_rule": False}


class MeasurementFailedError(WorkbenchError):
    """A measurement of a study failed; the plans rest on the others."""


@dataclass(frozen=True)
class Planned:
    """A finished study: its exploration, and a plan or the reason why there is none, by target rate.

    `sweep` are the runs of one budget at the trigger intervals to choose from, `instances` the price list.
    """

    study: Study
    exploration: Exploration
    plans: tuple[CapacityPlan, ...]
    refused: tuple[Refusal, ...] = ()
    sweep: tuple[Run, ...] = ()
    instances: tuple[InstanceType, ...] = ()

    @cached_property
    def forms(self) -> FormComparison:
        """How the forms of the model compare on its runs."""
        return compare_forms(self.exploration, self.plans, [one.rate for one in self.refused])


def asked_of(study: Study, options: Mapping[str, object] = MappingProxyType({}), *, scheduled: bool = False) -> Asked:
    """Return how a study requests its runs; see `Asked` for the rest."""
    return Asked(study.testbed, study.file, study.log, options, study.risk, scheduled)


def planned_document(planned: Planned) -> PlannedStudy:
    """Return the document of a finished study: its settings, runs and plans, without the model.

    The settings also say how the study was asked for, and whether the stop rule left runs out of the model; no path of
    them names a folder above home.
    """
    found = planned.exploration
    settings, asked = asdict(planned.study), found.asked
    paths = {name: short(settings[name]) for name in ("file", "log", "prices") if settings[name] is not None}
    how = {"options": short_options(asked.options), "scheduled": asked.scheduled}
    stopped = len(found.fitted) + len(found.left_out) < len(found.runs)
    return PlannedStudy(
        study=settings | paths | {name: value for name, value in how.items() if value} | {"stop_rule": stopped},
        reason=found.reason,
        plans=planned.plans,
        refused=planned.refused,
        runs=found.runs,
        sweep=planned.sweep,
        instances=planned.instances,
        forms=planned.forms,
    )


def write_planned(planned: Planned, path: Path) -> None:
    """Write the study, its runs and its plans to `path` as JSON, all or nothing."""
    planned_document(planned).to_json(path)


def read_planned(path: Path) -> Planned:
    """Read what `write_planned` wrote: the plans as they are stored, and the model fitted again to the stored runs."""
    stored = PlannedStudy.from_json(path)
    given = {key: value for key, value in stored.study.items() if value is not None and value != []}
    file, options, scheduled, stop_rule = (given.pop(name, default) for name, default in _HOW.items())
    if not isinstance(options, Mapping):
        raise WorkbenchError(f"The study in {path} has options that are not options of a command. Plan it again.")
    study = replace(study_from(given, f"The study in {path}"), file=file)
    found = conclude(
        stored.runs,
        stored.reason,
        form=study.form,
        most_runs=study.most_runs,
        choice="improvement" if stop_rule else "edge",
        growth=study.growth,
    )
    asked = asked_of(study, options, scheduled=bool(scheduled))
    return Planned(study, replace(found, asked=asked), stored.plans, stored.refused, stored.sweep, stored.instances)


def refuse_failures(planned: Planned) -> None:
    """Raise an error where a measurement of `planned` failed, for a caller that shows it."""
    runs = planned.exploration.runs
    failures = {row: run.failure for row, run in enumerate(runs) if isinstance(run, FailedRun)}
    if failures:
        raise MeasurementFailedError(
            f"{len(failures)} of {len(runs)} measurements failed, so the answer rests on the others. "
            f"{describe_runs(runs, failures)} {advise(runs[row] for row in failures)}"
        )
    failed = [f"{run.budget.interval_s:g} s: {run.failure}" for run in planned.sweep if isinstance(run, FailedRun)]
    if failed:
        raise MeasurementFailedError(
            f"Measuring failed at a trigger interval of {' At '.join(failed)} What failed is tried again when the same "
            "is run again; leave out of intervals what keeps failing."
        )
