"""Tasks and stages that ran again, and what versions of Spark write differently, change no figure."""

import json

from written_logs import TRUE, a_day, events, progress_of, written

from workbench.observing import read_log


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
