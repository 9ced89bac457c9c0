"""The commands that a rate-limited source obeys, and the rules of what it releases, without Spark.

A *control file*, read once per micro-batch, commands the rate, so that the rate can change without a restart of the
query. Rows become *due* as the integral of the commanded rate over time. A batch releases the due rows, but at most
one trigger interval's worth. So a query that cannot finish its batches within the interval builds up a *backlog*
(due - released) instead of ever larger, cheaper batches. Each release is logged as one JSON line.
"""

import fcntl
import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

_ON_TRIGGER = 0.9  # a batch that starts with this share of the interval left has started on the trigger

Clock = Callable[[], float]


@dataclass(frozen=True)
class Command:
    """A command to the source."""

    epoch: int  # changes with every command; a new epoch flushes the queue
    rate: float | None  # records/s that become due, or None: `max_records` at every trigger
    max_records: int  # the cap of a batch: an interval's worth
    event_rate: float | None = None  # rows/s of event time; None: as they become due (by the wall clock without a rate)
    interval_s: float | None = None  # of triggers; a new epoch may start on one or later; None: it starts on one


@dataclass(frozen=True)
class Release:
    """One release of rows; `due` and `queue` count rows of the epoch, `at_s` is ``time.monotonic()``."""

    epoch: int
    at_s: float
    first: int
    last: int
    first_us: int
    last_us: int
    due: float
    queue: float

    @property
    def records(self) -> int:
        """Rows released."""
        return self.last - self.first


def next_release(
    command: Command, previous: Release | None, start: dict[str, int], now_s: float, left: float = 1.0
) -> Release:
    """Determine which rows after `start`, ``{"n": rows, "us": event time}`` so far, the batch at `now_s` releases.

    The `previous` release is of any epoch. The share of the trigger interval that is `left` until the next trigger is
    almost 1 on a trigger, and less if the batch before took longer than the interval.
    """
    same_epoch = previous is not None and previous.epoch == command.epoch
    passed_s = now_s - previous.at_s if previous else 0.0
    due, waiting = (previous.due, previous.queue) if previous and same_epoch else (0.0, 0.0)
    if command.rate is None:  # the maximum rate: released rows count as due
        take, queue = command.max_records, 0.0
        due += take
    else:
        # A new epoch starts with one interval's worth of rows, or with a single row if one interval's worth would be
        # late at the next trigger: close to the MST, a late start takes many batches to recover.
        first = float(min(command.max_records, 1) if left < _ON_TRIGGER else command.max_records)
        arrived = command.rate * passed_s if same_epoch else first
        due, waiting = due + arrived, waiting + arrived
        take = min(int(waiting), command.max_records)
        queue = waiting - take
    if rate := command.event_rate or command.rate:
        span_us = take / rate * 1e6
    else:
        span_us = passed_s * 1e6 if take else 0.0
    return Release(
        command.epoch, now_s, start["n"], start["n"] + take, start["us"], start["us"] + int(span_us), due, queue
    )


def write_command(folder: Path, command: Command) -> None:
    """Change the offered load of the running query, atomically."""
    temporary = folder / "control.tmp"
    temporary.write_text(json.dumps(asdict(command)))
    temporary.replace(folder / "control.json")


def read_releases(folder: Path, offset: int = 0) -> tuple[list[Release], int]:
    """Return the releases logged after byte `offset`, and the offset after them; an unfinished last line is left."""
    path = folder / "releases.jsonl"
    if not path.exists():
        return [], offset
    with path.open("rb") as log:
        log.seek(offset)
        text = log.read()
    whole = text[: text.rfind(b"\n") + 1]
    return [Release(**json.loads(line)) for line in whole.splitlines()], offset + len(whole)


def release(folder: Path, start: dict[str, int], clock: Clock, wall: Clock = time.time) -> Release:
    """Release the next rows after `start`, the same to each reader of a batch; `wall` is in seconds since 1970."""
    command = Command(**json.loads((folder / "control.json").read_text()))
    with (folder / "releases.jsonl").open("ab+") as log:
        fcntl.flock(log, fcntl.LOCK_EX)
        log.seek(max(0, log.seek(0, os.SEEK_END) - 4096))
        lines = log.read().splitlines()
        previous = Release(**json.loads(lines[-1])) if lines else None
        if previous and previous.records and previous.first == start["n"]:
            return previous
        # Spark triggers at multiples of the interval on the wall clock.
        left = 1.0 - wall() / command.interval_s % 1.0 if command.interval_s else 1.0
        this = next_release(command, previous, start, clock(), left)
        log.write(json.dumps(asdict(this)).encode() + b"\n")
        log.flush()
    return this
