"""Progress on standard error: one line that is overwritten on a terminal, elsewhere a line per run and minute."""

import math
import os
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from workbench.cli.console import discard
from workbench.escaping import for_terminal

if TYPE_CHECKING:
    from workbench.measuring import Event

_SILENCE_S = 60.0  # between two lines in a file or a pipe
_SPINNER = 2  # columns: its sign and a blank


@dataclass(eq=False)
class Progress:
    """Shows progress: a call shows the present step, `keep` leaves a line in sight, `end` shows the result of a run.

    `runs` are the least and most runs; None: they are not counted, because there is one.
    """

    show: Callable[[str], None]
    keep: Callable[[str], None]
    end: Callable[[str], None]
    runs: tuple[int, int] | None = None
    ended: int = field(default=0, init=False)

    def __call__(self, text: str) -> None:
        """Show the present step."""
        self.show(text)

    def show_event(self, event: "Event") -> None:
        """Show an event of a measurement; failures and answers stay in sight."""
        from workbench import measuring  # noqa: PLC0415 - it takes a second to load, and most commands need none of it

        self.ended += isinstance(event, measuring.Finished | measuring.Reused | measuring.Failed)
        text = measuring.describe(event)
        if self.runs is not None:
            match event:
                case measuring.Finished(measurement=run):
                    self.end(measuring.describe_run(run, self.ended, self.runs))
                case measuring.Failed(run=run):
                    text = measuring.describe_run(run, self.ended, self.runs)
        answer = False
        if isinstance(event, measuring.Concluded):
            from workbench.study import SoFar  # noqa: PLC0415 - as above

            answer = isinstance(event.what, SoFar)
        for line in (text or "").splitlines():
            if answer or isinstance(event, measuring.Failed | measuring.Abandoned):
                self.keep(line)
            elif self.runs is None or self.ended >= self.runs[1]:
                self.show(line)
            else:
                self.show(f"run {self.ended + 1} of at most {self.runs[1]} · {line}")


@contextmanager
def progress(
    most_s: float | None = None, *, runs: tuple[int, int] | None = None, timed: bool = True
) -> Iterator[Progress]:
    """Show progress on standard error: on a terminal in one line that is overwritten, elsewhere line by line.

    The line also shows what is left of `most_s`, if known; work that is not `timed`, because it is simulated, takes
    no time.
    """
    begun = time.monotonic()
    screen = Console(stderr=True, markup=False, highlight=False, emoji=False)
    if screen.is_terminal and not screen.is_dumb_terminal:
        with screen.status("starting") as line:

            def show(text: str) -> None:
                left = ""
                if timed and most_s:
                    left_s = most_s - time.monotonic() + begun
                    left = f" · about {'a minute' if left_s < 90 else f'{left_s / 60:.0f} min'} left"
                line.update(_one_line(text, left, screen.width - _SPINNER))

            yield Progress(show, lambda text: screen.print(for_terminal(text)), show, runs)
        return
    read = _is_read()

    def write(text: str) -> None:
        if read:
            try:
                print(for_terminal(text), file=sys.stderr, flush=True)
            except BrokenPipeError:
                raise
            except OSError:  # a full disk must not end a measurement
                discard(sys.stderr)

    with closing(Lines(write, timed=timed)) as lines:
        yield Progress(lines.show, lines.keep, lines.keep, runs)


class Lines:
    """Lines for a file or a pipe: the first, those that are kept, and the present step after a minute without a line.

    Where they are `timed`, a line begins with the seconds that have passed.
    """

    def __init__(self, write: Callable[[str], None], *, timed: bool = True) -> None:
        self._write, self._timed = write, timed
        self._begun, self._last = time.monotonic(), -math.inf
        self._lock = threading.RLock()
        self._latest = ""  # the present step, if it is not written yet
        self._timer: threading.Timer | None = None  # writes it

    def show(self, text: str) -> None:
        """Write the present step once nothing was written for a minute, unless another step begins before."""
        with self._lock:
            wait_s = self._last + _SILENCE_S - time.monotonic()
            if wait_s <= 0:
                self.keep(text)
                return
            self._latest = text
            if self._timer is None:
                self._timer = threading.Timer(wait_s, self._ring)
                self._timer.daemon = True
                self._timer.start()

    def keep(self, text: str) -> None:
        """Write a line."""
        with self._lock:
            self.close()
            self._last = time.monotonic()
            self._write(f"[{self._last - self._begun:5.0f} s] {text}" if self._timed else text)

    def close(self) -> None:
        """Drop what is not written yet."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            self._timer, self._latest = None, ""

    def _ring(self) -> None:
        with self._lock, suppress(OSError):  # the reader is gone: the next line in the main thread fails, too
            self._timer = None
            if self._latest:
                self.show(self._latest)


def _one_line(text: str, end: str, width: int) -> Text:
    """Cut a text so that it and its end take one line: a second one would stay in sight after the first is gone."""
    tail = Text(end)
    said = Text(for_terminal(text))
    said.truncate(max(width - tail.cell_len, 1), overflow="ellipsis")
    said.append_text(tail)
    said.truncate(max(width, 1), overflow="ellipsis")
    return said


def _is_read() -> bool:
    """Whether somebody may read standard error, now or later."""
    try:
        mode = os.fstat(sys.stderr.fileno()).st_mode
    except (OSError, ValueError):  # closed, or replaced by a text in memory
        return False
    return sys.stderr.isatty() or any(kind(mode) for kind in (stat.S_ISREG, stat.S_ISFIFO, stat.S_ISSOCK))
