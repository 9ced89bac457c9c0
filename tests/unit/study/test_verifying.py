"""A plan is put to the test as it would be deployed."""

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from simulated_run import SimulatedRun

from workbench.errors import WorkbenchError
from workbench.measuring import CapacityEstimator, result_of
from workbench.records import CountedCores
from workbench.speed import CoreSpeed
from workbench.study import plan_to_verify, read_planned, verify_plan

STORED = Path(__file__).parents[2] / "stored"


@dataclass
class Desk:
    """Carries `truth` records/s, and has room for `room` slots."""

    truth: float
    room: int = 100
    cluster: str | None = None
    asked: list = field(default_factory=list)
    runs: list = field(default_factory=list)

    def check(self, budget):
        if budget.slots > self.room:
            raise WorkbenchError(f"{budget.slots} slots need more cores than there are.")

    @contextmanager
    def deploy(self, query, budget, layout=None, *, repeat=None):  # noqa: ARG002
        self.asked.append((query.name, budget, layout))
        self.runs.append(SimulatedRun(per_record_s=1.8 / 2.0 / self.truth))  # 0.2 of 2 s are fixed
        yield self.runs[-1]


@pytest.fixture(scope="module")
def planned():
    return read_planned(STORED / "plan-spark.json")


def verified(planned, desk):
    plan = plan_to_verify(planned, desk)
    estimator = CapacityEstimator(clock=lambda: desk.runs[-1].now)
    return plan, result_of(verify_plan(planned, plan, desk, estimator))


def test_a_plan_holds_if_its_rate_is_sustained_and_what_is_above_its_interval_is_not(planned):
    plan = planned.plans[0]
    _, found = verified(planned, desk := Desk(plan.expected_rate))
    assert (found.carries, found.bounded) == (True, True)
    assert found.at_rate.rate == plan.rate
    assert found.above.rate == pytest.approx(1.05 * plan.high)
    ((query, budget, layout),) = desk.asked
    assert (query, budget) == (planned.study.query, plan.budget)
    assert layout["state"] == plan.layout.stateful_partitions
    assert not verified(planned, Desk(0.8 * plan.rate))[1].carries
    _, more = verified(planned, Desk(2 * plan.high))
    assert (more.carries, more.bounded) == (True, False)


def test_whose_cores_is_said_of_what_ran_here(planned):
    plan, found = verified(planned, Desk(planned.plans[0].expected_rate))
    assert found.cores is None
    seen = replace(found.at_rate, observation=replace(found.at_rate.observation, cores=CoreSpeed(0.5e-3, 0.57e-3)))
    timed = replace(found, at_rate=seen)
    assert timed.cores is None  # whose cores the plan counts is not known
    counted = replace(plan, cores=CountedCores(CoreSpeed(0.25e-3, 0.285e-3)))
    assert replace(timed, plan=counted).cores.times == pytest.approx(0.5)


def test_the_highest_rate_that_fits_is_verified(planned):
    (plan,) = planned.plans
    small = replace(plan, rate=plan.rate / 10, budget=replace(plan.budget, slots=2))
    two = replace(planned, plans=(plan, small))
    assert plan_to_verify(two, Desk(1.0)) is plan
    assert plan_to_verify(two, Desk(1.0, room=4)) is small
    assert plan_to_verify(two, Desk(1.0), small.rate) is small
    with pytest.raises(WorkbenchError, match=r"No plan fits this machine: 19 slots need more cores"):
        plan_to_verify(two, Desk(1.0, room=1))
    with pytest.raises(WorkbenchError, match=r"no plan for 7 records/s; there are plans for: 50,000, 5,000"):
        plan_to_verify(two, Desk(1.0), 7.0)
    with pytest.raises(WorkbenchError, match="come from the fluid testbed, so there is no query to run"):
        plan_to_verify(read_planned(STORED / "plan-fluid.json"), Desk(1.0))


def test_a_plan_for_other_cores_is_not_verified_here(planned):
    (plan,) = planned.plans
    other = replace(plan, cores=CountedCores(CoreSpeed(0.25e-3, 0.285e-3), 0.5, 0.43, 0.57))
    two = replace(planned, plans=(other, replace(plan, rate=plan.rate / 10)))
    assert plan_to_verify(two, Desk(1.0)).rate == plan.rate / 10
    with pytest.raises(WorkbenchError, match=r"No plan fits .*: The plan counts cores 0\.50 times as fast"):
        plan_to_verify(replace(planned, plans=(other,)), Desk(1.0))
    assert plan_to_verify(replace(planned, plans=(other,)), Desk(1.0, cluster="k8s")) is other
