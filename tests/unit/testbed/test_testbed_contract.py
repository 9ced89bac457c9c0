import pytest
from testbed_contract import Case, ContractTests

from workbench.dataflow import Budget, SlotProfile
from workbench.measuring import CapacityEstimator
from workbench.simulation import PRESETS
from workbench.testbed import FluidTestbed, RecordedRate, RecordedTestbed

MEMORY = 2048


class TestFluid(ContractTests):
    @pytest.fixture(params=PRESETS)
    def case(self, request):
        testbed = FluidTestbed(seed=3)
        return Case(
            testbed,
            f"nexmark:{request.param}",
            Budget(20, SlotProfile(1.0, MEMORY)),
            Budget(1, SlotProfile(1.0, MEMORY)),
            r"1 slot cannot hold query 'q\d+': its \d operators \(.*\) need one each",
            testbed.clock,
            estimator=CapacityEstimator(clock=testbed.clock),
        )


class TestRecorded(ContractTests):
    @pytest.fixture
    def case(self):
        testbed = RecordedTestbed([RecordedRate(MEMORY, slots, 1000.0 * slots) for slots in (2, 4, 8)])
        return Case(
            testbed,
            "anything",
            Budget(4, SlotProfile(1.0, MEMORY)),
            Budget(5, SlotProfile(1.0, MEMORY)),
            r"no measurement of query 'anything' on 5 slots of 2,048 MB; the nearest are 4 slots of 2,048 MB; 8 slots",
            testbed.clock,
            operators=False,
            estimator=CapacityEstimator(clock=testbed.clock),
        )
