"""Carry out a study: explore, model, and plan every target."""

import math
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

from workbench import defaults, units
from workbench.capacity import ConfigurationOptimizer, Exploration, ResourceExplorer, plan
from workbench.capacity.explore import ALONE, MANY_TASKS, conclude
from workbench.capacity.model import Asked, why_no_capacity
from workbench.capacity.planning import (
    IntervalSpeedup,
    cheapest,
    follow,
    interval_points,
    interval_speedups,
    read_instances,
    sweep,
)
from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.journal import Journal
from workbench.measuring import CapacityEstimator, Concluded, Estimated, Event, Finished, Reused, ignore, result_of
from workbench.observing import RunningQuery, as_measurement, headroom, read_log
from workbench.records import MODES, CapacityPlan, Day, InstanceType, JobSettings, Measurement, Refusal, Run
from workbench.simulation import RateTrace
from workbench.study.catalogue import find_query, recorded_query
from workbench.study.planned import Planned, asked_of
from workbench.study.spec import Study
from workbench.testbed import FluidTestbed, RecordedTestbed, Sharing, SparkTestbed, Testbed, WarmTestbed
from workbench.testbed.spark import sink_packages
from workbench.workload import KeyFrequencies, Query, read_key_frequencies

Find = Callable[..., Query]
_AS_RECORDED = 0.001
_SURE, _NEAR = 2.0, 3.0  # high / low of an answer's interval at most, and times beyond the runs at most
_SMALL = 4
"""Budgets up to which the grid is the space: all are measured, and one again."""
_RUN_S = 90.0  # after which a run of a shared deployment begins no further probe


@dataclass(frozen=True, eq=False)
class SoFar:
    """What `runs` say of the targets of `study`, before it is over."""

    study: Study
    runs: tuple[Run, ...]
    instances: tuple[InstanceType, ...]

    @cached_property
    def planned(self) -> Planned | None:
        """The model of the runs and what would be planned with it, however sure; None where they allow no model."""
        study = self.study
        try:
            found = conclude(self.runs, self._after, form=study.form, choice="edge", growth=study.growth, least=1)
            return plan_targets(study, found, (), self.instances)
        except WorkbenchError:
            return None

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """An answer where it is sure enough, else what was sustained; of simulated runs, which take no time, nothing.

        An answer has a 90 % interval whose ends differ by at most a factor of 2, and goes at most 3 times beyond the
        runs. Or it is an upper bound: slots that were measured, and whose interval lies above the rate.
        """
        made = [run for run in self.runs if isinstance(run, Measurement)]
        if not made or not made[-1].ran:
            return ()
        best = max(made, key=lambda run: run.estimate.low)
        slots = units.some(best.budget.slots, "slot")
        known = f"{self._after}: at least {units.rate(best.estimate.low)} on {slots}, by a probe that was sustained"
        if self.planned is None:
            return (known,) if best.estimate.low else ()
        fewest = min(run.budget.slots for run in made)  # a plan has no fewer
        bound = fewest if fewest > min(self.study.slots) else 0
        sure = [
            plan
            for plan in self.planned.plans
            if (plan.high <= _SURE * plan.low and plan.extrapolation <= _NEAR)
            or (plan.budget.slots == bound and plan.low >= plan.rate)
        ]
        answered = {plan.rate for plan in sure}
        open_ = [units.rate(rate) for rate in self.study.targets if rate not in answered]
        said = [f"answer {self._after}: {_needs(plan, bound)}" for plan in sure]
        return (*said, *([f"{known}; not answered yet: {', '.join(open_)}"] if open_ else []))

    @property
    def _after(self) -> str:
        return f"after {units.some(len(self.runs), 'run')}"


def _needs(plan: CapacityPlan, fewest: int) -> str:
    """Say what a rate needs; with `fewest` slots, of which fewer are still to be measured, at most."""
    slots, profile = plan.budget.slots, plan.budget.profile
    return (
        f"{plan.query} at {units.rate(plan.rate)} needs {'at most ' * (slots == fewest)}{units.some(slots, 'slot')} of "
        f"{profile.cpus:g} core and {profile.memory_mb:,} MB (capacity {units.rate(plan.expected_rate)}, 90 % interval "
        f"{units.rate(plan.low)} to {units.rate(plan.high)})."
    )


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


def explored_log(study: Study) -> Exploration:
    """Read the log of a study's query, and fit the model to what it shows."""
    running = read_log(study.log or "", study.query)
    if study.slots != (running.slots,) or study.memory_mb != (running.memory_mb,):
        raise WorkbenchError(
            f"In the log, {running.name} runs on {units.some(running.slots, 'slot')} of {running.memory_mb:,} MB, and "
            f"the study says {list(study.slots)} and {list(study.memory_mb)}. Set slots: [{running.slots}] and "
            f"memory_mb: [{running.memory_mb}].",
            settings=("slots", "memory_mb"),
        )
    if running.interval_s is not None and not math.isclose(running.interval_s, study.interval_s):
        raise WorkbenchError(
            f"In the log, {running.name} has a trigger interval of {running.interval_s:g} s, and the study says "
            f"{study.interval_s:g} s. Set interval_s: {running.interval_s:g}.",
            settings=("interval_s",),
        )
    given = study if study.slot_cpus != defaults.SLOT_CPUS else replace(study, slot_cpus=running.cpus)
    return explored_running(given, running)


def explored_running(study: Study, running: RunningQuery) -> Exploration:
    """Fit the model to what a query's log shows; see `explored_log`."""
    seen = replace(running, cpus=study.slot_cpus)
    run = as_measurement(seen, headroom(seen.batches, study.interval_s))
    return conclude([run], "one log was read", form=study.form, choice="edge", growth=study.growth)


def runs_of(study: Study) -> int:
    """Most runs: where the budgets are few and share a deployment, one of each and one again, which shows drift."""
    budgets = len(study.space.budgets)
    return min(study.most_runs, budgets + 1) if study.shared and budgets <= _SMALL else study.most_runs


def shares_deployments(study: Study, testbed: Testbed) -> bool:
    """Whether the study's budgets take turns in warm deployments on `testbed`."""
    return study.shared and isinstance(testbed, Sharing)


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
    """Check that `study` can be carried out here, before long work starts; see `run_study`.

    `find` finds its query, by importing the user's module, as by default, or without.

    Returns
    -------
    Its query, what explores it, and its price list.
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
    shared = shares_deployments(study, testbed)
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


def plan_targets(
    study: Study,
    exploration: Exploration,
    swept: Sequence[Run] = (),
    instances: Sequence[InstanceType] = (),
) -> Planned:
    """Plan every target of `study` on what was explored; a target that cannot be planned is refused with the reason.

    Memory at which nothing could be measured is not planned with.
    """
    wanted = study.plan_memory_mb or study.memory_mb
    memory_mb = [memory for memory in wanted if memory not in exploration.unmeasured_memory_mb]
    if not memory_mb:
        reason = f"Nothing could be measured at {', '.join(map(str, wanted))} MB per slot. Set other plan_memory_mb."
        return Planned(
            study,
            exploration,
            (),
            tuple(Refusal(rate, reason) for rate in study.targets),
            tuple(swept),
            tuple(instances),
        )
    plans, refused = [], []
    trace, keys = _day_of(study), _keys_of(study)
    for rate in study.targets:
        try:
            allowed = _interval_gains(study, swept)
            found = plan(
                exploration,
                rate,
                memory_mb=memory_mb,
                margin=study.margin,
                risk=study.risk,
                instances=instances,
                interval_speedups=allowed,
                low_rate=study.low_rate,
                outage=study.outage,
                run=study.run,
                keys=keys,
                executor_slots=None if study.cluster is None else study.cluster.executor_slots,
            )
            if study.environment is not None:
                found = replace(found, environment=Path(study.environment).name)
            if brought := _brought(study):
                found = replace(found, settings=brought)
            if study.inputs:
                found = replace(found, inputs=_shares(exploration))
            plans.append(
                found if trace is None else replace(found, day=_followed(study, exploration, found, trace, allowed))
            )
        except WorkbenchError as error:
            refused.append(Refusal(rate, str(error)))
    return Planned(study, exploration, tuple(plans), tuple(refused), tuple(swept), tuple(instances))


def _brought(study: Study) -> JobSettings:
    """Give what the job of a study brings along in production: also the package of its sink, and any checkpoint."""
    brought = replace(study.job_settings, checkpoint=study.checkpoint)
    with suppress(WorkbenchError):  # of a Spark that is here no more
        return replace(brought, packages=(*sink_packages(brought), *brought.packages))
    return brought


def _shares(exploration: Exploration) -> dict[str, float] | None:
    """Give the shares of the rate that the inputs had at the highest rate that was sustained; None: none was."""
    seen = [run.estimate.observation for run in exploration.measurements if run.estimate.observation is not None]
    rows = max(seen, key=lambda one: one.consumed_rate).inputs if seen else ()
    total = sum(one.records for one in rows)
    return {one.name: one.records / total for one in rows} if total else None


def plan_on(plan: CapacityPlan, instance: InstanceType, of: Callable[[], Planned]) -> CapacityPlan:
    """Give `plan` for the cores of `instance`; itself where it counts these. `of` gives the study it comes from.

    Raises
    ------
    WorkbenchError
        When its rate cannot be planned for these cores.
    """
    priced = None if plan.price is None else plan.price.instance.core_speed
    if instance.core_speed == (priced if plan.on_other_cores else None):
        return plan
    planned = of()
    asked = replace(planned.study, targets=(plan.rate,), day=None)
    found = plan_targets(asked, planned.exploration, planned.sweep, (instance,))
    if not found.plans:
        raise WorkbenchError(found.refused[0].reason)
    return found.plans[0]


def _day_of(study: Study) -> RateTrace | None:
    """Read the day's load; None without one, or where its file is gone by now."""
    if study.day is None:
        return None
    with suppress(WorkbenchError):
        return RateTrace.from_csv(study.day)
    return None


def _keys_of(study: Study) -> KeyFrequencies | None:
    """Read the counted keys; None without any, or where their file is gone by now."""
    if study.keys is None:
        return None
    with suppress(WorkbenchError):
        return read_key_frequencies(study.keys)
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
    """Say by trigger interval (seconds) why those of `swept` that show no capacity are not planned with."""
    reasons = {run.budget.interval_s: why_no_capacity(run) for run in swept}
    return {interval: reason for interval, reason in reasons.items() if reason is not None}


def _interval_gains(study: Study, swept: Sequence[Run]) -> Mapping[float, IntervalSpeedup] | None:
    """Trigger intervals to choose from; None, the explored one, where nothing can be compared and nothing needs be."""
    left_out = intervals_left_out(swept)
    points = interval_points([run for run in swept if run.budget.interval_s not in left_out])
    if study.latency_s is None and study.interval_s not in {point.interval_s for point in points}:
        return None
    return interval_speedups(points, study.interval_s, study.latency_s)


def query_of(study: Study, find: Find = find_query) -> Query:
    """Find the query of a study; of a recorded one only its name is known."""
    if study.table is not None:
        return recorded_query(study.query, study.table)
    for path in study.py_files:  # its module may import them here, too, and Spark's processes take this path over
        place = str((Path(path).parent if path.endswith(".py") else Path(path)).resolve())
        if place not in sys.path:
            sys.path.append(place)
    sink = study.job_settings.writes
    calls = {"sink": sink} if sink.function else {}
    query = find(
        study.query,
        study.dataset,
        study.event_time,
        study.output_mode,
        study.source,
        schema=study.schema,
        inputs=study.inputs,
        **calls,
    )
    if isinstance(query, Query) and query.output_mode not in MODES[sink.kind]:
        raise WorkbenchError(
            f"The sink {sink.words} takes the output mode {' or '.join(MODES[sink.kind])}, and {query.name} has "
            f"{query.output_mode!r}. Change output_mode, or write with foreachBatch (sink: module:function).",
            settings=("sink", "output_mode"),
        )
    return query


def estimator_of(study: Study) -> CapacityEstimator:
    """Make the estimator that a study asks for; the rates of a table are found again as they are."""
    return CapacityEstimator(
        tolerance=study.tolerance if study.table is None else min(study.tolerance, _AS_RECORDED),
        warmup_min_s=min(CapacityEstimator.warmup_min_s, study.warmup_s),
        warmup_cap_s=study.warmup_s,
        patience_s=study.patience_s,
        max_repeats=study.max_repeats,
        most_s=_RUN_S if study.shared else None,
    )


def testbed_of(study: Study, progress: Callable[[str], None]) -> Testbed:
    """Make the testbed that a study asks for."""
    if study.testbed == "fluid":
        return FluidTestbed(seed=study.seed)
    if study.table is not None:
        return RecordedTestbed.from_csv(study.table)
    return SparkTestbed(
        cluster=study.cluster,
        slot_cpus="cores" if study.slot_cpus == int(study.slot_cpus) else "auto",
        warmup_cap_s=min(SparkTestbed.warmup_cap_s, study.warmup_s),
        settings=study.job_settings,
        progress=progress,
    )
