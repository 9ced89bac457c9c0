"""A log's query: its slots, their memory, its source's partitions, and its trigger interval."""

import json
import math
from itertools import pairwise

import pytest
from written_logs import BEGUN, TRUE, a_day, application, capacity, events, executor, progress, progress_of, written

from workbench.observing import headroom, read_log
from workbench.observing.deployment import trigger_interval


@pytest.mark.parametrize(
    ("settings", "memory_mb"),
    [
        ({}, (4096 + 409.6) / 4),
        ({"spark.executor.memoryOverhead": "1g"}, 5120 / 4),
        ({"spark.executor.memoryOverheadFactor": "0.25"}, 5120 / 4),
        ({"spark.executor.minMemoryOverhead": "1g"}, 5120 / 4),
        ({"spark.kubernetes.resource.type": "python"}, 4096 * 1.4 / 4),
        ({"spark.executor.pyspark.memory": "2048", "spark.executor.memoryOverhead": "0"}, 6144 / 4),
        ({"spark.memory.offHeap.enabled": "true", "spark.memory.offHeap.size": "1073741824"}, (5120 + 409.6) / 4),
        ({"spark.memory.offHeap.enabled": "true", "spark.memory.offHeap.size": "1gb"}, (5120 + 409.6) / 4),
        ({"spark.executor.memory": "nonsense"}, (1024 + 384) / 4),
    ],
)
def test_a_slot_has_its_share_of_all_that_a_container_holds(tmp_path, settings, memory_mb):
    log = list(events(a_day(0.5 * TRUE)[:30]))
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


def test_executors_that_compaction_took_out_leave_the_slots_unknown(tmp_path):
    """The history server keeps those that live: three that came one after the other, in the middle of the log."""
    log = [event for event in events(a_day(0.5 * TRUE), slots=12) if "Executor ID" not in event]
    came = [{"Timestamp": 1000 * (BEGUN + 150) + number} for number in range(3)]
    live = [executor(str(number), 4) | stamped for number, stamped in enumerate(came)]
    seen = read_log(written(tmp_path / "log", [*log[:3], *live, *log[3:]]))
    assert {batch.slots for batch in seen.batches} == {0, 12}
    assert seen.slots == 12


def test_the_partitions_of_a_topic_are_not_those_of_the_shuffle(tmp_path):
    seen = read_log(written(tmp_path / "log", events(a_day(0.5 * TRUE), readers=3, partitions=200)))
    assert {(block.partitions, block.source_partitions) for block in seen.blocks} == {(200, 3)}
    assert {block.observation.source_partitions for block in seen.blocks} == {3}
    assert seen.facts["source partitions"].startswith("3: more slots than 3 do not speed up reading")


@pytest.mark.parametrize(("readers", "said"), [(4, None), (12, "12")])
def test_a_source_with_partitions_enough_is_no_limit(tmp_path, readers, said):
    seen = read_log(written(tmp_path / "log", events(a_day(0.5 * TRUE), readers=readers)))
    assert seen.facts.get("source partitions") == said


def test_a_source_that_is_no_topic_and_has_as_many_partitions_has_none_of_its_own(tmp_path):
    """It is given more as slots are added, which a topic is not."""
    log = [json.loads(json.dumps(event)) for event in events(a_day(0.5 * TRUE))]
    topic = read_log(written(tmp_path / "topic", log))
    for told in progress_of(log):
        told["sources"][0]["description"] = "RateStreamV2[rowsPerSecond=1]"
    generated = read_log(written(tmp_path / "log", log))
    assert {block.observation.source_partitions for block in topic.blocks} == {4}
    assert {block.observation.source_partitions for block in generated.blocks} == {None}


@pytest.mark.parametrize("interval_s", [0.5, 1.0, 2.0, 5.0, 10.0, 60.0])
def test_the_trigger_interval_is_seen(interval_s):
    starts = [BEGUN + place * interval_s + 0.004 * (place % 3) for place in range(0, 60, 1)]
    skipped = [start for place, start in enumerate(starts) if place % 7]
    assert trigger_interval([(start, 0.3 * interval_s) for start in skipped]) == interval_s


@pytest.mark.parametrize("interval_s", [2.0, 10.0])
@pytest.mark.parametrize("version", ["3.4", "3.5"])
def test_rows_that_come_once_a_minute_do_not_hide_the_trigger_interval(tmp_path, interval_s, version):
    """Triggers in between find nothing, and Spark logs one of them every ten seconds."""
    log = list(application(4, "spark://m:7077"))
    for number in range(30):
        begun = BEGUN + 60 * number
        log.append(progress(number, 1000 + 100 * number, begun, batch_s=0.4))
        cleared_s = interval_s + 0.5  # of state, so that the trigger after it is late
        log.append(progress(number, 0, begun + interval_s, batch_s=cleared_s))
        log.append(progress(number, 0, begun + interval_s + cleared_s + 0.003, batch_s=0.01))
        for idle_s in range(12 if interval_s == 2.0 else 30, 60, 10):
            nothing = progress(number + 1, 0, begun + idle_s, batch_s=0.01)
            told = {name: nothing["progress"][name] for name in ("id", "runId", "timestamp")}
            idle = {"Event": nothing["Event"].replace("Progress", "Idle")} | told
            log.append(nothing if version == "3.4" else idle)
    assert read_log(written(tmp_path / "log", log)).interval_s == interval_s


def once_a_minute(interval_s):
    """Batches and logged idle triggers where rows come on the minute; Spark logs one of these in ten seconds."""
    batches, idle, told_s = [], [], 0.0
    for place in range(int(1800 / interval_s)):
        start_s = BEGUN + place * interval_s + 0.004 * (place % 3)
        if place * interval_s % 60 == 0:
            batches.append((start_s, 0.4))
            told_s = start_s + 0.4
        elif start_s - told_s >= 10:
            idle.append(start_s)
            told_s = start_s
    return batches, idle


@pytest.mark.parametrize("interval_s", [3.0, 4.0, 6.0, 12.0])
def test_no_trigger_interval_is_seen_where_several_leave_the_same_log(interval_s):
    assert {round(after - before) for before, after in pairwise(once_a_minute(interval_s)[1])} <= {12, 24}
    assert trigger_interval(*once_a_minute(interval_s)) is None


def test_a_trigger_interval_that_no_shorter_one_looks_like_is_seen():
    for interval_s in (2.0, 5.0, 10.0, 15.0, 20.0, 30.0):
        assert trigger_interval(*once_a_minute(interval_s)) == interval_s
    starts = [BEGUN + 12 * place for place in range(120) if place % 5]
    idle = [BEGUN + 12 * place for place in range(0, 120, 5)]
    assert trigger_interval([(start, 0.4) for start in starts], idle) == 12


def test_no_trigger_interval_is_seen_where_batches_follow_each_other():
    starts, now = [], BEGUN
    for place in range(60):
        length = 0.7 + 0.05 * math.sin(place)
        starts.append((now, length))
        now += length + 0.002
    assert trigger_interval(starts) is None
    assert trigger_interval([(start, 0.1) for start, _ in starts]) is None  # they waited, but not for a clock
