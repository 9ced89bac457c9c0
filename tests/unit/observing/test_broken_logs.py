"""Events and lines that are not as Spark writes them are left out and counted; what it writes twice counts once."""

import json
import math

import pytest
from written_logs import BEGUN, TRUE, a_day, events, progress, progress_of, written

from workbench.observing import read_log

TOLD = progress(7, 5, BEGUN, batch_s=1.0)["progress"]
BROKEN = [
    {"Event": "SparkListenerTaskEnd"},
    {"Event": "SparkListenerStageCompleted", "Stage Info": None},
    {"Event": "SparkListenerExecutorAdded", "Executor ID": "7"},
    {"Event": "SparkListenerJobStart", "Stage IDs": [1], "Properties": {"streaming.sql.batchId": "1"}},
    {"Event": "x.QueryStartedEvent"},
    {"Event": "x.QueryTerminatedEvent", "exception": "y"},
    {"Event": "x.SparkListenerSQLExecutionStart", "executionId": 1},
    {"Event": "SparkListenerLogStart", "Spark Version": 10**300},
    {"Event": "SparkListenerApplicationStart", "App Name": 5},
    {"Event": "SparkListenerEnvironmentUpdate", "Spark Properties": [1]},
    *(
        {"Event": "x.QueryProgressEvent", "progress": told}
        for told in (
            None,
            "{",
            {"id": "q-1"},
            TOLD | {"sources": None},
            TOLD | {"timestamp": "yesterday"},
            TOLD | {"batchId": None},
            TOLD | {"durationMs": [1]},
            progress(9999, 10**400, BEGUN, batch_s=1.0)["progress"],
            TOLD | {"batchId": 9999, "durationMs": {"triggerExecution": math.inf}},
            TOLD | {"sources": [{"endOffset": {"n": {"0": 5}}, "numInputRows": "x"}]},
        )
    ),
]


MORNING = [*events(a_day(0.5 * TRUE)[:30])]


@pytest.mark.parametrize("broken", BROKEN)
def test_an_event_that_is_not_as_spark_writes_it_is_left_out_and_counted(tmp_path, broken):
    seen = read_log(written(tmp_path / "log", [*MORNING[:200], broken, *MORNING[200:]]))
    assert len(seen.batches) == 25
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


def test_a_line_within_a_log_that_cannot_be_read_is_left_out(tmp_path, half):
    lines = half.read_text().splitlines(keepends=True)
    log = tmp_path / "log"
    log.write_text("".join([*lines[:100], "\n", "{torn\n", "[" * 100_000 + "\n", *lines[100:]]))
    seen = read_log(log)
    assert len(seen.batches) == 115
    assert seen.facts["left out"].startswith("2 events")


def test_tasks_that_ran_twice_or_failed_count_once(tmp_path, half):
    """Speculation: the slower one is killed, or both end."""
    log = []
    for event in events(a_day(0.5 * TRUE)):
        if event["Event"] == "SparkListenerTaskEnd" and event["Task Info"]["Index"] < 2:
            log += [event | {"Task End Reason": {"Reason": reason}} for reason in ("TaskKilled", "ExceptionFailure")]
            log += [event] * event["Task Info"]["Index"]
        log.append(event)
    seen, plain = read_log(written(tmp_path / "log", log)), read_log(half)
    assert seen.blocks == plain.blocks
    assert seen.cpu_share == plain.cpu_share


def test_fields_that_versions_add_or_write_as_text_change_nothing(tmp_path, half):
    log = [json.loads(json.dumps(event)) for event in events(a_day(0.5 * TRUE))]
    for told in progress_of(log):
        told |= {"batchDuration": 7, "observedMetrics": {"of": {"schema": None}}, "processedRowsPerSecond": "NaN"}
        told["durationMs"] |= {"latestOffset": 1, "commitBatch": 3, "commitOffsets": 2, "walCommit": 4}
        told["stateOperators"] = [
            {"numRowsUpdated": 3, "memoryUsedBytes": 1880, "customMetrics": {"loadedMapCacheHitCount": 10}}
        ]
        for offset in ("startOffset", "endOffset"):
            told["sources"][0][offset] = json.dumps(told["sources"][0][offset])
    assert read_log(written(tmp_path / "log", log)).batches == read_log(half).batches


def test_batches_whose_tasks_compaction_took_out_still_show_the_rate(tmp_path, half):
    log = list(events(a_day(0.5 * TRUE)))
    gone = ("JobStart", "TaskEnd", "StageCompleted", "SQLExecutionStart")
    compact = [one for place, one in enumerate(log) if place > len(log) // 2 or not one["Event"].endswith(gone)]
    seen, whole = read_log(written(tmp_path / "log", compact)), read_log(half)
    assert seen.batches == whole.batches
    assert 0 < len(seen.blocks) < len(whole.blocks)
