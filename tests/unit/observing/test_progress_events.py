"""Progress events: from a file of their own, given twice, and as other versions write them."""

import json
import time

import pytest
from written_logs import BEGUN, TRUE, a_day, application, events, progress_of, written

from workbench.errors import WorkbenchError
from workbench.observing import as_measurement, headroom, read_log


def test_progress_events_stand_in_where_the_log_has_none(tmp_path):
    log = written(tmp_path / "log", application(4, "spark://m:7077"))
    told = progress_of(events(a_day(0.5 * TRUE)))
    lines = written(tmp_path / "progress.jsonl", told)
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
    told = progress_of(events(a_day(0.5 * TRUE)))
    lines = written(tmp_path / "progress.jsonl", told)
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
