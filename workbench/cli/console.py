"""What the commands share: exit codes, progress on a terminal, files refused before a long run."""

import os
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path

from workbench.errors import WorkbenchError

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


def progress() -> Callable[[str], None]:
    """Say what goes on, to standard error: a terminal, a file or a pipe."""
    if not _is_read():
        return lambda _: None
    begun = time.monotonic()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - begun:5.0f} s] {text}", file=sys.stderr, flush=True)

    return say


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
