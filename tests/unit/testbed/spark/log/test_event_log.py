"""Batches are read from an event log once they are committed; what is run again counts once."""

import json

import pytest
from event_log_lines import (
    BATCH,
    BEGIN,
    QUERY,
    committed,
    counting,
    job,
    operators_of,
    progress,
    stage,
    state,
    state_task,
    task,
    write,
)

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


def test_half_a_line_waits_for_the_rest_and_the_reason_a_query_ended_is_kept(log):
    whole = "".join(json.dumps(event) + "\n" for event in BATCH)
    log.path.write_text(whole[:-30])
    assert log.poll() == []
    log.path.write_text(whole)
    assert len(log.poll()) == 1
    name = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryTerminatedEvent"
    write(log.path, [{"Event": name, "id": QUERY, "exception": "boom"}])
    log.poll()
    assert log.failure(QUERY) == "boom"
    assert log.failure("another") is None


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


def test_a_stage_that_failed_is_no_work_and_of_one_not_run_again_nothing_counts(log):
    write(log.path, [*BEGIN, task(1, 0, scanned=5), stage(1, failure="cancelled"), progress()])
    assert log.poll() == []
    events = [*BEGIN, task(1, 0, scanned=100), stage(1), state_task(0, 75), stage(2, failure="FetchFailed")]
    (scan,) = operators_of(committed(log, events))
    assert scan.records_in == 100


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


def test_a_task_that_ran_again_because_its_output_was_lost_counts_once(log):
    lost = task(1, 1) | {"Task End Reason": {"Reason": "Resubmitted"}, "Task Metrics": None}
    events = [*BEGIN, task(1, 0, scanned=100), task(1, 1, scanned=100), lost, task(1, 1, scanned=100), stage(1)]
    (scan,) = operators_of(committed(log, events))
    assert (scan.tasks, scan.records_in, scan.key_skew) == (2, 200, 1.0)


def attempt(number, event, index=None):
    """The event as a later attempt of its stage writes it, which numbers its tasks from 0 again."""
    if "Stage Info" in event:
        return event | {"Stage Info": event["Stage Info"] | {"Stage Attempt ID": number}}
    return event | {"Stage Attempt ID": number, "Task Info": event["Task Info"] | {"Index": index}}


FETCH_FAILED = {"Task End Reason": {"Reason": "FetchFailed"}}


def test_what_a_failed_attempt_finished_is_not_run_again_and_counts(log):
    """The executor that has the output of partition 1 is lost while partition 1 of the next stage fetches it."""
    events = [
        *BEGIN,
        task(1, 0, scanned=100, wrote=40),
        task(1, 1, scanned=200, wrote=60),
        stage(1),
        state_task(0, 50),
        state_task(1, 25) | FETCH_FAILED,
        stage(2, parents=[1], failure="FetchFailed"),
        attempt(1, task(1, 1, scanned=200, wrote=60), index=0),
        attempt(1, stage(1)),
        attempt(1, state_task(1, 25), index=0),
        state_task(2, 25),  # it was running when its attempt failed
        attempt(1, stage(2, parents=[1])),
    ]
    scan, count = operators_of(committed(log, events, state(9, 1_500)))
    assert (scan.tasks, scan.records_in, scan.records_out, scan.cpu_s) == (2, 300, 100, pytest.approx(0.1))
    assert (count.tasks, count.records_in, count.cpu_s) == (3, 100, pytest.approx(0.15))
    assert count.records_out == 3  # what its node counted, in all attempts


def test_a_batch_that_a_query_begins_again_after_it_ended_counts_once(log):
    """The stages of its first run that completed are not in the second's."""
    started = {"Event": "org.apache.spark.sql.streaming.StreamingQueryListener$QueryStartedEvent", "id": QUERY}
    lost = [*BEGIN, task(1, 0, scanned=100), stage(1), started]
    events = [*lost, job(3, 4), task(3, 0, scanned=100), stage(3), counting(4, 0, 8, read=40), stage(4, parents=[3])]
    assert [one.stage_id for one in committed(log, events, state(9, 1_500)).stages] == [3, 4]
