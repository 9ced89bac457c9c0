"""A finished study: its plans, the document that keeps them, and which document a command was given."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from workbench.capacity import Exploration, compare_forms
from workbench.capacity.explore import Choice, conclude
from workbench.capacity.model import Asked, advise, describe_runs
from workbench.capacity.planning import hot_key
from workbench.errors import WorkbenchError
from workbench.reading import parse_json, parse_yaml, read_text
from workbench.records import CapacityPlan, FailedRun, FormComparison, InstanceType, Measurement, PlannedStudy, Refusal
from workbench.spelling import short, short_options
from workbench.study.spec import Study, study_from
from workbench.workload import KeyFrequencies

PLANS, MEASUREMENT, PROBLEM, _STUDY = "plans", "a measurement", "a placement problem", "a study"
SUFFIXES = {".json", ".yaml", ".yml"}  # suffixes of files that may be inputs, which distinguish them from queries
_STUDY_KEYS = frozenset(one.name for one in fields(Study))
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
    sweep: tuple[Measurement | FailedRun, ...] = ()
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
    settings |= paths | {name: value for name, value in how.items() if value} | {"stop_rule": stopped}
    return PlannedStudy(
        study=settings,
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
    choice: Choice = "improvement" if stop_rule else "edge"
    found = conclude(
        stored.runs, stored.reason, form=study.form, most_runs=study.most_runs, choice=choice, growth=study.growth
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


def plans_path(study: Path) -> Path:
    """Return where ``workbench plan`` writes a study's plans: studies of one name in two folders have their own."""
    folders = (part for part in study.parent.parts if part.strip("./"))
    return Path(".workbench", "-".join((*folders, f"{study.stem}-plan.json")))


def resolved(path: str, command: str, takes: str, others: frozenset[str] = frozenset()) -> tuple[str, Path]:
    """Return the kind of a file, plans, a measurement or one of `others`, and its path; for a study, that of its plans.

    The kind is "" for a file that is unreadable or of another kind, whose own reader explains the problem. `command`
    is for messages. Raises WorkbenchError when a study has no plans yet, or the file is known to be another thing.
    """
    document: object = None
    with suppress(WorkbenchError, ValueError):
        text = read_text(path, f"The input {path}")
        document = parse_json(text, by_hand=True) if Path(path).suffix == ".json" else parse_yaml(text)
    found = _kind(document)
    if found == _STUDY:
        plans = plans_path(Path(path))
        if not plans.exists():
            raise WorkbenchError(
                f"{path} is a study, and {plans} has no plans of it yet. Plan it first: workbench plan {short(path)}"
            )
        return PLANS, plans
    if found in {"", PLANS, MEASUREMENT, *others}:
        return found, Path(path)
    raise WorkbenchError(f"{path} is {found}; workbench {command} takes {takes}.")


def _kind(document: object) -> str:
    if not isinstance(document, Mapping):
        return ""
    if "plans" in document:
        return PLANS
    if "estimate" in document:
        return MEASUREMENT
    if {"operators", "queries", "workers"} & document.keys():
        return PROBLEM
    if "query" in document and document.keys() <= _STUDY_KEYS:
        return _STUDY
    return "frequencies of keys" if {"column", "counts"} <= document.keys() else ""


def what_the_hottest_takes(plan: str, keys: KeyFrequencies, rate: float | None = None) -> str:
    """Describe in one sentence what the most frequent of `keys` takes in a planned study, plans or a measurement.

    `rate`, records/s, is by default that of the last plan, or the one sustained. Raises WorkbenchError when the file is
    another, or no run has shown an operator behind a shuffle.
    """
    kind, file = resolved(plan, "keys", "a study, plans or a measurement as its plan")
    if kind != MEASUREMENT:
        planned = PlannedStudy.from_json(file)
        runs, rates = planned.measurements, [one.rate for one in planned.plans]
        times = next((one.cores.times for one in planned.plans[-1:] if one.cores is not None), 1.0)
    else:
        measured = Measurement.from_json(file)
        runs, rates, times = (measured,), [measured.estimate.low], 1.0
    found = hot_key(runs, keys, times)
    if found is None:
        raise WorkbenchError(
            f"No run of {plan} has shown an operator behind a shuffle, so no key is kept in one task. Leave it out.",
            settings=("plan",),
        )
    asked = rate or next((one for one in reversed(rates) if one > 0), None)
    if asked is None:
        raise WorkbenchError(f"{plan} names no rate; give one, records/s.", settings=("rate",))
    return found.sentence(asked)
