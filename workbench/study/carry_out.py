"""Carry out a study: make its query, testbed and estimator, explore, model, and plan every target."""

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

from workbench import measuring, units
from workbench.capacity import ConfigurationOptimizer, Exploration, ResourceExplorer
from workbench.capacity.explore import ALONE, MANY_TASKS, conclude
from workbench.capacity.model import Asked
from workbench.capacity.planning import cheapest, read_instances, sweep
from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.journal import Journal
from workbench.records import MODES, CapacityPlan, InstanceType, Measurement, Run
from workbench.simulation import RateTrace
from workbench.study.catalogue import find_query, recorded
from workbench.study.observed import explored_log
from workbench.study.planned import Planned, asked_of, plan_targets
from workbench.study.spec import Study
from workbench.testbed import FluidTestbed, RecordedTestbed, Sharing, SparkTestbed, Testbed, WarmTestbed
from workbench.workload import Dataset, Query, read_key_frequencies

Find = Callable[..., Query]
_AS_RECORDED = 0.001
_PROBES = 3  # in the time after which a run of a shared deployment begins no further probe
_SMALL = 4  # budgets up to which the grid is the space: all are measured, and one again
_SURE, _NEAR = 2.0, 3.0  # high / low of an answer's interval at most, and times beyond the runs at most


def query_of(study: Study, find: Find = find_query) -> Query:
    """Find the query of a study; a recorded one has rates but no code, so it cannot be run."""
    if study.table is not None:
        return Query(study.query, recorded, Dataset(study.table, "csv"))
    for path in study.py_files:  # its module may import them here, too, and Spark's processes inherit this path
        place = str((Path(path).parent if path.endswith(".py") else Path(path)).resolve())
        if place not in sys.path:
            sys.path.append(place)
    sink = study.job_settings.writes
    rows = (study.dataset, study.event_time, study.output_mode, study.source)
    called = sink if sink.function else None
    query = find(study.query, *rows, schema=study.schema, inputs=study.inputs, sink=called)
    if isinstance(query, Query) and query.output_mode not in MODES[sink.kind]:
        raise WorkbenchError(
            f"The sink {sink.words} takes the output mode {' or '.join(MODES[sink.kind])}, and {query.name} has "
            f"{query.output_mode!r}. Change output_mode, or write with foreachBatch (sink: module:function).",
            settings=("sink", "output_mode"),
        )
    return query


def estimator_of(study: Study) -> measuring.CapacityEstimator:
    """Make the estimator of a study; the rates of a table are found again unchanged."""
    made = measuring.CapacityEstimator(
        tolerance=study.tolerance if study.table is None else min(study.tolerance, _AS_RECORDED),
        warmup_min_s=min(measuring.CapacityEstimator.warmup_min_s, study.warmup_s),
        warmup_cap_s=study.warmup_s,
        patience_s=study.patience_s,
        max_repeats=study.max_repeats,
    )
    if not study.shared:
        return made
    return replace(made, most_s=measuring.fill_s(study.interval_s) + _PROBES * made.probe_s(study.interval_s))


def testbed_of(study: Study, progress: Callable[[str], None]) -> Testbed:
    """Make the testbed of a study."""
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


def fitting(study: Study, testbed: Testbed) -> tuple[Study, str]:
    """Leave out the slot counts that this machine cannot provide, and name them; "" if it provides all, or none.

    What it cannot provide, and cannot leave out, is refused when the study is prepared.
    """
    if not isinstance(testbed, SparkTestbed) or testbed.cluster:
        return study, ""
    most = testbed.most_slots(study.slot_cpus)
    slots = tuple(count for count in study.slots if count <= most)
    try:
        fits = replace(study, slots=slots)
    except WorkbenchError:  # a count alone is not enough for the study's model
        fits = study
    if fits == study:
        return study, ""
    left = ", ".join(f"{count:,}" for count in study.slots if count > most)
    return fits, (
        f"leaving out {left} slots: this machine provides {units.some(most, 'slot')} of {study.slot_cpus:g} core "
        "next to the driver"
    )


@dataclass(frozen=True, eq=False)
class Prepared:
    """A study that can be carried out here, and all that this takes."""

    study: Study  # without the slot counts that this machine cannot provide
    smaller: str  # names the slot counts left out; "" where there are none
    journal: Journal
    query: Query
    testbed: Testbed
    estimator: measuring.CapacityEstimator
    instances: tuple[InstanceType, ...]  # the price list

    def explorer(self) -> ResourceExplorer:
        """Return an explorer that has made no run."""
        study, testbed, budgets = self.study, self.testbed, self.study.space.budgets
        shared = study.shared and isinstance(testbed, Sharing)
        optimizer = ConfigurationOptimizer(
            WarmTestbed(testbed, budgets) if shared else testbed,
            self.estimator,
            self.journal,
            costs_at=study.slots[-1] if isinstance(testbed, SparkTestbed) or shared else None,
            many_tasks=MANY_TASKS if len(budgets) > 1 else ALONE,
        )
        optimizer.check(self.query, study.space.corners[0])
        return ResourceExplorer(
            optimizer,
            study.space,
            study.seed,
            form=study.form,
            most_calls=study.most_calls,
            most_runs=runs_of(study),
            choice=study.choice,
            estimates=study.estimates,
            growth=study.growth,
            most_s=study.most_s,
            available=partial(_recorded, testbed, self.query) if isinstance(testbed, RecordedTestbed) else None,
        )


def run_study(
    study: Study | Prepared,
    journal: Journal,
    *,
    progress: Callable[[str], None] = lambda _: None,
    listen: Callable[[measuring.Event], None] = measuring.ignore,
    testbed: Testbed | None = None,
    estimator: measuring.CapacityEstimator | None = None,
    asked: Asked | None = None,
) -> Planned:
    """Carry out `study_steps`, pass each event to `listen`, and return the plans."""
    steps = study_steps(study, journal, progress=progress, testbed=testbed, estimator=estimator, asked=asked)
    return measuring.result_of(steps, listen)


def study_steps(
    study: Study | Prepared,
    journal: Journal,
    *,
    progress: Callable[[str], None] = lambda _: None,
    testbed: Testbed | None = None,
    estimator: measuring.CapacityEstimator | None = None,
    asked: Asked | None = None,
) -> Generator[measuring.Event, None, Planned]:
    """Explore, model and plan; yield the events and return the plans.

    After each run it yields what all of them say so far, as `Concluded` with `SoFar`. What the journal holds is not
    measured again. A budget that cannot be measured is a run that failed: the others go on, and it is tried again when
    you run the study again.
    """
    if isinstance(study, Study) and study.log is not None:
        instances = read_instances(Path(study.prices)) if study.prices else ()
        return plan_targets(study, replace(explored_log(study), asked=asked or asked_of(study)), (), instances)
    ready = prepare(study, journal, progress=progress, testbed=testbed, estimator=estimator)
    if isinstance(study, Prepared) and isinstance(ready.testbed, SparkTestbed):  # nobody listened when it was prepared
        ready = replace(ready, testbed=replace(ready.testbed, progress=progress))
    study, query, explorer = ready.study, ready.query, ready.explorer()
    warm = explorer.optimizer.testbed
    with warm if isinstance(warm, WarmTestbed) else nullcontext():
        exploration = yield from _with_answers(explorer, ready)
    swept: tuple[Run, ...] = ()
    if len(study.intervals) > 1:
        largest, estimator = study.space.corners[-1], ready.estimator
        swept = yield from sweep(
            query, largest, study.intervals, testbed=ready.testbed, estimator=estimator, journal=ready.journal
        )
    reason = "; ".join(filter(None, (exploration.reason, ready.smaller)))  # which the plan keeps
    exploration = replace(exploration, asked=asked or asked_of(study), reason=reason)
    return plan_targets(study, exploration, swept, ready.instances)


def runs_of(study: Study) -> int:
    """Return the most runs: for few budgets that share a deployment, one each and one repeat, which shows drift."""
    budgets = len(study.space.budgets)
    return min(study.most_runs, budgets + 1) if study.shared and budgets <= _SMALL else study.most_runs


def _with_answers(explorer: ResourceExplorer, ready: Prepared) -> Generator[measuring.Event, None, Exploration]:
    """Explore, and yield after each run what the runs so far show."""
    made: list[Run] = []
    steps = explorer.steps(ready.query)
    while True:
        try:
            event = next(steps)
        except StopIteration as end:
            found: Exploration = end.value
            return found
        yield event
        if isinstance(event, measuring.Finished | measuring.Reused):
            made.append(event.measurement)
        if isinstance(event, measuring.Estimated | measuring.Reused):
            runs = (*made, event.measurement) if isinstance(event, measuring.Estimated) else tuple(made)
            yield measuring.Concluded(SoFar(ready.study, runs, ready.instances))


def planned_so_far(ready: Prepared, asked: Asked | None = None) -> Planned:
    """Plan with the finished runs that the journal has, as where a study was interrupted; nothing is deployed."""
    explorer = ready.explorer()
    tell_recorded(explorer, ready.query)
    reason = f"interrupted after {units.some(len(explorer.runs), 'run')}"
    return _planned(ready.study, explorer.runs, reason, ready.instances, asked or asked_of(ready.study))


def _planned(
    study: Study, runs: Sequence[Run], reason: str, instances: Sequence[InstanceType], asked: Asked | None
) -> Planned:
    """Plan with the runs that there are, however few; without `asked`, remedies are those of the runs' testbed."""
    found = conclude(runs, reason, form=study.form, choice="edge", growth=study.growth, least=1)
    return plan_targets(study, replace(found, asked=asked or found.asked), (), instances)


def tell_recorded(explorer: ResourceExplorer, query: Query) -> None:
    """Pass the runs in the journal to an explorer, up to the first missing one."""
    known = True
    while known and (budget := explorer.ask()) is not None:
        runs, known = explorer.optimizer.recorded(query, budget)
        for run in runs:
            explorer.tell(run)


def prepare(
    study: Study | Prepared,
    journal: Journal,
    *,
    progress: Callable[[str], None] = lambda _: None,
    testbed: Testbed | None = None,
    estimator: measuring.CapacityEstimator | None = None,
    find: Find | None = None,
) -> Prepared:
    """Check that `study` can be carried out here, before long work starts; one that is prepared stays as it is."""
    if isinstance(study, Prepared):
        return study
    testbed = testbed or testbed_of(study, progress)
    study, smaller = fitting(study, testbed)
    if smaller:
        progress(smaller)
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
        swept = (replace(study.space.corners[-1], interval_s=interval) for interval in study.intervals)
        for budget in (*study.space.budgets, *swept):
            testbed.check(budget)
    return Prepared(study, smaller, journal, query, testbed, estimator or estimator_of(study), instances)


def _recorded(testbed: RecordedTestbed, query: Query, budget: Budget) -> int:
    """Count the measurements that `testbed` has of a budget; 1 for a missing one, as its run names the nearest."""
    try:
        return testbed.count(query, budget)
    except WorkbenchError:
        return 1


@dataclass(frozen=True, eq=False)
class SoFar:
    """What `runs` show of the targets of `study`, before it is over."""

    study: Study
    runs: tuple[Run, ...]
    instances: tuple[InstanceType, ...]

    @cached_property
    def planned(self) -> Planned | None:
        """The model of the runs and what would be planned with it, however sure; None where they allow no model."""
        try:
            return _planned(self.study, self.runs, self._after, self.instances, None)
        except WorkbenchError:
            return None

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The answer if it is certain enough, else what was sustained; empty for simulated runs, which take no time.

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
    """Describe what a rate needs: at most that, if it is `fewest` slots and fewer are still to be measured."""
    slots, profile = plan.budget.slots, plan.budget.profile
    return (
        f"{plan.query} at {units.rate(plan.rate)} needs {'at most ' * (slots == fewest)}{units.some(slots, 'slot')} of "
        f"{profile.cpus:g} core and {profile.memory_mb:,} MB (capacity {units.rate(plan.expected_rate)}, 90 % interval "
        f"{units.rate(plan.low)} to {units.rate(plan.high)})."
    )
