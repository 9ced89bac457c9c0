"""What the compilers of a cluster's executors have used, seen from tasks."""

import pytest

from workbench.testbed.spark.cluster import compilers
from workbench.testbed.spark.driver.cores import COMPILERS
from workbench.testbed.spark.machine.quota import threads_cpu_s

pytestmark = pytest.mark.spark


def test_a_task_finds_what_the_compiler_of_its_jvm_has_used(spark):
    used_s = compilers(spark, 2, COMPILERS)
    pid = int(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())
    before = threads_cpu_s(pid, COMPILERS)
    seen = used_s()
    assert before <= seen <= threads_cpu_s(pid, COMPILERS)
    assert seen > 0.1


def test_other_threads_do_not_count(spark):
    assert compilers(spark, 1, ("no such thread",))() == 0.0
