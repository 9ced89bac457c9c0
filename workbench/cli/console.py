"""What the commands share: exit codes, and files refused before a long run. `--help` imports it, so it is light."""

import os
import sys
from pathlib import Path

from workbench.errors import WorkbenchError
from workbench.escaping import for_terminal

DONE, NOT_SUSTAINED, BAD_INPUT, SOURCE_BOUND, DEFECT, INTERRUPTED = 0, 1, 2, 3, 70, 130
PIPE_CLOSED = 141  # what a shell reports of a program whose reader left before it was done
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


def show(text: str) -> None:
    """Print a line of the answer; what is a stranger's in it controls no terminal."""
    print(for_terminal(text))


def complain(text: str) -> None:
    """Say on standard error what is wrong."""
    print(f"workbench: {for_terminal(text)}", file=sys.stderr)


def tell_partial(error: str | None) -> None:
    """Say on standard error why a report is partial, if it is."""
    if error is not None:
        complain(f"the report is partial: {error}")


def discard_output() -> None:
    """Send the rest of standard output nowhere: its reader has closed the pipe."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
