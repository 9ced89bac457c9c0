"""Carry out a study: explore, model, and plan every target."""

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from workbench.capacity import CapacityPlan, plan
from workbench.capacity.estimator import CapacityEstimator
from workbench.capacity.explorer import LEAST_RUNS, Exploration, ResourceExplorer, conclude
from workbench.capacity.intervals import gains, interval_points, sweep
from workbench.capacity.measurement import Measurement, measurement_from_dict, measurement_to_dict, write_whole
from workbench.capacity.measuring import Configuration, load_curve_s, measurement_key
from workbench.capacity.optimizer import ConfigurationOptimizer, minimal_first
from workbench.capacity.prices import InstanceType, read_instances
from workbench.dataflow import Budget
from workbench.errors import WorkbenchError, in_keys
from workbench.journal import Journal
from workbench.study.catalogue import find_query, recorded_query
from workbench.study.spec import Study, study_from
from workbench.testbed.base import Run, Simulated, Testbed
from workbench.testbed.fluid import FluidTestbed
from workbench.testbed.recorded import RecordedTestbed
from workbench.testbed.spark import SparkTestbed
from workbench.workload.query import Query

VERSION = 2
# Least and most of one run, as seen on Spark on two cores: seconds until it is observed, and probes.
START_S = (30.0, 90.0)
PROBES = (4, 12)
SIMULATED_RUN_S = 1.0


@dataclass(frozen=True)
class Planned:
    """A finished study: what was explored, and a plan or the reason why there is none, by target rate.

    `sweep` are the runs of one budget at the trigger intervals to choose from, `instances` the price list.
    """

    study: Study
    exploration: Exploration
    plans: tuple[CapacityPlan, ...]
    refused: tuple[tuple[float, str], ...] = ()
    sweep: tuple[Measurement, ...] = ()
    instances: tuple[InstanceType, ...] = ()


@dataclass(frozen=True)
class DryRun:
    """What a study would measure, if nothing fails.

    Parameters
    ----------
    first
        Budgets that are measured in any case, in order; minimal configurations are among them.
    runs
        Least and most runs in all, with those that are recorded.
    seconds
        Least and most seconds that those take which are not recorded, roughly.
    recorded
        Runs that the journal has.
    sweep
        The largest budget at the trigger intervals to choose from, where that is not recorded.
    """

    first: tuple[Budget, ...]
    runs: tuple[int, int]
    seconds: tuple[float, float]
    recorded: int = 0
    sweep: tuple[Budget, ...] = ()


def run_study(
    study: Study,
    journal: Journal,
    *,
    progress: Callable[[str], None] = lambda _: None,
    testbed: Testbed | None = None,
    estimator: CapacityEstimator | None = None,
) -> Planned:
    """Explore, model and plan; what the journal holds is not measured again.

    A budget that cannot be measured is a run that failed: the others go on, and it is tried again when the study is
    carried out again.

    Parameters
    ----------
    testbed, estimator
        Where and how to measure; by default as the study says.

    Raises
    ------
    WorkbenchError
        When the query, the data or a budget cannot be had here, or too few budgets tell a capacity.
    """
    instances = read_instances(Path(study.prices)) if study.prices else ()  # before long work starts
    query, explorer = prepare(study, journal, progress=progress, testbed=testbed, estimator=estimator)
    exploration = explorer.run(query)
    swept: tuple[Measurement, ...] = ()
    if len(study.intervals) > 1:
        swept = sweep(
            query,
            study.space.corners[-1],
            study.intervals,
            testbed=explorer.optimizer.testbed,
            estimator=explorer.optimizer.estimator,
            journal=journal,
            progress=progress,
        )
    return plan_targets(study, exploration, swept, instances)


def prepare(
    study: Study,
    journal: Journal,
    *,
    progress: Callable[[str], None] = lambda _: None,
    testbed: Testbed | None = None,
    estimator: CapacityEstimator | None = None,
) -> tuple[Query, ResourceExplorer]:
    """Check that `study` can be carried out here; give its query and what explores it. See `run_study`."""
    try:
        testbed = testbed or testbed_of(study, progress)
        if study.prices:
            read_instances(Path(study.prices))
        query = query_of(study)
        if isinstance(testbed, SparkTestbed):
            for budget in (study.space.budget(slots, memory) for slots in study.slots for memory in study.memory_mb):
                testbed.check(budget)
        optimizer = ConfigurationOptimizer(
            testbed,
            estimator or estimator_of(study),
            journal,
            costs_at=study.slots[-1] if isinstance(testbed, SparkTestbed) else None,
            progress=progress,
        )
        optimizer.check(query, study.space.corners[0])
        explorer = ResourceExplorer(
            optimizer,
            study.space,
            study.seed,
            form=study.form,
            most_runs=study.most_runs,
            most_calls=study.most_calls,
            choice=study.choice,
            estimates=study.estimates,
        )
    except WorkbenchError as error:
        raise WorkbenchError(in_keys(str(error))) from error
    return query, explorer


def plan_targets(
    study: Study,
    exploration: Exploration,
    swept: Sequence[Measurement] = (),
    instances: Sequence[InstanceType] = (),
) -> Planned:
    """Plan every target of `study` on what was explored; a target that cannot be planned is refused with the reason.

    Memory at which nothing could be measured is not planned with.

    Parameters
    ----------
    swept
        Runs of one budget at several trigger intervals.
    instances
        Price list of the study.
    """
    wanted = study.plan_memory_mb or study.memory_mb
    memory_mb = [memory for memory in wanted if memory not in exploration.unmeasured_memory_mb]
    if not memory_mb:
        reason = f"Nothing could be measured at {', '.join(map(str, wanted))} MB per slot. Set other plan_memory_mb."
        return Planned(
            study, exploration, (), tuple((rate, reason) for rate in study.targets), tuple(swept), tuple(instances)
        )
    plans, refused = [], []
    for rate in study.targets:
        try:
            allowed = gains(interval_points(swept), study.interval_s, study.latency_s) if swept else None
            plans.append(
                plan(
                    exploration,
                    rate,
                    memory_mb=memory_mb,
                    margin=study.margin,
                    risk=study.risk,
                    instances=instances,
                    interval_gains=allowed,
                    low_rate=study.low_rate,
                )
            )
        except WorkbenchError as error:
            refused.append((rate, str(error)))
    return Planned(study, exploration, tuple(plans), tuple(refused), tuple(swept), tuple(instances))


def write_planned(planned: Planned, path: Path) -> None:
    """Write the study, its runs and its plans to `path` as JSON, all or nothing."""
    document = {
        "version": VERSION,
        "study": asdict(planned.study),
        "reason": planned.exploration.reason,
        "plans": [json.loads(one.to_json()) for one in planned.plans],
        "refused": [{"rate": rate, "reason": reason} for rate, reason in planned.refused],
        "runs": [measurement_to_dict(run) for run in planned.exploration.measurements],
        "sweep": [measurement_to_dict(run) for run in planned.sweep],
        "instances": [asdict(one) for one in planned.instances],
    }
    write_whole(path, json.dumps(document, allow_nan=False, ensure_ascii=False, indent=1) + "\n")


def read_planned(path: Path) -> Planned:
    """Read what `write_planned` wrote; the model is fitted to the runs again, and priced as it was.

    Raises
    ------
    WorkbenchError
        When the file is missing, no such document, or of another version.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        version, reason = document["version"], str(document["reason"])
        study, runs, sweep = dict(document["study"]), list(document["runs"]), list(document.get("sweep", ()))
        instances = tuple(InstanceType(**row) for row in document.get("instances", ()))
    except OSError as error:
        raise WorkbenchError(f"The plans {path} cannot be read: {error.strerror}. Check the path.") from error
    except (ValueError, KeyError, TypeError) as error:
        raise WorkbenchError(f"{path} holds no plans ({error}); make them with workbench plan.") from error
    if version != VERSION:
        raise WorkbenchError(
            f"The plans {path} have version {version!r}; this workbench reads version {VERSION}. Plan again."
        )
    given = {key: value for key, value in study.items() if value is not None and value != []}
    asked = study_from(given, f"The study in {path}")
    measured = [measurement_from_dict(run, f"A run in {path}") for run in runs]
    swept = [measurement_from_dict(run, f"A run in {path}") for run in sweep]
    found = conclude(measured, reason, form=asked.form, most_runs=asked.most_runs, choice=asked.choice)
    return plan_targets(asked, found, swept, instances)


def dry_run(
    study: Study,
    journal: Journal | None = None,
    *,
    testbed: Testbed | None = None,
    estimator: CapacityEstimator | None = None,
) -> DryRun:
    """Say what `run_study` would measure and roughly how long that takes; nothing is deployed.

    Parameters
    ----------
    journal
        What it holds is not measured again; None: it holds nothing.
    testbed, estimator
        As for `run_study`.

    Raises
    ------
    WorkbenchError
        When the query, the data, the prices or a budget cannot be had here.
    """
    journal = journal or Journal(os.devnull)
    query, explorer = prepare(study, journal, testbed=testbed, estimator=estimator)
    optimizer = explorer.optimizer
    explorer.optimizer = replace(optimizer, testbed=_OnlyRecorded(optimizer.testbed))
    with suppress(_NotRecordedError):
        while (budget := explorer.ask()) is not None:
            for run in explorer.optimizer.steps(query, budget):
                explorer.tell(run)
    certain = [run.budget for run in explorer.runs]
    known, operators = len(certain), len(optimizer.testbed.operators(query))
    for budget in explorer.ahead():
        takes = minimal_first(budget, operators, certain)
        if len(certain) + len(takes) > study.most_runs:
            runs = len(certain), len(certain)
            break
        certain += takes
    else:
        runs = _runs_in_all(study, explorer, certain, operators)
    intervals = sorted({*study.intervals} - {study.interval_s})
    swept = [replace(study.space.corners[-1], interval_s=interval) for interval in intervals]
    keys = [measurement_key(Configuration(query, budget), optimizer.testbed, optimizer.estimator) for budget in swept]
    left = [budget for budget, key in zip(swept, keys, strict=True) if not journal.entries("finished", key)]
    times = [_seconds(optimizer, study.interval_s), *(_seconds(optimizer, budget.interval_s) for budget in left)]
    costs_s = 0.0
    if optimizer.costs_at is not None and runs[1] > known and not any(run.load_curve for run in explorer.runs):
        costs_s = load_curve_s(study.interval_s)
    least, most = ((runs[end] - known) * times[0][end] + sum(one[end] for one in times[1:]) + costs_s for end in (0, 1))
    return DryRun(
        tuple(certain[known:]),
        (runs[0] + len(swept), runs[1] + len(swept)),
        (math.ceil(least), math.ceil(most)),
        known + len(swept) - len(left),
        tuple(left),
    )


def _runs_in_all(
    study: Study, explorer: ResourceExplorer, certain: Sequence[Budget], operators: int
) -> tuple[int, int]:
    """Least and most runs of an exploration that makes the runs `certain`."""
    count = len(certain)
    if study.choice == "edge" or explorer.reason() is not None:
        return count, count
    asked = max(explorer.calls + 1, len(study.space.corners))
    later = study.most_runs if study.most_calls is None else study.most_calls - asked
    memories = {budget.profile.memory_mb for budget in certain if budget.slots == operators}
    minimal = min(later, len({*study.memory_mb} - memories)) if operators else 0
    most = min(study.most_runs, count + later * study.estimates + minimal)
    # The first run that can end it by its cost is the one after those that are kept in any case.
    least = min(most, max(count, LEAST_RUNS + 1), count + later * study.estimates, study.most_runs - bool(minimal))
    return max(count, least), most


def _seconds(optimizer: ConfigurationOptimizer, interval_s: float) -> tuple[float, float]:
    """Least and most seconds of one run, roughly."""
    estimator = optimizer.estimator
    if isinstance(optimizer.testbed, Simulated):
        return SIMULATED_RUN_S, SIMULATED_RUN_S
    chunk, probe = estimator.chunk_time(interval_s), sum(estimator.probe_times(interval_s))
    most_chunks = math.ceil(estimator.warmup_cap_s / chunk)
    chunks = min(max(2, math.ceil(estimator.warmup_min_s / chunk)), most_chunks), most_chunks
    least, most = (START_S[end] + chunks[end] * chunk + PROBES[end] * probe for end in range(2))
    return least, most


class _NotRecordedError(Exception):
    """Something would have to be deployed."""


@dataclass(frozen=True)
class _OnlyRecorded:
    """A testbed that deploys nothing, in place of `testbed`: what the journal has of that is all it gives."""

    testbed: Testbed

    @property
    def identity(self) -> str:
        return self.testbed.identity

    def operators(self, query: Query) -> tuple[str, ...]:
        return self.testbed.operators(query)

    def deploy(
        self, query: Query, budget: Budget, layout: Mapping[str, int] | None = None, *, repeat: int | None = None
    ) -> AbstractContextManager[Run]:
        raise _NotRecordedError(query.name, budget, layout, repeat)


def query_of(study: Study) -> Query:
    """Find the query of a study; of a recorded one only its name is known."""
    if study.table is not None:
        return recorded_query(study.query, study.table)
    return find_query(study.query, study.dataset, study.event_time, study.output_mode)


def estimator_of(study: Study) -> CapacityEstimator:
    """Make the estimator that a study asks for."""
    return CapacityEstimator(
        tolerance=study.tolerance,
        warmup_min_s=min(CapacityEstimator.warmup_min_s, study.warmup_s),
        warmup_cap_s=study.warmup_s,
    )


def testbed_of(study: Study, progress: Callable[[str], None]) -> Testbed:
    """Make the testbed that a study asks for."""
    if study.testbed == "fluid":
        return FluidTestbed(seed=study.seed)
    if study.table is not None:
        return RecordedTestbed.from_csv(study.table)
    return SparkTestbed(
        slot_cpus="cores" if study.slot_cpus == int(study.slot_cpus) else "auto",
        warmup_cap_s=min(SparkTestbed.warmup_cap_s, study.warmup_s),
        progress=progress,
    )
