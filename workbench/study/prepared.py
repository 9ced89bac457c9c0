"""A study prepared: its query, testbed and estimator, and what it would measure; nothing is deployed."""

import math
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from workbench import units
from workbench.capacity import ConfigurationOptimizer, Exploration, ResourceExplorer
from workbench.capacity.explore import ALONE, LEAST_RUNS, MANY_TASKS, minimal_first
from workbench.capacity.planning import cheapest, read_instances
from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.journal import Journal
from workbench.measuring import CapacityEstimator, Configuration, fill_s, load_curve_s, reusable
from workbench.records import MODES, NOOP, InstanceType, Measurement
from workbench.simulation import RateTrace
from workbench.study.catalogue import find_query, read_query, recorded
from workbench.study.observed import explored_log
from workbench.study.spec import Study
from workbench.testbed import FluidTestbed, RecordedTestbed, Sharing, Simulated, SparkTestbed, Testbed, WarmTestbed
from workbench.workload import Dataset, Query, Script, Unread, read_key_frequencies

Find = Callable[..., Query]
_AS_RECORDED = 0.001
_PROBES = 3  # in the time after which a run of a shared deployment begins no further probe
_SMALL = 4  # budgets up to which the grid is the space: all are measured, and one again
# Least and most of one run, as seen on Spark on two cores: seconds until it is observed, and probes.
START_S = (30.0, 90.0)
PROBES = (4, 12)
# Of a warm deployment: seconds until the first turn, and from one turn to the next.
WARM_S = (60.0, 270.0)
TURN_S = 5.0
SINK_S = (15.0, 100.0)  # of a deployment, to compare its sink with none
SIMULATED_RUN_S = 1.0


def query_of(study: Study, find: Find = find_query) -> Query:
    """Find the query of a study; a recorded one has rates but no code, so it cannot be run."""
    if study.table is not None:
        return Query(study.query, recorded, Dataset(study.table, "csv"))
    if study.log is not None:
        return Query(study.query, recorded, Dataset(study.log, "json"))
    for path in study.py_files:  # its module may import them here, too, and Spark's processes inherit this path
        place = str((Path(path).parent if path.endswith(".py") else Path(path)).resolve())
        if place not in sys.path:
            sys.path.append(place)
    sink = study.job_settings.writes
    rows = (study.dataset, study.event_time, study.output_mode, study.source)
    called = sink if sink.function else None
    query = find(study.query, *rows, schema=study.schema, inputs=study.inputs, sink=called)
    if query.output_mode not in MODES[sink.kind]:
        raise WorkbenchError(
            f"The sink {sink.words} takes the output mode {' or '.join(MODES[sink.kind])}, and {query.name} has "
            f"{query.output_mode!r}. Change output_mode, or write with foreachBatch (sink: module:function).",
            settings=("sink", "output_mode"),
        )
    return query


def estimator_of(study: Study) -> CapacityEstimator:
    """Make the estimator of a study; the rates of a table are found again unchanged."""
    made = CapacityEstimator(
        tolerance=study.tolerance if study.table is None else min(study.tolerance, _AS_RECORDED),
        warmup_min_s=min(CapacityEstimator.warmup_min_s, study.warmup_s),
        warmup_cap_s=study.warmup_s,
        patience_s=study.patience_s,
        max_repeats=study.max_repeats,
    )
    if not study.shared:
        return made
    return replace(made, most_s=fill_s(study.interval_s) + _PROBES * made.probe_s(study.interval_s))


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
    estimator: CapacityEstimator
    instances: tuple[InstanceType, ...]  # the price list
    explored: Exploration | None = None  # of a log, which is read and not measured

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

    def resumed(self) -> ResourceExplorer:
        """Return an explorer that has made the runs in the journal, up to the first missing one."""
        explorer, known = self.explorer(), True
        while known and (budget := explorer.ask()) is not None:
            runs, known = explorer.optimizer.recorded(self.query, budget)
            for run in runs:
                explorer.tell(run)
        return explorer


def runs_of(study: Study) -> int:
    """Return the most runs: for few budgets that share a deployment, one each and one repeat, which shows drift."""
    budgets = len(study.space.budgets)
    return min(study.most_runs, budgets + 1) if study.shared and budgets <= _SMALL else study.most_runs


def prepare(
    study: Study,
    journal: Journal,
    *,
    progress: Callable[[str], None] = lambda _: None,
    testbed: Testbed | None = None,
    estimator: CapacityEstimator | None = None,
    find: Find | None = None,
) -> Prepared:
    """Check that `study` can be carried out here, before long work starts; if it is of a log, read the log."""
    testbed = testbed or testbed_of(study, progress)
    estimator = estimator or estimator_of(study)
    instances = read_instances(Path(study.prices)) if study.prices else ()
    if study.log is not None:
        return Prepared(study, "", journal, query_of(study), testbed, estimator, instances, explored_log(study))
    study, smaller = fitting(study, testbed)
    if smaller:
        progress(smaller)
    if study.day is not None:
        RateTrace.from_csv(study.day)
    if study.keys is not None:
        read_key_frequencies(study.keys)
    if instances and study.cluster is not None:
        least = SlotProfile(study.slot_cpus, min(study.plan_memory_mb or study.memory_mb))
        size = study.cluster.executor_slots
        cheapest(instances, size, least, executor_slots=size)  # what nobody can deploy is not worth measuring
    query = query_of(study, find or partial(find_query, progress=progress))
    if isinstance(testbed, SparkTestbed):
        swept = (replace(study.space.corners[-1], interval_s=interval) for interval in study.intervals)
        for budget in (*study.space.budgets, *swept):
            testbed.check(budget)
    return Prepared(study, smaller, journal, query, testbed, estimator, instances)


def _recorded(testbed: RecordedTestbed, query: Query, budget: Budget) -> int:
    """Count the measurements that `testbed` has of a budget; 1 for a missing one, as its run names the nearest."""
    try:
        return testbed.count(query, budget)
    except WorkbenchError:
        return 1


@dataclass(frozen=True)
class DryRun:
    """What a study would measure, if nothing fails."""

    first: tuple[Budget, ...]  # measured in any case if the minutes allow, in order, with minimal configurations
    runs: tuple[int, int]  # least and most in all, with recorded ones
    seconds: tuple[float, float]  # least and most of those that are not recorded, roughly
    recorded: int = 0
    sweep: tuple[Budget, ...] = ()  # the largest at the trigger intervals to choose from, where not recorded
    smaller: str = ""  # slot counts that this machine cannot provide, which are left out
    doubt: str = ""  # why runs that are recorded may still be listed; "" where they are not
    read: str = ""  # what the text of the query's module shows; "" for a benchmark's
    short: str = ""  # that the study's minutes may end before its runs do; "" where they last
    refused: str = ""  # why the recorded runs, if there will be no others, give no plan; "" where they give one


def dry_run(study: Study | Prepared, journal: Journal | None = None) -> DryRun:
    """Say what `run_study` would measure and roughly how long that takes; nothing is deployed.

    The study may be a stranger's: no module that it names is imported.
    """
    if isinstance(study, Study):  # without a journal: where nothing can be recorded
        ready = prepare(study, journal or Journal(Path(os.devnull, "none")), find=read_query)
    else:
        ready = study
    if ready.explored is not None:
        return DryRun((), (1, 1), (0.0, 0.0))
    query, build = ready.query, ready.query.build
    doubt = read = ""
    if isinstance(build, Script):
        read = f"{build.path.name} was not run: workbench init says what it starts."
    elif isinstance(build, Unread) and build.is_function:
        takes = f"{query.name} takes {units.some(max(1, len(query.inputs)), 'DataFrame')}"
        read = f"{build.file.name} was read, and nothing of it was run: {takes} and starts no stream by itself."
    elif isinstance(build, Unread):
        doubt = (
            f"{query.name} is not defined as a function in {build.file.name}, and a dry run imports none of your "
            "modules: runs that are recorded may be listed."
        )
    return replace(_listed(ready), smaller=ready.smaller, doubt=doubt, read=read)


def _listed(ready: Prepared) -> DryRun:
    study, query, explorer = ready.study, ready.query, ready.resumed()
    optimizer = explorer.optimizer
    certain = [run.budget for run in explorer.runs]
    made, operators = len(certain), len(optimizer.testbed.operators(query))
    for budget in explorer.ahead():
        takes = minimal_first(budget, operators, certain)
        if len(certain) + len(takes) > runs_of(study):
            runs = len(certain), len(certain)
            break
        certain += takes
    else:
        runs = _runs_in_all(study, explorer, certain, operators)
    costs_s = 0.0
    curved = any(isinstance(run, Measurement) and run.load_curve for run in explorer.runs)
    if optimizer.costs_at is not None and runs[1] > made and not curved:
        costs_s = load_curve_s(study.interval_s)
    least, most = ((runs[end] - made) * _seconds(optimizer, study.interval_s)[end] + costs_s for end in (0, 1))
    short, first_s, further_s = "", _seconds(optimizer, study.interval_s), 0.0
    if isinstance(optimizer.testbed, WarmTestbed) and runs[1] > made:
        profiles, sink_s = len(study.memory_mb), SINK_S if study.sink != NOOP else (0.0, 0.0)
        warm_s = [own + more for own, more in zip(WARM_S, sink_s, strict=True)]
        first_s, further_s = (first_s[0] + warm_s[0], first_s[1] + warm_s[1]), (profiles - 1) * warm_s[1]
        least, most = least + profiles * warm_s[0], min(study.most_s, most + profiles * warm_s[1])
        least = min(least, most)
    if runs[1] > made and study.most_s < first_s[0]:
        runs, certain, (least, most) = (made + 1, made + 1), certain[: made + 1], first_s
        short = (
            f"The study's {units.seconds(study.most_s)} are over before its first run ends, which takes about "
            f"{units.seconds(first_s[0])} at least: it is still made, and no other. Allow more (minutes)."
        )
    elif (sure := _in_time(made, runs[0], first_s[1] + further_s, study, optimizer)) < runs[0]:
        runs = sure, runs[1]
        short = (
            f"The study's {units.seconds(study.most_s)} may be over after {units.some(sure, 'run')}: none begins that "
            "would end later. Allow more to be sure of all (minutes)."
        )
    intervals = sorted({*study.intervals} - {study.interval_s})
    swept = [replace(study.space.corners[-1], interval_s=interval) for interval in intervals]
    how = optimizer.testbed, optimizer.estimator, ready.journal
    left = [budget for budget in swept if not reusable(Configuration(query, budget), *how, costs=False)]
    times = [_seconds(optimizer, budget.interval_s) for budget in left]
    refused = ""
    if runs[1] == made:
        try:
            explorer.conclude()
        except WorkbenchError as error:
            refused = f"The recorded runs give no plan, and the same study would end so again. {error}"
    runs = (runs[0] + len(swept), runs[1] + len(swept))
    seconds = (math.ceil(least + sum(one for one, _ in times)), math.ceil(most + sum(one for _, one in times)))
    recorded = made + len(swept) - len(left)
    return DryRun(tuple(certain[made:]), runs, seconds, recorded, tuple(left), short=short, refused=refused)


def _runs_in_all(
    study: Study, explorer: ResourceExplorer, certain: Sequence[Budget], operators: int
) -> tuple[int, int]:
    """Least and most runs of an exploration that makes the runs `certain`."""
    count = len(certain)
    if study.choice == "edge" or explorer.reason() is not None:
        return count, count
    asked = max(explorer.calls + 1, len(study.space.corners))
    later = runs_of(study) if study.most_calls is None else study.most_calls - asked
    memories = {budget.profile.memory_mb for budget in certain if budget.slots == operators}
    minimal = min(later, len({*study.memory_mb} - memories)) if operators else 0
    most = min(runs_of(study), count + later * study.estimates + minimal)
    if explorer.available is not None:
        most = max(count, min(most, sum(map(explorer.available, study.space.budgets))))
    # The first run that can end it by its cost is the one after those that are kept in any case.
    least = min(most, max(count, LEAST_RUNS + 1), count + later * study.estimates, runs_of(study) - bool(minimal))
    return max(count, least), most


def _in_time(made: int, runs: int, first_s: float, study: Study, optimizer: ConfigurationOptimizer) -> int:
    """Count those of `runs` that begin if each takes its most seconds, by the rule of `ResourceExplorer.steps`."""
    longest_s = min(optimizer.estimator.most_s or 0.0, study.most_s / 2)
    run_s, sure, end_s = _seconds(optimizer, study.interval_s)[1], made + 1, first_s
    while sure < runs and end_s + longest_s <= study.most_s:
        sure, end_s, longest_s = sure + 1, end_s + run_s, run_s
    return min(sure, runs)


def _seconds(optimizer: ConfigurationOptimizer, interval_s: float) -> tuple[float, float]:
    """Least and most seconds of one run, roughly."""
    estimator = optimizer.estimator
    if isinstance(optimizer.testbed, Simulated):
        return SIMULATED_RUN_S, SIMULATED_RUN_S
    if isinstance(optimizer.testbed, WarmTestbed):
        probe_s = estimator.probe_s(interval_s)
        least_s, most_s = TURN_S + 2 * interval_s + 3 * probe_s, TURN_S + fill_s(interval_s) + PROBES[1] * probe_s
        if estimator.most_s is not None:
            most_s = min(
                most_s, TURN_S + 2 * (fill_s(interval_s) + estimator.most_s)
            )  # its state is emptied, no answer
        return least_s, most_s
    chunk, probe = estimator.chunk_time(interval_s), estimator.probe_s(interval_s)
    most_chunks = math.ceil(estimator.warmup_cap_s / chunk)
    chunks = min(max(2, math.ceil(estimator.warmup_min_s / chunk)), most_chunks), most_chunks
    least, most = (START_S[end] + chunks[end] * chunk + PROBES[end] * probe for end in range(2))
    return least, most
