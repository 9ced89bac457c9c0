"""What the long benchmarks measure on Spark can be deployed: they begin hours before their last budget."""

import benchmark_script

from workbench.dataflow import Budget
from workbench.defaults import LEAST_HEAP_MB
from workbench.testbed.spark.session import divide_memory


def test_every_budget_of_the_extrapolation_leaves_spark_its_heap():
    extrapolation = benchmark_script.load("extrapolation")
    for slots in extrapolation.SLOTS:
        assert divide_memory(Budget(slots, extrapolation.PROFILE, 2.0)).heap_mb >= LEAST_HEAP_MB


def test_sixteen_budgets_of_streambeds_check_leave_spark_its_heap():
    budgets = benchmark_script.load("streambed_check").spark_budgets()
    assert len(set(budgets)) == 16
    assert all(divide_memory(budget).heap_mb >= LEAST_HEAP_MB for budget in budgets)
