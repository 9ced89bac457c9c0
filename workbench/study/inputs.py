"""Which kind of file a command was given: plans, a measurement, a study, whose plans are looked for, or another."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields
from pathlib import Path

from workbench.capacity.planning import hot_key
from workbench.errors import WorkbenchError
from workbench.reading import parse_json, parse_yaml, read_text
from workbench.records import Measurement, PlannedStudy
from workbench.spelling import short
from workbench.study.spec import Study
from workbench.workload import KeyFrequencies

PLANS, MEASUREMENT, PROBLEM, _STUDY = "plans", "a measurement", "a placement problem", "a study"
SUFFIXES = {".json", ".yaml", ".yml"}  # suffixes of files that may be inputs, which distinguish them from queries
_STUDY_KEYS = frozenset(one.name for one in fields(Study))


def plans_path(study: Path) -> Path:
    """Return where ``workbench plan`` writes a study's plans: studies of one name in two folders have their own."""
    folders = (part for part in study.parent.parts if part.strip("./"))
    return Path(".workbench", "-".join((*folders, f"{study.stem}-plan.json")))


def resolved(path: str, command: str, takes: str, others: frozenset[str] = frozenset()) -> tuple[str, Path]:
    """Return the kind of a file, plans, a measurement or one of `others`, and its path; for a study, that of its plans.

    The kind is "" for a file that is unreadable or of another kind, whose own reader explains the problem. `command`
    is for messages. Raises WorkbenchError when a study has no plans yet, or the file is known to be another thing.
    """
    found = _kind(_document(path))
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


def _document(path: str) -> object:
    with suppress(WorkbenchError, ValueError):
        text = read_text(path, f"The input {path}")
        return parse_json(text, by_hand=True) if Path(path).suffix == ".json" else parse_yaml(text)
    return None


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
