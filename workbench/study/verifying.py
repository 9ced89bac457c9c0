"""A plan put to the test where it fits: its deployment runs at its rate, and above the high end of its interval."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass

from workbench.errors import WorkbenchError
from workbench.measuring import CapacityEstimator, Event, verify
from workbench.records import CapacityPlan, Probe
from workbench.study.carry_out import Planned, query_of
from workbench.testbed import SparkTestbed, Testbed

ABOVE = 1.05
"""Times the high end of the plan's interval at which it must not be sustained any more."""


@dataclass(frozen=True)
class Verified:
    """What became of a plan: the probe at its rate, and the one above its interval."""

    plan: CapacityPlan
    at_rate: Probe
    above: Probe

    @property
    def carries(self) -> bool:
        """Whether the rate planned for was sustained."""
        return self.at_rate.answered("sustained")

    @property
    def bounded(self) -> bool:
        """Whether the capacity is below what lies above the interval."""
        return self.above.answered("overloaded")


def plan_to_verify(planned: Planned, testbed: SparkTestbed, rate: float | None = None) -> CapacityPlan:
    """Choose the plan for `rate`, records/s; None: the one for the highest rate that `testbed` has room for.

    Raises
    ------
    WorkbenchError
        When there is no such plan, or no room for it; the message says what it needs.
    """
    plans = sorted(planned.plans, key=lambda plan: plan.rate, reverse=True)
    if rate is not None:
        plans = [plan for plan in plans if plan.rate == rate]
    if not plans:
        known = ", ".join(f"{plan.rate:,.0f}" for plan in planned.plans) or "none"
        raise WorkbenchError(
            f"There is no plan for {'any rate' if rate is None else f'{rate:,.0f} records/s'}; there are plans for: "
            f"{known}. Name one of them.",
            settings=("target",),
        )
    refused = None
    for plan in plans:
        try:
            testbed.check(plan.budget)
        except WorkbenchError as error:
            refused = refused or error
            continue
        return plan
    raise WorkbenchError(f"No plan fits this machine: {refused} Verify it where it is to run.")


def verify_plan(
    planned: Planned, plan: CapacityPlan, testbed: Testbed, estimator: CapacityEstimator
) -> Generator[Event, None, Verified]:
    """Deploy a plan as it says, and run it at its rate and above its interval; yield every probe.

    Raises
    ------
    WorkbenchError
        When the query or its data cannot be had here.
    """
    if planned.study.testbed != "spark":
        raise WorkbenchError(
            f"The plans come from the {planned.study.testbed} testbed, so there is no query to run. Verify plans that "
            "were measured on Spark."
        )
    rates = (plan.rate, ABOVE * plan.high)
    probes: Sequence[Probe] = yield from verify(
        query_of(planned.study), plan.budget, testbed, estimator, rates, layout=_layout(plan)
    )
    return Verified(plan, *probes)


def _layout(plan: CapacityPlan) -> dict[str, int]:
    """Give the partitions of a plan, as a testbed takes them."""
    if plan.layout is None:
        return {}
    state, source = plan.layout.stateful_partitions, plan.layout.source_partitions.values()
    return ({} if state is None else {"state": state}) | ({"source": max(source)} if source else {})
