"""Events and lines that are not as Spark writes them are left out and counted."""

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
