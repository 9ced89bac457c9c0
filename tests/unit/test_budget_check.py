"""What a deployment is refused for, before anything starts."""

import pytest

from workbench.dataflow import Budget, SlotProfile
from workbench.errors import WorkbenchError
from workbench.testbed.spark import SparkTestbed
from workbench.testbed.spark.session import divide_memory


def test_memory_is_divided_between_state_and_heap():
    memory = divide_memory(Budget(4, SlotProfile(0.2, 512)))
    assert (memory.rocksdb_mb, memory.heap_mb) == (819, 1229)


def test_less_memory_than_spark_needs_is_refused_with_what_would_do():
    with pytest.raises(
        WorkbenchError, match=r"leave a heap of \d+ MB; Spark needs 600 MB\. Give each slot at least 251 MB"
    ):
        divide_memory(Budget(4, SlotProfile(0.2, 128)))
    divide_memory(Budget(4, SlotProfile(0.2, 251)))


@pytest.fixture
def two_cores(monkeypatch):
    monkeypatch.setattr("workbench.testbed.spark.testbed.usable_cores", lambda: 2)


@pytest.mark.usefixtures("two_cores")
def test_more_slots_than_the_machine_has_are_refused_with_how_many_fit():
    with pytest.raises(WorkbenchError, match=r"need 2 cores; of the 2 cores .* at most 1\.6 .* Use --slots 8 or less"):
        SparkTestbed().check(Budget(10, SlotProfile(0.2, 512)))
    SparkTestbed().check(Budget(8, SlotProfile(0.2, 512)))


@pytest.mark.usefixtures("two_cores")
def test_a_slot_larger_than_the_machine_is_refused():
    with pytest.raises(WorkbenchError, match=r"A slot of 4 cores is more than the 1\.6 cores"):
        SparkTestbed().check(Budget(1, SlotProfile(4, 1024)))


@pytest.mark.usefixtures("two_cores")
def test_without_quotas_a_slot_is_a_whole_core():
    with pytest.raises(
        WorkbenchError, match=r"Slots of 0\.5 cores need a CPU quota; without one a slot is a whole core"
    ):
        SparkTestbed(slot_cpus="cores").check(Budget(1, SlotProfile(0.5, 1024)))


def test_a_cluster_has_its_own_cores():
    SparkTestbed(master="spark://127.0.0.1:7077").check(Budget(500, SlotProfile(1, 1024)))
