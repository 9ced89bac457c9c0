"""The pacing of the source, without Spark: time is an argument."""

import itertools
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.workload.release import Command, next_release, read_releases, release, write_command
from workbench.workload.source import rate_source

START = {"n": 0, "us": 1_000_000}


def releases(command, times, previous=None, start=START):
    made = []
    for time in times:
        previous = next_release(command, previous, start, time)
        start = {"n": previous.last, "us": previous.last_us}
        made.append(previous)
    return made


@pytest.mark.parametrize(
    ("times", "queues"),
    [
        ([10, 12, 14, 16], [0, 0, 0, 0]),  # it keeps up
        ([10, 13, 16, 19], [0, 100, 200, 300]),  # it falls behind
        ([10, 12.5, 14, 16], [0, 50, 0, 0]),  # a late batch is made good by the next one on the grid
    ],
)
def test_a_batch_has_one_interval_of_rows_and_what_is_late_waits(times, queues):
    made = releases(Command(1, 100.0, 200), times)
    assert [one.records for one in made] == [200, 200, 200, 200]
    assert [one.queue for one in made] == queues
    assert made[-1].due == 800 + queues[-1]


def test_event_time_advances_with_due_time_not_with_the_wall_clock_or_at_a_fixed_event_rate():
    made = releases(Command(1, 100.0, 200), [10, 13, 16])
    assert [one.last_us - one.first_us for one in made] == [2_000_000] * 3
    (made,) = releases(Command(1, 100.0, 200, event_rate=10.0), [5])
    assert made.last_us - made.first_us == 20_000_000


def test_a_new_command_flushes_the_queue_and_a_rate_of_zero_releases_nothing():
    behind = releases(Command(1, 100.0, 200), [10, 20])[-1]
    assert behind.queue == 800
    fresh = next_release(Command(2, 50.0, 100), behind, {"n": behind.last, "us": behind.last_us}, 21)
    assert (fresh.records, fresh.queue, fresh.due, fresh.first) == (100, 0, 100, behind.last)
    assert [one.records for one in releases(Command(1, 0.0, 0), [1, 2])] == [0, 0]
    made = releases(Command(1, None, 500), [10, 13])
    assert [one.records for one in made] == [500, 500]
    assert made[1].due == 1000
    assert made[1].last_us - made[1].first_us == 3_000_000


@pytest.mark.parametrize("fixed", [0.0, 0.25, 0.4])
@pytest.mark.parametrize("begins", [12.3, 12.9, 13.4, 13.8])
def test_a_rate_that_begins_between_two_triggers_is_on_time_from_the_second_on(begins, fixed):
    """A batch of an interval's worth takes nearly the interval, `fixed` of it for whatever rows."""
    command = Command(2, 100.0, 200, interval_s=2.0)
    previous = next_release(Command(1, None, 300), None, START, 10.0)
    now, rows, triggers = begins, [], []
    for _ in range(5):
        previous = next_release(command, previous, {"n": previous.last, "us": previous.last_us}, now, 1 - now / 2 % 1)
        rows.append(previous.records)
        now = max(now + 2 * fixed + previous.records * (0.97 - fixed) / 100, 2 * math.floor(now / 2 + 1))
        triggers.append(now)
    assert rows[0] == 1
    assert rows[3:] == [200, 200]
    assert triggers[1:] == [16, 18, 20, 22]


@pytest.mark.parametrize(("wall_s", "rows"), [(1_700_000_002.05, 200), (1_700_000_001.9, 1)])
def test_a_rate_begins_with_an_interval_of_rows_on_a_trigger_and_one_between_two_for_both_readers(
    tmp_path, wall_s, rows
):
    write_command(tmp_path, Command(1, 100.0, 200, interval_s=2.0))
    made = release(tmp_path, START, lambda: 10.0, wall=lambda: wall_s)
    assert made.records == rows
    assert release(tmp_path, START, lambda: 10.2, wall=lambda: wall_s + 0.2) == made


@given(st.floats(0.1, 1e6), st.floats(0.1, 10), st.lists(st.floats(0.01, 30), min_size=1, max_size=30))
def test_no_row_is_lost_or_made_up(rate, interval, gaps):
    cap = max(1, round(rate * interval))
    times = list(itertools.accumulate(gaps, initial=100.0))
    made = releases(Command(1, rate, cap), times)
    released = sum(one.records for one in made)
    assert made[-1].due == pytest.approx(cap + rate * (times[-1] - times[0]), rel=1e-9)
    assert released + made[-1].queue == pytest.approx(made[-1].due, rel=1e-9, abs=1e-6)
    assert all(one.records <= cap for one in made)
    assert all(later.first == earlier.last for earlier, later in itertools.pairwise(made))


def test_a_command_is_replaced_whole_and_both_readers_of_one_batch_get_the_same_rows(tmp_path):
    write_command(tmp_path, Command(1, 100.0, 200))
    first = release(tmp_path, START, lambda: 10.0)
    second = release(tmp_path, START, lambda: 10.3)
    assert second == first
    third = release(tmp_path, {"n": first.last, "us": first.last_us}, lambda: 12.0)
    assert third.first == first.last
    write_command(tmp_path, Command(2, None, 7))
    assert json.loads((tmp_path / "control.json").read_text())["max_records"] == 7
    assert sorted(path.name for path in tmp_path.iterdir()) == ["control.json", "releases.jsonl"]


def test_a_reader_goes_on_where_it_was_if_spark_does_not_say_where(tmp_path):
    write_command(tmp_path, Command(1, None, 300))
    reader = rate_source(None, tmp_path, 2)({}).streamReader(None)  # it makes no rows here
    first, second = reader.latestOffset(), reader.latestOffset()  # as Spark 4.0 and 4.1 call it
    assert (first["n"], second["n"]) == (300, 600)
    assert reader.latestOffset(first, None) == second  # as later ones do


def test_releases_are_read_as_they_are_written_and_half_a_line_waits(tmp_path):
    write_command(tmp_path, Command(1, 100.0, 200))
    one = release(tmp_path, START, lambda: 10.0)
    with (tmp_path / "releases.jsonl").open("a") as log:
        log.write('{"epoch": 1, "at')
    read, offset = read_releases(tmp_path)
    assert read == [one]
    assert read_releases(tmp_path, offset) == ([], offset)
