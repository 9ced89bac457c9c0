"""Batches are read from an event log once they are committed."""

import json

from event_log_lines import BATCH, BEGIN, QUERY, progress, stage, task, write

from workbench.testbed.spark.log.event_log import EventLog


def test_a_batch_appears_when_it_is_committed_and_only_once_with_the_records_of_its_tasks(log):
    write(log.path, BATCH[:-1])
    assert log.poll() == []
    write(log.path, BATCH[-1:])
    ((query, batch),) = log.poll()
    assert (query, batch.records, batch.duration_s, batch.last_row) == (QUERY, 300, 0.8, 300)
    assert log.poll() == []
    assert [[task.records_in for task in stage.tasks] for stage in batch.stages] == [[100, 200], [75, 25]]
    assert [task.records_out for task in batch.stages[0].tasks] == [40, 60]


def test_half_a_line_waits_for_the_rest(log):
    whole = "".join(json.dumps(event) + "\n" for event in BATCH)
    log.path.write_text(whole[:-30])
    assert log.poll() == []
    log.path.write_text(whole)
    assert len(log.poll()) == 1


def test_batches_that_read_nothing_of_what_was_released_are_remembered_until_one_reads(log):
    def committed(number, read):
        done = progress()
        done["progress"] |= {
            "batchId": number,
            "sources": [{"startOffset": {"n": number}, "endOffset": {"n": number + 7}, "numInputRows": read}],
        }
        return done

    write(log.path, [committed(0, 0), committed(1, 0)])
    assert log.poll() == []
    assert list(log.unread(QUERY)) == [7, 7]
    write(log.path, [committed(2, 3)])
    log.poll()
    assert list(log.unread(QUERY)) == []


def test_a_stage_that_failed_is_no_work(log):
    write(log.path, [*BEGIN, task(1, 0, scanned=5), stage(1, failure="cancelled"), progress()])
    assert log.poll() == []


def test_the_reason_a_query_ended_is_kept(log):
    name = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryTerminatedEvent"
    write(log.path, [{"Event": name, "id": QUERY, "exception": "boom"}])
    log.poll()
    assert log.failure(QUERY) == "boom"
    assert log.failure("another") is None


def test_executors_that_were_replaced_before_they_were_used_are_not_lost(tmp_path):
    removed = [
        {"Event": "SparkListenerExecutorRemoved", "Executor ID": number, "Removed Reason": "killed by the cluster"}
        for number in ("0", "2")
    ]
    (tmp_path / "log").write_text("".join(f"{json.dumps(event)}\n" for event in removed))
    log = EventLog(tmp_path / "log")
    log.expected = frozenset({"1", "2"})
    log.poll()
    assert log.lost == {"2": "killed by the cluster"}
    every = EventLog(tmp_path / "log")
    every.poll()
    assert set(every.lost) == {"0", "2"}
