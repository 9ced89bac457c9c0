"""Carry out a study: explore, model, and plan every target; and verify a plan on a testbed."""

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property

from workbench import measuring, units
from workbench.capacity import Exploration, ResourceExplorer
from workbench.capacity.explore import conclude
from workbench.capacity.model import Asked
from workbench.capacity.planning import sweep
from workbench.errors import NoCapacityError, WorkbenchError
from workbench.journal import Journal
from workbench.records import CapacityPlan, InstanceType, Measurement, Probe, Run
from workbench.speed import RelativeSpeed, relative_speed, typical_of
from workbench.study.planned import Planned, asked_of, plan_targets
from workbench.study.prepared import Prepared, prepare, query_of
from workbench.study.spec import Study
from workbench.testbed import SparkTestbed, Testbed, WarmTestbed

_SURE, _NEAR = 2.0, 3.0  # high / low of an answer's interval at most, and times beyond the runs at most
_SAME = 1e-3  # rates are printed with three digits
ABOVE = 1.05  # over the high end of the plan's interval, at which a rate must not be sustained any more


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
    if isinstance(study, Study):
        ready = prepare(study, journal, progress=progress, testbed=testbed, estimator=estimator)
    else:
        ready = study
        if isinstance(ready.testbed, SparkTestbed):  # nobody listened when it was prepared
            ready = replace(ready, testbed=replace(ready.testbed, progress=progress))
    return measuring.result_of(study_steps(ready, asked), listen)


def study_steps(ready: Prepared, asked: Asked | None = None) -> Generator[measuring.Event, None, Planned]:
    """Explore, model and plan; yield the events and return the plans.

    After each run it yields what all of them say so far, as `Concluded` with `SoFar`. What the journal holds is not
    measured again. A budget that cannot be measured is a run that failed: the others go on, and it is tried again when
    you run the study again.
    """
    study, exploration = ready.study, ready.explored
    swept: tuple[Run, ...] = ()
    if exploration is None:
        explorer = ready.explorer()
        warm = explorer.optimizer.testbed
        with warm if isinstance(warm, WarmTestbed) else nullcontext():
            exploration = yield from _with_answers(explorer, ready)
        if len(study.intervals) > 1:
            swept = yield from sweep(
                ready.query,
                study.space.corners[-1],
                study.intervals,
                testbed=ready.testbed,
                estimator=ready.estimator,
                journal=ready.journal,
            )
    reason = "; ".join(filter(None, (exploration.reason, ready.smaller)))  # which the plan keeps
    exploration = replace(exploration, asked=asked or asked_of(study), reason=reason)
    return plan_targets(study, exploration, swept, ready.instances)


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
        except NoCapacityError as error:
            lines = SoFar(ready.study, tuple(made), ready.instances).lines
            known = [f"Known {line.removesuffix('.')}." for line in lines]
            raise NoCapacityError(" ".join([str(error), *known])) from error
        yield event
        if isinstance(event, measuring.Finished | measuring.Reused):
            made.append(event.measurement)
        if isinstance(event, measuring.Estimated | measuring.Reused):
            runs = (*made, event.measurement) if isinstance(event, measuring.Estimated) else tuple(made)
            yield measuring.Concluded(SoFar(ready.study, runs, ready.instances))


def planned_so_far(ready: Prepared, asked: Asked | None = None) -> Planned:
    """Plan with the finished runs that the journal has, as where a study was interrupted; nothing is deployed."""
    explorer = ready.resumed()
    reason = f"interrupted after {units.some(len(explorer.runs), 'run')}"
    return _planned(ready.study, explorer.runs, reason, ready.instances, asked or asked_of(ready.study))


def _planned(
    study: Study, runs: Sequence[Run], reason: str, instances: Sequence[InstanceType], asked: Asked | None
) -> Planned:
    """Plan with the runs that there are, however few; without `asked`, remedies are those of the runs' testbed."""
    found = conclude(runs, reason, form=study.form, choice="edge", growth=study.growth, least=1)
    return plan_targets(study, replace(found, asked=asked or found.asked), (), instances)


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
        enough = [units.rate(rate) for rate in self.study.targets if rate <= best.estimate.low]
        if self.planned is None:
            known += f"; enough for {', '.join(enough)}" if enough else ""
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
    return (
        f"{plan.query} at {units.rate(plan.rate)} needs {'at most ' * (plan.budget.slots == fewest)}"
        f"{plan.budget.words} (capacity {units.rate(plan.expected_rate)}, 90 % interval {units.rate(plan.low)} to "
        f"{units.rate(plan.high)})."
    )


@dataclass(frozen=True)
class Verified:
    """The result of verifying a plan: the probe at its rate, and the one above its interval."""

    plan: CapacityPlan
    at_rate: Probe
    above: Probe

    @property
    def carries(self) -> bool | None:
        """Whether the planned rate was sustained; None where that could not be tested."""
        return _answer(self.at_rate, "sustained")

    @property
    def cores(self) -> RelativeSpeed | None:
        """Speed of the cores it ran on, relative to those that were measured; None where unknown."""
        here = typical_of(probe.observation.cores for probe in (self.at_rate, self.above))
        return None if self.plan.cores is None else relative_speed(here, self.plan.cores.measured)

    @property
    def bounded(self) -> bool | None:
        """Whether the capacity is below the rate above the interval; None where that could not be tested."""
        return _answer(self.above, "overloaded")


def plan_to_verify(planned: Planned, testbed: SparkTestbed, rate: float | None = None) -> CapacityPlan:
    """Choose the plan for `rate`, records/s; None: the one for the highest rate that `testbed` has room for."""
    if planned.study.testbed != "spark":
        raise WorkbenchError(
            f"The plans come from the {planned.study.testbed} testbed, so there is no query to run. Verify plans that "
            "were measured on Spark."
        )
    plans = [one for one in planned.plans if rate is None or math.isclose(one.rate, rate, rel_tol=_SAME)]
    plans.sort(key=lambda plan: plan.rate, reverse=True)
    if not plans:
        known = ", ".join(f"{plan.rate:,.0f}" for plan in planned.plans) or "none"
        raise WorkbenchError(
            f"There is no plan for {'any rate' if rate is None else f'{rate:,.0f} records/s'}; there are plans for: "
            f"{known}. Name one of them.",
            settings=("rate",),
        )
    refused = None
    for plan in plans:
        try:
            if plan.cores is not None and plan.cores.other and testbed.cluster is None:
                times = f"{plan.cores.times:.2f} times as fast as those measured"
                raise WorkbenchError(f"The plan counts cores {times}, which this machine's are not.")  # noqa: TRY301
            testbed.check(plan.budget)
        except WorkbenchError as error:
            refused = refused or error
            continue
        return plan
    raise WorkbenchError(f"No plan fits this machine: {refused} Verify it where it is to run.")


def verify_plan(
    planned: Planned, plan: CapacityPlan, testbed: Testbed, estimator: measuring.CapacityEstimator
) -> Generator[measuring.Event, None, Verified]:
    """Deploy a plan unchanged, and run it at its rate and above its interval; yield every probe."""
    planned.study.given_rows.require_captured()
    rates, layout = (plan.rate, ABOVE * plan.high), dict[str, int]()
    if plan.layout is not None:
        state, source = plan.layout.stateful_partitions, plan.layout.source_partitions.values()
        layout = ({} if state is None else {"state": state}) | ({"source": max(source)} if source else {})
    query = query_of(planned.study)
    probes: Sequence[Probe] = yield from measuring.verify(query, plan.budget, testbed, estimator, rates, layout=layout)
    return Verified(plan, *probes)


def _answer(probe: Probe, verdict: str) -> bool | None:
    return probe.answered(verdict) if probe.judgement is not None and probe.judgement.answered else None
