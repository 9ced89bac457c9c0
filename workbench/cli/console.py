"""What all commands share: exit codes, and files refused before a long run. `--help` imports it, so it is light."""

import os
import sys
from collections.abc import Iterable
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO

from workbench.errors import WorkbenchError
from workbench.escaping import for_terminal

DONE, NOT_SUSTAINED, BAD_INPUT, SOURCE_BOUND, DEFECT, INTERRUPTED = 0, 1, 2, 3, 70, 130
PIPE_CLOSED = 141  # as a shell reports a program whose output pipe was closed
JOURNAL = ".workbench/journal.jsonl"
KEPT = "what was measured is in the journal, and the same command goes on from there"  # printed after an interruption


def check_file(path: str) -> None:
    """Refuse a place that cannot be written to, before a long run."""
    try:
        if Path(path).is_dir():
            raise WorkbenchError(f"{path!r} is a folder; give the name of a file in it.")
        if Path(path).exists() and not Path(path).is_file():  # a pipe or a terminal is written directly
            writable, place = os.access(path, os.W_OK), Path(path)
        else:
            place = next((one for one in Path(os.path.realpath(path)).parents if one.exists()), Path())
            writable = place.is_dir() and os.access(place, os.W_OK)
    except (OSError, ValueError) as error:  # a name too long, or with a NUL
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise WorkbenchError(f"{path!r} cannot be written: {reason}. Choose another place.") from error
    if not writable:
        raise WorkbenchError(
            f"{path!r} cannot be written: {str(place)!r} is not a folder that may be written to. Choose another place."
        )


def check_files(written: Iterable[str | None], read: Iterable[str | None] = ()) -> None:
    """Refuse places that cannot be written to, and a file that is named twice: one would overwrite the other."""
    taken = {_place(path) for path in read if path}
    for path in (one for one in written if one is not None):
        check_file(path)
        if Path(path).exists() and not Path(path).is_file():  # a pipe can take several
            continue
        place = _place(path)
        if place in taken:
            raise WorkbenchError(
                f"{path!r} would be overwritten: the command or its study names it twice. Choose another place."
            )
        taken.add(place)


def _place(path: str) -> str:
    try:
        return os.path.realpath(path)
    except ValueError:  # not a path, and refused where it is used
        return path


def check_name(path: str) -> None:
    """Refuse a name that results cannot contain, before a long run: its bytes are not UTF-8."""
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise WorkbenchError(
            f"The name {path!r} is not text in UTF-8, so results cannot hold it. Rename it."
        ) from error


def show(text: str) -> None:
    """Print a line of the answer; untrusted text in it controls no terminal."""
    print(for_terminal(text))


def print_error(text: str) -> None:
    """Print on standard error what is wrong."""
    print_status(f"workbench: {text}")


def print_status(text: str) -> None:
    """Print a line on standard error; without room or a reader, only the exit code reports."""
    try:
        print(for_terminal(text), file=sys.stderr, flush=True)
    except OSError:
        discard(sys.stderr)


def print_partial(error: str | None) -> None:
    """Print on standard error why a report is partial, if it is."""
    if error is not None:
        print_error(f"the report is partial: {error}")


def discard(stream: TextIO) -> None:
    """Send the rest of a stream nowhere: the pipe is closed, or the disk is full."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def finish(stream: TextIO) -> None:
    """Write what a stream still buffers, or discard it if that fails: Python would report an error at exit."""
    try:
        stream.flush()
    except OSError:
        discard(stream)


def open_streams() -> None:
    """Open the streams that the program was started without (``>&-``), so that no other file gets their numbers.

    What their encoding lacks is written as an escape.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - open until the end
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
