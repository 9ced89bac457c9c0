"""What goes on, on standard error: one line that is overwritten on a terminal, a line each elsewhere."""

import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from workbench.escaping import for_terminal
from workbench.measuring import CutShort, Event, Failed, GivenUp, Rounded, describe

_IN_MINUTES = 90  # seconds, from which on they are given in minutes
_SPINNER = 2  # columns: its sign and a blank


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
            (self.keep if isinstance(event, CutShort | Failed | GivenUp | Rounded) else self.show)(text)


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
                line.update(_one_line(text, left, screen.width - _SPINNER))

            yield Progress(show, lambda text: screen.print(for_terminal(text)))
        return
    read = _is_read()

    def say(text: str) -> None:
        if read:
            print(f"[{time.monotonic() - begun:5.0f} s] {for_terminal(text)}", file=sys.stderr, flush=True)

    yield Progress(say, say)


def _one_line(text: str, end: str, width: int) -> Text:
    """Cut a text so that it and its end take one line: a second one would stay in sight after the first is gone."""
    tail = Text(end)
    said = Text(for_terminal(text))
    said.truncate(max(width - tail.cell_len, 1), overflow="ellipsis")
    said.append_text(tail)
    said.truncate(max(width, 1), overflow="ellipsis")
    return said


def _minutes(seconds: float) -> str:
    return "a minute" if seconds < 90 else f"{seconds / 60:.0f} min"


def _is_read() -> bool:
    """Whether somebody may read standard error, now or later."""
    try:
        mode = os.fstat(sys.stderr.fileno()).st_mode
    except (OSError, ValueError):  # closed, or replaced by a text in memory
        return False
    return sys.stderr.isatty() or any(kind(mode) for kind in (stat.S_ISREG, stat.S_ISFIFO, stat.S_ISSOCK))
