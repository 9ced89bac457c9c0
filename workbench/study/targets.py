"""The plans for each target of a study, from its exploration."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from workbench.capacity import Exploration, plan
from workbench.capacity.model import why_no_capacity
from workbench.capacity.planning import IntervalSpeedup, follow, interval_points, interval_speedups
from workbench.errors import WorkbenchError
from workbench.records import CapacityPlan, Day, InstanceType, JobSettings, Refusal, Run
from workbench.simulation import RateTrace
from workbench.study.planned import Planned
from workbench.study.spec import Study
from workbench.testbed.spark import sink_packages
from workbench.workload import Dataset, read_key_frequencies, schema_of

T = TypeVar("T")


def plan_targets(
    study: Study, exploration: Exploration, swept: Sequence[Run] = (), instances: Sequence[InstanceType] = ()
) -> Planned:
    """Plan every target of `study` on what was explored; a target that cannot be planned is refused with the reason.

    Memory at which nothing could be measured is not planned with.
    """
    wanted = study.plan_memory_mb or study.memory_mb
    memory_mb = [memory for memory in wanted if memory not in exploration.unmeasured_memory_mb]
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
            allowed = _interval_gains(study, swept)
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
                settings=_brought(study) or None,
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


def _brought(study: Study) -> JobSettings:
    """Return what the job of a study brings along in production: also the package of its sink, and any checkpoint."""
    brought = replace(study.job_settings, checkpoint=study.checkpoint)
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


def _interval_gains(study: Study, swept: Sequence[Run]) -> Mapping[float, IntervalSpeedup] | None:
    """Trigger intervals to choose from; None, the explored one, where nothing can or need be compared."""
    left_out = intervals_left_out(swept)
    points = interval_points([run for run in swept if run.budget.interval_s not in left_out])
    if study.latency_s is None and study.interval_s not in {point.interval_s for point in points}:
        return None
    return interval_speedups(points, study.interval_s, study.latency_s)
