"""How many slots a log's query ran on, and how much memory each had."""

import pytest
from written_logs import BEGUN, TRUE, a_day, capacity, events, executor, progress_of, written

from workbench.observing import headroom, read_log


@pytest.mark.parametrize(
    ("settings", "memory_mb"),
    [
        ({}, (4096 + 409.6) / 4),
        ({"spark.executor.memoryOverhead": "1g"}, 5120 / 4),
        ({"spark.executor.memoryOverheadFactor": "0.25"}, 5120 / 4),
        ({"spark.kubernetes.resource.type": "python"}, 4096 * 1.4 / 4),
        ({"spark.executor.pyspark.memory": "2048", "spark.executor.memoryOverhead": "0"}, 6144 / 4),
        ({"spark.memory.offHeap.enabled": "true", "spark.memory.offHeap.size": "1073741824"}, (5120 + 409.6) / 4),
        ({"spark.memory.offHeap.enabled": "true", "spark.memory.offHeap.size": "1gb"}, (5120 + 409.6) / 4),
        ({"spark.executor.memory": "nonsense"}, (1024 + 384) / 4),
    ],
)
def test_a_slot_has_its_share_of_all_that_a_container_holds(tmp_path, settings, memory_mb):
    log = list(events(a_day(0.5 * TRUE)))
    log[2]["Spark Properties"] |= settings
    assert read_log(written(tmp_path / "log", log)).memory_mb == round(memory_mb)


def test_batches_on_other_slots_than_most_are_left_out(tmp_path):
    before = list(events(a_day(0.5 * TRUE)))
    after = events(a_day(0.5 * TRUE, batches=40), whole=False, begun=BEGUN + 1000, first=200, run="r-2", slots=8)
    seen = read_log(written(tmp_path / "log", [*before, executor("1", 4), *after]))
    assert seen.starts == 2
    assert seen.slots == 4
    assert headroom(seen.batches, 2.0).batches == 115
    assert {block.slots for block in seen.blocks} == {4, 8}


def test_executors_that_are_gone_at_the_end_are_those_that_it_ran_on(tmp_path):
    gone = {"Event": "SparkListenerExecutorRemoved", "Executor ID": "0", "Timestamp": 1000 * (BEGUN + 5000)}
    log = list(events(a_day(0.5 * TRUE)))
    log[3] |= {"Timestamp": 1000 * (BEGUN - 60)}
    seen = read_log(written(tmp_path / "log", [*log, gone]))
    assert (seen.slots, seen.memory_mb) == (4, 1126)
    lines = written(tmp_path / "progress.jsonl", progress_of(log))
    without = [event for event in log if "progress" not in event]
    assert read_log(written(tmp_path / "bare", [*without, gone]), progress=lines).slots == 4


@pytest.mark.parametrize(("cores", "slots"), [((4,), 2), ((3, 3, 3, 3), 4), ((3, 5), 3), ((1, 4), 2)])
def test_cores_that_a_task_takes_are_counted_in_each_executor_whenever_they_are_told(tmp_path, cores, slots):
    start, spark, environment, _, *log = events(a_day(0.5 * TRUE))
    environment["Spark Properties"]["spark.task.cpus"] = "2"
    executors = [executor(str(name), count) for name, count in enumerate(cores)]
    assert read_log(written(tmp_path / "log", [start, spark, *executors, environment, *log])).slots == slots


def test_slots_of_which_there_are_as_many_batches_are_the_later_ones_everywhere(tmp_path):
    first = list(events(a_day(0.5 * TRUE, batches=100)))
    second = events(a_day(0.5 * TRUE, batches=100), whole=False, begun=BEGUN + 1000, first=200, run="r-2", slots=8)
    added = executor("1", 4) | {"Timestamp": 1000 * (BEGUN + 900)}
    seen = read_log(written(tmp_path / "log", [*first, added, *second]))
    assert seen.slots == 8
    assert headroom(seen.batches, 2.0).rate == pytest.approx(capacity(8, 2.0), rel=0.1)
