"""What a log says of a query whose costs are known."""

import json
import math
import time
from itertools import pairwise

import numpy as np
import pytest
from written_logs import BEGUN, a_day, application, capacity, events, executor, progress, task, written

from workbench.capacity.model import fit_micro_batch
from workbench.errors import WorkbenchError
from workbench.observing import as_measurement, headroom, read_log, trigger_interval
from workbench.observing.load import load_of
from workbench.observing.log import SeenBatch
from workbench.testbed.spark import Events, rows_of

TRUE = capacity(4, 2.0)


@pytest.fixture(scope="module")
def half(tmp_path_factory):
    """The log of a day whose peak is half of what the query sustains."""
    return written(tmp_path_factory.mktemp("logs") / "log", events(a_day(0.5 * TRUE)))


def test_what_the_log_says_of_the_query(half):
    seen = read_log(half)
    assert (seen.name, seen.application, seen.spark) == ("orders", "shop", "4.3.0")
    assert (seen.slots, seen.memory_mb, seen.interval_s) == (4, round((4096 + 409.6) / 4), 2.0)
    assert len(seen.batches) == 120 - 5  # the first of a start run cold
    assert seen.sources == ("KafkaV2[Subscribe[orders]]",)
    assert {block.partitions for block in seen.blocks} == {4}
    assert seen.cpu_share == pytest.approx(0.9, abs=0.02)
    assert "not-to-be-told" not in repr(seen)


@pytest.mark.parametrize("share", [0.3, 0.5, 0.7])
def test_the_rate_is_told_from_a_load_that_never_reaches_it(tmp_path, share):
    seen = read_log(written(tmp_path / "log", events(a_day(share * TRUE), seed=3)))
    found = headroom(seen.batches, 2.0)
    assert found.rate == pytest.approx(TRUE, rel=0.05)
    assert found.low < TRUE < found.high
    assert found.peak_rate == pytest.approx(share * TRUE, rel=0.05)
    assert found.reach == pytest.approx(1 / share, rel=0.1)
    assert found.left == pytest.approx(1 / share - 1, rel=0.15)
    assert found.fixed_s == pytest.approx(0.22, abs=0.02)


def test_the_farther_the_line_is_carried_the_wider_the_interval(tmp_path):
    widths = []
    for place, share in enumerate((0.3, 0.5, 0.7)):
        seen = read_log(written(tmp_path / f"log{place}", events(a_day(share * TRUE))))
        found = headroom(seen.batches, 2.0)
        widths.append(found.high / found.low)
    assert widths == sorted(widths, reverse=True)


def test_batches_of_a_query_that_is_behind_are_maxima_that_were_seen(tmp_path):
    seen = read_log(written(tmp_path / "log", events(a_day(1.4 * TRUE))))
    found = headroom(seen.batches, 2.0)
    assert found.behind > 0.1
    assert found.reach <= 1
    assert found.rate == pytest.approx(TRUE, rel=0.03)


def test_a_load_that_never_moved_tells_nothing(tmp_path):
    seen = read_log(written(tmp_path / "log", events([0.5 * TRUE] * 60)))
    found = headroom(seen.batches, 2.0)
    assert found.rate is None
    assert found.left is None
    assert "the load hardly moved" in found.why_not
    with pytest.raises(WorkbenchError, match="is not identifiable from its log: the load hardly moved"):
        as_measurement(seen, found)


def test_a_batch_that_is_all_driver_tells_no_rate(tmp_path):
    seen = read_log(written(tmp_path / "log", events(a_day(0.5 * TRUE), driver_s=2.5)))
    why = headroom(seen.batches, 2.0).why_not
    assert "whatever it holds, longer than the trigger interval of 2 s" in why
    assert "set a longer interval" in why


def test_few_batches_tell_nothing(tmp_path):
    seen = read_log(written(tmp_path / "log", events(a_day(0.5 * TRUE, batches=15))))
    assert "there are 10 batches on 4 slots; it takes 20" in headroom(seen.batches, 2.0).why_not


def test_a_log_that_ends_while_its_code_is_cold_is_no_log_of_another_query(tmp_path):
    begun = written(tmp_path / "log", events(a_day(0.5 * TRUE, batches=4)))
    with pytest.raises(WorkbenchError, match=r"has only 4 batches .* Give a log with at least 20 more\."):
        read_log(begun)


def test_a_sink_has_a_name_that_can_be_read(tmp_path):
    log = [json.loads(json.dumps(event)) for event in events(a_day(0.5 * TRUE))]
    for event in log:
        if "progress" in event:
            event["progress"]["sink"] = {"description": "org.apache.spark.sql.execution.streaming.NoopTable$@5616a329"}
    assert read_log(written(tmp_path / "log", log)).sink == "NoopTable"


def test_batches_with_a_stage_of_their_own_change_no_other_operators(tmp_path):
    """A sink that compacts in every tenth batch."""
    log = list(events(a_day(0.5 * TRUE)))
    extra, seen = [], 0
    for event in log:
        extra.append(event)
        if event["Event"] == "SparkListenerJobStart":
            seen += 1
            merges = seen % 10 == 0
            if merges:
                event["Stage IDs"] = [*event["Stage IDs"], 10_000 + seen]
        if event["Event"] == "SparkListenerStageCompleted" and merges and event["Stage Info"]["Parent IDs"]:
            own = {"Stage ID": 10_000 + seen, "Stage Attempt ID": 0, "Parent IDs": [event["Stage Info"]["Stage ID"]]}
            extra += [task(10_000 + seen, number, 1, 0.001, scans=False) for number in range(10)]
            extra.append(event | {"Stage Info": event["Stage Info"] | own})
    plain, merged = (read_log(written(tmp_path / name, one)) for name, one in (("plain", log), ("merged", extra)))
    for one, other in zip(plain.blocks, merged.blocks, strict=True):
        busy, own = one.observation.operators[0].busyness, other.observation.operators[0].busyness
        assert own == pytest.approx(busy, rel=0.15)
        assert other.partitions == one.partitions == 4


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


def test_the_same_log_gives_the_same_answer(half):
    batches = read_log(half).batches
    assert headroom(batches, 2.0, 5) == headroom(batches, 2.0, 5)


def test_a_log_is_a_measurement_whose_batch_is_explained(half):
    seen = read_log(half)
    run = as_measurement(seen, headroom(seen.batches, 2.0))
    parts = fit_micro_batch([run])
    assert parts is not None
    assert parts.explains
    assert parts.rate(4, 4, 2.0) == pytest.approx(TRUE, rel=0.06)
    assert [stage.name for stage in parts.stages] == ["1 scan", "2 aggregate"]
    assert run.estimate.middle == pytest.approx(headroom(seen.batches, 2.0).rate)
    assert run.testbed_kind == "observed"


def test_batches_on_other_slots_than_most_are_left_out(tmp_path):
    before = list(events(a_day(0.5 * TRUE)))
    after = events(a_day(0.5 * TRUE, batches=40), whole=False, begun=BEGUN + 1000, first=200, run="r-2", slots=8)
    seen = read_log(written(tmp_path / "log", [*before, executor("1", 4), *after]))
    assert seen.starts == 2
    assert seen.slots == 4
    assert headroom(seen.batches, 2.0).batches == 115
    assert {block.slots for block in seen.blocks} == {4, 8}


def test_one_of_several_queries_is_named(tmp_path):
    both = [*events(a_day(0.5 * TRUE)), *events(a_day(0.2 * TRUE), whole=False, name="late", query="q-2", first=500)]
    log = written(tmp_path / "log", both)
    with pytest.raises(
        WorkbenchError, match=r"has 2 streaming queries: orders \(q-1\), late \(q-2\)\. Name one of them, or its id"
    ):
        read_log(log)
    assert read_log(log, "late").name == "late"
    assert read_log(log, "q-1").name == "orders"
    with pytest.raises(
        WorkbenchError, match=r"no batches with rows of 'other'; queries with some are: orders \(q-1\), late \(q-2\)"
    ):
        read_log(log, "other")


def test_progress_events_stand_in_where_the_log_has_none(tmp_path):
    log = written(tmp_path / "log", application(4, "spark://m:7077"))
    told = [event["progress"] for event in events(a_day(0.5 * TRUE)) if "progress" in event]
    lines = tmp_path / "progress.jsonl"
    lines.write_text("".join(json.dumps(one) + "\n" for one in told))
    seen = read_log(log, progress=lines)
    found = headroom(seen.batches, 2.0)
    assert found.rate == pytest.approx(TRUE, rel=0.05)
    with pytest.raises(WorkbenchError, match="shows no tasks of its batches"):
        as_measurement(seen, found)
    lines.write_text('{"batchId": 1}\n')
    with pytest.raises(WorkbenchError, match=r"Line 1 of .* is no progress event"):
        read_log(log, progress=lines)


def test_progress_that_is_told_twice_counts_once(tmp_path):
    log = written(tmp_path / "log", events(a_day(0.5 * TRUE)))
    told = [event["progress"] for event in events(a_day(0.5 * TRUE)) if "progress" in event]
    lines = tmp_path / "progress.jsonl"
    lines.write_text("".join(json.dumps(one) + "\n" for one in told))
    assert len(read_log(log, progress=lines).batches) == len(read_log(log).batches)


def test_progress_may_be_a_text_as_old_versions_write_it(tmp_path):
    old = [
        event | {"progress": json.dumps(event["progress"])} if "progress" in event else event
        for event in events(a_day(0.5 * TRUE))
    ]
    assert len(read_log(written(tmp_path / "log", old)).batches) == 115


def test_times_without_a_zone_are_utc_wherever_the_log_is_read(tmp_path, monkeypatch):
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        log = list(events(a_day(0.5 * TRUE)))
        for told in progress_of(log):
            told["timestamp"] = told["timestamp"].removesuffix("Z")
        assert read_log(written(tmp_path / "log", log)).batches[0].start_s == BEGUN + 2.0 * 6
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_batch_without_rows_is_no_batch(tmp_path):
    idle = [progress(1000 + place, 0, BEGUN + 1000 + place, batch_s=0.1) for place in range(50)]
    seen = read_log(written(tmp_path / "log", [*events(a_day(0.5 * TRUE)), *idle]))
    assert len(seen.batches) == 115


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


@pytest.mark.parametrize("interval_s", [2.0, 5.0, 10.0, 15.0, 20.0, 30.0])
def test_a_trigger_interval_that_no_shorter_one_looks_like_is_seen(interval_s):
    assert trigger_interval(*once_a_minute(interval_s)) == interval_s


def test_batches_that_come_every_twelve_seconds_show_that_interval():
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


def progress_of(log):
    return [event["progress"] for event in log if "progress" in event]


def test_the_rows_of_all_sources_count(tmp_path):
    log = list(events(a_day(0.5 * TRUE)))
    for told in progress_of(log):
        (source,) = told["sources"]
        half = source["numInputRows"] // 2
        told["sources"] = [
            source | {"numInputRows": 1},
            source | {"numInputRows": source["numInputRows"] - 1, "half": half},
        ]
    seen = read_log(written(tmp_path / "log", log))
    assert headroom(seen.batches, 2.0).rate == pytest.approx(TRUE, rel=0.06)
    assert seen.blocks[0].rows > 1000


def test_rows_of_a_topic_that_two_branches_scan_count_once():
    source = {"description": "KafkaV2[Subscribe[orders]]", "startOffset": {"orders": {"0": 1}}, "numInputRows": 9}
    twice = [source | {"endOffset": {"orders": {"0": 10}}}] * 2
    other = source | {"description": "KafkaV2[Subscribe[items]]", "endOffset": {"items": {"0": 10}}}
    assert rows_of({"sources": twice}) == 9
    assert rows_of({"sources": [*twice, other]}) == 18


@pytest.mark.parametrize("as_text", [False, True])
def test_rows_that_are_written_to_two_places_count_once(as_text):
    """A foreachBatch with two writes reads its batch twice, and Spark counts the rows of both."""
    kept = json.dumps if as_text else dict
    start, end = {"orders": {"0": 100, "1": 50}}, {"orders": {"0": 160, "1": 90}}
    source = {"description": "KafkaV2[Subscribe[orders]]", "startOffset": kept(start), "endOffset": kept(end)}
    assert rows_of({"sources": [source | {"numInputRows": 200}]}) == 100
    assert rows_of({"sources": [source | {"numInputRows": 99}]}) == 99  # a transaction's marker is no record
    first = source | {"startOffset": None, "numInputRows": 200}
    assert rows_of({"sources": [first]}) == 200  # its offsets do not say where it began


def test_executors_that_are_gone_at_the_end_are_those_that_it_ran_on(tmp_path):
    gone = {"Event": "SparkListenerExecutorRemoved", "Executor ID": "0", "Timestamp": 1000 * (BEGUN + 5000)}
    log = list(events(a_day(0.5 * TRUE)))
    log[3] |= {"Timestamp": 1000 * (BEGUN - 60)}
    seen = read_log(written(tmp_path / "log", [*log, gone]))
    assert (seen.slots, seen.memory_mb) == (4, 1126)
    lines = tmp_path / "progress.jsonl"
    lines.write_text("".join(json.dumps(one) + "\n" for one in progress_of(log)))
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


def test_scatter_is_no_slope(tmp_path):
    rates = [0.0005 * TRUE * (1 + place % 9) for place in range(200)]
    seen = read_log(written(tmp_path / "log", events(rates, driver_s=1.0, noise=0.5)))
    found = headroom(seen.batches, 2.0)
    assert found.rate is None
    assert "beyond their scatter" in found.why_not or "no line can be trusted" in found.why_not


def test_full_batches_of_a_backlog_are_no_peak(tmp_path):
    log = list(events(a_day(0.3 * TRUE)))
    for told in progress_of(log)[60:70]:
        told["sources"][0] |= {"numInputRows": int(1.8 * TRUE), "endOffset": {"orders": {"0": int(1.8 * TRUE)}}}
        told["sources"][0]["metrics"] = {"avgOffsetsBehindLatest": "1200.0"}
        told["durationMs"]["triggerExecution"] = 1900
    found = headroom(read_log(written(tmp_path / "log", log)).batches, 2.0)
    assert found.admitted_rate == pytest.approx(0.9 * TRUE, rel=0.01)
    assert found.peak_rate == pytest.approx(0.3 * TRUE, rel=0.1)


def batch(start_s, batch_s, rows, *, slots=4, since_s=2.0, idle_s=1.0, left_rows=False):
    return SeenBatch(start_s, batch_s, rows, slots, since_s, idle_s, left_rows)


def test_a_default_trigger_has_the_peak_of_its_short_batches():
    """Batches follow each other every half second, at 1,000 to 30,000 records/s, judged for an interval of 10 s."""
    rates = a_day(30_000, batches=600, night=1 / 30)
    seen = [batch(0.5 * n, 0.5, round(0.5 * rate), since_s=0.5, idle_s=0.0) for n, rate in enumerate(rates)]
    assert load_of(seen, 10.0).peak_rate == pytest.approx(30_000, rel=0.02)


def test_rows_that_come_after_a_pause_came_within_an_interval():
    """The load comes every fifteen minutes, and the triggers in between are not in the log."""
    seen = [batch(900.0 * n, 1.0, 30_000 + 100 * n, since_s=900.0, idle_s=899.0) for n in range(30)]
    assert load_of(seen, 2.0).peak_rate == pytest.approx(16_400, rel=0.02)


@pytest.mark.parametrize("early", [6, 40])
def test_a_batch_that_is_told_too_late_leaves_the_peak_as_it_is(tmp_path, early):
    """As in a file of progress events that was put together from several."""
    log = list(events(a_day(0.5 * TRUE)))
    told = [event["progress"] for event in log if "progress" in event]
    bare = written(tmp_path / "log", [event for event in log if "progress" not in event])
    lines = tmp_path / "progress.jsonl"

    def peak(ordered):
        lines.write_text("".join(json.dumps(one) + "\n" for one in ordered))
        return load_of(read_log(bare, progress=lines).batches, 2.0).peak_rate

    late = [*told[: early - 1], *told[early : early + 9], told[early - 1], *told[early + 9 :]]
    assert peak(late) == pytest.approx(peak(told), rel=0.02)


def test_the_peak_is_that_of_all_slots():
    few = [batch(2.0 * n, 1.0, 8_000 + 50 * n) for n in range(60)]
    many = [batch(200 + 2.0 * n, 1.0, 40_000 + 300 * n, slots=12) for n in range(40)]
    found = headroom([*few, *many], 2.0)
    assert found.peak_rate == pytest.approx(25_800, rel=0.02)
    assert found.left_out == 40
    assert found.batches == 60


def test_a_cap_bounds_what_the_query_carries():
    """A cap of 5,000 records/s, and a load that asks for up to 6,000: what waits is let in later."""
    rates = np.minimum(5_000, a_day(6_000, batches=200))
    noise = np.random.default_rng(0).normal(0, 0.002, 200)
    seen = [
        batch(2.0 * n, 0.2 + 2 * rate / 5e4 + noise[n], round(2 * rate), left_rows=rate == 5_000)
        for n, rate in enumerate(rates)
    ]
    found = headroom(seen, 2.0)
    assert found.admitted_rate == pytest.approx(5_000, rel=0.01)
    assert found.rate > 30_000
    assert found.capped
    assert found.carried_rate == found.admitted_rate
    assert found.left < 0.05


def test_a_load_that_rises_and_falls_is_no_cap():
    for batches in (60, 120, 1200):
        seen = [batch(2.0 * n, 1.0, round(2 * rate)) for n, rate in enumerate(a_day(5_000, batches=batches))]
        assert load_of(seen, 2.0).admitted_rate is None


def test_a_load_that_stays_is_no_cap():
    rates = np.minimum(5_000, a_day(6_000, batches=200))
    seen = [batch(2.0 * n, 1.0, round(2 * rate)) for n, rate in enumerate(rates)]
    assert load_of(seen, 2.0).admitted_rate is None
    assert load_of(seen, 2.0).peak_rate == pytest.approx(5_000)


def test_triggers_without_rows_in_between_do_not_hide_the_tasks(tmp_path):
    log = []
    for event in events(a_day(0.5 * TRUE)):
        log.append(event)
        if "progress" in event and event["progress"]["batchId"] % 4 == 3:
            log.append(
                progress(event["progress"]["batchId"], 0, BEGUN + 2.0 * event["progress"]["batchId"] + 3, batch_s=0.1)
            )
    seen = read_log(written(tmp_path / "log", log))
    assert len(seen.blocks) > 5


def test_a_failure_before_the_last_start_is_over(tmp_path):
    ended = {
        "Event": "x.StreamingQueryListener$QueryTerminatedEvent",
        "id": "q-1",
        "exception": "boom password=hunter2\n at x",
    }
    before = [*events(a_day(0.5 * TRUE)), ended]
    again = events(a_day(0.5 * TRUE), whole=False, begun=BEGUN + 1000, first=200, run="r-2")
    assert read_log(written(tmp_path / "ended", before)).stopped == "boom password=***"
    assert read_log(written(tmp_path / "again", [*before, *again])).stopped is None


BROKEN = [
    {"Event": "SparkListenerTaskEnd"},
    {"Event": "SparkListenerStageCompleted", "Stage Info": None},
    {"Event": "SparkListenerExecutorAdded", "Executor ID": "7"},
    {"Event": "SparkListenerJobStart", "Stage IDs": [1], "Properties": {"streaming.sql.batchId": "1"}},
    {"Event": "x.QueryStartedEvent"},
    {"Event": "x.QueryTerminatedEvent", "exception": "y"},
    {"Event": "x.SparkListenerSQLExecutionStart", "executionId": 1},
    {"Event": "SparkListenerEnvironmentUpdate", "Spark Properties": [1]},
    *(
        {"Event": "x.QueryProgressEvent", "progress": told}
        for told in (
            None,
            "{",
            {"id": "q-1"},
            progress(7, 5, BEGUN, batch_s=1.0)["progress"] | {"sources": None},
            progress(7, 5, BEGUN, batch_s=1.0)["progress"] | {"timestamp": "yesterday"},
            progress(7, 5, BEGUN, batch_s=1.0)["progress"] | {"batchId": None},
            progress(7, 5, BEGUN, batch_s=1.0)["progress"] | {"durationMs": [1]},
            progress(9999, 10**400, BEGUN, batch_s=1.0)["progress"],
            progress(9999, 5, BEGUN, batch_s=1.0)["progress"] | {"durationMs": {"triggerExecution": math.inf}},
            progress(7, 5, BEGUN, batch_s=1.0)["progress"]
            | {"sources": [{"endOffset": {"n": {"0": 5}}, "numInputRows": "x"}]},
        )
    ),
]


@pytest.mark.parametrize("broken", BROKEN)
def test_an_event_that_is_not_as_spark_writes_it_is_left_out_and_counted(tmp_path, broken):
    log = list(events(a_day(0.5 * TRUE)))
    seen = read_log(written(tmp_path / "log", [*log[:200], broken, *log[200:]]))
    assert len(seen.batches) == 115
    assert seen.slots == 4
    assert seen.facts["left out"].startswith("1 event of another form")


@pytest.mark.parametrize("place", [60, -1])
@pytest.mark.parametrize("states", [5, [None], [{"customMetrics": {"rocksdbSstFileSize": None}}]])
def test_work_that_is_not_as_spark_writes_it_is_left_out_and_counted(tmp_path, half, place, states):
    log = list(events(a_day(0.5 * TRUE)))
    progress_of(log)[place]["stateOperators"] = states
    seen = read_log(written(tmp_path / "log", log))
    assert len(seen.batches) == 115
    assert len(seen.blocks) == len(read_log(half).blocks) - 1
    assert seen.facts["left out"].startswith("1 event of another form")


def test_a_line_within_a_log_that_cannot_be_read_is_left_out(tmp_path):
    log = written(tmp_path / "log", events(a_day(0.5 * TRUE)))
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join([*lines[:100], "\n", "{torn\n", "[" * 100_000 + "\n", *lines[100:]]))
    seen = read_log(log)
    assert len(seen.batches) == 115
    assert seen.facts["left out"].startswith("2 events")


def test_names_are_shown_without_control_characters(tmp_path):
    seen = read_log(written(tmp_path / "log", events(a_day(0.5 * TRUE), name="or\x1b[31mders\nmore")))
    assert seen.name == "or?[31mders"


def test_a_log_without_progress_events_keeps_little():
    kept = Events()
    for event in events(a_day(0.5 * TRUE, batches=400)):
        if "progress" not in event:
            kept.take(event)
    assert len(kept._stages) <= 51
