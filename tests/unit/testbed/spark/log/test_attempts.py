"""What is run again is counted once."""

import pytest
from event_log_lines import BEGIN, QUERY, committed, counting, job, operators_of, stage, state, state_task, task


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


def test_of_a_stage_that_failed_and_was_not_run_again_nothing_counts(log):
    events = [*BEGIN, task(1, 0, scanned=100), stage(1), state_task(0, 75), stage(2, failure="FetchFailed")]
    (scan,) = operators_of(committed(log, events))
    assert scan.records_in == 100


def test_a_batch_that_a_query_begins_again_after_it_ended_counts_once(log):
    """The stages of its first run that completed are not in the second's."""
    started = {"Event": "org.apache.spark.sql.streaming.StreamingQueryListener$QueryStartedEvent", "id": QUERY}
    lost = [*BEGIN, task(1, 0, scanned=100), stage(1), started]
    events = [*lost, job(3, 4), task(3, 0, scanned=100), stage(3), counting(4, 0, 8, read=40), stage(4, parents=[3])]
    assert [one.stage_id for one in committed(log, events, state(9, 1_500)).stages] == [3, 4]
