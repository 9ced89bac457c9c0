"""What the long benchmarks measure on Spark can be deployed: they begin hours before their last budget."""

import benchmark_script

from workbench.dataflow import Budget, SlotProfile
from workbench.defaults import LEAST_HEAP_MB
from workbench.testbed.spark.driver.session import divide_memory


def test_every_budget_of_the_extrapolation_leaves_spark_its_heap():
    extrapolation = benchmark_script.load("extrapolation")
    for cpus, large in extrapolation.LARGE.items():
        profile = SlotProfile(cpus, extrapolation.MEMORY_MB[cpus])
        assert divide_memory(Budget(max(large), profile, 2.0)).heap_mb >= LEAST_HEAP_MB


def test_sixteen_budgets_of_streambeds_check_leave_spark_its_heap():
    budgets = benchmark_script.load("streambed_check").spark_budgets()
    assert len(set(budgets)) == 16
    assert all(divide_memory(budget).heap_mb >= LEAST_HEAP_MB for budget in budgets)
