"""A log that is followed: each event once, whatever becomes of its files; it shows what a whole one shows."""

import json
import os
import shutil
from contextlib import suppress

import pytest
from written_logs import TRUE, a_day, application, events, progress, zstd

from workbench.observing import follow_log, log, read_log
from workbench.observing.events import follow_events

LINES = [json.dumps(one).encode() + b"\n" for one in events(a_day(0.5 * TRUE, batches=60))]
PROGRESS = [
    json.dumps(progress(number, 10, 1e9 + number, batch_s=0.1)["progress"]).encode() + b"\n" for number in range(9)
]


class Ended(Exception):  # noqa: N818 - it ends a watch
    pass


def followed(path, *steps):
    """Numbers of the batches that are read as `steps` are taken, one each time that all is read."""
    waiting = iter(steps)

    def wait():
        step = next(waiting, None)
        if step is None:
            raise Ended
        step()

    seen = []
    with suppress(Ended):
        seen.extend(event.get("progress", {}).get("batchId") for event in follow_events(path, wait))
    return seen


def appends(path, *data):
    return lambda: path.open("ab").write(b"".join(data)) and None


def test_a_log_that_does_not_exist_yet_is_waited_for_and_a_line_that_is_torn_is_read_when_it_is_whole(tmp_path):
    path, torn = tmp_path / "progress.jsonl", tmp_path / "torn.jsonl"
    steps = (lambda: None, appends(path, PROGRESS[0]), lambda: None, appends(path, *PROGRESS[1:3]))
    assert followed(path, *steps) == [0, 1, 2]
    torn.write_bytes(PROGRESS[0] + PROGRESS[1][:40])
    seen = followed(torn, lambda: None, appends(torn, PROGRESS[1][40:80]), appends(torn, PROGRESS[1][80:], PROGRESS[2]))
    assert seen == [0, 1, 2]


def test_a_rotation_loses_and_repeats_nothing(tmp_path):
    path = tmp_path / "driver.log"
    path.write_bytes(PROGRESS[0])

    def renamed():
        path.rename(tmp_path / "driver.log.1")
        appends(tmp_path / "driver.log.1", PROGRESS[1])()  # the writer has it open for a moment

    def cut():  # as logrotate's copytruncate
        shutil.copy(path, tmp_path / "driver.log.2")
        os.truncate(path, 0)

    steps = (renamed, appends(path, PROGRESS[2]), appends(path, PROGRESS[3]), cut, appends(path, PROGRESS[4]))
    assert followed(path, *steps) == [0, 1, 2, 3, 4]


def test_files_that_follow_in_a_folder_are_read_in_turn(tmp_path):
    folder = tmp_path / "eventlog_v2_app-1"

    def first():
        folder.mkdir()
        (folder / "appstatus_app-1.inprogress").touch()
        (folder / "events_1_app-1").write_bytes(LINES[0])

    def second():
        appends(folder / "events_1_app-1", *LINES[1:200])()
        (folder / "events_2_app-1").write_bytes(b"".join(LINES[200:300]))

    def compacted():
        for number in (1, 2):
            (folder / f"events_{number}_app-1").unlink()
        (folder / "events_2_app-1.compact").write_bytes(b"".join(LINES[:50]))
        (folder / "events_3_app-1").write_bytes(b"".join(LINES[300:]))

    batches = [one for one in followed(folder, first, lambda: None, second, compacted) if one is not None]
    assert batches == [*range(60)]


@pytest.mark.parametrize("pieces", [1, 7, 200])
def test_a_compressed_log_is_read_as_far_as_it_is_written(tmp_path, pieces):
    path, size = tmp_path / "app-1.zstd.inprogress", len(LINES) // pieces + 1
    frames = (b"".join(LINES[start : start + size]) for start in range(0, len(LINES), size))
    steps = [appends(path, zstd(frame)) for frame in frames]  # Spark closes one at each flush
    padding = appends(path, zstd(b'{"Event":"SparkListenerTaskStart"}\n' * 9))
    batches = [one for one in followed(path, *steps, padding) if one is not None]
    assert batches == [*range(60)]


def test_what_is_followed_shows_what_the_whole_log_shows(tmp_path):
    path, shown = tmp_path / "log", []
    steps = iter([LINES[:500], LINES[500:501], [], [LINES[501][:30]], [LINES[501][30:], *LINES[502:]]])

    def at_end(queries):
        shown.append(queries)
        data = next(steps, None)
        if data is None:
            raise Ended
        appends(path, b"", *data)()

    with pytest.raises(Ended):
        follow_log(path, at_end)
    (last,), whole = shown[-1], read_log(path)
    assert (last.batches, last.interval_s, last.states) == (whole.batches, whole.interval_s, whole.states)
    assert shown[0] == []
    assert shown[3] is shown[4]  # nothing new: nothing is looked at again


def test_the_latest_batches_are_kept_and_no_more(tmp_path, monkeypatch):
    monkeypatch.setattr(log, "KEPT", 20)
    path, most = tmp_path / "log", 0
    path.write_bytes(b"".join(LINES))

    def at_end(queries):
        nonlocal most
        most = len(queries[0].batches)
        assert queries[0].batches == read_log(path).batches[-most:]
        raise Ended

    with pytest.raises(Ended):
        follow_log(path, at_end)
    assert most == 20


def test_a_query_that_began_again_under_its_name_is_shown_once(tmp_path):
    path = tmp_path / "log"
    both = [*application(4, "yarn")]
    for query, begun in (("q-2", 2e9), ("q-1", 1e9)):
        both += events(a_day(0.5 * TRUE, batches=20), query=query, begun=begun, whole=False)
    path.write_text("".join(json.dumps(one) + "\n" for one in both))

    def at_end(queries):
        (one,) = queries
        assert one.batches[0].start_s > 1.9e9
        raise Ended

    with pytest.raises(Ended):
        follow_log(path, at_end)
