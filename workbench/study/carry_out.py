"""Carry out a study: explore, model, and plan every target."""

from collections.abc import Callable, Generator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

from workbench import units
from workbench.capacity import ConfigurationOptimizer, Exploration, ResourceExplorer
from workbench.capacity.explore import ALONE, MANY_TASKS, conclude
from workbench.capacity.model import Asked
from workbench.capacity.planning import cheapest, read_instances, sweep
from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.journal import Journal
from workbench.measuring import CapacityEstimator, Concluded, Estimated, Event, Finished, Reused, ignore, result_of
from workbench.records import InstanceType, Run
from workbench.simulation import RateTrace
from workbench.study.catalogue import find_query
from workbench.study.observed import explored_log
from workbench.study.parts import Find, estimator_of, query_of, testbed_of
from workbench.study.planned import Planned, asked_of
from workbench.study.so_far import SoFar
from workbench.study.spec import Study
from workbench.study.targets import plan_targets
from workbench.testbed import RecordedTestbed, Sharing, SparkTestbed, Testbed, WarmTestbed
from workbench.workload import Query, read_key_frequencies

_SMALL = 4
"""Budgets up to which the grid is the space: all are measured, and one again."""


def run_study(
    study: Study,
    journal: Journal,
    *,
    progress: Callable[[str], None] = lambda _: None,
    listen: Callable[[Event], None] = ignore,
    testbed: Testbed | None = None,
    estimator: CapacityEstimator | None = None,
    asked: Asked | None = None,
) -> Planned:
    """Explore, model and plan; see `study_steps`. What happens is shown to `listen`."""
    steps = study_steps(study, journal, progress=progress, testbed=testbed, estimator=estimator, asked=asked)
    return result_of(steps, listen)


def study_steps(
    study: Study,
    journal: Journal,
    *,
    progress: Callable[[str], None] = lambda _: None,
    testbed: Testbed | None = None,
    estimator: CapacityEstimator | None = None,
    asked: Asked | None = None,
) -> Generator[Event, None, Planned]:
    """Explore, model and plan: yield what happens and return the plans.

    After each run it yields what all of them say so far, as `Concluded` with `SoFar`.

    What the journal holds is not measured again. A budget that cannot be measured is a run that failed: the others go
    on, and it is tried again when you run the study again.
    """
    asked = asked or asked_of(study)
    if study.log is not None:
        instances = read_instances(Path(study.prices)) if study.prices else ()
        return plan_targets(study, replace(explored_log(study), asked=asked), (), instances)
    query, explorer, instances = prepare(study, journal, progress=progress, testbed=testbed, estimator=estimator)
    warm = explorer.optimizer.testbed
    with warm if isinstance(warm, WarmTestbed) else nullcontext():
        exploration = yield from _with_answers(explorer, query, study, instances)
    swept: tuple[Run, ...] = ()
    if len(study.intervals) > 1:
        optimizer = explorer.optimizer
        swept = yield from sweep(
            query,
            study.space.corners[-1],
            study.intervals,
            testbed=warm.testbed if isinstance(warm, WarmTestbed) else warm,
            estimator=optimizer.estimator,
            journal=journal,
        )
    return plan_targets(study, replace(exploration, asked=asked), swept, instances)


def runs_of(study: Study) -> int:
    """Most runs: where the budgets are few and share a deployment, one of each and one again, which shows drift."""
    budgets = len(study.space.budgets)
    return min(study.most_runs, budgets + 1) if study.shared and budgets <= _SMALL else study.most_runs


def _with_answers(
    explorer: ResourceExplorer, query: Query, study: Study, instances: Sequence[InstanceType]
) -> Generator[Event, None, Exploration]:
    """Explore, and yield after each run what those so far say."""
    made: list[Run] = []
    steps = explorer.steps(query)
    while True:
        try:
            event = next(steps)
        except StopIteration as end:
            found: Exploration = end.value
            return found
        yield event
        if isinstance(event, Finished | Reused):
            made.append(event.measurement)
        if isinstance(event, Estimated | Reused):
            runs = (*made, event.measurement) if isinstance(event, Estimated) else tuple(made)
            yield Concluded(SoFar(study, runs, tuple(instances)))


def planned_so_far(
    study: Study,
    journal: Journal,
    *,
    find: Find = find_query,
    asked: Asked | None = None,
    testbed: Testbed | None = None,
    estimator: CapacityEstimator | None = None,
) -> Planned:
    """Plan with the finished runs that the journal has, as where a study was interrupted; nothing is deployed."""
    query, explorer, instances = prepare(study, journal, find=find, testbed=testbed, estimator=estimator)
    known = True
    while known and (budget := explorer.ask()) is not None:
        runs, known = explorer.optimizer.recorded(query, budget)
        for run in runs:
            explorer.tell(run)
    made = explorer.runs
    reason = f"interrupted after {units.some(len(made), 'run')}"
    found = conclude(made, reason, form=study.form, choice="edge", growth=study.growth, least=1)
    return plan_targets(study, replace(found, asked=asked or asked_of(study)), (), instances)


def prepare(
    study: Study,
    journal: Journal,
    *,
    progress: Callable[[str], None] = lambda _: None,
    testbed: Testbed | None = None,
    estimator: CapacityEstimator | None = None,
    find: Find | None = None,
) -> tuple[Query, ResourceExplorer, tuple[InstanceType, ...]]:
    """Check that `study` can be carried out here, before long work starts; give its query, explorer and price list.

    `find` finds its query, by importing the user's module, as by default, or without.
    """
    testbed = testbed or testbed_of(study, progress)
    if study.day is not None:
        RateTrace.from_csv(study.day)
    if study.keys is not None:
        read_key_frequencies(study.keys)
    instances = read_instances(Path(study.prices)) if study.prices else ()
    if instances and study.cluster is not None:
        least = SlotProfile(study.slot_cpus, min(study.plan_memory_mb or study.memory_mb))
        size = study.cluster.executor_slots
        cheapest(instances, size, least, executor_slots=size)  # what nobody can deploy is not worth measuring
    query = query_of(study, find or partial(find_query, progress=progress))
    if isinstance(testbed, SparkTestbed):
        for budget in (study.space.budget(slots, memory) for slots in study.slots for memory in study.memory_mb):
            testbed.check(budget)
        for interval in study.intervals:
            testbed.check(replace(study.space.corners[-1], interval_s=interval))
    shared = study.shared and isinstance(testbed, Sharing)
    budgets = study.space.budgets
    optimizer = ConfigurationOptimizer(
        WarmTestbed(testbed, budgets) if shared else testbed,
        estimator or estimator_of(study),
        journal,
        costs_at=study.slots[-1] if isinstance(testbed, SparkTestbed) or shared else None,
        many_tasks=MANY_TASKS if len(budgets) > 1 else ALONE,
    )
    optimizer.check(query, study.space.corners[0])
    explorer = ResourceExplorer(
        optimizer,
        study.space,
        study.seed,
        form=study.form,
        most_runs=runs_of(study),
        most_calls=study.most_calls,
        choice=study.choice,
        estimates=study.estimates,
        growth=study.growth,
        most_s=study.most_s,
        available=partial(_recorded, testbed, query) if isinstance(testbed, RecordedTestbed) else None,
    )
    return query, explorer, instances


def _recorded(testbed: RecordedTestbed, query: Query, budget: Budget) -> int:
    """Count what `testbed` has of a budget; one that it lacks is asked for, and fails with the nearest it has."""
    try:
        return testbed.count(query, budget)
    except WorkbenchError:
        return 1
