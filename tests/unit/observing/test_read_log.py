"""What a log says of its query, and which of its batches and rows count."""

import json

import pytest
from event_log_lines import task
from written_logs import BEGUN, LISTENER, TRUE, a_day, events, progress, progress_of, written

from workbench.errors import WorkbenchError
from workbench.observing import LEFT_OUT, headroom, log, read_log, unseen
from workbench.testbed.spark import Events, rows_of


def test_what_the_log_says_of_the_query(half):
    seen = read_log(half)
    assert (seen.name, seen.application, seen.spark) == ("orders", "shop", "4.3.0")
    assert (seen.slots, seen.memory_mb, seen.interval_s) == (4, round((4096 + 409.6) / 4), 2.0)
    assert len(seen.batches) == 120 - 5  # the first of a start run cold
    assert seen.sources == ("KafkaV2[Subscribe[orders]]",)
    assert {block.partitions for block in seen.blocks} == {4}
    assert seen.cpu_share == pytest.approx(0.9, abs=0.02)
    assert "not-to-be-told" not in repr(seen)


def test_a_log_that_ends_while_its_code_is_cold_is_no_log_of_another_query(tmp_path):
    begun = written(tmp_path / "log", events(a_day(0.5 * TRUE, batches=4)))
    seen = read_log(begun)
    assert (seen.name, seen.batches, seen.with_rows) == ("orders", (), 4)
    said = unseen(seen.with_rows, seen.triggers, LEFT_OUT).why_not
    assert said.startswith("4 of 4 batches hold rows, so no capacity can be given")


def test_a_sink_and_a_query_have_names_that_can_be_shown(tmp_path):
    log = list(events(a_day(0.5 * TRUE), name="or\x1b[31mders\nmore"))
    for told in progress_of(log):
        told["sink"] = {"description": "org.apache.spark.sql.execution.streaming.NoopTable$@5616a329"}
    seen = read_log(written(tmp_path / "log", log))
    assert (seen.sink, seen.name) == ("NoopTable", "or?[31mders")


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
            extra += [task(10_000 + seen, number, read=1, counts={8: 1}, run_ms=1) for number in range(10)]
            extra.append(event | {"Stage Info": event["Stage Info"] | own})
    plain, merged = (read_log(written(tmp_path / name, one)) for name, one in (("plain", log), ("merged", extra)))
    for one, other in zip(plain.blocks, merged.blocks, strict=True):
        busy, own = one.observation.operators[0].busyness, other.observation.operators[0].busyness
        assert own == pytest.approx(busy, rel=0.15)
        assert other.partitions == one.partitions == 4


def test_one_of_several_queries_is_named(tmp_path):
    both = [*events(a_day(0.5 * TRUE)), *events(a_day(0.2 * TRUE), whole=False, name="late", query="q-2", first=500)]
    log = written(tmp_path / "log", both)
    with pytest.raises(WorkbenchError, match=r"2 streaming queries: orders \(q-1\), late \(q-2\)\. Name one of them"):
        read_log(log)
    assert read_log(log, "late").name == "late"
    assert read_log(log, "q-1").name == "orders"
    with pytest.raises(WorkbenchError, match=r"no batches of 'other'; .*: orders \(q-1\), late \(q-2\)"):
        read_log(log, "other")


def test_a_batch_without_rows_is_no_batch(tmp_path):
    idle = [progress(1000 + place, 0, BEGUN + 1000 + place, batch_s=0.1) for place in range(50)]
    seen = read_log(written(tmp_path / "log", [*events(a_day(0.5 * TRUE)), *idle]))
    assert len(seen.batches) == 115


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
    assert rows_of({"sources": [source | {"numInputRows": 99}]}) == 99  # a transaction's marker is not a record
    first = source | {"startOffset": None, "numInputRows": 200}
    assert rows_of({"sources": [first]}) == 200  # its offsets do not say where it began
    edited = source | {"numInputRows": 200_000}
    assert rows_of({"sources": [edited]}) == 200_000  # offsets that someone made up do not count rows


def test_triggers_without_rows_in_between_do_not_hide_the_tasks(tmp_path):
    log = []
    for event in events(a_day(0.5 * TRUE)):
        log.append(event)
        number = event.get("progress", {}).get("batchId", 0)
        if number % 4 == 3:
            log.append(progress(number, 0, BEGUN + 2.0 * number + 3, batch_s=0.1))
    seen = read_log(written(tmp_path / "log", log))
    assert len(seen.blocks) > 5


def test_a_failure_before_the_last_start_is_over(tmp_path):
    ended = {"Event": f"{LISTENER}QueryTerminatedEvent", "id": "q-1", "exception": "boom password=hunter2\n at x"}
    before = [*events(a_day(0.5 * TRUE)), ended]
    again = events(a_day(0.5 * TRUE), whole=False, begun=BEGUN + 1000, first=200, run="r-2")
    assert read_log(written(tmp_path / "ended", before)).stopped == "boom password=***"
    assert read_log(written(tmp_path / "again", [*before, *again])).stopped is None


def test_of_a_long_log_the_latest_batches_count(tmp_path, monkeypatch):
    monkeypatch.setattr(log, "READ", 40)
    long = written(tmp_path / "log", [progress(at, 10, BEGUN + 2 * at, batch_s=0.5) for at in range(230)])
    seen = read_log(long)
    numbers = [batch.number for batch in seen.batches]
    assert 40 <= len(numbers) <= 80
    assert numbers == list(range(230 - len(numbers), 230))
    assert (seen.with_rows, seen.triggers) == (230, 230)
    assert seen.facts["older batches"].startswith(f"{230 - len(numbers)} left out")
    monkeypatch.undo()
    assert "older batches" not in read_log(long).facts


def test_a_log_without_progress_events_keeps_little():
    kept = Events()
    for event in events(a_day(0.5 * TRUE, batches=400)):
        if "progress" not in event:
            kept.take(event)
    assert len(kept._stages) <= 51


def test_bytes_that_a_state_store_does_not_count_are_unknown(tmp_path):
    log = list(events(a_day(0.5 * TRUE)))
    for said in progress_of(log):
        custom = {"loadedMapCacheHitCount": 10, "loadedMapCacheMissCount": 0, "stateOnCurrentVersionSizeBytes": 1160}
        said["stateOperators"] = [{"numRowsUpdated": 3, "memoryUsedBytes": 1880, "customMetrics": custom}]
    seen = read_log(written(tmp_path / "log", log))
    operator = seen.blocks[0].observation.operators[1]
    assert operator.keeps_state
    assert operator.state_bytes is None
    assert operator.state_rows_updated > 0
