"""What the commands share: exit codes, progress on a terminal, files refused before a long run."""

import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from workbench.errors import WorkbenchError
from workbench.measuring import Event, Failed, GivenUp, Rounded, describe

DONE, NOT_SUSTAINED, BAD_INPUT, SOURCE_BOUND, DEFECT, INTERRUPTED = 0, 1, 2, 3, 70, 130
JOURNAL = ".workbench/journal.jsonl"
KEPT = "what was measured is in the journal, and the same command goes on from there"  # said when interrupted


def check_file(path: str | None) -> None:
    """Refuse a place that cannot be written to, before a long run."""
    if path is None:
        return
    try:
        if Path(path).is_dir():
            raise WorkbenchError(f"{path!r} is a folder; give the name of a file in it.")
        if Path(path).exists() and not Path(path).is_file():  # a pipe or a terminal is written straight
            writable, place = os.access(path, os.W_OK), Path(path)
        else:
            place = next((one for one in Path(os.path.realpath(path)).parents if one.exists()), Path())
            writable = place.is_dir() and os.access(place, os.W_OK)
    except (OSError, ValueError) as error:  # a name too long, or with a NUL
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise WorkbenchError(f"{path!r} cannot be written: {reason}. Choose another place.") from error
    if not writable:
        raise WorkbenchError(
            f"{path!r} cannot be written: {str(place)!r} is no folder that may be written to. Choose another place."
        )


@dataclass(frozen=True)
class Progress:
    """Says what goes on: a call overwrites the line of a terminal, `keep` leaves a line there."""

    show: Callable[[str], None]
    keep: Callable[[str], None]

    def __call__(self, text: str) -> None:
        """Say what goes on now."""
        self.show(text)

    def tell(self, event: Event) -> None:
        """Say what happened while something was measured; complete rounds and failures stay in sight."""
        text = describe(event)
        if text is not None:
            (self.keep if isinstance(event, Rounded | Failed | GivenUp) else self.show)(text)


@contextmanager
def progress(most_s: float | None = None) -> Iterator[Progress]:
    """Say what goes on, on standard error: on a terminal in one line that is overwritten, elsewhere line by line.

    Parameters
    ----------
    most_s
        Seconds that it takes at most, as far as is known: the line says what is left of them.
    """
    begun = time.monotonic()
    screen = Console(stderr=True, markup=False, highlight=False, emoji=False)
    if screen.is_terminal and not screen.is_dumb_terminal:
        with screen.status("starting") as line:

            def show(text: str) -> None:
                left = "" if most_s is None else f" · about {_minutes(most_s - time.monotonic() + begun)} left"
                line.update(Text(f"{text}{left}", overflow="ellipsis", no_wrap=True))

            yield Progress(show, screen.print)
        return
    read = _is_read()

    def say(text: str) -> None:
        if read:
            print(f"[{time.monotonic() - begun:5.0f} s] {text}", file=sys.stderr, flush=True)

    yield Progress(say, say)


def _minutes(seconds: float) -> str:
    return "a minute" if seconds < 90 else f"{seconds / 60:.0f} min"


def _is_read() -> bool:
    """Whether somebody may read standard error, now or later."""
    try:
        mode = os.fstat(sys.stderr.fileno()).st_mode
    except (OSError, ValueError):  # closed, or replaced by a text in memory
        return False
    return sys.stderr.isatty() or any(kind(mode) for kind in (stat.S_ISREG, stat.S_ISFIFO, stat.S_ISSOCK))


def tell_partial(error: str | None) -> None:
    """Say on standard error why a report is partial, if it is."""
    if error is not None:
        print(f"workbench: the report is partial: {error}", file=sys.stderr)
