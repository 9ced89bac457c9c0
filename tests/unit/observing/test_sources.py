"""Progress events in every form that people keep them, from a file of their own, and sources other than Kafka."""

import gzip
import json
import math
import re
import time
import tracemalloc

import numpy as np
import pytest
from written_logs import BEGUN, TRUE, a_day, application, events, progress_of, stamp, written

from workbench.errors import WorkbenchError
from workbench.observing import as_measurement, headroom, log, read_events, read_log

TOLD = progress_of(events(a_day(0.5 * TRUE, batches=40)))
NOISE = "26/01/31 06:24:27 INFO TaskSetManager: Finished task 0.0 in stage {0.0} (TID 0) in 12 ms [driver] (1/1)\n"
MADE = "26/01/31 06:24:27 INFO MicroBatchExecution: Streaming query made progress: "


def driver_log(told):
    return "".join(NOISE + MADE + json.dumps(one, indent=2) + "\n" + NOISE for one in told)


def structured(told):
    """As Spark 4 writes it with spark.log.structuredLogging.enabled."""
    said = ("Streaming query made progress: " + json.dumps(one, indent=2) for one in told)
    lines = ({"ts": "2026-01-31T06:24:27Z", "level": "INFO", "msg": one} for one in said)
    return "".join(json.dumps(line) + "\n" for line in lines)


def of_container(told, *before):
    """As runtimes of containers print the log of a driver: with something before each line."""
    lines = driver_log(told).splitlines(keepends=True)
    return "".join(before[place % len(before)] + line for place, line in enumerate(lines))


def of_docker(told):
    lines = driver_log(told).splitlines(keepends=True)
    return "".join(json.dumps({"log": line, "stream": "stdout"}) + "\n" for line in lines)


def printed_in_docker(told):
    """As a job prints its progress; Docker divides a line of more than 16 KiB."""
    big = [one | {"sink": {"description": "x" * 40_000}} for one in told]
    texts = [json.dumps(one) + "\n" for one in big]
    parts = [text[at : at + 16_384] for text in texts for at in range(0, len(text), 16_384)]
    return "".join(json.dumps({"log": part, "stream": "stdout"}) + "\n" for part in parts)


def of_version_2_2(told):
    """Progress has had the number of its batch since Spark 2.3."""
    old = [one | {"numInputRows": one["sources"][0]["numInputRows"]} for one in told]
    return driver_log([{name: each for name, each in one.items() if name != "batchId"} for one in old])


def in_python_2(told):
    """Text and what is not a number, as Python 2 prints them."""
    text = "".join(f"{one | {'inputRowsPerSecond': math.nan}!r}\n" for one in told)
    return re.sub(r"(?<=[\[{ ])'", "u'", text)


FORMS = {
    "json-lines": "".join(json.dumps(one) + "\n" for one in TOLD),
    "array": json.dumps(TOLD),
    "printed-array": json.dumps(TOLD, indent=2),
    "of-a-listener": "".join(json.dumps({"progress": one}) + "\n" for one in TOLD),
    "as-text": "".join(json.dumps({"progress": json.dumps(one)}) + "\n" for one in TOLD),
    "of-python": "".join(f"{one!r}\n" for one in TOLD),
    "driver-log": driver_log(TOLD),
    "structured-driver-log": structured(TOLD),
    "message-of-a-collector": structured(TOLD).replace('"msg": "', '"line": 7, "message": "26/01/31 INFO Progress: '),
    "of-docker": of_docker(TOLD),
    "printed-in-docker": printed_in_docker(TOLD),
    "behind-an-object": driver_log(TOLD).replace("INFO Micro", 'INFO {"query":"x"} Micro'),
    "among-torn-texts": json.dumps({"log": "progress \ud83d"}) + "\n" + of_docker(TOLD),
    "of-docker-compose": of_container(TOLD, "driver-1  | "),
    "of-kubernetes": of_container(TOLD, *(f"2026-01-31T06:24:2{at}.{7**at}Z stdout F " for at in range(5, 9))),
    "in-a-comment": of_container(TOLD, "# "),
    "of-version-2.2": of_version_2_2(TOLD),
    "of-python-2": in_python_2(TOLD),
    "behind-a-logger": "".join(f"26/01/31 INFO {{main}} Listener: {json.dumps(one)}\n{NOISE}" for one in TOLD),
    "behind-a-word": "".join(f"{NOISE}Query made progress:{json.dumps(one)}\n" for one in TOLD),
    "printed-behind-a-word": "".join(f"Progress => {json.dumps(one, indent=2)}\n" for one in TOLD),
    "printed-by-python": "".join(f"progress {one!r}\n" for one in TOLD),
    "with-a-mark-of-utf-8": "\ufeff" + json.dumps(TOLD),
    "newest-first": "".join(json.dumps(one) + "\n" for one in reversed(TOLD)),
    "written-by-several": "".join(json.dumps(one) + "\n" for part in range(4) for one in TOLD[part::4]),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_batches(tmp_path, form):
    log = tmp_path / "log"
    log.write_text(FORMS[form])
    seen = read_log(log)
    assert (len(seen.batches), seen.triggers, seen.name, seen.slots) == (35, 40, "orders", 0)
    assert [batch.number for batch in seen.batches] == list(range(5, 40))
    assert seen.interval_s == 2.0
    assert "left out" not in seen.facts


def test_of_an_unordered_file_the_latest_of_each_query_count(tmp_path, monkeypatch):
    monkeypatch.setattr(log, "READ", 30)
    busy = [one | {"id": "q-2", "name": "busy", "timestamp": stamp(BEGUN + 1e6 + at)} for at, one in enumerate(TOLD)]
    path = tmp_path / "log"
    path.write_text("".join(json.dumps(one) + "\n" for one in reversed([*TOLD, *busy])))
    assert [batch.number for batch in read_log(path, "orders").batches] == list(range(15, 40))
    assert [batch.number for batch in read_log(path, "busy").batches] == list(range(15, 40))


def test_progress_beside_a_log_may_have_any_order(tmp_path):
    whole = list(events(a_day(0.5 * TRUE, batches=40)))
    beside = written(tmp_path / "log", [one for one in whole if "progress" not in one])
    newest_first = tmp_path / "progress"
    newest_first.write_text(FORMS["newest-first"])
    seen = read_log(beside, progress=newest_first)
    assert [batch.number for batch in seen.batches] == list(range(5, 40))
    assert seen.interval_s == 2.0


def test_a_block_that_another_line_tears_is_left_out(tmp_path):
    log = tmp_path / "log"
    torn = MADE + json.dumps(TOLD[20], indent=2)[:200] + "\n" + NOISE
    log.write_text(driver_log(TOLD[:20]) + torn + driver_log(TOLD[21:]))
    seen = read_log(log)
    assert (seen.triggers, seen.facts["left out"]) == (39, "1 event of another form than Spark writes")


@pytest.mark.parametrize("parted", [1, 10])
def test_a_folder_of_files_is_read_in_the_order_of_its_events(tmp_path, parted):
    folder = tmp_path / "progress" / "day=31"
    folder.mkdir(parents=True)
    for first in range(0, 40, parted):
        text = "".join(json.dumps(one) + "\n" for one in TOLD[first : first + parted])
        name = folder / f"{(7 * first) % 41}.json"  # names say nothing of the order
        if first % 20:
            name.write_text(text)
        else:
            name.with_suffix(".json.gz").write_bytes(gzip.compress(text.encode()))
    (folder / "_SUCCESS").touch()
    assert [one["progress"]["batchId"] for one in read_events(tmp_path)] == list(range(40))
    assert len(read_log(tmp_path / "progress").batches) == 35


def test_slots_are_given_where_progress_does_not_tell_them(tmp_path):
    lines = written(tmp_path / "progress.jsonl", TOLD)
    assert read_log(lines, slots=6).slots == 6
    log = written(tmp_path / "log", events(a_day(0.5 * TRUE)))
    with pytest.raises(WorkbenchError, match="shows its executors"):
        read_log(log, slots=6)
    with pytest.raises(WorkbenchError, match="slots is 0"):
        read_log(lines, slots=0)


SOURCES = {
    "kinesis": {
        "description": "KinesisV2[orders]",
        "startOffset": [{"shard": {"stream": "orders", "shardId": "shardId-000000000000"}, "lastSeqNum": "496"}],
        "endOffset": [{"shard": {"stream": "orders", "shardId": "shardId-000000000000"}, "lastSeqNum": "497"}],
        "metrics": {"avgMsBehindLatest": "120000.0"},
    },
    "delta": {
        "description": "DeltaSource[dbfs:/orders]",
        "startOffset": {"sourceVersion": 1, "reservoirId": "x", "reservoirVersion": 7, "index": -1},
        "endOffset": {"sourceVersion": 1, "reservoirId": "x", "reservoirVersion": 8, "index": -1},
        "metrics": {"numBytesOutstanding": "345", "numFilesOutstanding": "3"},
    },
    "rate": {"description": "RateStreamV2[rowsPerSecond=10]", "startOffset": 4, "endOffset": 5, "metrics": None},
    "files": {"description": "FileStreamSource[file:/in]", "startOffset": None, "endOffset": {"logOffset": 3}},
}


@pytest.mark.parametrize("source", SOURCES)
def test_sources_are_read_as_they_come(tmp_path, source):
    told = [one | {"sources": [SOURCES[source] | {"numInputRows": 1000 + one["batchId"]}]} for one in TOLD]
    seen = read_log(written(tmp_path / "log", told))
    assert [batch.rows for batch in seen.batches] == list(range(1005, 1040))
    known = {"kinesis": True, "delta": True, "rate": False}
    assert seen.batches[-1].left_rows is known.get(source)


def runs_of(pause_s, *, count=4, batches=3):
    """Runs whose batches follow each other at once, of which each starts `pause_s` after the one before."""
    at_s, told = 1_780_000_000.0, []
    for run in range(count):
        for _ in range(batches):
            one = json.loads(json.dumps(TOLD[10]))
            one |= {"runId": f"r-{run}", "batchId": len(told), "timestamp": stamp(at_s)}
            one["durationMs"]["triggerExecution"] = 4000
            told.append(one)
            at_s += 4.005
        at_s += pause_s
    return told


def test_runs_that_end_are_told_from_restarts(tmp_path):
    ends = read_log(written(tmp_path / "ends", runs_of(3600.0)))
    assert ends.ends
    assert [run.batches for run in ends.runs] == [3] * 4
    assert ends.runs[0].ended_s - ends.runs[0].begun_s == pytest.approx(12.01)
    restarted = read_log(written(tmp_path / "restarted", runs_of(5.0)))
    assert restarted.at_once
    assert not restarted.ends
    # it stands still for 4 % of the time
    deployed = read_log(written(tmp_path / "deployed", runs_of(60.0, batches=400)))
    assert deployed.at_once
    assert not deployed.ends
    assert not read_log(written(tmp_path / "day", TOLD)).at_once


def test_memory_does_not_grow_with_a_log_of_the_driver(tmp_path):
    """Lines in between are read one by one, however many there are."""
    peaks = []
    for times in (1, 10):
        log = tmp_path / f"log-{times}"
        with log.open("w") as out:
            for one in TOLD:
                out.write(NOISE * 200 * times + MADE + json.dumps(one, indent=2) + "\n")
        tracemalloc.start()
        assert sum(1 for _ in read_events(log)) == 40
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]


def gauges(at_s, name, seconds, rows, arriving):
    what = {"latency": 1000 * seconds, "processingRate_total": rows / seconds, "inputRate_total": arriving}
    return {
        f"metrics_app_1_driver_spark_streaming_{name}_{one}_Value": (at_s, value)
        for one, value in (what | {"states_rowsTotal": rows / 10, "states_usedBytes": 1e6}).items()
    }


def scraped(every):
    """Every `every` batches of 10 s, scraped when they end; each scrape is made twice."""
    for number in range(0, 400, every):
        rows = 20_000 + 15_000 * np.sin(number / 30)
        seconds = 1 + rows / 10_000
        for again in (0.0, 2.0):
            yield gauges(1_780_000_000 + 10 * number + seconds + again, "orders", seconds, rows, rows / 10)


def as_answer(scrapes):
    series = {}
    for one in scrapes:
        for name, (at_s, value) in one.items():
            series.setdefault(name, []).append([at_s, str(value)])
    result = [{"metric": {"__name__": name, "job": "spark"}, "values": values} for name, values in series.items()]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


def as_lines(scrapes):
    return "".join(
        f'{name}{{type="gauges"}} {value} {at_s:.3f}\n' for one in scrapes for name, (at_s, value) in one.items()
    )


@pytest.mark.parametrize("form", [as_answer, as_lines])
@pytest.mark.parametrize("every", [1, 3])
def test_scrapes_of_prometheus_are_batches(tmp_path, form, every):
    log = tmp_path / "scraped"
    log.write_text(form(scraped(every)))
    seen = read_log(log)
    assert (seen.name, seen.triggers) == ("orders", -(-400 // every))
    assert seen.batches[0].start_s == pytest.approx(1_780_000_000 + 50 * every, abs=0.01)
    assert seen.states[0].memory_bytes == 1e6
    found = headroom(seen.batches, 10.0)
    assert found.peak_rate == pytest.approx(3_500, rel=0.02)
    assert found.mean_rate == pytest.approx(2_000, rel=0.1)
    assert found.low < 9_000 < found.high  # (10 - 1) s x 10,000 rows/s over 10 s


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
