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
    with pytest.raises(WorkbenchError, match=r"holds no event of Spark, and no progress of a query"):
        read_log(log, progress=lines)


def test_progress_counts_once_also_where_it_is_told_twice_or_a_text_as_old_versions_write_it(tmp_path):
    log = list(events(a_day(0.5 * TRUE)))
    lines = written(tmp_path / "progress.jsonl", [one for each in progress_of(log) for one in (each, each)])
    assert len(read_log(lines).batches) == 115
    old = [one | {"progress": json.dumps(one["progress"])} if "progress" in one else one for one in log]
    assert len(read_log(written(tmp_path / "old", old)).batches) == 115
    with pytest.raises(WorkbenchError, match=r"has progress events of its own, so those of .* are not used"):
        read_log(written(tmp_path / "log", log), progress=lines)


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


def test_a_file_of_progress_events_that_is_still_written_is_read_as_far_as_it_is_whole(tmp_path):
    """A query that has not run a batch yet has null for its last progress."""
    log = written(tmp_path / "log", application(4, "spark://m:7077"))
    told = [json.dumps(one) + "\n" for one in progress_of(events(a_day(0.5 * TRUE)))]
    lines = tmp_path / "progress.jsonl"
    lines.write_text("".join(["null\n", "null\n", *told])[:-40])
    assert len(read_log(log, progress=lines).batches) == 114
    lines.write_text("".join(["null\n", *told[:50], told[50][:-40] + "\n", *told[51:]]))
    seen = read_log(log, progress=lines)
    assert len(seen.batches) == 114
    assert seen.facts["left out"].startswith("1 event")


def with_rate(one):
    """What a listener may keep of a batch: Spark's rate is that of its rows over the time from trigger to commit."""
    (source,) = one["sources"]
    rows, seconds = source["numInputRows"], one["durationMs"]["triggerExecution"] / 1000
    kept = {name: one[name] for name in ("name", "timestamp", "batchId")}
    return kept | {"numInputRows": rows, "processedRowsPerSecond": rows / seconds}


def with_topic(one):
    """The rows of all sources, and of each its description alone."""
    (source,) = one["sources"]
    return one | {"numInputRows": source["numInputRows"], "sources": [{"description": source["description"]}]}


@pytest.mark.parametrize("kept", [with_rate, with_topic])
def test_what_a_listener_left_out_follows_from_what_it_kept(tmp_path, kept):
    told = progress_of(events(a_day(0.5 * TRUE)))
    seen = read_log(written(tmp_path / "all", told))
    given = read_log(written(tmp_path / "kept", map(kept, told)))
    assert [batch.rows for batch in given.batches] == [batch.rows for batch in seen.batches]
    assert [batch.batch_s for batch in given.batches] == pytest.approx([batch.batch_s for batch in seen.batches])


def test_events_that_all_have_another_form_are_counted(tmp_path):
    told = [one | {"timestamp": "yesterday"} for one in progress_of(events(a_day(0.5 * TRUE)))[:7]]
    with pytest.raises(WorkbenchError, match=r"no batches .*, but 7 events of another form than Spark writes"):
        read_log(written(tmp_path / "log", told))
