"""Estimate what a study would measure and how long that takes, without deploying anything."""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from workbench import units
from workbench.capacity import ConfigurationOptimizer, ResourceExplorer
from workbench.capacity.explore import LEAST_RUNS, minimal_first
from workbench.dataflow import Budget
from workbench.errors import WorkbenchError
from workbench.journal import Journal
from workbench.measuring import Configuration, fill_s, load_curve_s, reusable
from workbench.records import NOOP, Measurement
from workbench.study.carry_out import Find, Prepared, prepare, runs_of, tell_recorded
from workbench.study.catalogue import read_query
from workbench.study.observed import explored_log
from workbench.study.spec import Study
from workbench.testbed import Simulated, WarmTestbed
from workbench.workload import Script, Unread

# Least and most of one run, as seen on Spark on two cores: seconds until it is observed, and probes.
START_S = (30.0, 90.0)
PROBES = (4, 12)
# Of a warm deployment: seconds until the first turn, and from one turn to the next.
WARM_S = (60.0, 150.0)
TURN_S = 5.0
SINK_S = (15.0, 100.0)  # of a deployment, to compare its sink with none
SIMULATED_RUN_S = 1.0


@dataclass(frozen=True)
class DryRun:
    """What a study would measure, if nothing fails."""

    first: tuple[Budget, ...]  # measured in any case, in order, including minimal configurations
    runs: tuple[int, int]  # least and most in all, with recorded ones
    seconds: tuple[float, float]  # least and most of those that are not recorded, roughly
    recorded: int = 0
    sweep: tuple[Budget, ...] = ()  # the largest at the trigger intervals to choose from, where not recorded
    smaller: str = ""  # slot counts that this machine cannot provide, which are left out
    doubt: str = ""  # why runs that are recorded may still be listed; "" where they are not
    read: str = ""  # what the text of the query's module shows; "" for a benchmark's
    short: str = ""  # that the study's minutes end before its first run does; "" where they may not
    refused: str = ""  # why the recorded runs, if there will be no others, give no plan; "" where they give one


def dry_run(study: Study | Prepared, journal: Journal | None = None, *, find: Find = read_query) -> DryRun:
    """Say what `run_study` would measure and roughly how long that takes; nothing is deployed.

    The study may be a stranger's: no module that it names is imported, unless `find` does.
    """
    if isinstance(study, Study) and study.log is not None:  # it is read, and nothing is measured
        explored_log(study)
        return DryRun((), (1, 1), (0.0, 0.0))
    ready = prepare(study, journal or Journal(Path(os.devnull, "none")), find=find)  # where nothing can be recorded
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
    study, query, explorer = ready.study, ready.query, ready.explorer()
    optimizer, journal = explorer.optimizer, ready.journal
    tell_recorded(explorer, query)
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
    short, first_s = "", _seconds(optimizer, study.interval_s)
    if isinstance(optimizer.testbed, WarmTestbed) and runs[1] > made:
        profiles, sink_s = len(study.memory_mb), SINK_S if study.sink != NOOP else (0.0, 0.0)
        warm_s = [own + more for own, more in zip(WARM_S, sink_s, strict=True)]
        first_s = first_s[0] + warm_s[0], first_s[1] + warm_s[1]
        least, most = least + profiles * warm_s[0], min(study.most_s, most + profiles * warm_s[1])
        least = min(least, most)
    if runs[1] > made and study.most_s < first_s[0]:
        runs, certain, (least, most) = (made + 1, made + 1), certain[: made + 1], first_s
        short = (
            f"The study's {units.seconds(study.most_s)} are over before its first run ends, which takes about "
            f"{units.seconds(first_s[0])} at least: it is still made, and no other. Allow more (minutes)."
        )
    intervals = sorted({*study.intervals} - {study.interval_s})
    swept = [replace(study.space.corners[-1], interval_s=interval) for interval in intervals]
    how = optimizer.testbed, optimizer.estimator, journal
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


def _seconds(optimizer: ConfigurationOptimizer, interval_s: float) -> tuple[float, float]:
    """Least and most seconds of one run, roughly."""
    estimator = optimizer.estimator
    if isinstance(optimizer.testbed, Simulated):
        return SIMULATED_RUN_S, SIMULATED_RUN_S
    if isinstance(optimizer.testbed, WarmTestbed):
        probe_s = estimator.probe_s(interval_s)
        least_s, most_s = TURN_S + 2 * interval_s + 3 * probe_s, TURN_S + fill_s(interval_s) + PROBES[1] * probe_s
        if estimator.most_s is not None:
            most_s = min(most_s, TURN_S + fill_s(interval_s) + estimator.most_s + probe_s)
        return least_s, most_s
    chunk, probe = estimator.chunk_time(interval_s), estimator.probe_s(interval_s)
    most_chunks = math.ceil(estimator.warmup_cap_s / chunk)
    chunks = min(max(2, math.ceil(estimator.warmup_min_s / chunk)), most_chunks), most_chunks
    least, most = (START_S[end] + chunks[end] * chunk + PROBES[end] * probe for end in range(2))
    return least, most
