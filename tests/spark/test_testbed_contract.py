"""Spark under the contract of every testbed, on one deployment."""

import math
import time

import pytest
import toy_query
from testbed_contract import Case, ContractTests, warm_capacity, windows_at

from workbench.dataflow import Budget, SlotProfile
from workbench.doctor import quota_permitted
from workbench.measuring import CapacityEstimator
from workbench.testbed import SparkTestbed

pytestmark = [pytest.mark.spark, pytest.mark.alone, pytest.mark.long]

FRACTIONS = quota_permitted()


class TestSpark(ContractTests):
    @pytest.fixture(scope="class")
    @classmethod
    def case(cls):
        slot = SlotProfile(0.4, 600) if FRACTIONS else SlotProfile(1.0, 1200)
        return Case(
            SparkTestbed(slot_cpus="auto" if FRACTIONS else "cores", warmup_cap_s=10),
            toy_query.query(toy_query.dear, "update"),
            Budget(2 if FRACTIONS else 1, slot, 2.0),
            Budget(1000, slot, 2.0),
            r"1,000 slots of .* cores need .* cores; of the .* cores of this machine at most .* can be slots",
            time.monotonic,
            warm_s=14.0,
            settle_s=4.0,
            window_s=9.0,
            windows=4,
            max_disturbance=math.inf,
            noise=0.4,  # a window is four batches, and the machine may have other things to do
            estimator=CapacityEstimator(
                0.05,
                window_s=8.0,
                settle_s=4.0,
                warmup_min_s=10.0,
                warmup_cap_s=20.0,
                max_probes=5,
                max_disturbance=1.0,
            ),
        )

    @pytest.fixture(scope="class")
    @classmethod
    def run(cls, case):
        with case.testbed.deploy(case.query, case.budget) as run:
            yield run

    @pytest.fixture(scope="class")
    @classmethod
    def capacity(cls, case, run):
        return warm_capacity(case, run)

    @pytest.fixture(scope="class")
    @classmethod
    def windows(cls, case, run, capacity):
        return windows_at(case, run, capacity)
