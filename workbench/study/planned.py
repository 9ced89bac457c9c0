"""A finished study: a plan for each target, the document that keeps them, and which document a command was given."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from workbench.capacity import Exploration, compare_forms, plan
from workbench.capacity.explore import Choice, conclude
from workbench.capacity.model import Asked, advise, describe_runs, unmeasured_memory_mb, why_no_capacity
from workbench.capacity.planning import IntervalSpeedup, follow, goes_by, hot_key, interval_points, interval_speedups
from workbench.errors import WorkbenchError
from workbench.reading import parse_json, parse_yaml, read_text
from workbench.records import (
    CapacityPlan,
    Day,
    FailedRun,
    FormComparison,
    InstanceType,
    JobSettings,
    Measurement,
    PlannedStudy,
    Refusal,
    Run,
)
from workbench.simulation import RateTrace
from workbench.spelling import short, short_options
from workbench.study.own import file_of, module_of, state_keys
from workbench.study.spec import Study, read_study, study_from
from workbench.testbed.spark import sink_packages
from workbench.workload import Dataset, KeyFrequencies, read_key_frequencies, schema_of

T = TypeVar("T")

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

    def elsewhere(self, plan: CapacityPlan) -> bool:
        """Whether a plan has another interval than was explored, or other cores: the model has no risks for these."""
        return plan.on_other_cores or plan.budget.interval_s != self.exploration.runs[0].budget.interval_s


def plan_targets(
    study: Study, exploration: Exploration, swept: Sequence[Run] = (), instances: Sequence[InstanceType] = ()
) -> Planned:
    """Plan every target of `study` on what was explored; a target that cannot be planned is refused with the reason.

    Memory at which nothing could be measured is not planned with.
    """
    wanted = study.plan_memory_mb or study.memory_mb
    memory_mb = [memory for memory in wanted if memory not in unmeasured_memory_mb(exploration.runs)]
    plans, refused = [], []
    trace, keys = _if_there(RateTrace.from_csv, study.day), _if_there(read_key_frequencies, study.keys)
    if keys is not None and not keys.input:
        keys = replace(keys, input=_input_with(study, keys.column))
    for rate in study.targets:
        try:
            if not memory_mb:
                listed = ", ".join(map(str, wanted))
                raise WorkbenchError(  # noqa: TRY301 - a reason as any other
                    f"Nothing could be measured at {listed} MB per slot. Set other plan_memory_mb."
                )
            allowed = interval_gains(study, swept)
            found = plan(
                exploration,
                rate,
                margin=study.margin,
                risk=study.risk,
                low_rate=study.low_rate,
                outage=study.outage,
                run=study.run,
                memory_mb=memory_mb,
                instances=instances,
                interval_speedups=allowed,
                keys=keys,
                executor_slots=None if study.cluster is None else study.cluster.executor_slots,
            )
            found = replace(
                found,
                environment=study.environment and Path(study.environment).name,
                settings=_brought(study),
                script=study.script,
                inputs=_shares(exploration) if study.inputs else None,
                day=None if trace is None else _followed(study, exploration, found, trace, allowed),
            )
            plans.append(found)
        except WorkbenchError as error:
            refused.append(Refusal(rate, str(error)))
    return Planned(study, exploration, tuple(plans), tuple(refused), tuple(swept), tuple(instances))


def _input_with(study: Study, column: str) -> str:
    """Name the only input that has a column; "" where several have it, or none."""
    having = []
    for name, given in study.inputs.items():
        with suppress(WorkbenchError):  # its data may be gone
            having += [name] if column in schema_of(Dataset.at(given["dataset"]), None).names else []
    return having[0] if len(having) == 1 else ""


def _brought(study: Study) -> JobSettings | None:
    """Return what the job of a study brings along in production: also the package of its sink, and any checkpoint."""
    brought = replace(study.job_settings, checkpoint=study.checkpoint)
    if not brought:
        return None
    with suppress(WorkbenchError):  # of a Spark that is no longer installed
        return replace(brought, packages=(*sink_packages(brought), *brought.packages))
    return brought


def _shares(exploration: Exploration) -> dict[str, float] | None:
    """Return the inputs' shares of the rate at the highest sustained rate; None: none was sustained."""
    seen = [run.estimate.observation for run in exploration.measurements if run.estimate.observation is not None]
    rows = max(seen, key=lambda one: one.consumed_rate).inputs if seen else ()
    total = sum(one.records for one in rows)
    return {one.name: one.records / total for one in rows} if total else None


def plan_on(plan: CapacityPlan, instance: InstanceType, of: Callable[[], Planned]) -> CapacityPlan:
    """Return `plan` for the cores of `instance`; unchanged if it is for these. `of` returns the study of a plan."""
    priced = None if plan.price is None else plan.price.instance.core_speed
    if instance.core_speed == (priced if plan.on_other_cores else None):
        return plan
    planned = of()
    asked = replace(planned.study, targets=(plan.rate,), day=None)
    found = plan_targets(asked, planned.exploration, planned.sweep, (instance,))
    if not found.plans:
        raise WorkbenchError(found.refused[0].reason)
    return found.plans[0]


def _if_there(read: Callable[[str], T], file: str | None) -> T | None:
    """Read a file of the study; None if it has none, or the file is gone."""
    with suppress(WorkbenchError):
        return None if file is None else read(file)
    return None


def _followed(
    study: Study,
    exploration: Exploration,
    found: CapacityPlan,
    trace: RateTrace,
    allowed: Mapping[float, IntervalSpeedup] | None,
) -> Day | None:
    """Find what following the day's load takes; None for a plan that does not carry its peak."""
    if found.rate < trace.peak_per_s * (1 - 1e-9):
        return None
    every_s = trace.duration_s / len(trace.rates_per_s)
    gain = (allowed or {}).get(found.budget.interval_s, IntervalSpeedup())
    ratio = gain.ratio if study.risk is None else gain.quantile(study.risk)
    return follow(exploration, found, trace.rates_per_s.tolist(), every_s, gain=ratio, risk=study.risk)


def intervals_left_out(swept: Sequence[Run]) -> dict[float, str]:
    """Return, by trigger interval (seconds), why those of `swept` that show no capacity are not used."""
    reasons = {run.budget.interval_s: why_no_capacity(run) for run in swept}
    return {interval: reason for interval, reason in reasons.items() if reason is not None}


def interval_gains(study: Study, swept: Sequence[Run]) -> Mapping[float, IntervalSpeedup] | None:
    """Trigger intervals to choose from; None, the explored one, where nothing can or need be compared."""
    left_out = intervals_left_out(swept)
    points = interval_points([run for run in swept if run.budget.interval_s not in left_out])
    if study.latency_s is None and study.interval_s not in {point.interval_s for point in points}:
        return None
    return interval_speedups(points, study.interval_s, study.latency_s)


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
    most, growth = study.most_runs, study.growth
    # One run is enough: it was when the plans were made, if its minutes were over.
    found = conclude(stored.runs, stored.reason, form=study.form, most_runs=most, choice=choice, growth=growth, least=1)
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


def where_it_goes(path: str, keys: KeyFrequencies) -> tuple[str, bool]:
    """Say what the query of a study goes by, by its plans or else its text, if not by the column; and if it may."""
    with suppress(WorkbenchError):  # no plans, or their runs show no operator behind a shuffle
        said, within = what_the_hottest_takes(path, keys)
        return "" if within else said, within
    study = read_study(path)
    module, _, function = study.query.partition(":")
    file = file_of(module_of(module)) if function else None
    named = None if file is None or "repartition" in file.read_text(errors="replace") else state_keys(file, function)
    columns = dict.fromkeys(name for data in study.datasets for name in schema_of(Dataset.at(data), None).names)
    times = [study.event_time, *(one.get("event_time") for one in study.inputs.values())]
    by = {
        what: [one for one in columns if one not in times and goes_by(its, one)] for what, its in (named or {}).items()
    }
    if named is None or not all(by.values()) or any(keys.column in its for its in by.values()):  # or made of it
        return "", True
    at = " and its ".join(f"{what} goes by {', '.join(map(repr, its))}" for what, its in by.items())
    at = f"the query's {at}, not by {keys.column!r}" if at else "the query has neither state nor a join"
    said = f"By its text, {at}, so the key {keys.keys[0]!r} is not kept in one task and does not limit the tasks."
    return said, False


def what_the_hottest_takes(plan: str, keys: KeyFrequencies, rate: float | None = None) -> tuple[str, bool]:
    """Describe in one sentence what the most frequent of `keys` takes in a planned study, plans or a measurement.

    Also returns whether the operator goes by their column, as far as that is known. `rate`, records/s, is by default
    that of the last plan, or the one sustained. Raises WorkbenchError when the file is another, or no run has shown an
    operator behind a shuffle, or any operator.
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
        unknown = "so whether one task has all rows of a key is not known. Plan on measured runs, or leave it out."
        if any(run.estimate.observation is not None and run.estimate.observation.operators for run in runs):
            why = (
                f"No run of {plan} has shown an operator behind a shuffle, so no key is kept in one task. Leave it out."
            )
        elif runs and all(run.testbed_kind == "recorded" for run in runs):
            why = f"{plan} rests on recorded rates, which show no operators, {unknown}"
        else:
            why = f"No run of {plan} shows its operators, {unknown}"
        raise WorkbenchError(why, settings=("plan",))
    asked = rate or next((one for one in reversed(rates) if one > 0), None)
    if asked is None:
        raise WorkbenchError(f"{plan} names no rate; give one, records/s.", settings=("rate",))
    return found.sentence(asked), not found.elsewhere
