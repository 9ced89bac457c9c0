"""A plan verified on a testbed: its deployment runs at its rate, and above the high end of its interval."""

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass

from workbench.errors import WorkbenchError
from workbench.measuring import CapacityEstimator, Event, verify
from workbench.records import CapacityPlan, Probe
from workbench.speed import RelativeSpeed, relative_speed, typical_of
from workbench.study.planned import Planned
from workbench.study.prepared import query_of
from workbench.testbed import SparkTestbed, Testbed

_SAME = 1e-3  # rates are printed with three digits
ABOVE = 1.05  # over the high end of the plan's interval, at which a rate must not be sustained any more


@dataclass(frozen=True)
class Verified:
    """The result of verifying a plan: the probe at its rate, and the one above its interval."""

    plan: CapacityPlan
    at_rate: Probe
    above: Probe

    @property
    def carries(self) -> bool | None:
        """Whether the planned rate was sustained; None where that could not be tested."""
        return _answer(self.at_rate)

    @property
    def cores(self) -> RelativeSpeed | None:
        """Speed of the cores it ran on, relative to those that were measured; None where unknown."""
        here = typical_of(probe.observation.cores for probe in (self.at_rate, self.above))
        return None if self.plan.cores is None else relative_speed(here, self.plan.cores.measured)

    @property
    def bounded(self) -> bool | None:
        """Whether the capacity is below the rate above the interval; None where that could not be tested."""
        above = _answer(self.above)
        return None if above is None else not above


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
    planned: Planned, plan: CapacityPlan, testbed: Testbed, estimator: CapacityEstimator
) -> Generator[Event, None, Verified]:
    """Deploy a plan unchanged, and run it at its rate and above its interval; yield every probe."""
    planned.study.given_rows.require_captured()
    rates, layout = (plan.rate, ABOVE * plan.high), dict[str, int]()
    if plan.layout is not None:
        state, source = plan.layout.stateful_partitions, plan.layout.source_partitions.values()
        layout = ({} if state is None else {"state": state}) | ({"source": max(source)} if source else {})
    query = query_of(planned.study)
    probes: Sequence[Probe] = yield from verify(query, plan.budget, testbed, estimator, rates, layout=layout)
    return Verified(plan, *probes)


def _answer(probe: Probe) -> bool | None:
    judgement = probe.judgement
    return judgement.verdict == "sustained" if judgement is not None and judgement.answered else None
